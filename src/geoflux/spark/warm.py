"""Making a process ready for epochs: compiled kernels loaded, long-lived objects out of the way."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

from geoflux.engine.sinks import compact
from geoflux.operators.events import Events
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.plan import GridPlan, Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space

_FREEZES = 3
_settled = 0


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
    matcher.counts(ready, Work())
    for _, query in matcher.pairs(ready, Work()):
        compact(query, 1000)
    plan = GridPlan.initial(8, 8, 2)
    plan.locate(grid.columns_of(half), grid.rows_of(half), np.arange(16))


def settle() -> None:
    """Freeze what the first tasks of a worker have loaded, so that collecting garbage after every
    task stays cheap also in sessions that were not built by geoflux."""
    global _settled
    if _settled < _FREEZES:
        _settled += 1
        gc.collect()
        gc.freeze()
