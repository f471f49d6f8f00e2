"""The cell index of a partition: for every cell the boxes that touch it, in memory order.

Buckets are cells of the grid at several levels, each four times coarser than the one before. A
query lives at the finest level at which it touches at most :data:`MOST_CELLS` buckets, so that one
query over a whole continent costs a few entries, not a million. An event looks into one bucket per
level. Boxes are copied into bucket order: matching reads memory from front to back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.plan.plan import Partition
from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import TICKS, IntArray

MOST_CELLS = 16
"""Buckets that one query may take at its level."""

ALWAYS = (-2, -2, TICKS + 2, TICKS + 2)
"""A box that contains every event, for cells that lie wholly inside a shape."""


@dataclass(frozen=True)
class Entries:
    """Boxes with the bucket that each belongs to, in any order."""

    bucket: npt.NDArray[np.int64]
    x0: IntArray
    y0: IntArray
    x1: IntArray
    y1: IntArray
    query: IntArray

    @classmethod
    def none(cls) -> Entries:
        """No entry."""
        nothing = np.empty(0, np.int32)
        return cls(np.empty(0, np.int64), nothing, nothing, nothing, nothing, nothing)


@dataclass(frozen=True)
class Buckets:
    """The buckets of a partition: its cells, and blocks of 4, 16, ... cells a side above them."""

    col0: int
    row0: int
    columns: int
    rows: int

    @classmethod
    def of(cls, partition: Partition) -> Buckets:
        """The buckets over a partition's rectangle."""
        return cls(partition.col0, partition.row0, partition.columns, partition.rows)

    @property
    def levels(self) -> IntArray:
        """(first bucket, columns, shift) per level; the last level is a single bucket."""
        levels, first, shift = [], 0, 0
        while True:
            columns, rows = ((n - 1 >> shift) + 1 for n in (self.columns, self.rows))
            levels.append((first, columns, shift))
            first += columns * rows
            if columns == rows == 1:
                return np.array(levels, np.int32)
            shift += 2

    @property
    def count(self) -> int:
        """How many buckets there are in all levels."""
        last = self.levels[-1]
        return int(last[0]) + 1

    def local(self, ranges: CellRanges) -> CellRanges:
        """Ranges of cells relative to the partition and clipped to it; empty where outside."""
        col0 = np.maximum(ranges.col0 - self.col0, 0).astype(np.int32)
        row0 = np.maximum(ranges.row0 - self.row0, 0).astype(np.int32)
        col1 = np.minimum(ranges.col1 - self.col0, self.columns - 1).astype(np.int32)
        row1 = np.minimum(ranges.row1 - self.row0, self.rows - 1).astype(np.int32)
        empty = (ranges.col1 < ranges.col0) | (row1 < row0) | (col1 < col0)
        col1[empty] = -1
        col0[empty] = 0
        return CellRanges(col0, row0, col1, row1)


@dataclass(frozen=True)
class CellIndex:
    """Boxes by bucket: ``offsets`` into ``x0, y0, x1, y1, query``, which are in bucket order."""

    levels: IntArray
    offsets: IntArray
    x0: IntArray
    y0: IntArray
    x1: IntArray
    y1: IntArray
    query: IntArray

    @property
    def boxes(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """What the kernels read."""
        return self.x0, self.y0, self.x1, self.y1, self.query

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """The index as named arrays, to be stored."""
        return {
            prefix + name: getattr(self, name)
            for name in ("levels", "offsets", "x0", "y0", "x1", "y1", "query")
        } | {prefix + "levels": self.levels.ravel()}

    @classmethod
    def from_arrays(cls, stored: Mapping[str, npt.NDArray[Any]], prefix: str) -> CellIndex:
        """The index that :meth:`arrays` named; nothing is copied."""
        names = ("offsets", "x0", "y0", "x1", "y1", "query")
        levels = np.ascontiguousarray(stored[prefix + "levels"].reshape(-1, 3))
        return cls(levels, *(stored[prefix + name] for name in names))

    @classmethod
    def build(
        cls, buckets: Buckets, ranges: CellRanges, ticks: Entries, extra: Entries
    ) -> CellIndex:
        """Boxes over ranges of cells (``ticks`` holds one box per range; its buckets are not
        used), and further entries whose buckets are known already."""
        used = buckets.levels
        offsets = np.zeros(buckets.count + 1, np.int32)
        edges = (ranges.col0, ranges.row0, ranges.col1, ranges.row1)
        _count_entries(used, *edges, extra.bucket, offsets)
        np.cumsum(offsets, out=offsets)
        size = int(offsets[-1])
        columns = [np.empty(size, np.int32) for _ in range(5)]
        boxes = (ticks.x0, ticks.y0, ticks.x1, ticks.y1, ticks.query)
        more = (extra.x0, extra.y0, extra.x1, extra.y1, extra.query)
        _fill_entries(used, *edges, boxes, extra.bucket, more, offsets.copy(), tuple(columns))
        return cls(_trimmed(used, offsets), offsets, *columns)


def _trimmed(levels: IntArray, offsets: IntArray) -> IntArray:
    """The levels that hold any entry, so that matching does not look into empty ones."""
    firsts = [int(first) for first in levels[:, 0]] + [offsets.size - 1]
    kept = [i for i in range(len(levels)) if offsets[firsts[i + 1]] > offsets[firsts[i]]]
    trimmed: IntArray = np.ascontiguousarray(levels[kept])
    return trimmed


def level_of(levels: IntArray, ranges: CellRanges) -> IntArray:
    """The level at which each range takes few enough buckets."""
    return _levels_of(levels, ranges.col0, ranges.row0, ranges.col1, ranges.row1)


@numba.njit(cache=True, inline="always")
def _level(levels: Any, col0: Any, row0: Any, col1: Any, row1: Any) -> Any:
    level = 0
    while level < levels.shape[0] - 1:
        shift = levels[level, 2]
        wide = (col1 >> shift) - (col0 >> shift) + 1
        high = (row1 >> shift) - (row0 >> shift) + 1
        if np.int64(wide) * np.int64(high) <= MOST_CELLS:
            break
        level += 1
    return level


@numba.njit(cache=True)
def _levels_of(levels: Any, col0: Any, row0: Any, col1: Any, row1: Any) -> Any:
    out = np.empty(col0.size, np.int32)
    for q in range(col0.size):
        out[q] = _level(levels, col0[q], row0[q], col1[q], row1[q])
    return out


@numba.njit(cache=True)
def _count_entries(
    levels: Any, col0: Any, row0: Any, col1: Any, row1: Any, extra: Any, offsets: Any
) -> None:
    for q in range(col0.size):
        if col1[q] < col0[q]:
            continue
        first, columns, shift = levels[_level(levels, col0[q], row0[q], col1[q], row1[q])]
        for row in range(row0[q] >> shift, (row1[q] >> shift) + 1):
            for column in range(col0[q] >> shift, (col1[q] >> shift) + 1):
                offsets[first + row * columns + column + 1] += 1
    for e in range(extra.size):
        offsets[extra[e] + 1] += 1


@numba.njit(cache=True)
def _fill_entries(
    levels: Any, col0: Any, row0: Any, col1: Any, row1: Any, boxes: Any,
    extra: Any, more: Any, place: Any, out: Any,
) -> None:  # fmt: skip
    for q in range(col0.size):
        if col1[q] < col0[q]:
            continue
        first, columns, shift = levels[_level(levels, col0[q], row0[q], col1[q], row1[q])]
        for row in range(row0[q] >> shift, (row1[q] >> shift) + 1):
            for column in range(col0[q] >> shift, (col1[q] >> shift) + 1):
                bucket = first + row * columns + column
                k = place[bucket]
                place[bucket] = k + 1
                out[0][k], out[1][k], out[2][k] = boxes[0][q], boxes[1][q], boxes[2][q]
                out[3][k], out[4][k] = boxes[3][q], boxes[4][q]
    for e in range(extra.size):
        k = place[extra[e]]
        place[extra[e]] = k + 1
        out[0][k], out[1][k], out[2][k] = more[0][e], more[1][e], more[2][e]
        out[3][k], out[4][k] = more[3][e], more[4][e]
