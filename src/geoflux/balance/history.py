"""The static plan from history: space cut so that a sample's cost is spread evenly.

The papers' third baseline (SWARM 6): partition by their cost model, N x Q x R (points, queries,
arrivals), on a limited sample; then never change. Partitions are cut at their most even line until
none carries more than a small share of a slot's load, and are then given out, costliest first, to
the slot that has least.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from geoflux.plan import GridPlan, Partition
from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import IntArray

_PARTITIONS_PER_SLOT = 8


@dataclass(frozen=True)
class Sample:
    """Cells of sampled events, and ranges of cells of sampled queries."""

    columns: IntArray
    rows: IntArray
    queries: CellRanges


@dataclass(frozen=True)
class _Piece:
    box: Partition
    columns: IntArray
    rows: IntArray
    queries: CellRanges

    @property
    def cost(self) -> float:
        """N x Q x R; in a sample everything has just arrived, so R = N + Q."""
        points, queries = float(self.columns.size), float(len(self.queries))
        return points * queries * (points + queries)


def history_plan(columns: int, rows: int, slots: int, sample: Sample) -> GridPlan:
    """A plan balanced on a sample; without any cost in it, the uniform one."""
    whole = Partition(0, 0, 0, columns, rows, 0)
    piece = _Piece(whole, sample.columns, sample.rows, sample.queries)
    if piece.cost == 0:
        return GridPlan.initial(columns, rows, slots)
    heap = [(-piece.cost, 0, piece)]
    done: list[_Piece] = []
    next_id = 1
    while heap and len(heap) + len(done) < slots * _PARTITIONS_PER_SLOT:
        _, _, costliest = heapq.heappop(heap)
        halves = _halved(costliest)
        if halves is None:
            done.append(costliest)
            continue
        for half in halves:
            named = replace(half, box=replace(half.box, id=next_id))
            heapq.heappush(heap, (-named.cost, next_id, named))
            next_id += 1
    pieces = done + [p for _, _, p in heap]
    if len(pieces) < slots:
        return GridPlan.initial(columns, rows, slots)
    owned = _given_out(pieces, slots)
    return GridPlan(columns, rows, slots, tuple(sorted(owned, key=lambda p: p.id)), next_id)


def _given_out(pieces: list[_Piece], slots: int) -> list[Partition]:
    loads = [(0.0, 0, slot) for slot in range(slots)]
    owned = []
    for piece in sorted(pieces, key=lambda p: (-p.cost, p.box.id)):
        load, count, slot = heapq.heappop(loads)
        owned.append(replace(piece.box, slot=slot))
        heapq.heappush(loads, (load + piece.cost, count + 1, slot))
    return owned


def _halved(piece: _Piece) -> tuple[_Piece, _Piece] | None:
    """The cut, along either axis, whose costlier half is cheapest."""
    best: tuple[float, str, int] | None = None
    box, queries = piece.box, piece.queries
    axes = (
        ("columns", box.col0, box.col1, piece.columns, queries.col0, queries.col1),
        ("rows", box.row0, box.row1, piece.rows, queries.row0, queries.row1),
    )
    for axis, low, high, points, first, last in axes:
        if high - low < 2:
            continue
        cost = _cost_of_cuts(low, high, points, first, last)
        at = int(np.argmin(cost))
        if best is None or cost[at] < best[0]:
            best = (float(cost[at]), axis, low + 1 + at)
    if best is None:
        return None
    _, axis, at = best
    if axis == "columns":
        boxes = replace(box, col1=at), replace(box, col0=at)
        points, first, last = piece.columns, queries.col0, queries.col1
    else:
        boxes = replace(box, row1=at), replace(box, row0=at)
        points, first, last = piece.rows, queries.row0, queries.row1
    below, above = points < at, points >= at
    return (
        _part(piece, boxes[0], below, first < at),
        _part(piece, boxes[1], above, last >= at),
    )


def _part(
    piece: _Piece, box: Partition, points: npt.NDArray[np.bool_], queries: npt.NDArray[np.bool_]
) -> _Piece:
    return _Piece(
        box, piece.columns[points], piece.rows[points], piece.queries.take(np.flatnonzero(queries))
    )


def _cost_of_cuts(
    low: int, high: int, points: IntArray, first: IntArray, last: IntArray
) -> npt.NDArray[np.float64]:
    """The costlier half's cost for every cut between ``low`` and ``high``."""
    span = high - low
    n = np.cumsum(np.bincount(np.clip(points - low, 0, span - 1), minlength=span))[:-1]
    starts = np.cumsum(np.bincount(np.clip(first - low, 0, span - 1), minlength=span))[:-1]
    ends = np.cumsum(np.bincount(np.clip(last - low, 0, span - 1), minlength=span))[:-1]
    total_points, total_queries = points.size, first.size
    below = n * starts * (n + starts).astype(np.float64)
    n_above, q_above = total_points - n, total_queries - ends
    above = n_above * q_above * (n_above + q_above).astype(np.float64)
    worst: npt.NDArray[np.float64] = np.maximum(below, above)
    return worst
