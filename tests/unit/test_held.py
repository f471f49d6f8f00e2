"""What is retained, how it expires, and which retired partitions are still needed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geoflux.plan import GridPlan, Merge, Split
from geoflux.sections import RetentionConfig
from geoflux.spatial.grid import CellRanges
from geoflux.state.held import Held, Kept, Limits, Retained, rows_by_partition
from geoflux.state.lineage import forgettable, holders

SECOND = 1_000_000


def held(
    name: str, epoch: int, partition: int = 1, rows: int = 10, last: int | None = None
) -> Held:
    time = epoch * SECOND
    return Held(
        name, partition, rows, rows * 40, time, time if last is None else last, epoch, epoch
    )


def ranges(col0: int, row0: int, col1: int, row1: int) -> CellRanges:
    return CellRanges(*(np.array([v], np.int32) for v in (col0, row0, col1, row1)))


def test_limits_come_from_the_settings() -> None:
    assert Limits.of(RetentionConfig()) == Limits()
    assert not Limits().is_on
    limits = Limits.of(RetentionConfig(time="1h", events=5, bytes="2 KB"))
    assert limits == Limits(3600 * SECOND, 5, 2000)
    assert limits.is_on


def test_segments_are_kept_oldest_first_and_survive_the_manifest() -> None:
    retained = Retained().added([held("b", 1), held("a", 0, 2), held("c", 0, 1)])
    assert [h.segment for h in retained.held] == ["c", "a", "b"]
    assert Retained.from_list(json.loads(json.dumps(retained.to_list()))) == retained
    assert {p: len(h) for p, h in retained.by_partition.items()} == {1: 2, 2: 1}
    assert (retained.rows, retained.bytes, len(retained)) == (30, 1200, 3)


def test_a_compacted_segment_takes_the_place_of_others() -> None:
    retained = Retained().added([held("a", 0), held("b", 1), held("x", 1, 2)])
    kept = Kept(Held("ab", 1, 20, 800, 0, SECOND, 0, 1), ("a", "b"))
    after = retained.replaced([kept, Kept(held("c", 2))])
    assert after.segments() == {"ab", "c", "x"}
    assert Kept.from_list(json.loads(json.dumps(kept.to_list()))) == kept


def test_time_drops_what_lies_wholly_before_the_cut() -> None:
    retained = Retained().added([held("a", 0), held("b", 5), held("late", 1, 2, last=9 * SECOND)])
    left, dropped = retained.expired(Limits(time_micros=5 * SECOND), 10 * SECOND)
    assert left.segments() == {"b", "late"}
    assert rows_by_partition(dropped) == {1: 10}


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (Limits(), {"a", "b", "c"}),
        (Limits(events=21), {"a", "b", "c"}),
        (Limits(events=20), {"b", "c"}),
        (Limits(events=11), {"b", "c"}),
        (Limits(events=1), {"c"}),
        (Limits(bytes=1200), {"a", "b", "c"}),
        (Limits(bytes=1199), {"b", "c"}),
        (Limits(bytes=399), set()),
        (Limits(events=25, bytes=500), {"c"}),
        (Limits(time_micros=SECOND, events=1000), {"b", "c"}),
    ],
)
def test_the_oldest_go_first(limits: Limits, left: set[str]) -> None:
    retained = Retained().added([held("a", 0), held("b", 1), held("c", 2)])
    kept, dropped = retained.expired(limits, 2 * SECOND)
    assert kept.segments() == left
    assert {h.segment for h in dropped} == {"a", "b", "c"} - left


def test_who_holds_events_of_a_cell_is_found_through_splits_and_merges() -> None:
    first = GridPlan.initial(8, 4, 2)  # 1: columns 0-3, 2: columns 4-7
    split = first.apply(Split(1, "columns", 2, 0, 1))  # 3: 0-1, 4: 2-3
    merged = split.apply(Merge(4, 2, 1))  # 5: 2-7
    retained = Retained().added([held("one", 0, 1), held("two", 0, 2), held("five", 2, 5)])
    for cells, wanted in (
        ((0, 0, 0, 0), [1]),
        ((2, 0, 2, 0), [1, 5]),
        ((5, 0, 5, 0), [2, 5]),
        ((0, 0, 7, 3), [1, 2, 5]),
    ):
        assert [p.id for p in holders(merged, retained, ranges(*cells))] == wanted


def test_a_retired_partition_is_needed_while_something_lies_behind_it() -> None:
    plan = (
        GridPlan.initial(8, 4, 2)
        .apply(Split(1, "columns", 2, 0, 1))
        .apply(Split(3, "rows", 2, 0, 1))
    )
    assert forgettable(plan, Retained()) == {1, 3}
    assert forgettable(plan, Retained().added([held("a", 0, 1)])) == set()
    assert forgettable(plan, Retained().added([held("a", 0, 3)])) == {1}
    cut = plan.forget(forgettable(plan, Retained()))
    assert cut.retired == ()
    assert holders(cut, Retained().added([held("a", 0, 5)]), ranges(0, 0, 0, 0))[0].id == 5
