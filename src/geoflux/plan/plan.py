"""What a plan is: who owns which part of the work, as an immutable, versioned value.

Routing asks a plan where an event goes, the control path asks which partitions a query touches,
policies turn one plan into the next. Workers get the small value and build the routing table from
it once per version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import IntArray


@dataclass(frozen=True)
class Partition:
    """A rectangle of cells that one slot owns: columns ``col0`` to ``col1``, rows ``row0`` to
    ``row1``, the upper ends excluded. ``parents`` and ``previous_slot`` are its lineage: where to
    look for what was received before the partition was made or moved."""

    id: int
    col0: int
    row0: int
    col1: int
    row1: int
    slot: int
    parents: tuple[int, ...] = ()
    previous_slot: int | None = None

    @property
    def columns(self) -> int:
        """Width in cells."""
        return self.col1 - self.col0

    @property
    def rows(self) -> int:
        """Height in cells."""
        return self.row1 - self.row0

    @property
    def cells(self) -> int:
        """Area in cells."""
        return self.columns * self.rows

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Its cells: ``col0``, ``row0``, ``col1``, ``row1``."""
        return self.col0, self.row0, self.col1, self.row1


@dataclass(frozen=True)
class Overlaps:
    """Which partitions each of several queries touches: a CSR matrix of partition *places*
    (indices into :attr:`Plan.partitions`)."""

    offsets: npt.NDArray[np.int64]
    places: IntArray

    def of(self, query: int) -> IntArray:
        """The places that one query touches."""
        found: IntArray = self.places[self.offsets[query] : self.offsets[query + 1]]
        return found

    def by_place(self, partitions: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The transpose: offsets per place, and the queries that touch it in ascending order."""
        queries = np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))
        order = np.argsort(self.places, kind="stable")
        counts = np.bincount(self.places, minlength=partitions)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return offsets, queries[order]


class Plan(Protocol):
    """What the engine needs of a plan, whatever it partitions by."""

    @property
    def version(self) -> int:
        """Grows by one with every change."""
        ...

    @property
    def slots(self) -> int:
        """How many slots there are."""
        ...

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, in an order that is fixed for this version."""
        ...

    def locate(
        self, columns: IntArray, rows: IntArray, positions: npt.NDArray[np.int64]
    ) -> IntArray:
        """The place of the partition that gets each event."""
        ...

    def homes(self, columns: IntArray, rows: IntArray) -> IntArray:
        """The place of the one partition that puts the results of a cell's queries together."""
        ...

    def overlaps(self, ranges: CellRanges) -> Overlaps:
        """The partitions that each query touches, each once."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the epoch log."""
        ...
