"""A run as it is shown on a terminal: a pure function of what was watched and of what is known
beside the manifests, for whoever runs it (``geoflux run``) and whoever looks on (``geoflux top``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from geoflux.chronicle.guard_words import told_guard
from geoflux.chronicle.wording import count, duration, plural, short
from geoflux.cli import view_parts as parts
from geoflux.cli.operator_memory import Memory
from geoflux.cli.watched import Watched
from geoflux.engine.epochs import Manifest


@dataclass(frozen=True)
class Beside:
    """What is known of a run beside its manifests."""

    now: float
    elapsed: float
    total: int | None = None
    """Positions of its source that will ever come."""
    unread: int | None = None
    """Rows that are there and were not read; ``None`` where nobody knows."""
    partitions: int | None = None
    standing: str = ""
    """Whether it goes on, where that is not plain."""
    note: str = ""


def run_view(watched: Watched, beside: Beside, width: int) -> Group:
    """The whole view, at most so many columns wide."""
    epoch = f"epoch {count(watched.epochs - 1)}" if watched.epochs else ""
    shown: list[Any] = [
        parts.heading([duration(beside.elapsed), epoch, beside.standing]),
    ]
    if beside.total and watched.epochs:
        shown.append(parts.progress(watched.position, beside.total, watched.advance(), width))
    if watched.last is not None:
        shown += [
            parts.figures(_figures(watched, watched.last, beside), width),
            parts.figures(_sentences(watched, watched.last), width, most=1),
            parts.slot_bars(watched.loads(), width),
        ]
    if watched.decisions:
        told = [(when, "", manifest) for when, manifest in watched.decisions]
        shown.append(parts.decisions(told, width))
    if watched.blocks:
        shown.append(parts.blocks(watched.blocks))
    note = beside.note or watched.note
    if note:
        shown.append(Text(note, style="dim"))
    return Group(*shown)


def is_operator(manifest: Manifest) -> bool:
    """Whether an epoch is one of an operator with a key, not of standing queries."""
    return "results" in manifest


def noun_of(manifest: Manifest) -> str:
    """What its rows are called."""
    return "rows" if is_operator(manifest) else "events"


def _figures(watched: Watched, last: Manifest, beside: Beside) -> Sequence[parts.Figure]:
    noun, totals = noun_of(last), watched.totals
    busiest = watched.busiest_over_mean()
    first = [
        ("rate", f"{short(watched.rate(beside.now))} {noun}/s"),
        ("latency", parts.latency_words(watched.latency())),
        (noun, count(totals["processed"])),
        ("results" if is_operator(last) else "matches", count(watched.results)),
        ("capacity", f"{short(watched.capacity())} {noun}/s"),
        ("quarantined", count(totals["quarantined"])),
    ]
    waiting = plural(watched.carried + (beside.unread or 0), noun.removesuffix("s"))
    busy = ("busiest", "-" if busiest is None else f"{busiest:.2f} times the mean")
    plan = ("plan", _plan(last, beside.partitions))
    if is_operator(last):
        held = Memory.of(last)
        unread = f"{plural(beside.unread, 'row')}; " if beside.unread else ""
        return [
            *first, ("waiting", unread + held.waiting), busy, plan, ("in memory", held.in_memory),
            ("on disk", held.on_disk), ("per slot", held.bars),
        ]  # fmt: skip
    return [
        *first, ("waiting", waiting), ("queries", count(last["live_queries"])), plan, busy,
    ]  # fmt: skip


def _sentences(watched: Watched, last: Manifest) -> Sequence[parts.Figure]:
    """Figures that take a line of their own."""
    guard = last.get("guard")
    return [
        *([("swarm", watched.round)] if watched.round else []),
        *([("guard", told_guard(guard))] if guard else []),
    ]


def _plan(last: Manifest, partitions: int | None) -> str:
    told = f"version {last['next_plan']}"
    return told if partitions is None else f"{told}, {plural(partitions, 'partition')}"


def run_line(watched: Watched, now: float, unread: int | None = None) -> str:
    """Where a run is, in a line, where there is no terminal."""
    last = watched.last
    if last is None:
        return "no epoch yet"
    noun = noun_of(last)
    words = [
        f"epoch {last['epoch']}: {short(watched.rate(now))} {noun}/s",
        f"latency {parts.latency_words(watched.latency())}",
        f"{count(watched.totals['processed'])} {noun}",
        f"{count(watched.results)} {'results' if is_operator(last) else 'matches'}",
    ]
    waiting = watched.carried + (unread or 0)
    words += [f"{count(waiting)} waiting"] if waiting else []
    if is_operator(last) and Memory.of(last).spilled:
        words.append(Memory.of(last).on_disk)
    return ", ".join(words)
