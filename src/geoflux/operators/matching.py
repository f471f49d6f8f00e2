"""Events of one partition against a layer: as counts per query, or pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.operators import kernels, queries
from geoflux.operators.events import Events
from geoflux.operators.index import ALWAYS, Buckets, CellIndex
from geoflux.operators.layer import Layer
from geoflux.operators.refine import Refiner
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import FloatArray, IntArray

_ROOM = 1 << 20
"""Pairs that are listed at a time."""


@dataclass(frozen=True)
class SortedEvents:
    """Events in the order of their cells, ready for the kernels: whatever is looked up for the
    events of a cell lies side by side. ``groups`` are the cells that have any (row by row within
    the partition), where each begins, and the partition's width."""

    events: Events
    groups: tuple[IntArray, IntArray, int]
    points: tuple[Any, Any, Any, Any]
    buckets: Buckets

    @classmethod
    def of(cls, events: Events, grid: Grid, partition: Partition) -> SortedEvents:
        """Sort once, match against any number of layers."""
        buckets = Buckets.of(partition)
        column = grid.columns_of(events.x) - np.int32(buckets.col0)
        row = grid.rows_of(events.y) - np.int32(buckets.row0)
        cells = row * np.int32(buckets.columns) + column
        order, group_cells, offsets = kernels.sort_by_cell(cells, buckets.columns * buckets.rows)
        ordered = events.take(order)
        x, y = ordered.x, ordered.y
        points = (grid.space.ticks_x(x), grid.space.ticks_y(y), x, y)
        return cls(ordered, (group_cells, offsets, buckets.columns), points, buckets)

    def groups_in(self, buckets: Buckets) -> tuple[IntArray, IntArray, int]:
        """The groups by their cells in a larger area."""
        if buckets == self.buckets:
            return self.groups
        cells, offsets, width = self.groups
        row = cells // width + np.int32(self.buckets.row0 - buckets.row0)
        column = cells % width + np.int32(self.buckets.col0 - buckets.col0)
        return row * np.int32(buckets.columns) + column, offsets, buckets.columns


@dataclass
class Work:
    """What matching cost: boxes compared and pairs that were refined."""

    checks: int = 0
    refined: int = 0


@lru_cache(maxsize=1)
def _scratch(room: int) -> tuple[IntArray, IntArray, IntArray]:
    """Arrays that are written over and over: fresh ones would cost a page fault every 4 KB."""
    return np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)


class LayerMatcher:
    """Matches against one layer; keeps what is derived from the layer between batches."""

    def __init__(self, layer: Layer, grid: Grid) -> None:
        self.layer = layer
        self._refiner = Refiner(layer, grid.space)
        self._exact = tuple(queries.numeric(layer.rows, n) for n in ("x0", "y0", "x1", "y1"))

    def counts(self, ready: SortedEvents, work: Work) -> npt.NDArray[np.int64]:
        """Matches per query of the layer."""
        counts = np.zeros(len(self.layer), np.int64)
        plain = self.layer.plain
        if plain.query.size:
            work.checks += int(
                kernels.count_matches(
                    ready.groups_in(self.layer.buckets), ready.points, plain.levels,
                    plain.offsets, plain.boxes, self._exact, counts,
                )
            )  # fmt: skip
        for _, query in self._refined(ready, work):
            counts += np.bincount(query, minlength=counts.size)
        return counts

    def add_checks(self, ready: SortedEvents, checks: FloatArray, refined: float) -> None:
        """Add the boxes that the events of each cell are compared with; ``refined`` is the weight
        of those where more than the box is asked."""
        groups = ready.groups_in(self.layer.buckets)
        for index, weight in ((self.layer.plain, 1.0), (self.layer.refine, refined)):
            if index.query.size:
                kernels.add_checks(groups, index.levels, index.offsets, weight, checks)

    def pairs(self, ready: SortedEvents, work: Work) -> Iterator[tuple[IntArray, IntArray]]:
        """All (event, query) pairs that match, in pieces; events by their row in
        ``ready.events``."""
        for event, query, _ in self._listed(self.layer.plain, ready, work):
            yield event, query
        yield from self._refined(ready, work)

    def _refined(self, ready: SortedEvents, work: Work) -> Iterator[tuple[IntArray, IntArray]]:
        index = self.layer.refine
        for event, query, entry in self._listed(index, ready, work):
            work.refined += query.size
            kept = self._refiner.keep(ready.events, event, query, index.x0[entry] == ALWAYS[0])
            yield event[kept], query[kept]

    def _listed(
        self, index: CellIndex, ready: SortedEvents, work: Work
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        if index.query.size == 0:
            return
        note_entries = index is self.layer.refine
        room, groups = _ROOM, ready.groups_in(self.layer.buckets)
        cursor = (0, 0)
        while cursor[0] < groups[0].size:
            event, query, entry = _scratch(room)
            entry = entry if note_entries else entry[:0]
            found, checks, group, at, need = kernels.list_matches(
                groups, ready.points, index.levels, index.offsets, index.boxes,
                self._exact, cursor, event, query, entry,
            )  # fmt: skip
            work.checks += int(checks)
            if found:
                yield event[:found].copy(), query[:found].copy(), entry[:found].copy()
            room = max(room, int(need))
            cursor = (int(group), int(at))
