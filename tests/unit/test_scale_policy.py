"""The scheduler: its three triggers, and what keeps it from flapping."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from geoflux.errors import ConfigError
from geoflux.scale.allocation import assign, fewest_for
from geoflux.scale.decisions import Look
from geoflux.scale.epochs import Epochs
from geoflux.scale.memory import ScaleMemory
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.policy import ScalePolicy
from geoflux.scale.sojourn import predict
from geoflux.scale.tuning import ScaleTuning
from scale_plant import CHAIN, Plant

FEW = ScaleTuning("processors", longest=2.0, shortest=1.5, most=40)
BEST = assign(CHAIN, 12).counts


def test_a_poor_assignment_is_replaced_by_the_best_one_once() -> None:
    plant = Plant(
        ScalePolicy(ScaleTuning("latency", most=12)), {"extract": 8, "match": 3, "gather": 1}
    )
    plant.run(1200)
    assert [d.action for d in plant.changes] == ["rearrange"]
    assert plant.changes[0].trigger == "suboptimal"
    assert plant.allocation == dict(BEST)
    assert plant.changes[0].predicted_after == pytest.approx(plant.sojourns[-1])


def test_a_step_up_is_met_and_a_step_down_gives_processors_back() -> None:
    start = fewest_for(CHAIN, 1.7)
    plant = Plant(
        ScalePolicy(FEW), dict(start.counts), load=lambda t: 2.0 if 600 < t <= 2400 else 1.0
    )
    plant.run(600)
    assert plant.changes == []
    plant.run(1800)
    out = plant.changes
    assert out
    assert {d.action for d in out} == {"scale_out"}
    assert out[0].trigger == "shortage"
    assert out[0].at <= 600 + FEW.patience * 10 + 10
    assert plant.sojourns[-1] <= FEW.longest
    high = plant.processors
    plant.run(2400)
    back = plant.changes[len(out) :]
    assert [d.action for d in back] == ["scale_in"]
    assert back[0].at >= 2400 + FEW.wait_down
    assert plant.processors < high
    assert plant.sojourns[-1] <= (FEW.shortest + FEW.longest) / 2, "far from either bound"


def test_changes_are_at_least_t_ra_apart() -> None:
    tuning = ScaleTuning(
        "processors", longest=2.0, shortest=1.5, most=40, between=170, wait_down=60
    )
    plant = Plant(
        ScalePolicy(tuning), dict(fewest_for(CHAIN, 1.7).counts), noise=0.1,
        load=lambda t: 1.0 + (t // 400) % 3,
    )  # fmt: skip
    times = [d.at for d in plant.run(6000).changes]
    assert len(times) > 3
    assert all(later - earlier >= 170 for earlier, later in pairwise(times))


def test_what_no_processor_can_mend_is_told_and_left_alone() -> None:
    """Inputs take 5 s more than the model knows of: no number of processors makes it 2."""
    plant = Plant(ScalePolicy(FEW), dict(BEST), beyond=lambda a: 5.0).run(3000)
    assert plant.changes == []
    assert "cannot be reached" in plant.decisions[-1].reason


def test_more_processors_that_change_nothing_are_given_back() -> None:
    """The model believes in processors; in truth inputs take as long with any number."""
    stuck = fewest_for(CHAIN, 1.7)
    time = 2.6
    plant = Plant(
        ScalePolicy(FEW), dict(stuck.counts), beyond=lambda a: time - predict(CHAIN, a).total
    )
    plant.run(3000)
    assert [d.action for d in plant.changes] == ["scale_out", "scale_in"]
    assert plant.changes[1].trigger == "no_help"
    assert plant.allocation == dict(stuck.counts)
    assert "did not help under this load" in plant.decisions[-1].reason


def test_a_mistaken_giving_back_is_not_repeated() -> None:
    """With fewer than twelve something breaks that the model does not know."""
    tuning = ScaleTuning("processors", longest=2.0, shortest=1.9, most=40, wait_down=60)
    plant = Plant(
        ScalePolicy(tuning), dict(BEST), beyond=lambda a: 0.0 if sum(a.values()) >= 12 else 3.0
    ).run(3000)
    actions = [d.action for d in plant.changes]
    assert actions[0] == "scale_in"
    assert actions.count("scale_in") == 1, "seen once, it is not tried again under this load"
    assert plant.processors >= 12
    assert plant.sojourns[-1] <= tuning.longest


def test_a_change_that_does_not_pay_is_not_made() -> None:
    poor = {"extract": 4, "match": 6, "gather": 2}
    gain = predict(CHAIN, poor).total - predict(CHAIN, dict(BEST)).total
    cheap = ScaleTuning("latency", most=12, least_gain=0.0, payback=100, cost=99 * gain)
    dear = ScaleTuning("latency", most=12, least_gain=0.0, payback=100, cost=101 * gain)
    assert Plant(ScalePolicy(cheap), dict(poor)).run(300).changes
    plant = Plant(ScalePolicy(dear), dict(poor)).run(300)
    assert plant.changes == []
    assert "does not pay" in plant.decisions[-1].reason


def test_what_a_change_costs_is_learned() -> None:
    policy = ScalePolicy(ScaleTuning("latency", most=12, calm=1, between=0, settle=30))
    poor = {"extract": 8, "match": 3, "gather": 1}
    decision, state = policy.decide(Look(0.0, CHAIN, poor, 3.0), {})
    assert decision.action == "rearrange"
    for now, measured in ((10.0, 4.0), (20.0, 3.5), (30.0, 1.5)):
        nothing, state = policy.decide(Look(now, CHAIN, decision.after, measured), state)
        assert nothing.action == "none"
    promised = decision.predicted_after
    assert promised is not None
    assert promised > 1.5, "what is sooner than promised is no cost"
    assert state["costs"] == {"rearrange": pytest.approx(10 * (7.5 - 2 * promised))}


def test_observe_only_says_what_it_would_do_and_does_nothing() -> None:
    tuning = ScaleTuning("latency", most=12, observe=True)
    poor = {"extract": 8, "match": 3, "gather": 1}
    plant = Plant(ScalePolicy(tuning), dict(poor)).run(600)
    assert plant.changes
    assert all(d.after == dict(BEST) and not d.carried_out for d in plant.changes)
    assert plant.allocation == poor


def test_too_little_for_the_target_is_told_and_all_that_helps_is_given() -> None:
    tuning = ScaleTuning("processors", longest=1.2, shortest=1.19, most=9)
    plant = Plant(ScalePolicy(tuning), {"extract": 2, "match": 3, "gather": 1}).run(600)
    assert plant.processors <= 9
    assert plant.changes[0].action == "scale_out"
    assert "needs more than 9 processors" in plant.changes[0].reason


def test_one_who_cannot_keep_up_is_a_shortage_before_anything_was_measured() -> None:
    policy = ScalePolicy(ScaleTuning("processors", longest=2.0, patience=1, between=0, most=40))
    decision, _ = policy.decide(Look(0.0, CHAIN, {"extract": 1, "match": 3, "gather": 1}), {})
    assert decision.action == "scale_out"
    assert "extract cannot keep up" in decision.reason
    assert decision.predicted_before is None, "no end"


def test_what_piled_up_is_worked_off() -> None:
    policy = ScalePolicy(
        ScaleTuning("processors", longest=2.0, patience=1, between=0, most=40, catch_up=60)
    )
    at = {"extract": 1, "match": 3, "gather": 1}
    plain, _ = policy.decide(Look(0.0, CHAIN, at), {})
    piled, _ = policy.decide(Look(0.0, CHAIN, at, backlog={"match": 600.0}), {})
    assert piled.after["match"] >= (3.0 + 10.0) / 1.5
    assert plain.after["match"] < (3.0 + 10.0) / 1.5


def test_a_decision_is_on_record_with_what_was_measured_and_predicted() -> None:
    policy = ScalePolicy(ScaleTuning("latency", most=12, calm=1, between=0))
    decision, _ = policy.decide(Look(5.0, CHAIN, {"extract": 8, "match": 3, "gather": 1}, 3.0), {})
    record = json.loads(json.dumps(decision.to_dict()))
    assert record["measured"] == 3.0
    assert record["predicted_after"] < record["predicted_before"]
    assert record["rate"] == 3.0
    assert record["before"] == {"extract": 8, "match": 3, "gather": 1}
    assert [o["name"] for o in record["operators"]] == ["extract", "match", "gather"]


def test_mistakes_in_the_tuning_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match="2 settings are wrong"):
        ScaleTuning("processors", longest=1.0, shortest=1.0, patience=0)


def test_nothing_is_asked_of_a_network_that_nobody_can_serve() -> None:
    hot = Network((Operator("a", 1.0, 3.0, form="keyed", heaviest=0.5),))
    policy = ScalePolicy(ScaleTuning("processors", longest=2.0, patience=1))
    decision, _ = policy.decide(Look(0.0, hot, {"a": 4}, 50.0), {})
    assert decision.action == "none"
    assert "heaviest key" in decision.reason


def test_giving_back_ends_between_the_two_bounds() -> None:
    network = Network((Operator("a", 1.0, 300.0),))
    tuning = ScaleTuning(
        "processors", most=500, longest=1.08, shortest=1.02, wait_down=0, patience=1, between=0
    )
    decision, _ = ScalePolicy(tuning).decide(Look(0.0, network, {"a": 400}, 1.0), {})
    assert decision.action == "scale_in"
    assert decision.after["a"] == fewest_for(network, 1.05).counts["a"]


def test_a_loop_that_never_dies_out_is_told_and_left_alone() -> None:
    wild = Network((Operator("a", 9.0, 1.0, everything=True),), (Edge("a", "a", 1.2),))
    decision, state = ScalePolicy(FEW).decide(Look(0.0, wild, {"a": 1}, 3.0), {})
    assert decision.action == "none"
    assert "the loop a -> a makes 1.2 tuples" in decision.reason
    assert json.loads(json.dumps(state)) == state


def test_t_ra_counts_from_the_start() -> None:
    tuning = ScaleTuning("latency", most=12, between=840)
    plant = Plant(ScalePolicy(tuning), {"extract": 8, "match": 3, "gather": 1}).run(1600)
    assert [d.at for d in plant.changes] == [10.0 + 840.0]


def test_what_is_merely_better_must_be_named_longer_than_what_is_short() -> None:
    tuning = ScaleTuning("latency", most=12, patience=2, calm=5, between=0)
    plant = Plant(ScalePolicy(tuning), {"extract": 8, "match": 3, "gather": 1}).run(200)
    assert [d.at for d in plant.changes] == [50.0]
    tuning = ScaleTuning("processors", most=40, longest=2.0, patience=2, calm=5, between=0)
    plant = Plant(ScalePolicy(tuning), {"extract": 2, "match": 2, "gather": 1}).run(100)
    assert plant.changes[0].at == 20.0


def test_what_kinds_of_changes_cost_is_kept_apart() -> None:
    policy = ScalePolicy(ScaleTuning("latency", most=12, calm=1, between=0, settle=10))
    state = ScaleMemory(costs={"scale_out": 7.0}).to_dict()
    decision, state = policy.decide(
        Look(0.0, CHAIN, {"extract": 8, "match": 3, "gather": 1}, 3.0), state
    )
    _, state = policy.decide(Look(10.0, CHAIN, decision.after, 2.0), state)
    assert state["costs"]["scale_out"] == 7.0
    assert "rearrange" in state["costs"]


def test_who_cannot_keep_up_is_urgent_in_either_problem() -> None:
    tuning = ScaleTuning("latency", most=12, patience=2, calm=50, between=0)
    plant = Plant(ScalePolicy(tuning), {"extract": 9, "match": 2, "gather": 1}).run(100)
    assert plant.changes[0].at == 20.0
    assert plant.changes[0].trigger == "shortage"


def test_a_change_that_is_not_there_yet_is_waited_for() -> None:
    policy = ScalePolicy(ScaleTuning("latency", most=12, calm=1, between=0, settle=30))
    poor = {"extract": 8, "match": 3, "gather": 1}
    decision, state = policy.decide(Look(0.0, CHAIN, poor, 3.0), {})
    for now in (10.0, 20.0, 40.0):
        nothing, state = policy.decide(Look(now, CHAIN, poor, 3.0), state)
        assert nothing.reason == "the last change is not there yet"
    settling, state = policy.decide(Look(50.0, CHAIN, decision.after, 2.0), state)
    assert settling.reason == "the last change is settling"
    # Never came: after a while it is asked for anew.
    decision, state = policy.decide(Look(0.0, CHAIN, poor, 3.0), {})
    again, state = policy.decide(Look(61.0, CHAIN, poor, 3.0), state)
    assert again.action == "rearrange"


def test_what_always_waits_is_no_pile() -> None:
    """Between two epochs records wait; that is neither worked off nor held against the model."""
    epochs = Epochs(trigger=5.0, overhead=0.2, commit=0.1)
    network = Network((Operator("a", 10.0, 20.0, form="keyed", epochs=epochs),))
    policy = ScalePolicy(ScaleTuning("processors", longest=20.0, patience=1, between=0))
    look = Look(0.0, network, {"a": 4}, 7.0, backlog={"a": 100.0})
    _, state = policy.decide(look, {})
    expected = 7.0 - predict(network, {"a": 4}).total
    assert state["offset"] == pytest.approx(expected / 2)
