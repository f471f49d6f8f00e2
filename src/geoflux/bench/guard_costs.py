"""What Guard's simulated slots are charged: single costs, measured here with the engine's kernels.

An event costs a little by itself (sorting it into its cell) and a little for every query that it is
compared with: two indexes of different density give both. Queries that come are indexed in small
batches; queries that move are indexed by the partition. Ratios of these costs are what the
timelines depend on, and those are much the same from machine to machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.bench.guard_slots import Costs
from geoflux.bench.kernel import GRID, WHOLE, query_rows
from geoflux.operators.events import Events
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.plan import Partition
from geoflux.workload.clusters import Clusters

_EVENTS = 100_000
_FEW, _MANY = 2_000, 100_000
_BATCH = 400
"""Queries that a slot gets in an epoch when 600 to 1800 a second come to 22."""
_PART = (213, 213)
"""Columns and rows of a partition when 22 slots share the grid."""
_REPEATS = 9


def measured_costs() -> Costs:
    """Seconds on this machine."""
    x, y = Clusters(seed=7).points(_EVENTS, stream=3)
    events = Events(x, y, np.empty(0, np.int64), None, {})
    seconds, checks = [], []
    for count in (_FEW, _MANY):
        matcher = LayerMatcher(Layer.build(query_rows(count), GRID, WHOLE), GRID)
        work = Work()
        matcher.counts(SortedEvents.of(events, GRID, WHOLE), work)
        checks.append(work.checks / _EVENTS)
        seconds.append(_took(partial(_match, matcher, events)) / _EVENTS)
    check = max((seconds[1] - seconds[0]) / (checks[1] - checks[0]), 1e-12)
    event = max(seconds[0] - check * checks[0], 1e-12)
    part = Partition(0, 0, 0, *_PART, 0)
    request, moved = (
        _took(partial(Layer.build, _within(count), GRID, part)) / count for count in (_BATCH, _MANY)
    )
    return Costs(event, check, request, moved)


def _within(count: int) -> pa.Table:
    """Queries in the lower left part of the grid that a slot may have."""
    rows = query_rows(count)
    for axis, cells in (("x", _PART[0] / 1000), ("y", _PART[1] / 1000)):
        for end in "01":
            place = rows.schema.get_field_index(axis + end)
            rows = rows.set_column(place, axis + end, pc.multiply(rows[axis + end], cells))
    return rows.combine_chunks()


def _match(matcher: LayerMatcher, events: Events) -> None:
    matcher.counts(SortedEvents.of(events, GRID, WHOLE), Work())


def _took(call: Callable[[], object]) -> float:
    """Processor seconds of the fastest of some calls: what else the machine does only adds."""
    times = []
    call()
    for _ in range(_REPEATS):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)
