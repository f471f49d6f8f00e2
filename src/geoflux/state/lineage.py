"""Lineage: where retained events of a part of the space may lie, whatever the plan went through.

A retained segment stays with the partition that received it. Who looks for events of a cell
therefore asks the partition that owns the cell now, the partitions that it was made from, those
that they were made from, and so on until the chain ends or was cut. Invariant: for a retired
partition that holds events and touches the cells asked for there is a chain of partitions which
all touch them, so that following only such is enough.
"""

from __future__ import annotations

import numpy as np

from geoflux.plan import GridPlan, Partition, ReplicatedPlan
from geoflux.spatial.grid import CellRanges
from geoflux.state.held import Retained

AnyPlan = GridPlan | ReplicatedPlan


def holders(plan: AnyPlan, retained: Retained, ranges: CellRanges) -> tuple[Partition, ...]:
    """The partitions, live and retired, that touch ranges of cells and hold events; each once."""
    places = np.unique(plan.overlaps(ranges).places)
    chain = [plan.partitions[place] for place in places]
    retired = {p.id: p for p in plan.retired} if isinstance(plan, GridPlan) else {}
    seen = {p.id for p in chain}
    found = []
    while chain:
        partition = chain.pop()
        if partition.id in retained.by_partition:
            found.append(partition)
        for parent in (retired[i] for i in partition.parents if i in retired):
            if parent.id not in seen and touches(parent, ranges):
                seen.add(parent.id)
                chain.append(parent)
    return tuple(sorted(found, key=lambda p: p.id))


def touches(partition: Partition, ranges: CellRanges) -> bool:
    """Whether a partition has a cell in one of the ranges."""
    inside = (
        (ranges.col1 >= ranges.col0)
        & (ranges.col0 < partition.col1) & (ranges.col1 >= partition.col0)
        & (ranges.row0 < partition.row1) & (ranges.row1 >= partition.row0)
    )  # fmt: skip
    return bool(inside.any())


def forgettable(plan: AnyPlan, retained: Retained) -> frozenset[int]:
    """Retired partitions that no chain needs: neither they nor what they were made from hold
    events. They are what :meth:`GridPlan.forget` may be given.

    >>> from geoflux.plan import Split
    >>> plan = GridPlan.initial(8, 4, 2).apply(Split(1, "columns", 2, 0, 1))
    >>> forgettable(plan, Retained())
    frozenset({1})
    """
    if not isinstance(plan, GridPlan):
        return frozenset()
    needed: set[int] = set()
    for partition in sorted(plan.retired, key=lambda p: p.id):  # parents have smaller ids
        if partition.id in retained.by_partition or needed.intersection(partition.parents):
            needed.add(partition.id)
    return frozenset(p.id for p in plan.retired) - needed
