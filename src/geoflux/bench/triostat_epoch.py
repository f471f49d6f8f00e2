"""What `geoflux bench triostat` counts: an epoch of events and all queries, by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geoflux.balance.history import Sample, history_plan
from geoflux.balance.reduction import Holding
from geoflux.bench.data import query_boxes
from geoflux.operators.events import Events
from geoflux.operators.matching import SortedEvents
from geoflux.plan import GridPlan
from geoflux.spatial.grid import CellRanges, Grid
from geoflux.spatial.space import FloatArray, IntArray, Space
from geoflux.stats import TrioStat
from geoflux.workload.clusters import Clusters

EVENT_WORK = 1.0
"""Work of an event besides its comparisons."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything; ``side`` is the grid that the times and the headline ratios hold
    for."""

    events: int = 1_000_000
    queries: int = 1_000_000
    sample: tuple[int, int] = (400_000, 200_000)
    """Events and queries that the plan is made from."""
    slots: int = 22
    side: int = 1000
    sides: tuple[int, ...] = (250, 500, 1000, 2000)
    partition_counts: tuple[int, ...] = (
        1, 4, 16, 64, 256, 1000, 2500, 10_000, 40_000, 250_000, 1_000_000,
    )  # fmt: skip
    fixed_count: int = 1000
    """Partitions of figure 6.4."""
    fixed_sides: tuple[int, ...] = (100, 200, 400, 800, 1600, 3200, 6400)
    repeats: int = 15


FULL = Sizes()
QUICK = Sizes(
    events=250_000, queries=200_000, sample=(100_000, 50_000), repeats=7,
    partition_counts=(1, 4, 16, 64, 256, 1000, 10_000, 40_000),
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """What one partition gets in the epoch."""

    stat: TrioStat
    groups: tuple[IntArray, IntArray, int]
    columns: IntArray
    rows: IntArray
    candidates: FloatArray
    """Queries that each of its occupied cells is compared with."""
    work: FloatArray
    """Per event."""
    queries: CellRanges


@dataclass(frozen=True)
class Epoch:
    """An epoch of events and all queries, by partition."""

    plan: GridPlan
    parts: tuple[Part, ...]
    columns: IntArray
    rows: IntArray

    @classmethod
    def made(cls, sizes: Sizes) -> Epoch:
        """Drawn, routed and sorted, with empty statistics."""
        grid = grid_of(sizes.side)
        plan = plan_of(grid, sizes)
        x, y = Clusters().points(sizes.events, stream=0)
        columns, rows = grid.columns_of(x), grid.rows_of(y)
        places = plan.homes(columns, rows)
        ranges = grid.ranges(*query_boxes(sizes.queries))
        overlaps = plan.overlaps(ranges)
        asking = np.repeat(np.arange(sizes.queries), np.diff(overlaps.offsets))
        crowd = _per_cell(grid, ranges)
        parts = []
        for place, p in enumerate(plan.partitions):
            here = np.flatnonzero(places == place)
            nothing = np.empty(0, np.int64)
            ready = SortedEvents.of(Events(x[here], y[here], nothing, None, {}), grid, p)
            cells, _, width = ready.groups
            c, r = grid.columns_of(ready.events.x), grid.rows_of(ready.events.y)
            parts.append(
                Part(
                    TrioStat.empty(p), ready.groups, c, r,
                    crowd[p.row0 + cells // width, p.col0 + cells % width],
                    crowd[r, c] + EVENT_WORK,
                    ranges.take(asking[overlaps.places == place]),
                )
            )  # fmt: skip
        return cls(plan, tuple(parts), columns, rows)

    @property
    def stats(self) -> list[TrioStat]:
        """Of all partitions."""
        return [part.stat for part in self.parts]

    @property
    def held(self) -> list[list[Holding]]:
        """What each slot holds."""
        return held_by_slot(self.plan, self.stats)


def held_by_slot(plan: GridPlan, stats: Sequence[TrioStat]) -> list[list[Holding]]:
    """What each slot holds, from the statistics in the order of the plan's partitions."""
    held: list[list[Holding]] = [[] for _ in range(plan.slots)]
    for partition, stat in zip(plan.partitions, stats, strict=True):
        held[partition.slot].append(Holding(partition, stat))
    return held


def grid_of(side: int) -> Grid:
    """So many cells a side over the unit square."""
    return Grid(Space("planar", 0.0, 0.0, 1.0, 1.0), side, side)


def plan_of(grid: Grid, sizes: Sizes) -> GridPlan:
    """From a sample, as the document's baseline: many partitions, of many shapes."""
    events, queries = sizes.sample
    x, y = Clusters().points(events, stream=2)
    sample = Sample(grid.columns_of(x), grid.rows_of(y), grid.ranges(*query_boxes(queries)))
    return history_plan(grid.columns, grid.rows, sizes.slots, sample)


def _per_cell(grid: Grid, ranges: CellRanges) -> FloatArray:
    """How many ranges touch each cell."""
    edges = np.zeros((grid.rows + 1, grid.columns + 1))
    np.add.at(edges, (ranges.row0, ranges.col0), 1)
    np.add.at(edges, (ranges.row0, ranges.col1 + 1), -1)
    np.add.at(edges, (ranges.row1 + 1, ranges.col0), -1)
    np.add.at(edges, (ranges.row1 + 1, ranges.col1 + 1), 1)
    counts: FloatArray = edges.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    return counts
