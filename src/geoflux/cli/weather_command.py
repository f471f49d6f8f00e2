"""``geoflux weather``: observations with eight features as a folder of files, for sketches."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from geoflux.errors import ConfigError

_START = int(datetime(2026, 3, 25, tzinfo=UTC).timestamp())
_DAY = 86_400
_GROUP_ROWS = 1 << 16


def weather(
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Parquet file with ts, lat, lon, t2m_k, u10_ms, v10_ms, msl_pa, tp_m."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Without --data: how many are made up.")] = (
        100_000
    ),
    days: Annotated[int, typer.Option(min=1, help="Without --data: over how many days.")] = 7,
    steps: Annotated[
        int, typer.Option(min=1, help="So often all of it, later and a little changed each time.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is made up.")] = 1,
) -> None:
    """Write weather with eight features as Parquet files, one a step: that of a file, with what
    follows from it (wind speed and direction, a dew point), or made up."""
    import pyarrow.parquet as pq

    from geoflux.workload.weather import FEATURES, WeatherStream, made_up_weather, read_weather

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already and not empty; name a new folder")
    if data is not None and not data.exists():
        raise ConfigError(f"--data {data}: no such file")
    seen = read_weather(data) if data else made_up_weather(seed, rows, _START, days * _DAY)
    folder.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(WeatherStream(seen, seed).steps(steps)):
        hidden = folder / f".{number:05d}.parquet"  # whole files only, for whoever is watching
        pq.write_table(step.table(), hidden, row_group_size=_GROUP_ROWS)
        hidden.rename(folder / f"{number:05d}.parquet")
    Console().print(
        f"{len(seen) * steps:,} rows in {escape(str(folder))}: lon, lat, time, "
        f"{', '.join(FEATURES)}",
        soft_wrap=True, highlight=False,
    )  # fmt: skip
