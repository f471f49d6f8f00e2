"""An application as it is shown on a terminal: a line per operator, as many columns as fit.

A pure function of what was watched of each operator, for ``geoflux run`` and ``geoflux top`` alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from geoflux.chronicle.decision_words import changes_of
from geoflux.chronicle.wording import count, duration, short
from geoflux.cli import view_parts as parts
from geoflux.cli.run_view import Beside
from geoflux.cli.watched import Watched
from geoflux.engine.epochs import Manifest

_LAST_DECISIONS = 4
_MOST_SLOTS = 24


@dataclass(frozen=True)
class Line:
    """An operator: what it reads, what was watched of it, and the rows that it has yet to read or
    to get to (``None``: nobody knows)."""

    name: str
    reads: Sequence[str]
    watched: Watched
    waiting: int | None


Cell = Callable[[Line, float], str]


def _latency(line: Line, place: int) -> str:
    found = line.watched.latency()[place]
    return "" if found is None else duration(found)


def _waiting(line: Line, _: float) -> str:
    if line.waiting is None:
        return "?"
    return f"[yellow]{short(line.waiting)}" if line.waiting else "0"


def _slots(line: Line, _: float) -> str:
    loads = line.watched.loads()
    return f"{len(loads)} {parts.bars(loads[:_MOST_SLOTS])}" if loads else ""


_COLUMNS: tuple[tuple[str, int, Cell], ...] = (
    ("reads", 110, lambda line, _: ", ".join(line.reads)),
    ("rows/s", 0, lambda line, now: short(line.watched.rate(now))),
    ("rows", 90, lambda line, _: count(line.watched.totals["processed"])),
    ("results", 100, lambda line, _: count(line.watched.results)),
    ("waiting", 0, _waiting),
    ("latency", 0, lambda line, _: _latency(line, 0)),
    ("p99", 70, lambda line, _: _latency(line, 1)),
    ("slots", 0, _slots),
)
"""Headings, the width from which on a column is there, and what it says."""


def application_view(lines: Sequence[Line], beside: Beside, scaling: str, width: int) -> Group:
    """The whole view, at most so many columns wide."""
    shown: list[Any] = [parts.heading([duration(beside.elapsed), beside.standing])]
    outer = next((line.watched for line in lines if line.reads == ["outside"]), None)
    if beside.total and outer is not None and outer.epochs:
        shown.append(parts.progress(outer.position, beside.total, outer.advance(), width))
    shown.append(_table(lines, beside.now, width))
    decided = _decided(lines)
    if decided:
        shown.append(parts.decisions(decided[-_LAST_DECISIONS:], width))
    if scaling:
        shown.append(Text(scaling, style="dim", overflow="ellipsis", no_wrap=True))
    if beside.note:
        shown.append(Text(beside.note, style="dim"))
    return Group(*shown)


def _decided(lines: Sequence[Line]) -> list[tuple[float, str, Manifest]]:
    """Changes of plans in the order of time, which counts from the first epoch of anybody."""
    began = min((line.watched.began or math.inf for line in lines), default=0.0)
    found = [
        (m["committed"] - began, line.name, m)
        for line in lines
        for _, m in line.watched.decisions
        if changes_of(m)
    ]
    return sorted(found, key=lambda told: told[0])


def _table(lines: Sequence[Line], now: float, width: int) -> Table:
    there = [(heading, cell) for heading, least, cell in _COLUMNS if width >= least]
    table = Table(box=None, padding=(0, 2 if width >= 100 else 1, 0, 0), header_style="dim")
    table.add_column("operator", style="bold", no_wrap=True, overflow="ellipsis", max_width=20)
    for heading, _ in there:
        right = heading not in ("reads", "slots")
        table.add_column(
            heading, justify="right" if right else "left", no_wrap=True, overflow="ellipsis",
            min_width=7 if right else None, style="dim" if heading == "reads" else None,
        )  # fmt: skip
    for line in lines:
        table.add_row(Text(line.name), *(cell(line, now) for _, cell in there))
    return table


def application_line(lines: Sequence[Line], beside: Beside) -> str:
    """Where an application is, where there is no terminal."""
    told = []
    for line in lines:
        waiting = "?" if line.waiting is None else short(line.waiting)
        latency = parts.latency_words(line.watched.latency())
        rate = short(line.watched.rate(beside.now))
        told.append(f"{line.name} {rate} rows/s, latency {latency}, {waiting} waiting")
    return f"{duration(beside.elapsed)}: {'; '.join(told)}"


def waiting_by_manifests(
    tables: Sequence[Mapping[str, Any]], watched: Mapping[str, Watched], name: str
) -> int | None:
    """Rows that the operators which one reads have committed for it, without those that it has
    received, and with those that it handed back to itself. ``tables`` are the application's as it
    was written down; ``None`` where the rows of a stream are not told."""
    streams = {table["name"]: table["streams"] for table in tables}
    reads = next(table["reads"] for table in tables if table["name"] == name)
    there = 0
    for stream in reads:
        operator, _, which = stream.partition(".")
        if operator not in streams:
            return watched[name].carried
        if which not in watched[operator].written and watched[operator].epochs:
            return None
        there += watched[operator].written[which]
    unread = there - watched[name].totals["received"]
    return max(unread, 0) + watched[name].carried


def reads_by_tables(tables: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """What an operator reads, as short as it is clear."""
    streams = {table["name"]: table["streams"] for table in tables}
    reads = next(table["reads"] for table in tables if table["name"] == name)
    operators = [(stream, stream.partition(".")[0]) for stream in reads]
    if any(operator not in streams for _, operator in operators):
        return ["outside"]
    return [s if len(streams[operator]) > 1 else operator for s, operator in operators]
