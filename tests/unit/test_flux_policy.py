"""Flux as a policy: epochs add up to a phase, decisions follow, all memory is in the state."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.flux_policy import FluxPolicy
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.balance.policy import Observed, SlotLoad
from geoflux.balance.residency import in_turn, spilled_now
from geoflux.plan import HashPlan, Resize


def seen(epoch: int, plan: HashPlan, costs: dict[int, float], **memory: Any) -> Observed:
    """An epoch in which each partition got a hundred rows, at so many seconds each row."""
    loads = []
    for slot in range(plan.slots):
        mine = [p.id for p in plan.partitions if p.slot == slot]
        busy = sum(100 * costs.get(slot, 0.001) for _ in mine)
        site = SiteReport(slot, 0.0, dict.fromkeys(mine, 100), **memory)
        loads.append(SlotLoad(slot, 100 * len(mine), 0, 0, busy, site=site))
    return Observed(epoch, float(epoch), tuple(loads))


def run(policy: FluxPolicy, plan: HashPlan, costs: dict[int, float], epochs: int) -> HashPlan:
    state: dict[str, Any] = {}
    for epoch in range(epochs):
        decision, state = policy.decide(seen(epoch, plan, costs), plan, state)
        state = json.loads(json.dumps(state))  # a manifest lies in between
        for change in decision.changes:
            plan = plan.apply(change)
    return plan


def test_a_slot_three_times_slower_ends_up_with_a_third_of_the_partitions() -> None:
    policy = FluxPolicy(FluxTuning("load", collect_min=0.1, collect_max=5.0))
    plan = run(policy, HashPlan.initial(4, 16), {0: 0.003}, 200)
    held = [sum(p.slot == slot for p in plan.partitions) for slot in range(4)]
    busy = [count * (3 if slot == 0 else 1) for slot, count in enumerate(held)]
    assert max(busy) <= 1.25 * sum(busy) / 4
    assert held[0] == min(held)


def test_equal_load_moves_nothing() -> None:
    plan = HashPlan.initial(4, 16)
    assert run(FluxPolicy(FluxTuning("load", collect_min=0.1)), plan, {}, 50) == plan


def test_nothing_is_decided_before_a_phase_is_over() -> None:
    policy, plan = FluxPolicy(FluxTuning("load", collect_min=100.0, collect_max=100.0)), (
        HashPlan.initial(2, 4)
    )  # fmt: skip
    decision, state = policy.decide(seen(0, plan, {0: 0.01}), plan, {})
    assert decision.changes == ()
    assert state["elapsed"] == pytest.approx(4.0)
    assert state["tuples"]["0"] == 100


def test_a_decision_says_who_was_how_busy_and_what_moves() -> None:
    policy, plan = FluxPolicy(FluxTuning("load", collect_min=0.01)), HashPlan.initial(2, 4)
    decision, _ = policy.decide(seen(0, plan, {0: 0.01}), plan, {})
    assert decision.reason.startswith("move: busiest slot 100%, idlest 10%; ")
    assert " from 0 to 1" in decision.reason
    calm, _ = policy.decide(seen(0, plan, {}), plan, {})
    assert calm.reason == "do nothing: busiest slot 100%, idlest 100%"


@given(
    st.dictionaries(st.integers(0, 9), st.integers(0, 50), min_size=1),
    st.sets(st.integers(0, 12)), st.one_of(st.none(), st.integers(0, 200)),
)  # fmt: skip
def test_what_is_in_memory_fits_and_nothing_is_spilled_that_would_fit(
    sizes: dict[int, int], spilled: set[int], budget: int | None
) -> None:
    gone = spilled_now(sizes, spilled, budget)
    kept = sum(size for p, size in sizes.items() if p not in gone)
    assert gone <= set(sizes)
    if budget is None or sum(sizes.values()) <= budget:
        assert not gone
    else:
        assert kept <= budget
        assert all(kept + sizes[p] > budget for p in gone)
    assert spilled_now(sizes, gone, budget) == gone  # and then it stays


@given(st.lists(st.integers(0, 9), unique=True, min_size=1), st.sets(st.integers(0, 9)))
def test_whoever_waits_gets_a_turn(waiting: list[int], spilled: set[int]) -> None:
    turns: dict[int, int] = {}
    served = []
    for epoch in range(2 * len(waiting)):
        first = in_turn([p for p in waiting if p in spilled] or waiting, spilled, turns)[0]
        turns[first] = epoch
        served.append(first)
    expected = {p for p in waiting if p in spilled} or set(waiting)
    assert set(served) == expected


@pytest.mark.parametrize("slots", [2, 6])
def test_slots_are_not_judged_by_what_was_before_a_resize(slots: int) -> None:
    """Slots that came in the middle of a phase would look busy, as if they had never waited."""
    policy = FluxPolicy(FluxTuning("load", collect_min=8.0, collect_max=8.0))
    plan, state = HashPlan.initial(4, 12), {}
    for epoch in range(3):
        decision, state = policy.decide(seen(epoch, plan, {0: 0.001 * (1 + epoch)}), plan, state)
        assert not decision.changes
    plan, state = plan.apply(Resize(slots)), json.loads(json.dumps(policy.resized(state)))
    for epoch in range(3, 20):
        decision, state = policy.decide(seen(epoch, plan, {}), plan, state)
        assert not decision.changes, decision.reason
        if decision.round is not None:
            assert len(set(decision.round["costs"])) == 1
    assert policy.resized({})["tuples"] == {}
