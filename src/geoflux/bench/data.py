"""The data of the engine benchmark: events in Parquet, queries as control records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.workload.clusters import Clusters, FloatArray

SIDE = 0.0016
"""Side of a query as a share of the space's side."""
EVENTS_PER_SECOND = 100_000
"""Pace of the event times, for replays at speed 1."""


@dataclass(frozen=True)
class Workload:
    """A named workload: so many queries and events, results as counts or as rows."""

    name: str
    queries: int
    events: int
    files: int
    matches: str


@dataclass(frozen=True)
class Files:
    """Where a workload's files are."""

    workload: Workload
    events: Path
    control: Path
    boxes: Path


def query_boxes(count: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """West, south, east, north of the queries, in the unit square."""
    x, y = Clusters().points(count, stream=1)
    west, south = np.clip(x - SIDE / 2, 0, 1), np.clip(y - SIDE / 2, 0, 1)
    return west, south, np.clip(x + SIDE / 2, 0, 1), np.clip(y + SIDE / 2, 0, 1)


def write_files(folder: Path, workload: Workload) -> Files:
    """Write a workload's events (Parquet) and queries (NDJSON, and Parquet for the baseline)."""
    folder = folder / workload.name
    events = folder / "events"
    events.mkdir(parents=True)
    x, y = Clusters().points(workload.events, stream=0)
    per_file = workload.events // workload.files
    for k in range(workload.files):
        first = k * per_file
        number = np.arange(first, first + per_file, dtype=np.int64)
        micros = number * (1_000_000 // EVENTS_PER_SECOND) + 1_700_000_000_000_000
        table = pa.table(
            {
                "id": number, "x": x[first : first + per_file], "y": y[first : first + per_file],
                "time": pa.array(micros, pa.timestamp("us", "UTC")),
            }
        )  # fmt: skip
        pq.write_table(table, events / f"part-{k:04d}.parquet", row_group_size=1 << 18)
    west, south, east, north = query_boxes(workload.queries)
    control = folder / "queries.ndjson"
    with open(control, "w", encoding="utf-8") as file:
        for q, edges in enumerate(zip(west, south, east, north, strict=True)):
            w, s, e, n = (float(edge) for edge in edges)
            file.write(
                f'{{"op":"register","id":"q{q}","user":"u{q % 100}","shape":{{"type":"rectangle",'
                f'"west":{w!r},"south":{s!r},"east":{e!r},"north":{n!r}}}}}\n'
            )
    boxes = folder / "boxes.parquet"
    ids = pa.array([f"q{q}" for q in range(workload.queries)])
    columns = {"query_id": ids, "west": west, "south": south, "east": east, "north": north}
    pq.write_table(pa.table(columns), boxes)
    return Files(workload, events, control, boxes)
