"""Merging in the background: neighbours that one slot owns and that form a rectangle.

There is no use in keeping them apart, and every partition costs a little. A few are merged at a
time, so that this never shows.

Source: SWARM 4.3, last paragraph.
"""

from __future__ import annotations

from geoflux.plan import GridPlan, Merge, Partition


def mergeable(plan: GridPlan, slot: int, limit: int = 8) -> tuple[Merge, ...]:
    """Merges of a slot's partitions, at most ``limit``; no partition is in two of them, so they
    can be applied in any order. Ask again for what could be merged further.

    >>> from geoflux.plan import Split
    >>> plan = GridPlan.initial(8, 4, slots=2).apply(Split(1, "rows", 2, first_to=0, second_to=0))
    >>> mergeable(plan, 0)
    (Merge(first=3, second=4, to=0),)
    """
    mine = [p for p in plan.partitions if p.slot == slot]
    begins = {("columns", p.col0, p.row0, p.row1): p for p in mine}
    begins |= {("rows", p.row0, p.col0, p.col1): p for p in mine}
    merges: list[Merge] = []
    used: set[int] = set()
    for p in sorted(mine, key=lambda p: (p.cells, p.id)):
        for q in _following(p, begins):
            if len(merges) < limit and not {p.id, q.id} & used:
                merges.append(Merge(p.id, q.id, slot))
                used |= {p.id, q.id}
    return tuple(merges)


def _following(
    p: Partition, begins: dict[tuple[str, int, int, int], Partition]
) -> list[Partition]:  # fmt: skip
    """The neighbours that begin where ``p`` ends and are as wide (or as high)."""
    places = (("columns", p.col1, p.row0, p.row1), ("rows", p.row1, p.col0, p.col1))
    return [begins[place] for place in places if place in begins]
