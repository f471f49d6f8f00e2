"""SWARM as a policy: when rounds close, when slots are asked, when the plan changes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from geoflux.balance.policy import Decision, Observed, Orders, SlotLoad
from geoflux.balance.requests import Answer, Cannot, Receiver, Reduction, Strips
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.plan import GridPlan, Merge, Move, Split, resized

PLAN = GridPlan.initial(8, 4, slots=2)
WEST, EAST = (p.id for p in PLAN.partitions)
TUNING = Tuning(round_seconds=10.0)
MOVED = Reduction(0, (Move(WEST, 1),), (), 9.0, 5.0, (Receiver(1, 5.0),))


class Driver:
    """Epoch after epoch on a clock of its own; the state goes through JSON each time."""

    def __init__(self, tuning: Tuning = TUNING, plan: GridPlan = PLAN) -> None:
        self.policy = SwarmPolicy(tuning)
        self.plan = plan
        self.state: dict[str, Any] = {}
        self.now = 1000.0
        self.number = 0
        self.epochs = 0

    def epoch(
        self, costs: tuple[float, ...] = (9.0, 1.0), busy: tuple[float, ...] = (1.0, 1.0),
        answers: tuple[Answer | None, ...] = (None, None), seconds: float = 5.0,
    ) -> tuple[Orders, Decision]:  # fmt: skip
        """One epoch that takes so many seconds; slots tell costs only where they were told to."""
        orders = self.policy.orders(self.now, self.state)
        self.now += seconds
        told = costs if orders.close else (None,) * len(costs)
        loads = tuple(
            SlotLoad(slot, 100, 900, 5, busy[slot], 0, told[slot],
                     100.0 if orders.close else None, answers[slot])
            for slot in range(len(costs))
        )  # fmt: skip
        self.number += 7
        seen = Observed(self.epochs, self.now, loads, orders.close, self.number)
        decision, state = self.policy.decide(seen, self.plan, self.state)
        self.state = json.loads(json.dumps(state))
        assert self.policy.orders(self.now, self.state) == self.policy.orders(self.now, state)
        for change in decision.changes:
            self.plan = self.plan.apply(change)
        self.epochs += 1
        return orders, decision

    def until_asked(self, **told: Any) -> Decision:
        """Rounds until slots are asked; the decision of the round that asks them."""
        for _ in range(40):
            _, decision = self.epoch(**told)
            if self.policy.orders(self.now, self.state).asks:
                return decision
        raise AssertionError("nobody was ever asked")


def closings(driver: Driver, epochs: int, **told: Any) -> list[bool]:
    return [driver.epoch(**told)[0].close for _ in range(epochs)]


def test_rounds_close_by_the_clock_alone() -> None:
    """The first one begins when the first epoch ends, and is closed in the first epoch that is
    opened when it is due."""
    even = {"costs": (1.0, 1.0)}
    assert closings(Driver(), 7, **even, seconds=5.0) == [k in (3, 6) for k in range(7)]
    assert closings(Driver(), 14, **even, seconds=2.5) == [k in (5, 10) for k in range(14)]
    assert not any(closings(Driver(), 5, **even, seconds=0.0))
    assert closings(Driver(), 7, **even, seconds=100.0) == [k in (2, 4, 6) for k in range(7)]


def test_an_epoch_that_closes_no_round_decides_nothing() -> None:
    driver = Driver()
    for _ in range(3):
        orders, decision = driver.epoch()
        assert not orders.close
        assert (decision.changes, decision.reason, decision.round) == ((), "", None)


def test_what_a_round_showed_is_told() -> None:
    driver = Driver()
    for _ in range(4):
        orders, decision = driver.epoch(busy=(0.5, 0.25))
    assert orders.close
    told = decision.round
    assert told is not None
    assert (told["number"], told["stage"], told["rebalancing"]) == (1, "start", True)
    assert told["costs"] == [9.0, 1.0]
    assert told["received"] == [100.0, 100.0]
    assert told["asked"] == [0]
    assert decision.reason == "rebalance: the busiest slot costs 1.80x the mean; asked 0"


def test_busy_seconds_are_those_of_all_epochs_of_the_round() -> None:
    driver = Driver()
    told = [driver.epoch(busy=(0.5, 0.25))[1].round for _ in range(7)]
    assert [r["busy"] for r in told if r] == [[2.0, 1.0], [1.5, 0.75]]


def test_slots_are_asked_after_the_closing_epoch_and_the_plan_changes_after_their_answers() -> None:
    driver = Driver()
    decision = driver.until_asked()
    assert decision.changes == ()
    assert decision.round is not None
    assert decision.round["asked"] == [0]
    assert "asked 0" in decision.reason
    orders, decision = driver.epoch(answers=(MOVED, None))
    assert [(ask.donor, ask.receivers) for ask in orders.asks] == [(0, (Receiver(1, 1.0),))]
    assert decision.changes == (Move(WEST, 1),)
    assert decision.round is None
    assert decision.reason.startswith("slot 0 cost ")
    assert " to 1: at most " in decision.reason
    assert driver.policy.orders(driver.now, driver.state).asks == (), "asked once"


def test_strips_become_splits_of_the_plan_as_it_is() -> None:
    driver = Driver()
    driver.until_asked()
    cut = Strips(WEST, "columns", (1, 3), (1, 0, 1))
    answer = Reduction(0, (), (cut,), 9.0, 4.0, (Receiver(1, 6.0),))
    _, decision = driver.epoch(answers=(answer, None))
    new = PLAN.next_id
    assert decision.changes == (
        Split(WEST, "columns", 1, 1, 0), Split(new + 1, "columns", 3, 0, 1))  # fmt: skip
    assert sorted(p.slot for p in driver.plan.partitions) == [0, 1, 1, 1]


def test_no_round_is_closed_while_questions_are_open() -> None:
    driver = Driver()
    driver.until_asked()
    for now in (driver.now, driver.now + 1000.0):
        orders = driver.policy.orders(now, driver.state)
        assert orders.asks
        assert not orders.close
    assert not driver.epoch(seconds=1000.0)[0].close
    assert driver.policy.orders(driver.now, driver.state).close, "due long since"


def test_slots_that_do_not_answer_or_cannot_leave_the_plan_alone() -> None:
    for answer in (None, Cannot(0, 9.0, "one cell")):
        driver = Driver()
        driver.until_asked()
        _, decision = driver.epoch(answers=(answer, None))
        assert decision.changes == ()
        assert decision.reason == ("no answers" if answer is None else "slot 0 cannot: one cell")
        assert driver.policy.orders(driver.now, driver.state).asks == ()


def test_an_epoch_that_answers_counts_as_busy_in_the_next_round() -> None:
    driver = Driver()
    driver.until_asked(busy=(1.0, 1.0))
    driver.epoch(busy=(3.0, 5.0), answers=(MOVED, None))
    told = None
    while told is None:
        told = driver.epoch(busy=(0.5, 0.5))[1].round
    assert told["busy"] == [3.0 + 0.5 * 2, 5.0 + 0.5 * 2]


def test_marks_are_the_first_numbers_of_the_last_round_and_of_the_one_under_way() -> None:
    """What is registered while an epoch closes a round belongs to the round: the number that the
    next query gets is the first of the next round."""
    driver = Driver()
    marks = [driver.epoch(costs=(1.0, 1.0))[0].marks for _ in range(9)]
    assert marks == [(0, 0)] * 4 + [(0, 28)] * 3 + [(28, 49)] * 2


def asked_receivers(forecast: float, before: float, after: float) -> tuple[Receiver, ...]:
    """What the donor is told when its cost was ``before`` in all rounds but the last."""
    tuning = replace(TUNING, forecast=forecast, alarm=None, enhanced_by=0.0)
    driver = Driver(tuning)
    while True:
        reference = json.loads(json.dumps(driver.state)), driver.now, driver.number, driver.epochs
        driver.epoch(costs=(before, 1.0))
        if driver.policy.orders(driver.now, driver.state).asks:
            break
    driver.state, driver.now, driver.number, driver.epochs = reference
    _, decision = driver.epoch(costs=(after, 1.0))
    assert decision.round is not None
    assert decision.round["costs"] == [after, 1.0], "what was measured is told as it is"
    (ask,) = driver.policy.orders(driver.now, driver.state).asks
    return ask.receivers


@pytest.mark.parametrize(
    ("forecast", "after", "cost"),
    [(0.0, 12.0, 1.0), (1.0, 12.0, 1.0 / 1.5), (0.5, 12.0, 1.0 / 1.5**0.5), (1.0, 80.0, 0.5),
     (1.0, 4.0, 1.0)],
)  # fmt: skip
def test_a_donor_that_grows_is_told_lower_costs_of_the_others(
    forecast: float, after: float, cost: float
) -> None:
    """It searches by what it measured itself: 12 that will be 18 to 1 is 12 to 2/3."""
    (receiver,) = asked_receivers(forecast, 8.0, after)
    assert receiver.slot == 1
    assert receiver.cost == pytest.approx(cost)


def test_nothing_is_forecast_over_a_change_of_the_plan() -> None:
    driver = Driver(replace(TUNING, forecast=1.0))
    driver.until_asked(costs=(9.0, 1.0))
    driver.epoch(answers=(MOVED, None))
    assert driver.state["costs"] == {}
    driver.until_asked(costs=(18.0, 1.0))
    (ask,) = driver.policy.orders(driver.now, driver.state).asks
    assert ask.receivers == (Receiver(1, 1.0),)


CUT = PLAN.apply(Split(WEST, "rows", 2, 0, 0)).apply(Split(EAST, "rows", 2, 1, 1))


def test_neighbours_are_merged_in_rounds_in_which_nobody_is_asked() -> None:
    driver = Driver(plan=CUT)
    while True:
        orders, decision = driver.epoch(costs=(1.0, 1.0))
        if orders.close:
            break
        assert decision.changes == ()
    new = PLAN.next_id
    assert decision.changes == (Merge(new, new + 1, 0), Merge(new + 2, new + 3, 1))
    assert decision.reason.endswith("; neighbours merged: 2")
    assert len(driver.plan.partitions) == 2


def test_nothing_is_merged_in_a_round_that_asks_nor_while_slots_answer() -> None:
    """What was asked about is still there when the answers come."""
    driver = Driver()
    while True:
        before = json.loads(json.dumps(driver.state)), driver.now, driver.number, driver.epochs
        driver.epoch()
        if driver.policy.orders(driver.now, driver.state).asks:
            break
    driver.state, driver.now, driver.number, driver.epochs = before
    driver.plan = CUT
    _, decision = driver.epoch()
    assert decision.changes == ()
    _, decision = driver.epoch(answers=(Cannot(0, 9.0, "one cell"), None))
    assert decision.changes == ()


def test_few_are_merged_at_a_time() -> None:
    plan = GridPlan.initial(16, 4, slots=8)
    for p in plan.partitions:
        plan = plan.apply(Split(p.id, "rows", p.row0 + 1, p.slot, p.slot))
    driver = Driver(plan=plan)
    most = 0
    for _ in range(12):
        _, decision = driver.epoch(costs=(1.0,) * 8, busy=(1.0,) * 8, answers=(None,) * 8)
        most = max(most, len(decision.changes))
    assert most == 4
    assert len(driver.plan.partitions) == 8


def test_decisions_are_a_function_of_what_is_observed_and_of_the_state() -> None:
    """The same policy object is asked out of order, and nothing that it is given changes."""
    driver = Driver()
    driver.until_asked()
    state = json.loads(json.dumps(driver.state))
    loads = tuple(SlotLoad(s, 1, 1, 1, 1.0, answer=MOVED if s == 0 else None) for s in range(2))
    seen = Observed(9, driver.now + 5, loads, False, 99)
    first = driver.policy.decide(seen, PLAN, driver.state)
    assert driver.state == state
    driver.epoch(answers=(None, None))
    assert SwarmPolicy(TUNING).decide(seen, PLAN, state) == first
    assert driver.policy.decide(seen, PLAN, state) == first
    assert first[0].changes == (Move(WEST, 1),)


def test_nobody_answers_what_was_asked_before_slots_changed() -> None:
    driver = Driver()
    driver.until_asked()
    driver.state = json.loads(json.dumps(driver.policy.resized(driver.state)))
    for change in resized(driver.plan, 3):
        driver.plan = driver.plan.apply(change)
    orders, decision = driver.epoch((9.0, 1.0, 0.0), (1.0,) * 3, (MOVED, None, None))
    assert not orders.asks
    assert not decision.changes
    asked = driver.until_asked(costs=(9.0, 1.0, 0.0), busy=(1.0,) * 3, answers=(None,) * 3)
    assert asked.round is not None
    assert len(asked.round["costs"]) == 3
    assert driver.policy.resized({})["busy"] == {}
