"""More slots of a prefix plan, or fewer: the changes that get it there.

A slot that goes gives its partitions to the least loaded; a slot that comes takes over whole
partitions of the fullest one as long as they fit into its share, and half of one where none does.
Nothing else moves, and every slot that comes owns something: what is left uneven is a balancer's
task.
"""

from __future__ import annotations

from collections.abc import Mapping

from geoflux.plan.changes import Change, Move, Resize, SplitPrefix
from geoflux.plan.prefix_plan import PrefixPartition, PrefixPlan

_BY_AREA = 0.01
"""Of all load, what is taken to be spread over all codes: where none was measured, area tells."""


def resized_prefixes(
    plan: PrefixPlan, slots: int, loads: Mapping[int, float]
) -> tuple[Change, ...]:
    """The changes that make a plan have so many slots, in order; ``loads`` are by partition.

    >>> plan = PrefixPlan.initial(1, 8, per_slot=1)
    >>> resized_prefixes(plan, 2, {})
    (Resize(slots=2), SplitPrefix(partition=0, pieces=((1, 1, 1),)))
    """
    if not 1 <= slots <= plan.most_slots:
        return (Resize(slots),)
    spread = _BY_AREA * sum(loads.values()) or 1.0
    weights = {p.id: loads.get(p.id, 0.0) + spread / 2**p.bits for p in plan.partitions}
    return _shrunk(plan, slots, weights) if slots < plan.slots else _grown(plan, slots, weights)


def _shrunk(plan: PrefixPlan, slots: int, weights: Mapping[int, float]) -> tuple[Change, ...]:
    held = [0.0] * slots
    for p in plan.partitions:
        if p.slot < slots:
            held[p.slot] += weights[p.id]
    changes: list[Change] = []
    going = [p for p in plan.partitions if p.slot >= slots]
    for p in sorted(going, key=lambda p: (-weights[p.id], p.id)):
        to = min(range(slots), key=lambda slot: (held[slot], slot))
        held[to] += weights[p.id]
        changes.append(Move(p.id, to))
    return (*changes, Resize(slots))


def _grown(plan: PrefixPlan, slots: int, weights: dict[int, float]) -> tuple[Change, ...]:
    share = sum(weights.values()) / slots
    changes: list[Change] = [Resize(slots)]
    coming = range(plan.slots, slots)
    plan = plan.apply(changes[0])
    for new in coming:
        while (change := _taken(plan, new, share, weights)) is not None:
            changes.append(change)
            after = plan.apply(change)
            if isinstance(change, SplitPrefix):
                half = weights[change.partition] / 2
                weights |= {plan.next_id: half, plan.next_id + 1: half}
            plan = after
    return tuple(changes)


def _taken(
    plan: PrefixPlan, new: int, share: float, weights: Mapping[int, float]
) -> Move | SplitPrefix | None:
    """What a slot that comes takes next; nothing, once it has its share."""
    owned: dict[int, list[PrefixPartition]] = {}
    for p in plan.partitions:
        owned.setdefault(p.slot, []).append(p)
    held = {slot: sum(weights[p.id] for p in mine) for slot, mine in owned.items()}
    has = held.pop(new, 0.0)
    donors = [s for s in held if len(owned[s]) > 1 or owned[s][0].bits < plan.code_bits]
    if not donors or has >= share:
        return None
    donor = max(donors, key=lambda slot: (held[slot], -slot))
    mine = sorted(owned[donor], key=lambda p: (-weights[p.id], p.id))
    fitting = [p for p in mine if weights[p.id] <= share - has]
    if len(mine) > 1 and fitting:
        return Move(fitting[0].id, new)
    if has > 0:
        return None
    parts = [p for p in mine if p.bits < plan.code_bits]
    if not parts:
        return Move(mine[-1].id, new)
    return SplitPrefix(parts[0].id, ((2 * parts[0].code + 1, parts[0].bits + 1, new),))
