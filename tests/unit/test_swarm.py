"""The coordinator and the searches: what the document says, and what it leaves open."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from geoflux.balance.merging import mergeable
from geoflux.balance.pairing import paired
from geoflux.balance.reduction import Holding, reduce_to_one, slot_cost, slot_received
from geoflux.balance.requests import Ask, Cannot, Receiver, Reduction, Strips, changes_of
from geoflux.balance.sharing import search
from geoflux.balance.stages import STAGES, Pointer
from geoflux.balance.subsets import best_subset
from geoflux.balance.swarm import SlotRound, SwarmState, decide_round, settle, throughput
from geoflux.balance.tuning import Tuning
from geoflux.plan import GridPlan, Merge, Move, Partition, Split
from geoflux.stats import TrioStat

PUBLISHED = Tuning.published()


def holding(partition: int, work: list[list[float]], col0: int = 0, row0: int = 0) -> Holding:
    """A partition whose cells did so much work, the first row being the southernmost."""
    cells = np.array(work)
    rows, columns = cells.shape
    area = Partition(partition, col0, row0, col0 + columns, row0 + rows, 0)
    stat = TrioStat.empty(area)
    numbers = np.arange(cells.size, dtype=np.int32)
    stat.receive_cells(numbers, np.ones(cells.size), cells.ravel())
    stat.close_round()
    return Holding(area, stat)


def walked(rates: list[float | None], tuning: Tuning = PUBLISHED) -> list[Pointer]:
    pointers = [Pointer()]
    for rate in rates:
        pointers.append(pointers[-1].after(rate, tuning))
    return pointers[1:]


def test_the_first_round_does_nothing_and_moves_nothing() -> None:
    assert walked([5.0]) == [Pointer("start", False, 1, 5.0)]


def test_with_constant_throughput_the_decision_flips_every_second_round() -> None:
    pointers = walked([5.0] * 9)
    assert [p.rebalancing for p in pointers] == [
        False,
        False,
        True,
        True,
        False,
        False,
        True,
        True,
        False,
    ]
    assert {p.stage for p in pointers} == {"start", "bad"}


def test_an_enhanced_throughput_carries_the_decision_on() -> None:
    pointers = walked([5.0, 6.0, 7.0, 8.0, 7.0, 6.0, 5.0, 4.0])
    assert [p.stage for p in pointers] == [
        "start",
        "good",
        "great",
        "great",
        "good",
        "start",
        "bad",
        "start",
    ]
    assert [p.rebalancing for p in pointers] == [False] * 7 + [True]


def test_a_decision_is_flipped_after_being_taken_twenty_times() -> None:
    rising = [float(i) for i in range(1, 45)]
    pointers = walked(rising)
    flips = [i + 1 for i in range(43) if pointers[i].rebalancing != pointers[i + 1].rebalancing]
    assert flips == [20, 40]
    assert PUBLISHED.beta == 20


def test_a_round_without_work_tells_nothing() -> None:
    pointers = walked([5.0, None, 5.0])
    assert pointers[1] == pointers[0]
    assert pointers[2].stage == "bad"


def test_noise_is_no_enhancement_but_as_published_any_rise_is() -> None:
    assert walked([5.0, 5.1], Tuning())[-1].stage == "bad"
    assert walked([5.0, 5.1])[-1].stage == "good"


def test_when_costs_are_far_apart_doing_nothing_is_over_at_once() -> None:
    quiet = Pointer("start", False, 1, 5.0)
    assert quiet.after(9.0, Tuning()).stage == "good"
    for stage in STAGES[1:]:
        calm = replace(quiet, stage=stage)
        assert calm.after(9.0, Tuning(), alarmed=True) == Pointer("start", True, 1, 9.0)
    assert Pointer().after(9.0, Tuning(), alarmed=True).rebalancing, "with nothing to compare too"
    assert Pointer("start", True, 1, 5.0).after(9.0, Tuning(), alarmed=True).stage == "good"
    worse = Pointer("bad", True, 3, 9.0)
    assert not worse.after(5.0, Tuning()).rebalancing
    assert worse.after(5.0, Tuning(), alarmed=True) == Pointer("start", True, 4, 5.0)


def rounds(
    costs: list[float], received: float = 100.0, busy: list[float] | None = None
) -> list[SlotRound]:
    times = busy or costs
    return [SlotRound(i, cost, received, times[i]) for i, cost in enumerate(costs)]


def test_a_slow_night_is_not_read_as_a_bad_plan() -> None:
    day, night = rounds([4.0, 4.0], 1000), rounds([0.4, 0.4], 100)
    assert throughput(day) == pytest.approx(throughput(night))


def test_throughput_sees_imbalance_where_the_sum_of_busy_seconds_would_not() -> None:
    even, skewed = rounds([5.0, 5.0]), rounds([9.0, 1.0])
    assert throughput(even) > throughput(skewed)
    assert throughput([]) is None
    assert throughput(rounds([0.0, 0.0])) is None


def test_as_published_the_highest_gives_to_the_lowest_and_the_next_are_asked_ahead() -> None:
    asks = paired({0: 5.0, 1: 9.0, 2: 1.0, 3: 7.0}, {}, PUBLISHED)
    assert [(a.donor, a.receivers[0].slot, a.spare) for a in asks] == [
        (1, 2, False),
        (3, 2, True),
        (0, 2, True),
    ]


def test_by_default_no_receiver_is_promised_twice() -> None:
    costs = dict(enumerate([30.0, 20.0, 9.0, 6.0, 5.0, 3.0, 2.0, 1.0]))
    asks = paired(costs, {}, Tuning())
    first = [a for a in asks if not a.spare]
    promised = [r.slot for a in first for r in a.receivers]
    assert len(promised) == len(set(promised))
    assert not set(promised) & {a.donor for a in asks}
    assert first[0].donor == 0
    assert first[0].receivers[0] == Receiver(7, 1.0), "the highest gets the lowest"
    assert len(first[0].receivers) > 1
    assert all(len(a.receivers) == 1 for a in paired(costs, {}, Tuning(multiway=False)))


def test_even_costs_are_left_alone_and_settled_ones_a_little_longer() -> None:
    assert paired({0: 1.04, 1: 1.0, 2: 0.96}, {}, Tuning()) == ()
    assert paired({0: 1.08, 1: 1.0, 2: 0.92}, {}, Tuning())
    assert paired({0: 1.08, 1: 1.0, 2: 0.92}, {}, Tuning(), settled=True) == ()
    assert paired({0: 1.0}, {}, Tuning()) == ()
    assert paired({0: 0.0, 1: 0.0}, {}, PUBLISHED) == ()


def test_a_slot_that_could_not_is_asked_last_and_does_not_hide_the_others() -> None:
    costs = {0: 60.0, 1: 8.0, 2: 6.0, 3: 4.0, 4: 2.0}
    stuck = {0: 60.0 / 16.0}
    asks = paired(costs, stuck, Tuning())
    assert [(a.donor, a.spare) for a in asks] == [(1, False), (2, False), (0, True)]
    grown = paired({**costs, 0: 90.0}, stuck, Tuning())
    assert grown[0].donor == 0, "its cost changed, so it is asked like any other"


def test_zero_cost_partitions_alone_are_no_subset_and_do_not_put_a_split_off() -> None:
    assert best_subset({1: 100.0, 2: 0.0, 3: 0.0}, 50.0) == ()
    held = [holding(1, [[60.0, 40.0]]), holding(2, [[0.0]], 5), holding(3, [[0.0]], 6)]
    answer = reduce_to_one(held, Ask(0, (Receiver(1, 0.0),)), Tuning())
    assert isinstance(answer, Reduction)
    assert answer.moves == ()
    assert answer.strips == (Strips(1, "columns", (1,), (1, 0)),)


def test_a_subset_is_tried_before_a_split() -> None:
    held = [holding(1, [[60.0, 40.0]]), holding(2, [[30.0]], 5)]
    answer = reduce_to_one(held, Ask(0, (Receiver(1, 0.0),)), Tuning())
    assert isinstance(answer, Reduction)
    assert answer.moves == (Move(2, to=1),)
    assert (answer.after, answer.receivers) == (100.0, (Receiver(1, 30.0),))


def test_a_subset_that_gains_too_little_gives_way_to_a_split() -> None:
    held = [holding(1, [[60.0, 40.0]]), holding(2, [[2.0]], 5)]
    answer = reduce_to_one(held, Ask(0, (Receiver(1, 0.0),)), Tuning())
    assert isinstance(answer, Reduction)
    assert answer.strips


def test_when_the_largest_is_a_single_cell_the_next_largest_is_split() -> None:
    held = [holding(1, [[70.0]]), holding(2, [[20.0], [20.0], [24.0]], 5)]
    answer = reduce_to_one(held, Ask(0, (Receiver(1, 10.0),)), Tuning())
    assert isinstance(answer, Reduction)
    assert answer.strips[0].partition == 2
    alone = reduce_to_one(held[:1], Ask(0, (Receiver(1, 10.0),)), Tuning())
    assert alone == Cannot(0, 70.0, "100% of its cost lies in a single cell")


def test_a_reduction_that_gains_less_than_the_threshold_counts_as_cannot() -> None:
    held = [holding(1, [[50.0, 50.0]])]
    ask = Ask(0, (Receiver(1, 48.0),))
    assert isinstance(reduce_to_one(held, ask, Tuning()), Cannot)
    nearly = Ask(0, (Receiver(1, 45.0),))
    assert isinstance(reduce_to_one(held, nearly, Tuning(least_gain=0.051)), Cannot)
    assert isinstance(reduce_to_one(held, nearly, Tuning(least_gain=0.05)), Reduction)


def test_a_slot_without_cost_cannot() -> None:
    assert isinstance(reduce_to_one([], Ask(0, (Receiver(1, 1.0),)), Tuning()), Cannot)


def test_one_partition_is_spread_over_several_receivers_in_one_go() -> None:
    held = [holding(1, [[10.0] * 12]), holding(2, [[6.0]], 20)]
    receivers = tuple(Receiver(slot, 0.0) for slot in (1, 2, 3, 4, 5))
    answer = search(held, Ask(0, receivers), Tuning())
    assert isinstance(answer, Reduction)
    assert answer.worst <= 30
    assert len(answer.receivers) == 5
    assert isinstance(search(held, Ask(0, receivers), Tuning(multiway=False)).receivers, tuple)
    assert len(search(held, Ask(0, receivers), Tuning(multiway=False)).receivers) == 1


def test_strips_become_splits_with_ids_of_their_own() -> None:
    plan = GridPlan.initial(8, 8, slots=4)
    one, two = plan.partitions[0], plan.partitions[3]
    reductions = [
        Reduction(one.slot, (), (Strips(one.id, "rows", (1, 2, 3), (0, 1, 2, 0)),), 9, 3, ()),
        Reduction(two.slot, (), (Strips(two.id, "columns", (6,), (3, 1)),), 9, 3, ()),
    ]
    for change in changes_of(plan, reductions):
        plan = plan.apply(change)
    assert plan.raster.min() >= 0
    owners = [(p.row0, p.slot) for p in plan.partitions if one.id in _ancestors(plan, p)]
    assert sorted(owners) == [(0, 0), (1, 1), (2, 2), (3, 0)]
    assert sorted(p.slot for p in plan.partitions if two.id in p.parents) == [1, 3]


def _ancestors(plan: GridPlan, p: Partition) -> set[int]:
    retired = {r.id: r for r in plan.retired}
    found = set(p.parents)
    for parent in p.parents:
        found |= _ancestors(plan, retired[parent])
    return found


def reduction(donor: int, to: int) -> Reduction:
    return Reduction(donor, (Move(donor * 10, to),), (), 10.0, 5.0, (Receiver(to, 6.0),))


def test_the_next_highest_is_taken_when_the_highest_cannot() -> None:
    _, state = decide_round(
        SwarmState(Pointer("start", True, 1, 1.0)), rounds([1.0, 9.0, 7.0, 5.0]), 30.0, PUBLISHED
    )
    assert [ask.donor for ask in state.asks] == [1, 2, 3]
    answers = [Cannot(1, 9.0, "one cell"), reduction(2, 0), reduction(3, 0)]
    taken, reason, after = settle(state, answers)
    assert [r.donor for r in taken] == [2], "one donor and one receiver a round"
    assert "slot 1 cannot: one cell" in reason
    assert after.asks == ()
    assert [slot for slot, _ in after.stuck] == [1]


def test_answers_that_do_not_go_together_are_dropped() -> None:
    asks = tuple(Ask(donor, (Receiver(to, 1.0),)) for donor, to in ((1, 5), (2, 5), (5, 6), (3, 4)))
    taken, _, _ = settle(
        SwarmState(asks=asks), [reduction(1, 5), reduction(2, 5), reduction(5, 6), reduction(3, 4)]
    )
    assert [r.donor for r in taken] == [1, 3]


def test_a_slot_that_did_not_answer_changes_nothing() -> None:
    taken, reason, after = settle(SwarmState(asks=(Ask(1, (Receiver(2, 1.0),)),)), [])
    assert (taken, reason, after.stuck) == ((), "no answers", ())


def test_the_coordinator_goes_on_where_the_last_one_was() -> None:
    """Its whole state survives the manifest, so that a restarted driver is the new coordinator."""
    state = SwarmState()
    assert SwarmState.from_dict({}) == state
    for i, costs in enumerate([[1.0, 9.0, 2.0], [1.0, 9.0, 2.0], [1.0, 9.0, 2.0], [2.0, 6.0, 4.0]]):
        _, state = decide_round(state, rounds(costs), 15.0 * i, Tuning())
        again = SwarmState.from_dict(json.loads(json.dumps(state.to_dict())))
        assert again == state
        _, _, state = settle(again, [Cannot(ask.donor, 9.0, "no") for ask in again.asks])
    assert state.round == 4
    assert state.stuck


def test_rounds_end_by_the_clock() -> None:
    state = SwarmState()
    assert not state.is_due(100.0, Tuning())
    state = state.started(100.0)
    assert state.started(105.0) == state
    assert not state.is_due(114.9, Tuning())
    assert state.is_due(115.0, Tuning())
    _, state = decide_round(state, rounds([1.0]), 116.0, Tuning())
    assert not state.is_due(130.0, Tuning())


def test_a_decision_says_why() -> None:
    state = SwarmState(Pointer("bad", False, 3, 50.0))
    decision, _ = decide_round(state, rounds([1.0, 9.0, 2.0]), 15.0, Tuning())
    assert decision.rebalance
    assert decision.reason == "rebalance: throughput -33.3%, stage start, decision flipped; asked 1"


def test_two_numbers_say_all_about_a_slot() -> None:
    held = [holding(1, [[60.0, 40.0]]), holding(2, [[2.0]], 5)]
    assert (slot_cost(held, "work"), slot_received(held)) == (102.0, 3.0)


def test_neighbours_of_one_slot_are_merged_a_few_at_a_time() -> None:
    plan = GridPlan.initial(8, 8, slots=1)
    for at in (2, 4, 6):
        last = plan.partitions[-1]
        plan = plan.apply(Split(last.id, "columns", at, 0, 0))
    assert len(plan.partitions) == 4
    assert len(mergeable(plan, 0, limit=1)) == 1
    merges = mergeable(plan, 0)
    assert len(merges) == 2
    for merge in merges:
        plan = plan.apply(merge)
    assert mergeable(plan, 0) == (Merge(plan.partitions[0].id, plan.partitions[1].id, 0),)


def test_neighbours_of_other_slots_or_sizes_are_not_merged() -> None:
    plan = GridPlan.initial(8, 8, slots=2)
    assert mergeable(plan, 0) == ()
    plan = plan.apply(Split(plan.partitions[0].id, "rows", 3, 0, 1))
    assert mergeable(plan, 0) == ()
    assert mergeable(plan, 1) == ()
