"""The grid plan of SWARM: rectangles of cells, each owned by a slot.

Invariant: every cell belongs to exactly one partition, after any sequence of changes. Routing is
one look-up in a raster of cells (O(1), vectorised). The overlap of a query skips from border to
border as the paper's Algorithm 1 does, but goes band by band, so that it finds every partition
once on every layout; the printed algorithm loses some.

Source: SWARM 4.1.1 (initial plan, global index); seeds' trap 6.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.errors import IntegrityError
from geoflux.plan.changes import Change, Merge, Move, Resize, Split
from geoflux.plan.plan import Overlaps, Partition
from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import IntArray


@dataclass(frozen=True)
class GridPlan:
    """Rectangles of cells that tile the grid.

    >>> plan = GridPlan.initial(8, 4, slots=2)
    >>> [(p.col0, p.col1, p.slot) for p in plan.partitions]
    [(0, 4, 0), (4, 8, 1)]
    """

    columns: int
    rows: int
    slots: int
    partitions: tuple[Partition, ...]
    next_id: int
    version: int = 1
    retired: tuple[Partition, ...] = ()
    """Partitions that changes replaced and whose data may still be there: the chain of lineage."""

    @classmethod
    def initial(cls, columns: int, rows: int, slots: int) -> GridPlan:
        """Halve the largest partition along its longer side until every slot has one."""
        whole = Partition(0, 0, 0, columns, rows, 0)
        heap = [(-whole.cells, 0, whole)]
        next_id = 1
        while len(heap) < slots:
            _, _, largest = heapq.heappop(heap)
            if largest.cells == 1:
                raise IntegrityError(f"{columns} x {rows} cells cannot be split over {slots} slots")
            if largest.columns >= largest.rows:
                at = largest.col0 + largest.columns // 2
                halves = (replace(largest, col1=at), replace(largest, col0=at))
            else:
                at = largest.row0 + largest.rows // 2
                halves = (replace(largest, row1=at), replace(largest, row0=at))
            for half in halves:
                heapq.heappush(heap, (-half.cells, next_id, replace(half, id=next_id)))
                next_id += 1
        pieces = sorted((p for _, _, p in heap), key=lambda p: (p.row0, p.col0))
        owned = tuple(replace(p, slot=slot) for slot, p in enumerate(pieces))
        return cls(columns, rows, slots, owned, next_id)

    @cached_property
    def raster(self) -> IntArray:
        """Place of the partition of each cell, row by row; raises if a cell has none or two."""
        raster = np.full((self.rows, self.columns), -1, np.int32)
        for place, p in enumerate(self.partitions):
            area = raster[p.row0 : p.row1, p.col0 : p.col1]
            if area.size != p.cells or p.cells <= 0 or (area != -1).any():
                raise IntegrityError(f"partition {p.id} overlaps another one or leaves the grid")
            area[:] = place
        if (raster == -1).any():
            raise IntegrityError("a cell of the plan has no owner")
        return raster.ravel()

    @cached_property
    def borders(self) -> IntArray:
        """col0, row0, col1, row1 of each partition, for the overlap kernel."""
        return np.array([(p.col0, p.row0, p.col1, p.row1) for p in self.partitions], np.int32)

    def locate(
        self, columns: IntArray, rows: IntArray, positions: npt.NDArray[np.int64]
    ) -> IntArray:
        """The place of the partition whose cell an event lies in."""
        return _look_up(self.raster, columns, rows, self.columns)

    def homes(self, columns: IntArray, rows: IntArray) -> IntArray:
        """The place of the partition that a cell lies in."""
        return _look_up(self.raster, columns, rows, self.columns)

    def overlaps(self, ranges: CellRanges) -> Overlaps:
        """The partitions that ranges of cells touch: exactly those, each once."""
        counts = np.zeros(len(ranges), np.int64)
        nothing = np.empty(0, np.int32)
        table = (self.raster, self.borders, self.columns)
        edges = (ranges.col0, ranges.row0, ranges.col1, ranges.row1)
        _overlap(*table, *edges, counts, np.empty(0, np.int64), nothing)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        places = np.empty(int(offsets[-1]), np.int32)
        _overlap(*table, *edges, counts, offsets, places)
        return Overlaps(offsets, places)

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be made again: a plan travels with every task."""
        kept = {f.name for f in fields(self)}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def partition(self, partition_id: int) -> Partition:
        """The partition with an id, or :class:`KeyError`."""
        for p in self.partitions:
            if p.id == partition_id:
                return p
        raise KeyError(partition_id)

    def apply(self, change: Change) -> GridPlan:
        """The next plan; ids are never used twice, and lineage records what was replaced."""
        if isinstance(change, Move):
            old = self.partition(change.partition)
            self._check_slot(change.to)
            new = (replace(old, slot=change.to, previous_slot=old.slot),)
            return self._replaced((old,), new, retire=False)
        if isinstance(change, Split):
            return self._split(change)
        if isinstance(change, Resize):
            return self._resized(change.slots)
        if isinstance(change, Merge):
            return self._merge(change)
        raise ValueError(f"{change}: the partitions of a grid are split and merged by cells")

    @property
    def most_slots(self) -> int:
        """As many slots can own something: one per cell."""
        return self.columns * self.rows

    def _resized(self, slots: int) -> GridPlan:
        if not 1 <= slots <= self.most_slots:
            raise ValueError(
                f"{slots} slots for {self.columns} x {self.rows} cells: expected 1 slot or more, "
                "and at most one per cell"
            )
        left = sorted({p.slot for p in self.partitions if p.slot >= slots})
        if left:
            raise ValueError(
                f"a plan of {slots} slots: slot {left[0]} still owns partitions; move them first"
            )
        return replace(self, slots=slots, version=self.version + 1)

    def _split(self, change: Split) -> GridPlan:
        old = self.partition(change.partition)
        self._check_slot(change.first_to)
        self._check_slot(change.second_to)
        low, high = (old.col0, old.col1) if change.axis == "columns" else (old.row0, old.row1)
        if not low < change.at < high:
            raise ValueError(
                f"partition {old.id} spans {change.axis} {low} to {high}; "
                f"a split at {change.at} leaves one half empty"
            )
        child = replace(old, parents=(old.id,), previous_slot=old.slot)
        first = replace(child, id=self.next_id, slot=change.first_to)
        second = replace(child, id=self.next_id + 1, slot=change.second_to)
        if change.axis == "columns":
            first, second = replace(first, col1=change.at), replace(second, col0=change.at)
        else:
            first, second = replace(first, row1=change.at), replace(second, row0=change.at)
        return self._replaced((old,), (first, second))

    def _merge(self, change: Merge) -> GridPlan:
        a, b = self.partition(change.first), self.partition(change.second)
        self._check_slot(change.to)
        merged = Partition(
            self.next_id,
            min(a.col0, b.col0), min(a.row0, b.row0), max(a.col1, b.col1), max(a.row1, b.row1),
            change.to, (a.id, b.id), a.slot,
        )  # fmt: skip
        if a.id == b.id or merged.cells != a.cells + b.cells:
            raise ValueError(f"partitions {a.id} and {b.id} do not form a rectangle")
        return self._replaced((a, b), (merged,))

    def _replaced(
        self, old: tuple[Partition, ...], new: tuple[Partition, ...], retire: bool = True
    ) -> GridPlan:
        kept = tuple(p for p in self.partitions if p not in old)
        return replace(
            self,
            partitions=tuple(sorted(kept + new, key=lambda p: p.id)),
            next_id=max([self.next_id, *(p.id + 1 for p in new)]),
            version=self.version + 1,
            retired=self.retired + (old if retire else ()),
        )

    def forget(self, partition_ids: frozenset[int]) -> GridPlan:
        """Cut the chain of lineage at partitions whose data has expired; a new version, since
        whoever still sees that data needs the chain."""
        retired = tuple(p for p in self.retired if p.id not in partition_ids)
        return replace(self, retired=retired, version=self.version + 1)

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.slots:
            raise ValueError(f"slot {slot} does not exist; there are {self.slots}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the epoch log."""
        return {"kind": "grid", **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GridPlan:
        """The plan that :meth:`to_dict` wrote."""
        given = {k: v for k, v in values.items() if k != "kind"}
        for name in ("partitions", "retired"):
            given[name] = tuple(
                Partition(**{**p, "parents": tuple(p["parents"])}) for p in given[name]
            )
        return cls(**given)


@numba.njit(cache=True)
def _look_up(raster: Any, columns: Any, rows: Any, width: int) -> Any:
    out = np.empty(columns.size, np.int32)
    for i in range(columns.size):
        out[i] = raster[rows[i] * width + columns[i]]
    return out


@numba.njit(cache=True)
def _overlap(
    raster: Any, borders: Any, width: int,
    col0: Any, row0: Any, col1: Any, row1: Any,
    counts: Any, offsets: Any, places: Any,
) -> None:  # fmt: skip
    """Count (without ``places``) or list the partitions of each range.

    Band by band: along the band's first row one jumps from right border to right border; the next
    band starts below the nearest lower border met. A partition is noted in the one band that
    starts where the partition (or the range) starts, so none is noted twice and none is missed.
    """
    fill = places.size > 0
    for q in range(col0.size):
        found = 0
        row = row0[q]
        while row <= row1[q] and col1[q] >= col0[q]:
            next_row = row1[q] + 1
            column = col0[q]
            while column <= col1[q]:
                place = raster[row * width + column]
                if row == max(borders[place, 1], row0[q]):
                    if fill:
                        places[offsets[q] + found] = place
                    found += 1
                next_row = min(next_row, borders[place, 3])
                column = borders[place, 2]
            row = next_row
        counts[q] = found
