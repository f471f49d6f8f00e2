"""A stream of keyed rows, an operator over it, and what must come of it, without geoflux code."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geoflux import Config, WindowedGroupBy
from geoflux.engine.keyed_task import Emulated

HISTORY = 5
OPERATOR = WindowedGroupBy("car", "speed", "mean", rows=HISTORY)
SLOW = Emulated({0: 2e-3, 1: 1e-4, 2: 1e-4, 3: 1e-4})


def rows(count: int) -> list[dict[str, Any]]:
    """Half of all rows are of few cars; every fiftieth has no car at all."""
    draw = random.Random(11)
    return [
        {
            "id": f"r{i}",
            "car": None if i % 50 == 7 else f"car-{int(draw.expovariate(0.2))}",
            "speed": draw.uniform(0, 100),
            "time": 1000.0 + i,
        }
        for i in range(count)
    ]


def write(folder: Path, given: list[dict[str, Any]], files: int = 3) -> None:
    (folder / "events").mkdir(parents=True)
    size = -(-len(given) // files)
    for part in range(files):
        table = pa.Table.from_pylist(given[part * size : (part + 1) * size])
        pq.write_table(table, folder / "events" / f"part-{part}.parquet")


def config(folder: Path, **flux: Any) -> Config:
    """Four slots, small epochs; a slot that takes long hands rows back."""
    return Config.from_dict(
        {
            "source": {"kind": "files", "path": str(folder / "events")},
            "engine": {"slots": 4, "epoch_events": 400, "master": "local[2]", "memory": "1g"},
            "flux": {
                "partitions": 4,
                "policy": "load",
                "budget": "50ms",
                "collect": "50ms",
                **flux,
            },
        }
    )


def expected(given: list[dict[str, Any]]) -> dict[str, float]:
    """The mean of the last rows of the same car, for every row that has one."""
    histories: dict[str, list[float]] = {}
    means = {}
    for row in given:
        if row["car"] is not None:
            history = histories.setdefault(row["car"], [])
            history.append(row["speed"])
            del history[:-HISTORY]
            means[row["id"]] = sum(history) / len(history)
    return means


def found(out: Path) -> dict[str, float]:
    """What a run gave; a row that is there twice is a mistake."""
    results = [
        row for path in (out / "results").glob("*") for row in pq.read_table(path).to_pylist()
    ]
    means = {row["id"]: row["value"] for row in results}
    assert len(means) == len(results), "no row twice"
    return means
