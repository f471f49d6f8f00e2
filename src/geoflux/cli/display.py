"""What a person sees while a run goes and when it is over; quiet when piped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from geoflux.chronicle.decision_words import (
    changes_of,
    is_decision,
    reason_of,
    told_changes,
    told_round,
)
from geoflux.chronicle.guard_words import blocks_of, evidence_in_short, told_guard
from geoflux.chronicle.plan_history import busiest_over_mean, plan_of
from geoflux.chronicle.wording import plural
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.summary import Summary, latencies
from geoflux.engine.verify import Verification
from geoflux.guard import Block
from geoflux.settings import seconds
from geoflux.state.keys import store_of

_RECENT = 8
_LAST_DECISIONS = 5
_LAST_BLOCKS = 3
_BARS = " ▁▂▃▄▅▆▇█"


class Display:
    """A live view of a run on a terminal; a line every few seconds elsewhere."""

    counted: tuple[str, ...] = ("processed", "matches", "quarantined")
    """What is added up over the epochs."""

    def __init__(self, console: Console, config: Config, out: Path) -> None:
        self._console = console
        self._config = config
        self._out = out
        self._recent: list[Manifest] = []
        self._totals = dict.fromkeys(self.counted, 0)
        self._note = "starting Spark"
        self._round = ""
        self._decisions: list[tuple[float, Manifest]] = []
        self._blocks: list[tuple[float, Block]] = []
        self._partitions: tuple[int, int] | None = None
        self._told_plan: int | None = None
        self._said = 0.0
        self._started = time.time()
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live = Live(self._view(), console=self._console, refresh_per_second=4)
            self._live.__enter__()
        else:
            self._console.print(f"geoflux: starting Spark; results go to {self._out}")
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*problem)

    def say(self, note: str) -> None:
        """Tell the person something."""
        self._note = note
        if self._live is None:
            self._console.print(f"geoflux: {note}")
        else:
            self._live.update(self._view())

    def epoch(self, manifest: Manifest) -> None:
        """An epoch was committed."""
        self._recent = [*self._recent, manifest][-_RECENT:]
        for name in self._totals:
            self._totals[name] += manifest[name]
        self._note = ""
        self._hear(manifest)
        self._hear_of_blocks(manifest)
        if self._live is not None:
            self._live.update(self._view())
        elif time.time() - self._said > 5:
            self._said = time.time()
            told = f"epoch {manifest['epoch']}: {self._line(manifest)}{self._new_plan(manifest)}"
            self._console.print(told, markup=False)

    def _line(self, last: Manifest) -> str:
        """Where a run is, where there is no terminal."""
        return f"{self._totals['processed']:,} events, {self._totals['matches']:,} matches"

    def _hear(self, manifest: Manifest) -> None:
        """Remember what was decided; the same decision over and over is a note, as before."""
        if manifest.get("round"):
            self._round = told_round(manifest["round"])
        if changes_of(manifest) or manifest.get("round"):
            self._decisions.append((time.time() - self._started, manifest))
        elif self._decisions and is_decision(manifest):
            if reason_of(manifest) != reason_of(self._decisions[-1][1]):
                self._decisions.append((time.time() - self._started, manifest))
        else:
            self._note = reason_of(manifest)
        self._decisions = self._decisions[-_LAST_DECISIONS:]

    def _hear_of_blocks(self, manifest: Manifest) -> None:
        """Who is blocked is said at once, also where there is no terminal."""
        new = blocks_of(manifest)
        self._blocks += [(time.time() - self._started, block) for block in new]
        self._blocks = self._blocks[-_LAST_BLOCKS:]
        if self._live is None:
            for block in new[:_LAST_BLOCKS]:
                self._console.print(f"geoflux: {block.told()}", markup=False)
            if len(new) > _LAST_BLOCKS:
                rest = plural(len(new) - _LAST_BLOCKS, "more user")
                self._console.print(f"geoflux: and {rest}; geoflux guard list {self._out}")

    def _new_plan(self, manifest: Manifest) -> str:
        """That the plan is another one than when a line was last printed."""
        before, self._told_plan = self._told_plan, manifest["next_plan"]
        same = before in (None, self._told_plan) and manifest["plan"] == self._told_plan
        return "" if same else f"; plan {self._told_plan} from now on"

    def _view(self) -> Group:
        figures = Table.grid(padding=(0, 3))
        elapsed = time.time() - self._started
        length = self._config.run.duration
        of = (
            f" of {seconds(length):.0f}"
            if length and self._config.source.kind == "simulate"
            else ""
        )
        figures.add_row("[dim]elapsed", f"{elapsed:.0f}{of} s", "[dim]slots", self._slots())
        if self._recent:
            for row in self._rows(self._recent[-1]):
                figures.add_row(*row)
        parts: list[Any] = [Text("geoflux", style="bold cyan"), figures]
        if self._decisions:
            parts.append(_told(self._decisions))
        if self._blocks:
            parts.append(_told_blocks(self._blocks))
        if self._note or not self._decisions:
            parts.append(Text(self._note, style="dim"))
        return Group(*parts)

    def _rows(self, last: Manifest) -> list[tuple[str, ...]]:
        """The figures, two a row with a name each."""
        totals = self._totals
        return [
            ("[dim]epoch", f"{last['epoch']:,}", "[dim]queries", f"{last['live_queries']:,}"),
            ("[dim]events", f"{totals['processed']:,}", "[dim]matches", f"{totals['matches']:,}"),
            ("[dim]capacity", self._capacity("events"), "[dim]latency", self._latency()),
            ("[dim]plan", self._plan(last), "[dim]quarantined", f"{totals['quarantined']:,}"),
            (
                "[dim]busiest slot", self._busiest(),
                *(("[dim]swarm", self._round) if self._round else ()),
            ),
            *([("[dim]guard", told_guard(last["guard"]))] if last.get("guard") else []),
        ]  # fmt: skip

    def _capacity(self, noun: str) -> str:
        spent = sum(m["committed"] - m["opened"] for m in self._recent)
        rate = sum(m["processed"] for m in self._recent) / max(spent, 1e-9)
        return f"{rate:,.0f} {noun}/s"

    def _latency(self) -> str:
        p50, p99 = latencies(self._recent)
        return f"p50 {p50 or 0:.2f} s   p99 {p99 or 0:.2f} s"

    def _busiest(self) -> str:
        ratio = busiest_over_mean(self._recent, self._config.engine.slots)
        return "-" if ratio is None else f"{ratio:.2f} times the mean"

    def _plan(self, last: Manifest) -> str:
        """Version and number of partitions; a plan is read once."""
        version = last["next_plan"]
        if self._partitions is None or self._partitions[0] != version:
            plan = plan_of(store_of(self._out), version)
            self._partitions = None if plan is None else (version, len(plan.partitions))
        if self._partitions is None:
            return f"version {version}"
        return f"version {version}, {plural(self._partitions[1], 'partition')}"

    def _slots(self) -> str:
        """Busy time of every slot in the last epoch as a row of bars."""
        if not self._recent:
            return ""
        busy = [s["busy_seconds"] for s in self._recent[-1]["slots"]]
        top = max(busy, default=0.0) or 1.0
        return "".join(_BARS[round(b / top * (len(_BARS) - 1))] for b in busy)


def _told(decisions: list[tuple[float, Manifest]]) -> Table:
    """The last decisions, newest first: when, what, why; a line each."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for when, m in reversed(decisions):
        changes = changes_of(m)
        done = told_changes(changes) if changes else "no change"
        table.add_row(f"at {when:.0f} s", done, Text(reason_of(m)))
    return table


def _told_blocks(blocks: list[tuple[float, Block]]) -> Table:
    """The last blocks, newest first: when, who and why, and the evidence in short."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for when, block in reversed(blocks):
        row = (block.told(), evidence_in_short(block))
        table.add_row(f"at {when:.0f} s", *(Text(words) for words in row))
    return table


def print_summary(console: Console, summary: Summary, out: Path, report: str) -> None:
    """The table at the end of a run."""
    table = Table(title="what happened", title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    latency = (
        "-" if summary.latency_p50_seconds is None
        else f"{summary.latency_p50_seconds:.2f} s / {summary.latency_p99_seconds:.2f} s"
    )  # fmt: skip
    busiest = summary.busiest_over_mean
    ratio = "-" if busiest is None else f"{busiest:.2f}"
    rows = [
        ("epochs", f"{summary.epochs:,}"),
        ("events received", f"{summary.received:,}"),
        ("  processed", f"{summary.processed:,}"),
        ("  quarantined", f"{summary.quarantined:,}"),
        ("  carried over", f"{summary.carried_out:,}"),
        ("control records rejected", f"{summary.control_rejected:,}"),
        ("standing queries", f"{summary.live_queries:,}"),
        ("matches", f"{summary.matches:,}"),
        *(
            (name, f"{value:,}")
            for name, value in (
                ("window results", summary.aggregates),
                ("late events", summary.late),
                ("snapshots answered", summary.snapshots),
                ("events retained", summary.retained),
                ("users blocked", summary.blocked),
                ("  their requests refused", summary.refused),
            )
            if value
        ),
        ("throughput while busy", f"{summary.events_per_second:,.0f} events/s"),
        ("latency p50 / p99", latency),
        ("busiest slot over mean", ratio),
        ("plan", f"{summary.balance}, {summary.slots} slots, version {summary.plan_version}"),
    ]  # fmt: skip
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)
    for code, count in summary.reasons.items():
        console.print(f"  [yellow]{count:,}[/] quarantined: {code}")
    console.print(f"results in [bold]{out}[/], report in [bold]{report}[/]")


def print_verification(console: Console, found: Verification) -> None:
    """The verdict of a verification."""
    table = Table(title="verification", title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    names = ("epochs", "events", "late", "quarantined", "matches", "missing", "duplicate", "extra",
             "windows", "wrong_windows")  # fmt: skip
    for name in names:
        value = getattr(found, name)
        bad = value and name in ("missing", "duplicate", "extra", "wrong_windows")
        label = name.replace("_", " ")
        table.add_row(label, f"[red]{value:,}[/]" if bad else f"{value:,}")
    console.print(table)
    for line in (*found.problems, *found.examples):
        console.print(f"  [red]{line}[/]")
    verdict = (
        "[green]every match and window is right[/]"
        if found.is_clean
        else "[red]the run is wrong[/]"
    )
    console.print(verdict)


@contextlib.contextmanager
def progress_bar(console: Console, title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for long work: call it with (done, total)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
