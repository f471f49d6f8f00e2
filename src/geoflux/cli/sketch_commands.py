"""``geoflux query`` and ``geoflux chart``: asking a sketch, and drawing what it knows."""

from __future__ import annotations

import json
import sys
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
    rows: Annotated[int, typer.Option(min=0, help="How many rows the table shows.")] = 20,
    as_json: Json = False,
) -> None:
    """Ask the sketch of a run: statistics, densities, sets, regressions, synthetic rows."""
    from geoflux.cli.sketch_view import print_answer
    from geoflux.engine.sketch_reader import open_sketch

    given = sys.stdin.read() if asked == "-" else asked
    answer = open_sketch(directory).query(given)
    print_answer(Console(stderr=as_json), answer, rows)
    if as_json:
        print(json.dumps(answer.to_dict()))


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
