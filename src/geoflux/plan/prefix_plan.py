"""The prefix plan of Synopsis: bit prefixes of a place code, each owned by a slot.

Codes of near places begin alike (geohash), so that a prefix is a region, and regions that lie in
one another are longer prefixes. Regions with much to do are cut off and given away, and taken back
later; the fewest prefixes that tile what is left stay with the owner.

Invariant: the partitions tile the whole space without overlap, and each has exactly one owner,
after any sequence of changes; ids are never used twice.

Source: Synopsis 3.5 (partitioning), 3.6 and 3.7 (scaling out and in).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.errors import IntegrityError
from geoflux.plan.changes import Change, MergePrefix, Move, Resize, SplitPrefix
from geoflux.plan.prefixes import Bits, in_order, inside, named, rest
from geoflux.spatial.space import IntArray

_MOST_BITS = 62
_TABLE_BITS = 16
"""While no prefix is longer, places are looked up in a table (256 KB at most) and not searched."""


@dataclass(frozen=True)
class PrefixPartition:
    """All codes that begin with ``bits`` bits, those of ``code``. ``parents`` are the partitions
    that it was made of, ``previous_slot`` owned it before."""

    id: int
    code: int
    bits: int
    slot: int
    parents: tuple[int, ...] = ()
    previous_slot: int | None = None

    @property
    def area(self) -> Bits:
        """Its prefix."""
        return self.code, self.bits


@dataclass(frozen=True)
class PrefixPlan:
    """Prefixes of codes of ``code_bits`` bits, 0 to 62, in the order of their codes.

    >>> plan = PrefixPlan.initial(slots=2, code_bits=10, per_slot=1)
    >>> plan = plan.apply(SplitPrefix(1, ((0b110, 3, 0),)))
    >>> [(named(p.area), p.slot) for p in plan.partitions]
    [('0', 0), ('10', 1), ('110', 0), ('111', 1)]
    >>> plan = plan.apply(MergePrefix(1, 1, to=1))
    >>> [(p.id, named(p.area), p.slot, p.parents) for p in plan.partitions]
    [(0, '0', 0, ()), (5, '1', 1, (2, 3, 4))]
    """

    code_bits: int
    slots: int
    partitions: tuple[PrefixPartition, ...]
    next_id: int
    version: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.code_bits <= _MOST_BITS:
            raise ValueError(f"codes of {self.code_bits} bits: expected 0 to {_MOST_BITS}")
        if self.slots < 1:
            raise ValueError(f"{self.slots} slots: expected 1 or more")
        at = 0
        for p in self.partitions:
            if not 0 <= p.bits <= self.code_bits or self._start(p) != at:
                raise IntegrityError(
                    f"prefix {named(p.area)} does not begin where the one before it ends; "
                    "the partitions of a prefix plan tile all codes, in their order"
                )
            at += 1 << (self.code_bits - p.bits)
            self._check_slot(p.slot)
        if at != 1 << self.code_bits:
            raise IntegrityError("the partitions of a prefix plan leave a gap at the end")
        ids = {p.id for p in self.partitions}
        if len(ids) < len(self.partitions) or max(ids) >= self.next_id:
            raise IntegrityError("ids of partitions are never used twice")

    @classmethod
    def initial(cls, slots: int, code_bits: int, per_slot: int = 4) -> PrefixPlan:
        """At least so many partitions for every slot, all of the same length; neighbours together.

        >>> [p.slot for p in PrefixPlan.initial(3, 10, per_slot=1).partitions]
        [0, 0, 1, 2]
        """
        if slots < 1 or per_slot < 1:
            raise ValueError(f"{slots} slots with {per_slot} partitions each: expected 1 or more")
        bits = min(max(slots * per_slot - 1, 0).bit_length(), code_bits)
        count = 1 << bits
        return cls(
            code_bits, slots,
            tuple(PrefixPartition(i, i, bits, i * slots // count) for i in range(count)), count,
        )  # fmt: skip

    def locate(self, codes: Any) -> IntArray:
        """The place of the partition of each code (an int64 array of ``code_bits`` bits)."""
        given: npt.NDArray[np.int64] = np.asarray(codes, np.int64)
        if given.size and (int(given.min()) < 0 or int(given.max()) >> self.code_bits):
            raise ValueError(
                f"codes from {given.min()} to {given.max()}: expected {self.code_bits} bits, "
                f"0 to {(1 << self.code_bits) - 1}"
            )
        if self._depth <= _TABLE_BITS:
            return self._table[given >> (self.code_bits - self._depth)]
        return (np.searchsorted(self._starts, given, side="right") - 1).astype(np.int32)

    @cached_property
    def _depth(self) -> int:
        return max(p.bits for p in self.partitions)

    @cached_property
    def _table(self) -> IntArray:
        """The place of every prefix as long as the longest."""
        counts = [1 << (self._depth - p.bits) for p in self.partitions]
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.array([self._start(p) for p in self.partitions], np.int64)

    def _start(self, p: PrefixPartition) -> int:
        return p.code << (self.code_bits - p.bits)

    @cached_property
    def owners(self) -> IntArray:
        """The slot of each partition, by place."""
        return np.array([p.slot for p in self.partitions], np.int32)

    @cached_property
    def _by_id(self) -> dict[int, PrefixPartition]:
        return {p.id: p for p in self.partitions}

    def partition(self, partition_id: int) -> PrefixPartition:
        """The partition with an id, or :class:`KeyError`."""
        return self._by_id[partition_id]

    def within(self, area: Bits) -> tuple[PrefixPartition, ...]:
        """The partitions that lie in a prefix; none, where it lies in a partition itself."""
        return tuple(p for p in self.partitions if inside(p.area, area))

    @property
    def most_slots(self) -> int:
        """As many slots can own something."""
        return 1 << self.code_bits

    def apply(self, change: Change) -> PrefixPlan:
        """The next plan."""
        if isinstance(change, Move):
            old = self.partition(change.partition)
            return self._with((old,), (replace(old, slot=change.to, previous_slot=old.slot),))
        if isinstance(change, SplitPrefix):
            return self._split(change)
        if isinstance(change, MergePrefix):
            return self._merge(change)
        if isinstance(change, Resize):
            return self._resized(change.slots)
        raise ValueError(f"{change}: the partitions of a prefix plan are split and merged by bits")

    def _split(self, change: SplitPrefix) -> PrefixPlan:
        old = self.partition(change.partition)
        to = {(code, bits): slot for code, bits, slot in change.pieces}
        pieces = in_order(to)
        clash = any(inside(b, a) for a, b in pairwise(pieces))
        if len(to) < len(change.pieces) or clash:
            raise ValueError(f"{change}: the pieces of a split must not overlap")
        for area in pieces:
            if not inside(area, old.area) or not old.bits < area[1] <= self.code_bits:
                raise ValueError(
                    f"prefix {named(area)} is no part of partition {old.id}, {named(old.area)}; "
                    f"expected a longer one, of at most {self.code_bits} bits"
                )
        areas = in_order((*pieces, *rest(old.area, pieces)))
        if len(areas) < 2:
            raise ValueError(f"{change}: a split needs a piece to cut off")
        return self._with((old,), tuple(
            PrefixPartition(self.next_id + n, *area, to.get(area, old.slot), (old.id,), old.slot)
            for n, area in enumerate(areas)
        ))  # fmt: skip

    def _merge(self, change: MergePrefix) -> PrefixPlan:
        area = change.code, change.bits
        old = self.within(area)
        if len(old) < 2:
            raise ValueError(
                f"prefix {named(area)} has {len(old)} partitions; a merge needs two or more"
            )
        parents = tuple(p.id for p in old)
        new = PrefixPartition(self.next_id, *area, change.to, parents, old[0].slot)
        return self._with(old, (new,))

    def _resized(self, slots: int) -> PrefixPlan:
        left = sorted({p.slot for p in self.partitions if p.slot >= slots})
        if left:
            raise ValueError(
                f"a plan of {slots} slots: slot {left[0]} still owns partitions; move them first"
            )
        if slots > self.most_slots:
            raise ValueError(f"{slots} slots for {self.most_slots} codes: at most one per code")
        return replace(self, slots=slots, version=self.version + 1)

    def _with(self, old: Sequence[PrefixPartition], new: tuple[PrefixPartition, ...]) -> PrefixPlan:
        """With neighbours replaced by others that tile the same prefix."""
        place = self.partitions.index(old[0])
        return replace(
            self,
            partitions=(*self.partitions[:place], *new, *self.partitions[place + len(old) :]),
            next_id=max(self.next_id, *(p.id + 1 for p in new)),
            version=self.version + 1,
        )

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.slots:
            raise ValueError(f"slot {slot} does not exist; there are {self.slots}")

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be made again: a plan travels with every task."""
        kept = {f.name for f in fields(self)}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the epoch log."""
        return {"kind": "prefix", **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrefixPlan:
        """The plan that :meth:`to_dict` wrote."""
        given = {k: v for k, v in values.items() if k != "kind"}
        given["partitions"] = tuple(
            PrefixPartition(**{**p, "parents": tuple(p["parents"])}) for p in given["partitions"]
        )
        return cls(**given)


def succession(
    before: PrefixPlan, after: PrefixPlan
) -> tuple[tuple[PrefixPartition, ...], tuple[PrefixPartition, ...]]:
    """The partitions that a change replaced, and those that came instead, each in their order;
    none, where it only moved some."""
    gone = tuple(p for p in before.partitions if p.id not in after._by_id)
    new = tuple(p for p in after.partitions if p.id not in before._by_id)
    return gone, new
