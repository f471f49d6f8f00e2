"""What is told when the run of an operator with a key is over."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from geoflux.chronicle.wording import count, plural, size
from geoflux.keyed_api import OperatorSummary


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
