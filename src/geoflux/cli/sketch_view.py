"""An answer of a sketch as a person wants it: a table, each number with its error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from geoflux.chronicle.wording import plural
from geoflux.cli.snapshot_view import told
from geoflux.engine.sketch_verify import SketchVerification
from geoflux.sketch.answers import Answer, KeyColumn, Values
from geoflux.sketch.measures import EXACT, FALSE_POSITIVE, KINDS, Measure

_MEANINGS = {
    "exact": "numbers without ± are exact",
    "bound": "± of a bound: the truth is within it 95 times of 100, and within low and high always",
    "standard error": "± of an estimate is one standard error",
    "false positive probability": "a yes is wrong with the probability beside it",
}
_MOST_IN_A_CELL = 11
_MOST_ACROSS = 4
"""A single row with more columns is shown from top to bottom."""


def print_answer(console: Console, answer: Answer, most: int) -> None:
    """The first rows, what the errors mean, and what is to be known about the answer."""
    if answer.table is not None:
        _print_table(console, answer, most)
        return
    rows = min(len(answer), most)
    kinds: set[int] = set()
    columns = [one for column in answer.columns for one in _cells(column, rows, kinds)]
    if rows == 1 and len(columns) > _MOST_ACROSS:
        table = Table(show_header=False)
        table.add_column(style="dim")
        table.add_column(justify="right")
        for name, values, _ in columns:
            table.add_row(escape(name), escape(values[0]))
    else:
        table = Table(title=plural(len(answer), "row"), title_justify="left")
        for name, _, justify in columns:
            table.add_column(escape(name), justify=justify)  # type: ignore[arg-type]
        for row in zip(*(values for _, values, _ in columns), strict=True):
            table.add_row(*(escape(cell) for cell in row))
    console.print(table)
    if len(answer) > rows:
        console.print(f"and {plural(len(answer) - rows, 'row')} more")
    for kind in sorted(kinds - ({EXACT} if kinds != {EXACT} else set())):
        console.print(f"[dim]{_MEANINGS[KINDS[kind]]}", highlight=False)
    for note in answer.notes:
        console.print(f"[dim]{escape(note)}", highlight=False)


def print_sketch_verification(console: Console, found: SketchVerification) -> None:
    """The verdict of a verification."""
    table = Table(title="verification", title_justify="left", show_header=False)
    table.add_column(style="dim")
    table.add_column(justify="right")
    bad = ("missing", "doubled", "extra")
    for name, value in found.as_dict().items():
        if isinstance(value, int) and not isinstance(value, bool):
            wrong = value and (name in bad or name.startswith("wrong"))
            table.add_row(name.replace("_", " "), f"[red]{value:,}[/]" if wrong else f"{value:,}")
    console.print(table)
    for line in (*found.problems, *found.examples):
        console.print(f"  [red]{escape(line)}[/]", highlight=False)
    console.print(
        "[green]every observation is in the sketch once, and every number is right[/]"
        if found.is_clean
        else "[red]the sketch is wrong[/]"
    )


def _print_table(console: Console, answer: Answer, most: int) -> None:
    assert answer.table is not None
    total = answer.table.num_rows
    is_graph = answer.edges is not None
    shown = _readable(answer.table.slice(0, most), is_graph)
    table = Table(title=_counted(total, is_graph), title_justify="left")
    for field in shown.schema:
        table.add_column(
            escape(field.name), justify="left" if str(field.type) == "string" else "right"
        )
    for row in shown.to_pylist():
        table.add_row(*(escape(told(value)) for value in row.values()))
    console.print(table)
    if total > most:
        console.print(f"and {_counted(total - most, is_graph)} more")
    if len(shown.schema) < len(answer.table.schema):
        console.print(
            "[dim]features by their means; all columns are in --json and --out", highlight=False
        )
    if answer.edges is not None:
        console.print(f"[dim]{plural(answer.edges.num_rows, 'edge')} between them")


def _counted(number: int, is_graph: bool) -> str:
    if not is_graph:
        return plural(number, "row")
    return f"{number:,} {'vertex' if number == 1 else 'vertices'}"


def _readable(table: pa.Table, is_graph: bool) -> pa.Table:
    """Of leaves the columns that fit a terminal; of a graph, times as such."""
    names = table.schema.names
    if is_graph:
        levels = table.column("level").to_pylist()
        for name in ("from", "to"):
            texts = [
                str(np.datetime64(int(value), "s")).replace("T", " ")
                if level == "time" and value is not None
                else told(value)
                for level, value in zip(levels, table.column(name).to_pylist(), strict=True)
            ]
            table = table.set_column(names.index(name), name, pa.array(texts, pa.string()))
        return table
    if "time_level" not in names:
        return table
    means = [name for name in names if name.endswith("_mean")]
    kept = table.select(["region", "time", "time_level", "count", *means])
    return kept.rename_columns([name.removesuffix("_mean") for name in kept.schema.names])


def _cells(
    column: KeyColumn | Values, rows: int, kinds: set[int]
) -> list[tuple[str, list[str], str]]:
    if isinstance(column, KeyColumn):
        texts = [str(value).replace("T", " ") for value in column.values[:rows]]
        return [(column.name, texts, "left")]
    out = []
    for name, measure in column.parts():
        kinds.update(np.unique(measure.kind[:rows]).tolist())
        out.append((name, [cell_of(measure, row) for row in range(rows)], "right"))
    return out


def cell_of(measure: Measure, row: int) -> str:
    """A number with its error; several of them one after another.

    >>> from geoflux.sketch.measures import bounded
    >>> numbers = bounded(np.array([2.0, 3.0]), np.array([2.0, 2.5]), np.array([2.0, 4.0]))
    >>> cell_of(numbers, 0), cell_of(numbers, 1)
    ('2', '3.0 ± 1.0')
    """
    value, error, kind = measure.value[row], measure.error[row], measure.kind[row]
    if np.ndim(value):
        some = [_number(one) for one in value[:_MOST_IN_A_CELL]]
        return ", ".join(some) + (", …" if len(value) > _MOST_IN_A_CELL else "")
    if measure.truth:
        word = "-" if np.isnan(value) else "yes" if value > 0 else "no"
        return f"{word} ({error:.2g})" if kind == FALSE_POSITIVE and value > 0 else word
    if kind == EXACT or not error > 0:
        return _number(value)
    return f"{_number(value, error)} ± {_number(error, error)}"


def _number(value: Any, error: float | None = None) -> str:
    """As many digits as mean anything beside the error."""
    if not np.isfinite(value):
        return "-"
    if error is None or not np.isfinite(error):
        return f"{value:.9g}"
    digits = 1 - int(np.floor(np.log10(error)))
    if digits <= 0:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}" if digits <= 9 else f"{value:.9g}"
