"""What partitions inherit when others are split or merged: references, and numbers by partition.

Nothing is read or written. A partition that was made of others refers to what they had, with the
prefix that it has of it; cutting and joining happens when somebody opens it.

Invariant: references of a partition have all a prefix (inherited: what retired partitions had) or
all none (its own). What is inherited is never added to: it is saved whole when it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geoflux.balance.parts import Part
from geoflux.plan import PrefixPartition
from geoflux.plan.prefixes import Bits, both, fused, inside
from geoflux.state.refs import Ref, StateMap

Partitions = Sequence[PrefixPartition]


def inherited(refs: StateMap, gone: Partitions, new: Partitions) -> StateMap:
    """References after the partitions ``gone`` were replaced by ``new`` ones."""
    if not new:
        return refs
    left = {p.id for p in gone}
    after = {p: known for p, known in refs.refs.items() if p not in left}
    for heir in new:
        found = _heirlooms(refs, gone, heir)
        if found:
            after[heir.id] = found
    return StateMap(after)


def _heirlooms(refs: StateMap, gone: Partitions, heir: PrefixPartition) -> tuple[Ref, ...]:
    """What a new partition has of those before it; pieces of one origin that are next to each other
    become one again, so that taking back what was cut off leaves no trace."""
    areas: dict[int, dict[Bits, None]] = {}
    known: dict[int, dict[Ref, None]] = {}
    for old in gone:
        for ref in refs.of(old.id):
            area = both(ref.prefix or old.area, heir.area)
            if area is not None:
                areas.setdefault(ref.partition, {})[area] = None
                known.setdefault(ref.partition, {})[ref._replace(prefix=None)] = None
    return tuple(
        ref._replace(prefix=area)
        for origin, some in areas.items()
        for area in fused(some)
        for ref in known[origin]
    )


def origins(refs: Sequence[Ref]) -> list[tuple[int, tuple[Ref, ...], tuple[Bits, ...]]]:
    """Inherited references by where they come from: the retired partition, the references that it
    had, and the prefixes that are meant of it."""
    of: dict[int, list[Ref]] = {}
    for ref in refs:
        of.setdefault(ref.partition, []).append(ref)
    return [
        (
            origin,
            tuple(dict.fromkeys(ref._replace(prefix=None) for ref in some)),
            tuple(dict.fromkeys(ref.prefix for ref in some if ref.prefix is not None)),
        )
        for origin, some in of.items()
    ]


def shared_out(
    amounts: Mapping[int, float], gone: Partitions, new: Partitions,
    parts: Mapping[int, Sequence[Part]], by: str = "bytes",
) -> dict[int, float]:  # fmt: skip
    """Numbers by partition (bytes, or rows) after a change: a merged partition has those of all its
    parents, and where one was split its pieces share by what was measured of its parts, or by area
    where nothing was."""
    left = {p.id for p in gone}
    after = {p: amount for p, amount in amounts.items() if p not in left}
    for old in gone:
        amount = amounts.get(old.id, 0)
        heirs = [p for p in new if both(p.area, old.area) is not None]
        shares = {p.id: _share(p.area, old.area, parts.get(old.id, ()), by) for p in heirs}
        whole = sum(shares.values())
        for p in heirs:
            after[p.id] = after.get(p.id, 0) + amount * shares[p.id] / whole
    return after


def _share(area: Bits, of: Bits, parts: Sequence[Part], by: str) -> float:
    """The share of a prefix in what a partition has; a little goes by area, so that none is 0."""
    common = both(area, of)
    assert common is not None
    by_area: float = 2.0 ** (of[1] - common[1])
    whole = sum(getattr(part, by) or 0 for part in parts)
    if not whole:
        return by_area
    mine = sum(
        (getattr(part, by) or 0)
        * (1.0 if inside(part.area, common) else 2.0 ** (part.bits - common[1]))
        for part in parts
        if both(part.area, common) is not None
    )
    return max(mine / whole, 1e-6 * by_area)
