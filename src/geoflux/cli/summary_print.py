"""What is printed when a run is over, and when one was verified."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from geoflux.engine.summary import Summary
from geoflux.engine.verify import Verification


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
