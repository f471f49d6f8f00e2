"""An answer to a snapshot as a person wants it: a table, and what it took to find it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from geoflux.chronicle.wording import plural
from geoflux.engine.answers import Answer


def print_answer(console: Console, answer: Answer, most: int) -> None:
    """The first rows, and how much was read for them."""
    shown = answer.rows.slice(0, most)
    title = "aggregate" if answer.is_aggregate else plural(answer.matched, "event")
    table = Table(title=title, title_justify="left")
    names = [name for name in shown.schema.names if _says_something(answer, name)]
    for name in names:
        number = shown.schema.field(name).type
        table.add_column(escape(name), justify="left" if str(number) == "string" else "right")
    for row in shown.select(names).to_pylist():
        table.add_row(*(escape(told(row[name])) for name in names))
    if len(shown):
        console.print(table)
    if len(answer.rows) > len(shown):
        console.print(f"and {plural(len(answer.rows) - len(shown), 'row')} more")
    console.print(
        f"{plural(answer.matched, 'event')} matched; read {answer.partitions_read} of "
        f"{plural(answer.partitions_retained, 'partition')}, {answer.segments_read} of "
        f"{plural(answer.segments_retained, 'segment')}, {plural(answer.events_read, 'event')}",
        highlight=False,
    )


def _says_something(answer: Answer, name: str) -> bool:
    """Windows are shown only where there are some."""
    windows = ("window_start", "window_end")
    return not (name in windows and answer.rows.column(name).null_count == len(answer.rows))


def told(value: Any) -> str:
    """A value in a cell.

    >>> told(None), told(0.1 + 0.2), told(12000), told(True), told("a")
    ('-', '0.3', '12000', 'True', 'a')
    """
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "")
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(value)
