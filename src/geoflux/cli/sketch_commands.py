"""``geoflux query`` and ``geoflux chart``: asking a sketch, and drawing what it knows."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from geoflux.cli.completion import runs
from geoflux.errors import ConfigError

Directory = Annotated[
    Path, typer.Argument(help="The directory of a run, stopped or not.", autocompletion=runs)
]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on a line.")]
chart = typer.Typer(
    no_args_is_help=True, help="Draw what a sketch knows, as PNG or HTML.", rich_markup_mode=None
)
_SECOND = "tp_m"


def query(
    directory: Directory,
    asked: Annotated[
        str, typer.Argument(help="SQL, or JSON that begins with {; - reads it from standard input.")
    ],
    every: Annotated[
        str,
        typer.Option(
            help="Ask again until the run is over: after each epoch, or after 60s, 5m, …; with "
            "--json an object a line and nothing else."
        ),
    ] = "",
    answers: Annotated[
        int, typer.Option(min=0, help="With --every: end after so many; 0: not before the run.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write it to a file .parquet, .arrow or .json.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="How many rows the table shows.")] = 20,
    as_json: Json = False,
) -> None:
    """Ask the sketch of a run: statistics, densities, sets, regressions, synthetic rows."""
    from geoflux.cli.sketch_view import print_answer
    from geoflux.engine.following import follow_sketch
    from geoflux.engine.sketch_reader import open_sketch
    from geoflux.sketch.answer_files import write_answer
    from geoflux.sketch.evaluate import prepare

    given = sys.stdin.read() if asked == "-" else asked
    sketch = open_sketch(directory)
    prepared = prepare(given, sketch.schema)
    console = Console(stderr=as_json)
    if not (every or prepared.query.every):
        answer = prepared.run(sketch.forests)
        if out is not None:
            files = " and ".join(str(path) for path in write_answer(answer, out))
            console.print(f"written to {files}", soft_wrap=True)
        else:
            print_answer(console, answer, rows)
        if as_json:
            print(json.dumps(answer.to_dict()))
        return
    if out is not None:
        raise ConfigError("--out is for one answer; with --every, read the lines of --json")
    for told in islice(follow_sketch(directory, given, every or None), answers or None):
        if as_json:
            print(json.dumps(told.to_dict()), flush=True)
            continue
        when = datetime.fromtimestamp(told.committed, UTC)
        console.print(f"[dim]epoch {told.epoch}, {when:%Y-%m-%d %H:%M:%S}", highlight=False)
        print_answer(console, told.answer, rows)


@chart.command(
    "climate",
    epilog="Example:  geoflux chart climate out --at 2.35,48.86 --by day --out paris.png",
)
def chart_climate(
    directory: Directory,
    at: Annotated[str, typer.Option(help="Longitude,latitude in degrees.")],
    by: Annotated[str, typer.Option(help="hour, day, week, month or year.")] = "day",
    feature: Annotated[str, typer.Option(help="What has a high, a low and a mean.")] = "t2m_k",
    second: Annotated[str, typer.Option(help="Shown as bars; empty: nothing.")] = "tp_m",
    out: Annotated[Path, typer.Option(help="A file .png or .html.")] = Path("climate.png"),
) -> None:
    """High, low and mean of a feature over time at a place, and a second one below."""
    from geoflux.cli.sketch_charts import climate_at, write_climate
    from geoflux.engine.sketch_reader import open_sketch

    lon, lat = _numbers(at, 2, "--at")
    sketch = open_sketch(directory)
    pair = (feature, second if second in sketch.schema.features else None)
    if second and pair[1] is None and second != _SECOND:
        raise ConfigError(f"--second {second}: the sketch has {', '.join(sketch.schema.features)}")
    found = climate_at(sketch, (lon, lat), by, pair)
    write_climate(out, found, f"{_degrees(lat, 'NS')} {_degrees(lon, 'EW')}, by {by}")
    Console().print(f"drawn into {out}", soft_wrap=True)


@chart.command(
    "map",
    epilog="Example:  geoflux chart map out --feature t2m_k --correlation t2m_k,msl_pa "
    "--time 2026-03-26/2026-03-28 --out map.html",
)
def chart_map(
    directory: Directory,
    feature: Annotated[str, typer.Option(help="Whose mean is shown.")],
    correlation: Annotated[
        str, typer.Option(help="Two features, whose correlation is drawn.")
    ] = "",
    time: Annotated[str, typer.Option(help="From/to, each a date or time.")] = "",
    box: Annotated[str, typer.Option(help="West,south,east,north in degrees.")] = "",
    out: Annotated[Path, typer.Option(help="A file .png or .html.")] = Path("map.png"),
) -> None:
    """A feature as contours on a map, with the correlation of two features as lines."""
    from geoflux.cli.sketch_charts import field_of, write_map
    from geoflux.engine.sketch_reader import open_sketch

    where, words = [], []
    if box:
        where.append("region IN bbox({}, {}, {}, {})".format(*_numbers(box, 4, "--box")))
    if time:
        first, slash, last = time.partition("/")
        if not slash:
            raise ConfigError(f"--time {time}: expected from/to, as in 2026-03-26/2026-03-28")
        where.append(f"time BETWEEN '{_plain(first)}' AND '{_plain(last)}'")
        words.append(f"{first} to {last}")
    pair = tuple(name.strip() for name in correlation.split(",")) if correlation else None
    if pair is not None and len(pair) != 2:
        raise ConfigError(f"--correlation {correlation}: expected two features, as in t2m_k,msl_pa")
    found = field_of(
        open_sketch(directory), feature, (pair[0], pair[1]) if pair else None, " AND ".join(where)
    )
    write_map(out, found, ", ".join([f"mean of {feature}", *words]))
    Console().print(f"drawn into {out}", soft_wrap=True)


def _numbers(text: str, count: int, option: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != count:
        raise ConfigError(f"{option} {text}: expected {count} numbers with commas between them")
    return found


def _plain(text: str) -> str:
    return text.strip().replace("'", "''")


def _degrees(value: float, sides: str) -> str:
    return f"{abs(value):g}° {sides[0] if value >= 0 else sides[1]}"
