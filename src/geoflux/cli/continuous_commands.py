"""``geoflux continuous``: queries of a sketch that its run answers by itself, epoch by epoch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

continuous = typer.Typer(
    no_args_is_help=True, help="Queries of a sketch that its run answers, epoch by epoch.",
    rich_markup_mode=None,
)  # fmt: skip
Directory = Annotated[Path, typer.Argument(help="The directory of a run, stopped or not.")]
Name = Annotated[str, typer.Argument(help="Letters, digits, - and _.")]
Json = Annotated[bool, typer.Option("--json", help="Answers as JSON, one a line; nothing else.")]


@continuous.command(
    "place",
    epilog='Example:  geoflux continuous place out storms "SELECT count(*) WHERE wind_ms > 25"',
)
def place_command(
    directory: Directory,
    name: Name,
    asked: Annotated[str, typer.Argument(help="SQL, or JSON; - reads it from standard input.")],
    every: Annotated[str, typer.Option(help="epoch, or a duration such as 60s.")] = "",
) -> None:
    """Place a query on a run: from its next epoch on it is answered, each epoch once."""
    from geoflux.engine.continuous import place
    from geoflux.engine.sketch_reader import SketchReader

    given = sys.stdin.read() if asked == "-" else asked
    place(SketchReader(directory), name, given, every or None)
    Console().print(
        f"{name} is placed; its answers: geoflux continuous show {escape(str(directory))} {name}",
        soft_wrap=True, highlight=False,
    )  # fmt: skip


@continuous.command("drop", epilog="Example:  geoflux continuous drop out storms")
def drop_command(directory: Directory, name: Name) -> None:
    """Take a placed query away; its answers stay."""
    from geoflux.engine.continuous import drop
    from geoflux.engine.sketch_reader import SketchReader

    drop(SketchReader(directory), name)
    Console().print(f"{name} is no longer asked", highlight=False)


@continuous.command("show", epilog="Example:  geoflux continuous show out storms --json")
def show_command(
    directory: Directory,
    name: Annotated[str, typer.Argument(help="One query; all of them if none.")] = "",
    after: Annotated[int, typer.Option(help="Only answers of later epochs.")] = -1,
    as_json: Json = False,
) -> None:
    """The queries of a run and their last answers; with --json all answers."""
    from geoflux.engine.continuous import answers, configured, placed
    from geoflux.engine.sketch_reader import SketchReader
    from geoflux.errors import ConfigError

    reader = SketchReader(directory)
    schema = reader.operator.schema
    every = [
        *configured(reader.config.sketch.continuous, schema), *placed(reader.store, schema)
    ]  # fmt: skip
    told = list(answers(reader.store, name, after))
    known = {one.name for one in every} | {one["name"] for one in told}
    if name and name not in known:
        raise ConfigError(f"there is no query {name} here; there are: {', '.join(known) or 'none'}")
    if as_json:
        for one in told:
            print(json.dumps(one))
        return
    counts = {n: sum(one["name"] == n for one in told) for n in known}
    last = {one["name"]: one for one in told}
    table = Table()
    for title in ("name", "every", "answers", "last epoch", "last answer"):
        table.add_column(title, justify="right" if title in ("answers", "last epoch") else "left")
    when = {one.name: one.every for one in every}
    for one_name in sorted(known if not name else {name}):
        latest, times = last.get(one_name), when.get(one_name, "dropped")
        table.add_row(
            one_name, times if isinstance(times, str) else f"{times:g} s", str(counts[one_name]),
            "-" if latest is None else str(latest["epoch"]), escape(_first_row(latest)),
        )  # fmt: skip
    Console().print(table)


def _first_row(told: dict[str, object] | None) -> str:
    """What an answer begins with, without its errors."""
    if told is None:
        return "-"
    rows = told.get("rows", told.get("vertices"))
    if "mistake" in told or not isinstance(rows, list):
        return str(told.get("mistake", "-")).splitlines()[0]
    if not rows:
        return "no rows"
    first = rows[0]
    hidden = tuple(f"_{part}" for part in ("error", "low", "high", "kind"))
    values = [
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in first.items()
        if not any(name.endswith(end) and name.removesuffix(end) in first for end in hidden)
    ]
    return ", ".join(values[:4]) + (f" and {len(rows) - 1} more rows" if len(rows) > 1 else "")
