"""How benchmarks show their figures: a table, with the bar of each figure that has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

Bars = Mapping[str, tuple[str, float]]


def print_result(console: Console, title: str, result: Mapping[str, Any], bars: Bars) -> None:
    """One row per figure; a dictionary of seconds is one row of its parts."""
    table = Table(title=title, title_justify="left")
    for column in ("figure", "measured", "bar", ""):
        table.add_column(column, justify="right" if column == "measured" else "left")
    for name, value in result.items():
        if isinstance(value, dict):
            table.add_row(name, ", ".join(f"{k} {v * 1000:.0f} ms" for k, v in value.items()))
            continue
        sign, bar = bars.get(name, ("", None))
        met = ""
        if bar is not None:
            met = "met" if (value >= bar if sign == ">=" else value <= bar) else "[red]missed[/]"
        table.add_row(name, _shown(value), "" if bar is None else f"{sign} {bar:g}", met)
    console.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    small = isinstance(value, float) and abs(value) < 1000
    return f"{value:,.3g}" if small else f"{value:,.0f}"
