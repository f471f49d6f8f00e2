"""The replicated plan: every slot holds all queries, events go round-robin.

A baseline of the papers (SWARM 6): perfectly even, and every slot pays the memory of all queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.plan.plan import Overlaps, Partition
from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import IntArray


@dataclass(frozen=True)
class ReplicatedPlan:
    """One partition per slot, each the whole space.

    >>> plan = ReplicatedPlan(8, 8, slots=3)
    >>> plan.locate(np.zeros(4, np.int32), np.zeros(4, np.int32), np.arange(4))
    array([0, 1, 2, 0], dtype=int32)
    """

    columns: int
    rows: int
    slots: int
    version: int = 1

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """One per slot."""
        return tuple(Partition(s, 0, 0, self.columns, self.rows, s) for s in range(self.slots))

    def locate(
        self, columns: IntArray, rows: IntArray, positions: npt.NDArray[np.int64]
    ) -> IntArray:
        """Round-robin by position."""
        return (positions % self.slots).astype(np.int32)

    def homes(self, columns: IntArray, rows: IntArray) -> IntArray:
        """Cells dealt out to the slots."""
        return ((rows.astype(np.int64) * self.columns + columns) % self.slots).astype(np.int32)

    def overlaps(self, ranges: CellRanges) -> Overlaps:
        """All partitions for every query that touches the space."""
        touches = (ranges.col1 >= ranges.col0) & (ranges.row1 >= ranges.row0)
        offsets = np.concatenate(([0], np.cumsum(touches * self.slots))).astype(np.int64)
        places = np.tile(np.arange(self.slots, dtype=np.int32), int(touches.sum()))
        return Overlaps(offsets, places)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the epoch log."""
        return {
            "kind": "replicated", "columns": self.columns, "rows": self.rows,
            "slots": self.slots, "version": self.version,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ReplicatedPlan:
        """The plan that :meth:`to_dict` wrote."""
        return cls(**{k: v for k, v in values.items() if k != "kind"})
