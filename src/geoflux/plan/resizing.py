"""More slots, or fewer: the changes that get a plan there.

A hash plan deals its partitions out by itself. In a grid, a slot that goes gives its partitions to
the least loaded; a slot that comes takes over whole partitions of the fullest one as long as they
fit into its share, and half of one where none does. Nothing else moves, and every slot that comes
owns something: what is left uneven is a balancer's task. Prefixes do the same
(:mod:`geoflux.plan.prefix_resizing`).
"""

from __future__ import annotations

from collections.abc import Mapping

from geoflux.plan.changes import Change, Move, Resize, Split
from geoflux.plan.grid_plan import GridPlan
from geoflux.plan.hash_plan import HashPlan
from geoflux.plan.plan import Partition
from geoflux.plan.prefix_plan import PrefixPlan
from geoflux.plan.prefix_resizing import resized_prefixes

_BY_AREA = 0.01
"""Of all load, what is taken to be spread over the cells: where none was measured, area tells."""


def resized(
    plan: HashPlan | GridPlan | PrefixPlan, slots: int, loads: Mapping[int, float] | None = None
) -> tuple[Change, ...]:
    """The changes that make a plan have so many slots, in the order in which it can apply them;
    none if it has. ``loads`` are by partition, those just replaced included; without them a grid
    goes by area.

    >>> plan = GridPlan.initial(8, 4, slots=2)
    >>> for change in resized(plan, 3, {1: 90.0, 2: 10.0}):
    ...     plan = plan.apply(change)
    >>> [(p.col0, p.row0, p.col1, p.row1, p.slot) for p in plan.partitions]
    [(4, 0, 8, 4, 1), (0, 0, 2, 4, 0), (2, 0, 4, 4, 2)]
    """
    if slots == plan.slots:
        return ()
    if isinstance(plan, PrefixPlan):
        return resized_prefixes(plan, slots, loads or {})
    if isinstance(plan, HashPlan) or not 1 <= slots <= plan.most_slots:
        return (Resize(slots),)
    weights = _weights(plan, loads or {})
    return _shrunk(plan, slots, weights) if slots < plan.slots else _grown(plan, slots, weights)


def _weights(plan: GridPlan, loads: Mapping[int, float]) -> dict[int, float]:
    """What each partition weighs; more than 0. What a change has just made inherits the load of
    its parents by area."""
    known = {p.id: p for p in plan.retired if p.id in loads}

    def load(p: Partition) -> float:
        if p.id in loads:
            return loads[p.id]
        parents = (known[parent] for parent in p.parents if parent in known)
        return sum(loads[q.id] * _common(p, q) / q.cells for q in parents)

    found = {p.id: load(p) for p in plan.partitions}
    spread = (_BY_AREA * sum(found.values()) or 1.0) / plan.most_slots
    return {p.id: found[p.id] + spread * p.cells for p in plan.partitions}


def _common(p: Partition, q: Partition) -> int:
    columns = min(p.col1, q.col1) - max(p.col0, q.col0)
    rows = min(p.row1, q.row1) - max(p.row0, q.row0)
    return max(columns, 0) * max(rows, 0)


def _shrunk(plan: GridPlan, slots: int, weights: Mapping[int, float]) -> tuple[Change, ...]:
    loads = [0.0] * slots
    for p in plan.partitions:
        if p.slot < slots:
            loads[p.slot] += weights[p.id]
    changes: list[Change] = []
    going = [p for p in plan.partitions if p.slot >= slots]
    for p in sorted(going, key=lambda p: (-weights[p.id], p.id)):
        to = min(range(slots), key=lambda slot: (loads[slot], slot))
        loads[to] += weights[p.id]
        changes.append(Move(p.id, to))
    return (*changes, Resize(slots))


def _grown(plan: GridPlan, slots: int, weights: dict[int, float]) -> tuple[Change, ...]:
    share = sum(weights.values()) / slots
    changes: list[Change] = [Resize(slots)]
    coming = range(plan.slots, slots)
    plan = plan.apply(changes[0])
    for new in coming:
        while True:
            change = _taken(plan, new, share, weights)
            if change is None:
                break
            if isinstance(change, Split):
                half = weights[change.partition] / 2
                weights |= {plan.next_id: half, plan.next_id + 1: half}
            changes.append(change)
            plan = plan.apply(change)
    return tuple(changes)


def _taken(
    plan: GridPlan, new: int, share: float, weights: Mapping[int, float]
) -> Move | Split | None:
    """What a slot that comes takes next; nothing, once it has its share."""
    owned: dict[int, list[Partition]] = {}
    for p in plan.partitions:
        owned.setdefault(p.slot, []).append(p)
    loads = {slot: sum(weights[p.id] for p in mine) for slot, mine in owned.items()}
    has = loads.pop(new, 0.0)
    donors = [slot for slot in loads if sum(p.cells for p in owned[slot]) > 1]
    if not donors or has >= share:
        return None
    donor = max(donors, key=lambda slot: (loads[slot], -slot))
    mine = sorted(owned[donor], key=lambda p: (-weights[p.id], p.id))
    fitting = [p for p in mine if weights[p.id] <= share - has]
    if len(mine) > 1 and fitting:
        return Move(fitting[0].id, new)
    if has > 0:
        return None
    parts = [p for p in mine if p.cells > 1]
    if not parts:
        return Move(mine[-1].id, new)
    heaviest = parts[0]
    if heaviest.columns >= heaviest.rows:
        at = heaviest.col0 + heaviest.columns // 2
        return Split(heaviest.id, "columns", at, donor, new)
    return Split(heaviest.id, "rows", heaviest.row0 + heaviest.rows // 2, donor, new)
