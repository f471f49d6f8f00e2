"""Making a process ready for epochs: compiled kernels loaded, long-lived objects out of the way."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from dataclasses import replace

import numpy as np
import pyarrow as pa

from geoflux.engine.sinks import compact
from geoflux.operators.aggregate_rows import aggregate_rows
from geoflux.operators.aggregates import parse_aggregate
from geoflux.operators.collecting import Asked, Collector
from geoflux.operators.events import Events
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.operators.partials import merged
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.plan import GridPlan, Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_FREEZES = 3
_settled = 0


def keep_memory() -> None:
    """Let this process reuse what it has freed. Arrays of some megabytes come and go with every
    piece of work; given back to the system each time, they cost a page fault every 4 KB, and
    workers side by side wait for each other there. At most 256 MB are kept."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, 32 << 20)
        library.mallopt(_TRIM_THRESHOLD, 256 << 20)


def warm_up() -> None:
    """Run every kernel of the hot path once on next to nothing."""
    grid = Grid(Space("planar", 0.0, 0.0, 1.0, 1.0), 8, 8)
    rows = [
        {"number": n, "id": f"q{n}", "kind": 0, "x0": 0.0, "y0": 0.0, "x1": 1.0, "y1": 1.0,
         "valid_from": 0 if n else None}
        for n in range(2)
    ]  # fmt: skip
    layer = Layer.build(
        pa.Table.from_pylist(rows, schema=QUERY_SCHEMA), grid, Partition(0, 0, 0, 8, 8, 0)
    )
    half = np.full(16, 0.5)
    events = Events(half, half, np.zeros(16, np.int64), pa.array(np.arange(16)), {})
    ready = SortedEvents.of(events, grid, Partition(0, 0, 0, 8, 8, 0))
    matcher = LayerMatcher(layer, grid)
    _warm_windows(ready)
    matcher.counts(ready, Work())
    for _, query in matcher.pairs(ready, Work()):
        compact(query, 1000)
    plan = GridPlan.initial(8, 8, 2)
    plan.locate(grid.columns_of(half), grid.rows_of(half), np.arange(16))


def _warm_windows(ready: SortedEvents) -> None:
    """The kernels of aggregates, from collecting to closing."""
    asked = parse_aggregate(
        {"functions": ["sum(v)", "stddev(v)", "distinct(v)", "median(v)"]}, False
    )
    numbers = np.zeros(1, np.int64)
    timed = replace(asked, window_micros=10, slide=4)
    columns = {"v": pa.array(np.arange(16.0))}
    collector = Collector(
        Asked(numbers, np.zeros(1, np.int32), (timed,)), replace(ready.events, columns=columns), 0
    )
    collector.add(np.arange(16, dtype=np.int32), np.zeros(16, np.int32))
    merged([collector.partials(), collector.partials()])
    aggregate_rows(timed, np.arange(16), pa.array(np.arange(16)), columns)


def settle() -> None:
    """Freeze what the first tasks of a worker have loaded, so that collecting garbage after every
    task stays cheap also in sessions that were not built by geoflux."""
    global _settled
    if _settled < _FREEZES:
        _settled += 1
        gc.collect()
        gc.freeze()
