"""The statistics of a partition: the worked example of the document, and what it leaves open."""

from __future__ import annotations

import time

import numpy as np
import pytest

from geoflux.errors import StateError
from geoflux.plan import Partition
from geoflux.spatial.grid import CellRanges
from geoflux.stats import (
    KnownQueries,
    Trio,
    TrioStat,
    inherited,
    stats_from_arrays,
    stats_to_arrays,
)
from geoflux.stats import trio_kernels as k

Box = tuple[int, int, int, int]
P11 = Partition(11, 0, 0, 2, 4, slot=0)


def ranges(*boxes: Box) -> CellRanges:
    """Boxes as column, row, column, row, all included."""
    return CellRanges(*(np.array([b[i] for b in boxes], np.int32) for i in range(4)))


def receive(stat: TrioStat, *cells: tuple[int, int], work: float = 1.0) -> None:
    columns, rows = (np.array([c[i] for c in cells], np.int32) for i in (0, 1))
    stat.receive(columns, rows, np.array([work]))


def fields(stat: TrioStat, row: int) -> dict[str, float]:
    names = {"N": k.N, "Q": k.Q, "R": k.R, "spanQ": k.SPAN, "preSpanQ": k.PRE_SPAN}
    return {name: stat.along("rows")[row, field] for name, field in names.items()}


@pytest.fixture
def worked() -> TrioStat:
    """Partition p11 of figures 3.2 to 3.5, its rows counted from our first one.

    ::

        row 3   2 points, QC (new) and one old query begin here
        row 2   2 old points and DA, DB; one old query begins here
        row 1   QA (new) and two old queries begin in rows 0 and 1, one of these reaches row 2
        row 0   QB (new) begins here and reaches row 2;   4 old points in rows 0 and 1
    """
    stat = TrioStat.empty(P11)
    receive(stat, (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3))
    stat.register(ranges((0, 0, 0, 0), (0, 1, 0, 2), (0, 2, 1, 2), (1, 3, 1, 3)))
    stat.close_round(retained=True)
    receive(stat, (0, 2), (1, 2))
    stat.register(ranges((0, 1, 0, 1), (1, 0, 1, 2), (0, 3, 0, 3)))
    stat.close_round(retained=True)
    return stat


def test_the_worked_example_of_the_document(worked: TrioStat) -> None:
    assert fields(worked, 2) == {"N": 8, "Q": 5, "R": 4, "spanQ": 2, "preSpanQ": 1}
    assert worked.total[:3] == (10, 7, 5)
    assert worked.total.cost("published") == 350
    lower, upper = worked.halves("rows", 2)
    assert lower.cost("published") == 32
    assert (upper.queries, upper.received) == (5, 4)
    assert upper.cost("published") == 120


def test_splitting_shrinks_the_published_cost_and_merging_inflates_it_while_work_adds_up(
    worked: TrioStat,
) -> None:
    lower, upper = worked.halves("rows", 2)
    assert lower.cost("published") + upper.cost("published") < worked.total.cost("published")
    assert lower.cost("work") + upper.cost("work") == worked.total.cost("work")


def test_a_collector_counts_each_event_in_its_row_and_its_column_only() -> None:
    stat = TrioStat.empty(P11)
    receive(stat, (1, 2))
    assert np.argwhere(stat.table[:, [k.N_IN, k.Q_IN, k.SPAN_IN]]).tolist() == [[2, 0], [4 + 1, 0]]


def test_the_first_row_is_the_southernmost() -> None:
    stat = TrioStat.empty(Partition(1, 3, 5, 6, 9, slot=0))
    receive(stat, (3, 5), (3, 5), (5, 8))
    stat.close_round()
    assert stat.along("rows")[:, k.N].tolist() == [2, 2, 2, 3]
    assert stat.along("columns")[:, k.N].tolist() == [2, 2, 3]


def test_a_query_that_begins_outside_counts_in_the_first_row_that_it_touches() -> None:
    stat = TrioStat.empty(Partition(1, 3, 5, 6, 9, slot=0))
    stat.register(ranges((0, 0, 4, 6), (5, 7, 20, 20), (0, 0, 2, 20), (4, 9, 4, 9)))
    stat.close_round()
    assert stat.along("rows")[:, k.Q].tolist() == [1, 1, 2, 2]
    assert stat.along("rows")[:, k.SPAN].tolist() == [0, 1, 0, 1]
    assert stat.along("columns")[:, k.SPAN].tolist() == [0, 1, 0]
    assert stat.total.queries == 2, "the other two do not touch it"


def test_an_empty_range_is_no_query() -> None:
    stat = TrioStat.empty(P11)
    stat.register(ranges((0, 0, -1, 3)))
    assert not stat.table.any()


def test_a_query_that_ended_is_gone_exactly_and_is_no_load_received() -> None:
    stat = TrioStat.empty(P11)
    stat.register(ranges((0, 0, 1, 3), (0, 1, 0, 2)))
    stat.close_round()
    stat.end(ranges((0, 0, 1, 3)))
    assert stat.total.queries == 2, "statistics are as of the last closed round"
    stat.close_round()
    assert stat.total == Trio(0, 1, 0, 0)
    assert stat.along("rows")[:, k.SPAN].tolist() == [0, 0, 1, 0]
    stat.end(ranges((0, 1, 0, 2)))
    stat.close_round()
    assert not stat.table.any()


def test_a_query_that_ended_in_the_round_in_which_it_came_still_counts_as_received() -> None:
    stat = TrioStat.empty(P11)
    stat.register(ranges((0, 0, 1, 3)))
    stat.end(ranges((0, 0, 1, 3)))
    stat.close_round()
    assert stat.total == Trio(0, 0, 1, 0)
    assert stat.halves("rows", 2)[1].received == 1, "it reached into the upper half"
    stat.close_round()
    assert not stat.table.any()


def test_a_snapshot_query_is_received_and_gone() -> None:
    stat = TrioStat.empty(P11)
    stat.ask(ranges((0, 0, 1, 0)))
    stat.close_round()
    assert stat.total == Trio(0, 0, 1, 0)


def test_without_retention_points_fade_and_queries_do_not() -> None:
    stat = TrioStat.empty(P11)
    receive(stat, *[(0, 1)] * 8)
    stat.register(ranges((0, 0, 0, 0)))
    for points in (8, 4, 2, 1):
        stat.close_round()
        assert stat.total[:2] == (points, 1)
    receive(stat, (0, 1))
    stat.close_round()
    assert stat.total.points == 1.5, "halved before the round's points are added"


def test_without_retention_expiry_is_not_subtracted_as_well() -> None:
    stat = TrioStat.empty(P11)
    receive(stat, *[(0, 1)] * 8)
    stat.close_round()
    stat.expire(np.array([0], np.int32), np.array([1], np.int32), np.array([8]))
    stat.close_round()
    assert stat.total.points == 4, "halving and subtracting would make it negative"


def test_with_retention_points_are_those_retained() -> None:
    stat = TrioStat.empty(P11)
    receive(stat, *[(0, 1)] * 8, (1, 3))
    stat.close_round(retained=True)
    stat.close_round(retained=True)
    assert stat.total.points == 9, "no fading"
    columns, rows = np.array([0, 5], np.int32), np.array([1, 5], np.int32)
    stat.expire(columns, rows, np.array([8, 3]))
    stat.close_round(retained=True)
    assert stat.total.points == 1, "what expired outside the partition is somebody else's"
    assert stat.along("columns")[:, k.N].tolist() == [0, 1]


def test_work_of_earlier_rounds_can_be_remembered() -> None:
    stat = TrioStat.empty(P11)
    receive(stat, (0, 0), work=8.0)
    stat.close_round(memory=0.5)
    assert stat.total.work == 4
    stat.close_round(memory=0.5)
    assert stat.total.work == 2


def test_a_split_counts_queries_anew_and_shares_points_out_on_the_other_axis() -> None:
    """Rows and columns are marginals: which of the columns' points lie below cannot be told."""
    parent = TrioStat.empty(P11)
    receive(parent, (0, 0), (0, 0), (0, 1), (1, 3))
    boxes = ranges((0, 0, 0, 3), (1, 2, 1, 3), (0, 1, 1, 1))
    parent.register(boxes)
    parent.close_round()
    known = KnownQueries(boxes, np.ones(3, np.int8), np.full(3, -1, np.int8))
    upper = inherited(Partition(12, 0, 2, 2, 4, slot=1), [parent], known)
    assert upper.total == Trio(1, 2, 3, 1)
    assert upper.along("rows")[:, k.N].tolist() == [0, 1], "exact along the split axis"
    assert upper.along("columns")[:, k.N].tolist() == [0.75, 1.0], "in proportion along the other"
    assert upper.along("columns")[:, k.Q].tolist() == [1, 2], "queries exactly on both"
    assert upper.along("rows")[:, k.SPAN].tolist() == [0, 2]
    assert upper.halves("rows", 3)[1].received == 1 + 2


def test_a_split_in_the_middle_of_a_round_keeps_what_was_collected() -> None:
    parent = TrioStat.empty(P11)
    boxes = ranges((0, 0, 0, 3), (1, 0, 1, 0), (0, 3, 0, 3))
    receive(parent, (0, 0), (1, 3))
    parent.register(boxes)
    parent.end(boxes.take(np.array([2])))
    known = KnownQueries(boxes, np.zeros(3, np.int8), np.array([-1, -1, 0], np.int8))
    upper = inherited(Partition(12, 0, 2, 2, 4, slot=1), [parent], known)
    assert upper.total == Trio(0, 0, 0, 0), "nothing is closed yet"
    upper.close_round()
    assert upper.total == Trio(1, 1, 3, 1), "the ended query was received, and is gone"


def test_a_merge_is_exact_and_counts_a_query_over_both_once() -> None:
    lower, upper = (TrioStat.empty(Partition(i, 0, 2 * i, 2, 2 * i + 2, slot=0)) for i in (0, 1))
    boxes = ranges((0, 1, 0, 2))
    for stat, cells in ((lower, [(0, 0), (1, 1)]), (upper, [(1, 2)])):
        receive(stat, *cells)
        stat.register(boxes)
        stat.close_round()
    known = KnownQueries(boxes, np.ones(1, np.int8), np.full(1, -1, np.int8))
    merged = inherited(P11, [lower, upper], known)
    assert merged.total == Trio(3, 1, 4, 3)
    assert merged.along("rows")[:, k.N].tolist() == [1, 2, 3, 3]
    assert merged.along("columns")[:, k.N].tolist() == [1, 3]
    assert merged.along("rows")[:, k.SPAN].tolist() == [0, 0, 1, 0]


def test_queries_are_told_apart_by_their_numbers() -> None:
    known = KnownQueries.alive(ranges(*[(0, 0, 0, 0)] * 4), np.array([1, 5, 9, 10]), (5, 10))
    assert known.came.tolist() == [2, 1, 1, 0]
    assert known.went.tolist() == [-1] * 4


def test_statistics_of_another_version_are_refused() -> None:
    arrays = stats_to_arrays({})
    assert stats_from_arrays(arrays) == {}
    arrays["trio.version"] = np.array([99], np.int32)
    with pytest.raises(StateError, match="version 99"):
        stats_from_arrays(arrays)


def test_collecting_costs_far_less_than_a_hundred_nanoseconds_an_event() -> None:
    random = np.random.default_rng(1)
    side, events = 512, 500_000
    stat = TrioStat.empty(Partition(1, 0, 0, side, side, slot=0))
    columns, rows = (random.integers(0, side, events).astype(np.int32) for _ in range(2))
    work = random.uniform(0, 9, events)
    stat.receive(columns, rows, work)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        stat.receive(columns, rows, work)
        taken.append(time.perf_counter() - start)
    nanoseconds = min(taken) / events * 1e9
    print(f"collecting: {nanoseconds:.1f} ns an event")
    assert nanoseconds < 100
