"""What a person sees while an operator with a key runs, and what is told at the end."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from geoflux.chronicle.wording import count, plural, size
from geoflux.cli.display import Display
from geoflux.cli.operator_memory import Memory
from geoflux.engine.epochs import Manifest
from geoflux.keyed_api import OperatorSummary


class OperatorDisplay(Display):
    """A live view of an operator's run: rows and results, what is in memory, on disk, and waits."""

    counted = ("processed", "results", "quarantined")

    def _line(self, last: Manifest) -> str:
        held = Memory.of(last)
        told = f"{self._totals['processed']:,} rows, {self._totals['results']:,} results"
        return told + (f"; {held.on_disk}" if held.spilled else "")

    def _rows(self, last: Manifest) -> list[tuple[str, ...]]:
        totals, held = self._totals, Memory.of(last)
        return [
            ("[dim]epoch", f"{last['epoch']:,}", "[dim]results", f"{totals['results']:,}"),
            ("[dim]rows", f"{totals['processed']:,}", "[dim]quarantined",
             f"{totals['quarantined']:,}"),
            ("[dim]capacity", self._capacity("rows"), "[dim]latency", self._latency()),
            ("[dim]plan", self._plan(last), "[dim]busiest slot", self._busiest()),
            ("[dim]in memory", held.in_memory, "[dim]on disk", held.on_disk),
            ("[dim]waiting", held.waiting, "[dim]per slot", held.bars),
        ]  # fmt: skip


def print_operator_summary(
    console: Console, summary: OperatorSummary, out: Path, report: str
) -> None:
    """The table at the end of a run."""
    table = Table(title="what happened", title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    busiest = summary.busiest_over_mean
    on_disk = f"{count(summary.spilled)}, {size(summary.spilled_bytes)}"
    for name, value in (
        ("epochs", count(summary.epochs)),
        ("rows received", count(summary.received)),
        ("  processed", count(summary.processed)),
        ("  quarantined", count(summary.quarantined)),
        ("  carried over", count(summary.carried_out)),
        ("results", count(summary.results)),
        ("throughput", f"{count(summary.rows_per_second)} rows/s"),
        ("busiest slot over mean", "-" if busiest is None else f"{busiest:.2f}"),
        ("moves", count(summary.moves)),
        ("partitions on disk, most at once", count(summary.most_spilled)),
        ("partitions on disk at the end", on_disk),
        ("rows that wait for them", count(summary.spooled)),
        ("slots", count(summary.slots)),
    ):
        table.add_row(name, value)
    console.print(table)
    for code, number in summary.reasons.items():
        console.print(f"  [yellow]{plural(number, 'row')}[/] quarantined: {code}")
    console.print(f"results in [bold]{out}[/], report in [bold]{report}[/]")
