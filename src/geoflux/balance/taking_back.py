"""What was given away, and how it is taken back: one region at a time, the exact inverse.

A region is taken back with all that was given on from it, and becomes one again with what its owner
kept of the prefix that it was cut off, as far as nothing else of that is elsewhere. So when all is
taken back, in whatever order, the plan is what it was at first.

Source: Synopsis 3.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geoflux.plan import MergePrefix, PrefixPlan
from geoflux.plan.changes import Change, Move
from geoflux.plan.prefixes import Bits, inside, upward


@dataclass(frozen=True)
class Evicted:
    """A prefix that was given away: by whom, what it was cut off, and how many rows a second its
    owner could do at most, if it was given away for that."""

    area: Bits
    home: int
    whole: Bits
    limit: float | None = None

    def to_list(self) -> list[Any]:
        """Plain values, for the manifest."""
        return [*self.area, self.home, *self.whole, self.limit]

    @classmethod
    def of(cls, values: Sequence[Any]) -> Evicted:
        """What :meth:`to_list` gave."""
        code, bits, home, whole, whole_bits, limit = values
        return cls((code, bits), home, (whole, whole_bits), limit)


def still_there(evicted: Sequence[Evicted], plan: PrefixPlan) -> tuple[Evicted, ...]:
    """Those that can be taken back: somebody else may have changed the plan, or the slots."""
    return tuple(e for e in evicted if e.home < plan.slots and plan.within(e.area))


def outermost(evicted: Sequence[Evicted], home: int, area: Bits) -> Bits:
    """What a prefix was cut off at first, where its owner gave parts of that away already: one of
    its partitions may be what is left of a larger one, and is to become that again."""
    wholes = [e.whole for e in evicted if e.home == home and inside(area, e.whole)]
    return min((area, *wholes), key=lambda whole: whole[1])


def region_of(evicted: Sequence[Evicted], number: int) -> Bits:
    """What becomes one again when one of them is taken back: the largest prefix, of those that it
    was cut off, that holds nothing else that was given away."""
    mine = evicted[number]
    others = [
        e for n, e in enumerate(evicted)
        if n not in _with(evicted, number) and not inside(mine.whole, e.area)
    ]  # fmt: skip
    best = mine.area
    for bits in range(mine.area[1] - 1, mine.whole[1] - 1, -1):
        above = upward(mine.area, bits)
        if any(inside(e.area, above) for e in others):
            break
        best = above
    return best


def taken_back(evicted: Sequence[Evicted], number: int, plan: PrefixPlan) -> Change | None:
    """The change that takes one of them back; ``None``, where its owner has all of it already."""
    region, home = region_of(evicted, number), evicted[number].home
    held = plan.within(region)
    if len(held) > 1:
        return MergePrefix(*region, home)
    return Move(held[0].id, home) if held and held[0].slot != home else None


def left(evicted: Sequence[Evicted], number: int) -> tuple[Evicted, ...]:
    """Those that are still away once one is taken back: what was given on from it came along."""
    back = _with(evicted, number)
    return tuple(e for n, e in enumerate(evicted) if n not in back)


def _with(evicted: Sequence[Evicted], number: int) -> frozenset[int]:
    """One of them, and those that were later given away from inside it."""
    area = evicted[number].area
    later = range(number + 1, len(evicted))
    return frozenset((number, *(n for n in later if inside(evicted[n].area, area))))


def amounts(region: Bits, home: int, plan: PrefixPlan, by_partition: Mapping[int, float]) -> float:
    """What of a number by partition comes home with a region."""
    return sum(by_partition.get(p.id, 0) for p in plan.within(region) if p.slot != home)
