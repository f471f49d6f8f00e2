"""Which rows of a routed batch go to which slot: partitions in the order of their owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from geoflux.engine.blobs import Run
from geoflux.operators.kernels import sort_by_cell
from geoflux.spatial.space import IntArray


class Owned(Protocol):
    """A partition, as far as its address goes."""

    @property
    def id(self) -> int:
        """Unique for ever."""
        ...

    @property
    def slot(self) -> int:
        """Its owner."""
        ...


class Stretch(NamedTuple):
    """Rows ``first`` to ``last`` of an ordered batch, all for one slot."""

    slot: int
    first: int
    last: int
    runs: list[Run]


@dataclass(frozen=True)
class Addresses:
    """The partitions of a plan by their owners."""

    owners: tuple[Owned, ...]
    rank_of_place: IntArray

    @classmethod
    def of(cls, partitions: Sequence[Owned]) -> Addresses:
        """Of all partitions of a plan, in its order."""
        slots = np.array([p.slot for p in partitions])
        order = np.argsort(slots, kind="stable")
        ranks = np.empty(slots.size, np.int32)
        ranks[order] = np.arange(slots.size)
        return cls(tuple(partitions[place] for place in order), ranks)

    def sorted(self, place: IntArray) -> tuple[IntArray, list[Stretch]]:
        """The order that puts rows of one partition together, and those of one slot, given the
        place of each row's partition; rows of one partition stay in their order."""
        order, ranks, offsets = sort_by_cell(self.rank_of_place[place], len(self.owners))
        stretches = []
        first = 0
        while first < len(ranks):
            slot, last = self.owners[ranks[first]].slot, first
            runs = []
            while last < len(ranks) and self.owners[ranks[last]].slot == slot:
                rows = int(offsets[last + 1] - offsets[last])
                runs.append(Run(self.owners[ranks[last]].id, rows))
                last += 1
            stretches.append(Stretch(slot, int(offsets[first]), int(offsets[last]), runs))
            first = last
        return order, stretches
