"""Laws of plans: every cell has one owner, routing and overlap equal brute force."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.plan import GridPlan, Merge, Move, Partition, Resize, Split, plan_from_dict, resized
from geoflux.spatial.grid import CellRanges


@st.composite
def plans(draw: st.DrawFn) -> GridPlan:
    """A grid plan after a random sequence of changes."""
    columns, rows = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    slots = draw(st.integers(1, min(5, columns * rows)))
    plan = GridPlan.initial(columns, rows, slots)
    for _ in range(draw(st.integers(0, 12))):
        plan = _changed(draw, plan)
    return plan


def _changed(draw: st.DrawFn, plan: GridPlan) -> GridPlan:
    p = draw(st.sampled_from(plan.partitions))
    to = draw(st.integers(0, plan.slots - 1))
    kind = draw(st.sampled_from(["move", "split", "split", "merge", "resize"]))
    if kind == "resize":
        return _resized(draw, plan)
    if kind == "move":
        return plan.apply(Move(p.id, to))
    if kind == "split" and p.cells > 1:
        axis = "columns" if p.columns > 1 and (p.rows == 1 or draw(st.booleans())) else "rows"
        low, high = (p.col0, p.col1) if axis == "columns" else (p.row0, p.row1)
        return plan.apply(Split(p.id, axis, draw(st.integers(low + 1, high - 1)), to, p.slot))
    for other in plan.partitions:
        if other.id != p.id:
            try:
                return plan.apply(Merge(p.id, other.id, to))
            except ValueError:
                continue
    return plan


def _resized(draw: st.DrawFn, plan: GridPlan) -> GridPlan:
    """With any number of slots, by loads of any partitions or by none."""
    ids = [p.id for p in (*plan.partitions, *plan.retired)]
    loads = draw(st.dictionaries(st.sampled_from(ids), st.floats(0, 1e6), max_size=8))
    slots = draw(st.integers(1, min(12, plan.most_slots)))
    before = plan
    for change in resized(plan, slots, loads):
        plan = plan.apply(change)
    owners = {p.slot for p in plan.partitions}
    assert plan.slots == slots
    assert owners <= set(range(slots))
    assert set(range(before.slots, slots)) <= owners, "a slot that came owns nothing"
    if slots < before.slots:
        stay = {p for p in before.partitions if p.slot < slots}
        assert stay <= set(plan.partitions), "a slot that stays gave something away"
    return plan


def _ranges(boxes: list[tuple[int, int, int, int]]) -> CellRanges:
    return CellRanges(*(np.array([b[i] for b in boxes], np.int32) for i in range(4)))


@given(plans())
def test_every_cell_has_exactly_one_owner(plan: GridPlan) -> None:
    assert sum(p.cells for p in plan.partitions) == plan.columns * plan.rows
    assert plan.raster.min() >= 0
    for place, p in enumerate(plan.partitions):
        assert (plan.raster == place).sum() == p.cells


@given(plans(), st.data())
def test_overlap_equals_brute_force_over_cells(plan: GridPlan, data: st.DataObject) -> None:
    c0 = data.draw(st.integers(0, plan.columns - 1))
    c1 = data.draw(st.integers(c0, plan.columns - 1))
    r0 = data.draw(st.integers(0, plan.rows - 1))
    r1 = data.draw(st.integers(r0, plan.rows - 1))
    cells = plan.raster.reshape(plan.rows, plan.columns)[r0 : r1 + 1, c0 : c1 + 1]
    found = plan.overlaps(_ranges([(c0, r0, c1, r1)])).of(0)
    assert sorted(found) == sorted(set(cells.ravel()))


@given(plans())
def test_ids_are_unique_for_ever_and_lineage_names_the_parents(plan: GridPlan) -> None:
    everyone = plan.partitions + plan.retired
    assert len({p.id for p in everyone}) == len(everyone)
    assert max(p.id for p in everyone) < plan.next_id
    retired = {p.id for p in plan.retired}
    assert all(parent in retired for p in everyone for parent in p.parents)


@given(plans())
def test_a_plan_survives_the_log(plan: GridPlan) -> None:
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_the_layout_on_which_the_printed_algorithm_loses_a_partition() -> None:
    boxes = [
        (0, 0, 2, 1),
        (0, 2, 0, 3),
        (1, 2, 1, 2),
        (1, 3, 1, 3),
        (2, 2, 2, 3),
        (3, 0, 3, 2),
        (3, 3, 3, 3),
    ]
    parts = tuple(
        Partition(i, x0, y0, x1 + 1, y1 + 1, 0) for i, (x0, y0, x1, y1) in enumerate(boxes)
    )
    plan = GridPlan(4, 4, 1, parts, len(parts))
    assert sorted(plan.overlaps(_ranges([(0, 2, 3, 3)])).of(0)) == [1, 2, 3, 4, 5, 6]


@settings(max_examples=30)
@given(st.integers(1, 64), st.integers(1, 40), st.integers(1, 30))
def test_initial_plan_halves_the_largest(columns: int, rows: int, slots: int) -> None:
    slots = min(slots, columns * rows)
    plan = GridPlan.initial(columns, rows, slots)
    assert sorted(p.slot for p in plan.partitions) == list(range(slots))
    assert plan.raster.min() >= 0


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8, 22, 30])
def test_no_partition_of_the_initial_plan_is_more_than_twice_another(slots: int) -> None:
    areas = [p.cells for p in GridPlan.initial(64, 64, slots).partitions]
    assert max(areas) <= 2 * min(areas)


def test_a_split_outside_the_partition_and_an_unknown_slot_are_refused() -> None:
    plan = GridPlan.initial(8, 8, 2)
    first = plan.partitions[0]
    with pytest.raises(ValueError, match="half empty"):
        plan.apply(Split(first.id, "columns", first.col0, 0, 1))
    with pytest.raises(ValueError, match="does not exist"):
        plan.apply(Move(first.id, 9))


def test_a_slot_that_comes_takes_of_the_heaviest() -> None:
    plan = GridPlan.initial(8, 8, 4)
    hot = plan.partitions[2]
    for change in resized(plan, 5, {p.id: 1000.0 if p is hot else 1.0 for p in plan.partitions}):
        plan = plan.apply(change)
    assert {p.id for p in plan.retired} == {hot.id}
    assert {p.slot for p in plan.partitions if p.parents == (hot.id,)} == {hot.slot, 4}
    for slots in (0, 65):
        with pytest.raises(ValueError, match=f"{slots} slots"):
            plan.apply(*resized(plan, slots))
    with pytest.raises(ValueError, match="slot 2 still owns"):
        plan.apply(Resize(2))
