"""The hash plan of Flux: many mini-partitions of a key, each owned by a slot.

A key's partition is fixed for ever by a stable hash; what changes is who owns the partition. There
are many more partitions than slots, so that load moves in small portions.

Invariant: every key lies in exactly one partition, and a partition has exactly one owner, after any
sequence of moves and resizes.

Source: Flux 5.1 (mini-partitions), 5.4 (64 per site).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from geoflux.errors import IntegrityError
from geoflux.plan.changes import Change, Move, Resize
from geoflux.plan.hashing import stable_hash
from geoflux.spatial.space import IntArray


@dataclass(frozen=True)
class MiniPartition:
    """A share of the keys that one slot owns; ``previous_slot`` had it before its last move."""

    id: int
    slot: int
    previous_slot: int | None = None


@dataclass(frozen=True)
class HashPlan:
    """Mini-partitions of a key; the id of a partition is also its place, for ever.

    >>> plan = HashPlan.initial(slots=2, per_slot=3)
    >>> [p.slot for p in plan.partitions]
    [0, 1, 0, 1, 0, 1]
    >>> plan.apply(Move(0, to=1)).partition(0)
    MiniPartition(id=0, slot=1, previous_slot=0)
    """

    slots: int
    partitions: tuple[MiniPartition, ...]
    version: int = 1

    def __post_init__(self) -> None:
        if [p.id for p in self.partitions] != list(range(len(self.partitions))):
            raise IntegrityError("the partitions of a hash plan are numbered from 0 without a gap")
        for p in self.partitions:
            self._check_slot(p.slot)

    @classmethod
    def initial(cls, slots: int, per_slot: int = 64) -> HashPlan:
        """As many partitions for every slot, dealt out in turn."""
        if slots < 1 or per_slot < 1:
            raise ValueError(f"{slots} slots with {per_slot} partitions each: expected 1 or more")
        return cls(slots, tuple(MiniPartition(i, i % slots) for i in range(slots * per_slot)))

    @cached_property
    def owners(self) -> IntArray:
        """The slot of each partition, by place."""
        return np.array([p.slot for p in self.partitions], np.int32)

    def locate(self, keys: Any) -> IntArray:
        """The place of the partition of each key of a pyarrow or NumPy array."""
        return (stable_hash(keys) % np.uint64(len(self.partitions))).astype(np.int32)

    def partition(self, partition_id: int) -> MiniPartition:
        """The partition with an id, or :class:`KeyError`."""
        if not 0 <= partition_id < len(self.partitions):
            raise KeyError(partition_id)
        return self.partitions[partition_id]

    def apply(self, change: Change) -> HashPlan:
        """The next plan. Mini-partitions are small already: they move, and never split or merge."""
        if isinstance(change, Resize):
            return self._resized(change.slots)
        if not isinstance(change, Move):
            raise ValueError(f"{change}: the partitions of a hash plan can only move")
        old = self.partition(change.partition)
        new = replace(old, slot=change.to, previous_slot=old.slot)
        partitions = (*self.partitions[: old.id], new, *self.partitions[old.id + 1 :])
        return replace(self, partitions=partitions, version=self.version + 1)

    @property
    def most_slots(self) -> int:
        """As many slots can own something."""
        return len(self.partitions)

    def _resized(self, slots: int) -> HashPlan:
        """With another number of slots: those that go give their partitions to whoever has fewest,
        those that come take an equal share from whoever has most; nothing else moves."""
        if not 1 <= slots <= self.most_slots:
            raise ValueError(
                f"{slots} slots for {self.most_slots} partitions, which stay as many for ever: "
                "expected 1 slot or more, and a partition for each; begin with more of them"
            )
        owners = _dealt(self.owners, self.slots, slots)
        partitions = tuple(
            p if p.slot == slot else replace(p, slot=slot, previous_slot=p.slot)
            for p, slot in zip(self.partitions, owners.tolist(), strict=True)
        )
        return HashPlan(slots, partitions, self.version + 1)

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.slots:
            raise ValueError(f"slot {slot} does not exist; there are {self.slots}")

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be made again: a plan travels with every task."""
        kept = {f.name for f in fields(self)}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the epoch log."""
        return {"kind": "hash", **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HashPlan:
        """The plan that :meth:`to_dict` wrote."""
        given = {k: v for k, v in values.items() if k != "kind"}
        given["partitions"] = tuple(MiniPartition(**p) for p in given["partitions"])
        return cls(**given)


def _dealt(owners: IntArray, before: int, slots: int) -> IntArray:
    """Who owns each partition when ``before`` slots have become ``slots``, with the fewest moves.

    >>> _dealt(np.array([0, 1, 0, 1, 0, 1], np.int32), 2, 3).tolist()
    [0, 1, 0, 1, 2, 2]
    >>> _dealt(np.array([0, 1, 0, 1, 2, 2], np.int32), 3, 2).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    after = owners.copy()
    if slots <= before:
        counts = np.bincount(owners, minlength=slots)[:slots]
        emptiest = [(count, slot) for slot, count in enumerate(counts.tolist())]
        heapq.heapify(emptiest)
        for place in np.flatnonzero(owners >= slots):
            count, slot = emptiest[0]
            after[place] = slot
            heapq.heapreplace(emptiest, (count + 1, slot))
        return after
    owned = [np.flatnonzero(owners == slot).tolist() for slot in range(before)]
    fullest = [(-len(mine), slot) for slot, mine in enumerate(owned)]
    heapq.heapify(fullest)
    emptiest = [(0, slot) for slot in range(before, slots)]
    share = -(-len(owners) // slots)
    while -fullest[0][0] - emptiest[0][0] >= 2 and emptiest[0][0] < share:
        (most, donor), (count, slot) = fullest[0], emptiest[0]
        after[owned[donor].pop()] = slot
        heapq.heapreplace(fullest, (most + 1, donor))
        heapq.heapreplace(emptiest, (count + 1, slot))
    return after
