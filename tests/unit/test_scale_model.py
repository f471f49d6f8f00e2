"""The queueing model: known values, the traps of the paper, and errors that say what is missing."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from geoflux.bench.drs_networks import as_stations
from geoflux.errors import ConfigError, GeofluxError, InfeasibleError, UnstableLoop
from geoflux.scale.allocation import Wanted, assign, fewest_for, least_time
from geoflux.scale.batches import Batch, chances_of
from geoflux.scale.critical import weights_of
from geoflux.scale.curves import KeyedCurve, SharedCurve
from geoflux.scale.epochs import Epochs
from geoflux.scale.erlang import Erlang, delayed
from geoflux.scale.forms import fewest_keyed, fewest_processors
from geoflux.scale.lasting import Stay, distribution
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.sojourn import predict
from geoflux.scale.unequal import gumbel
from geoflux.scale.variability import arrival_scvs
from geoflux.scale.waiting import equation_5, whitt
from geoflux.sim.queue_network import simulate_network

CHAIN = Network(
    (Operator("a", 1.0, 2.5), Operator("b", 3.0), Operator("c", 10.0)),
    (Edge("a", "b", 1.0), Edge("b", "c", 0.5)),
)


def exact_erlang_c(load: Fraction, k: int) -> Fraction:
    terms = [Fraction(1)]
    for n in range(1, k + 1):
        terms.append(terms[-1] * load / n)
    waiting = terms[k] * k / (k - load)
    return waiting / (sum(terms[:k]) + waiting)


@pytest.mark.parametrize(
    ("k", "load"), [(1, "1/2"), (2, "3/2"), (5, "4"), (40, "39"), (171, "160"), (300, "299")]
)
def test_erlang_c_in_fractions(k: int, load: str) -> None:
    exact = exact_erlang_c(Fraction(load), k)
    assert delayed(float(Fraction(load)), k) == pytest.approx(float(exact), rel=1e-12)


def test_nothing_overflows_where_factorials_do() -> None:
    exact = exact_erlang_c(Fraction(950), 1000) / 50
    assert Erlang(950.0, 1000).wait == pytest.approx(float(exact), rel=1e-12)
    assert Erlang(0.01, 1000).wait == 0.0
    assert Erlang(4999.0, 5000).delayed > 0.97
    with pytest.raises(ValueError, match="offered load"):
        Erlang(math.inf, 2)


def test_hashed_to_its_processors_an_operator_is_k_times_mm1() -> None:
    """Trap 14c: four processors at 0.7, 3.33 against 1.36 service times."""
    keyed, shared = (Operator("a", 1.0, form=form) for form in ("keyed", "shared"))
    ours = KeyedCurve(keyed, 2.8), SharedCurve(shared, 2.8)
    for curve in ours:
        while curve.k < 4:
            curve.add()
    assert ours[0].time == pytest.approx(10 / 3)
    assert ours[1].time == pytest.approx(1.357, abs=1e-3)


def test_a_heavy_key_is_not_divided() -> None:
    operator = Operator("a", 1.0, form="keyed", heaviest=0.3)
    even = predict(Network((Operator("a", 1.0, 2.0, form="keyed"),)), {"a": 4})
    heavy = predict(Network((Operator("a", 1.0, 2.0, form="keyed", heaviest=0.3),)), {"a": 4})
    # Busiest 0.3 + 0.7/4 of 2 tuples a second, the others 0.7/4.
    busy, calm = 2 * 0.475, 2 * 0.175
    assert heavy.total == pytest.approx(0.475 / (1 - busy) + 3 * 0.175 / (1 - calm))
    assert heavy.total > even.total
    assert fewest_keyed(operator, 2.0) == math.floor(1.4 / 0.4) + 1


def test_tuples_are_counted_as_often_as_they_visit() -> None:
    loop = Network(
        (Operator("a", 2.0, 1.0), Operator("b", 4.0)),
        (Edge("a", "b", 1.0), Edge("b", "a", 0.5)),
    )
    assert loop.visits.tolist() == pytest.approx([2.0, 2.0])
    # Trap 14: not 1/mu summed, but as often as it is visited.
    assert least_time(loop) == pytest.approx(2 / 2 + 2 / 4)
    there = predict(loop, {"a": 2, "b": 1})
    assert there.total == pytest.approx(2 * (4 / 3 * 0.5) + 2 * 1 / (4 - 2))


def test_a_fork_is_done_when_its_last_branch_is() -> None:
    """Trap 14b: at 0.5 two ways take 4.0 by equation 4, and 2.875 in truth."""
    fork = Network(
        (Operator("split", 1e6, 0.5, everything=True), Operator("a", 1.0), Operator("b", 1.0)),
        (Edge("split", "a", 1.0), Edge("split", "b", 1.0)),
    )
    there = predict(fork, {"split": 1, "a": 1, "b": 1})
    assert there.summed == pytest.approx(4.0, rel=1e-5)
    assert there.total == pytest.approx(2.875, rel=1e-3)
    for rate in (0.1, 0.3, 0.7, 0.85):
        there = predict(fork.at_rate(rate / 0.5), {"split": 1, "a": 1, "b": 1})
        assert there.total == pytest.approx((12 - rate) / 8 / (1 - rate), rel=2e-3)


def test_without_a_fork_equation_4_is_what_counts() -> None:
    there = predict(CHAIN, {"a": 4, "b": 2, "c": 1})
    assert there.total == there.summed


def test_several_at_once_for_one_processor() -> None:
    """Batches of three at one processor: known exactly, queue and all."""
    batch = Network(
        (Operator("r", 1e6, 0.2, everything=True), Operator("a", 1.0)), (Edge("r", "a", 3.0),)
    )
    there = predict(batch, {"r": 1, "a": 1})
    mean = (1 + 3) / (2 * (1 - 0.6))  # any of them
    assert there.operators[1].sojourn == pytest.approx(mean, rel=1e-6)
    first = 0.6 / 0.4 * (3 + 1) / 2
    assert there.total == pytest.approx(first + 3, rel=0.08), "the last one of the three"


@pytest.mark.parametrize(("many", "k"), [(20, 4), (40, 16), (40, 60)])
def test_many_at_once_for_many_processors(many: int, k: int) -> None:
    """A frame and its features: equation 4 is many times the time of the frame."""
    rate = 0.6 * k / many
    network = Network(
        (Operator("frame", 5 * rate, rate, everything=True), Operator("feature", 1.0)),
        (Edge("frame", "feature", float(many)),),
    )
    counts = {"frame": 1, "feature": k}
    true = simulate_network(as_stations(network, counts), 20_000, 1).completion
    there = predict(network, counts)
    assert there.total == pytest.approx(true, rel=0.12)
    assert there.summed > 3 * there.total


def test_what_comes_together_is_committed_together() -> None:
    epochs = Epochs(trigger=4.0, overhead=0.1, commit=0.1)

    def total(many: float) -> float:
        network = Network(
            (Operator("a", 1e3, 0.5, everything=True),
             Operator("b", 1e3 * many, form="keyed", epochs=epochs)),
            (Edge("a", "b", many),),
        )  # fmt: skip
        return predict(network, {"a": 1, "b": 2}).total

    assert total(20.0) == pytest.approx(total(1.0), rel=0.02)


def test_numbers_of_derived_tuples() -> None:
    for mean, variance in ((2.5, None), (2.5, 1.0), (2.5, 2.5), (2.5, 9.0), (0.3, 0.21)):
        chances = chances_of(Edge("a", "b", mean, variance))
        n = np.arange(len(chances))
        assert chances.sum() == pytest.approx(1)
        assert chances @ n == pytest.approx(mean, rel=1e-3)
        expected = 0.25 if variance is None else variance
        assert chances @ n**2 - mean**2 == pytest.approx(expected, rel=0.01)
    assert Batch(np.array([0, 1.0]), 2, 0.3, 0.5, 1.0).mean_start() == 0


@pytest.mark.parametrize("scv", [0.05, 0.25, 0.5, 0.7, 1.0, 2.0, 5.0])
def test_services_have_their_two_moments(scv: float) -> None:
    chances = distribution((Stay(0.0, 0.0, 1.0, scv),), 0.005, 40_000)
    left = 1 - chances
    times = np.arange(len(left)) * 0.005
    assert 0.005 * left.sum() == pytest.approx(1.0, rel=0.01)
    assert 2 * 0.005 * (left @ times) - 1 == pytest.approx(scv, rel=0.02)


def test_variability_follows_services_and_dies_out_in_splits() -> None:
    def at_second(share: float, scv: float, used: float) -> float:
        network = Network(
            (Operator("a", 1.0, used, service_scv=scv), Operator("b", 1.0)),
            (Edge("a", "b", share),),
        )
        return float(arrival_scvs(network, [1, 1])[1])

    assert at_second(1.0, 0.0, 0.9) == pytest.approx(1 - 0.81 * 0.8)
    assert at_second(1.0, 4.0, 0.9) == pytest.approx(1 + 0.81 * 3)
    assert abs(at_second(0.1, 4.0, 0.9) - 1) < abs(at_second(1.0, 4.0, 0.9) - 1) / 5
    batch = Network(
        (Operator("a", 9.0, 1.0, everything=True), Operator("b", 9.0)), (Edge("a", "b", 3.0),)
    )
    assert float(arrival_scvs(batch, [1, 1])[1]) == pytest.approx(3.0)


def test_equation_5_and_its_refinement() -> None:
    assert equation_5(1.0, 0.5) == 0.75
    for k in (1, 3, 8):
        assert whitt(1.0, 1.0, k, 0.6) == pytest.approx(1.0)
    # D/M/1 at 0.5 waits 0.2550 services; M/M/1 waits 1: equation 5 says 0.5.
    assert abs(whitt(0.0, 1.0, 1, 0.5) - 0.255) < abs(equation_5(0.0, 1.0) - 0.255)
    assert whitt(0.0, 0.0, 4, 0.9) == 0


def test_unequal_processors() -> None:
    # M/M/2 with rates 1 and 3, any free one: by hand from the four states.
    rate, one, two = 2.0, 1.0, 3.0
    load = rate / (one + two)
    idle = 1 / (1 + rate / (2 * one) + rate / (2 * two) + rate**2 / (2 * one * two) / (1 - load))
    delayed_share = idle * rate**2 / (2 * one * two) / (1 - load)
    queue = gumbel(rate, (one, two))
    assert queue is not None
    assert queue.delayed == pytest.approx(delayed_share)
    assert gumbel(5.0, (1.0, 3.0)) is None
    many = gumbel(700.0, tuple(np.linspace(0.5, 1.5, 1000)))
    assert many is not None
    assert 0 <= many.delayed < 1e-6


def test_unequal_processors_are_part_of_the_network() -> None:
    def total(k: int, speeds: tuple[float, ...], form: str = "shared") -> float:
        operator = Operator("a", 1.0, 2.5, form=form, speeds=speeds)
        return predict(Network((operator,)), {"a": k}).total

    for form in ("shared", "keyed"):
        assert total(4, (1.0,) * 4, form) == pytest.approx(total(4, (), form), rel=1e-9)
        assert total(4, (2.0, 1.0), form) < total(4, (), form)
        assert total(4, (0.7, 1.0), form) > total(4, (), form)
    assert total(2, (2.0, 1.0)) < math.inf, "two are enough if one is fast"
    hot = Operator("a", 1.0, 2.0, form="keyed", heaviest=0.3, speeds=(2.0, 1.0))
    busy, calm = 2 * 0.65, 2 * 0.35
    expected = 0.65 / (2 - busy) + 0.35 / (1 - calm)
    assert predict(Network((hot,)), {"a": 2}).total == pytest.approx(expected)
    fast = Network((Operator("a", 1.0, 2.5, speeds=(2.0, 2.0)), Operator("b", 1.0, 0.5)))
    best = min(predict(fast, {"a": k, "b": 4 - k}).total for k in (2, 3))
    assert assign(fast, 4).prediction.total == pytest.approx(best)
    assert fewest_for(fast, 3.0).counts == {"a": 2, "b": 1}


@pytest.mark.parametrize("form", ["shared", "keyed"])
@pytest.mark.parametrize("rate", [0.0, 0.4, 2.0, 5.5, 40.0])
@pytest.mark.parametrize("speeds", [(), (2.0, 2.0), (0.5,), (3.0, 0.25, 1.0)])
def test_the_fewest_processors_just_keep_up(
    form: str, rate: float, speeds: tuple[float, ...]
) -> None:
    operator = Operator(
        "a", 1.0, form=form, heaviest=0.01 if form == "keyed" else 0.0, speeds=speeds
    )
    idle = Operator("b", 1.0, 1.0)
    network = Network((replace(operator, arrivals=rate), idle))
    few = fewest_processors(operator, rate)
    assert not predict(network, {"a": few, "b": 2}).overrun
    for k in range(1, few):
        assert predict(network, {"a": k, "b": 2}).overrun == ("a",)


def test_nobody_without_a_processor() -> None:
    with pytest.raises(ConfigError, match="at least 1 processor"):
        predict(CHAIN, {"a": 3, "b": 0, "c": 1})


def test_exactly_k_processors_are_handed_out() -> None:
    """Trap 13: the algorithm as printed hands out one too many."""
    for processors in (5, 6, 9, 20):
        assert assign(CHAIN, processors).processors == processors


def test_too_few_processors_are_told() -> None:
    with pytest.raises(
        InfeasibleError, match=r"needed are 5 \(a 3, b 1, c 1\); give 2 more"
    ) as caught:
        assign(CHAIN, 3)
    assert caught.value.missing == {"processors": 2}
    assert isinstance(caught.value, GeofluxError)
    assert isinstance(caught.value, ValueError)


def test_a_target_equal_to_the_bound_is_refused() -> None:
    """Trap 14a: it would never end."""
    bound = least_time(CHAIN)
    assert bound == pytest.approx(1 + 1 / 3 + 0.05)
    for target in (bound, bound / 2):
        with pytest.raises(
            InfeasibleError, match=r"without any waiting an input takes 1\.383"
        ) as caught:
            fewest_for(CHAIN, target)
        assert caught.value.missing["seconds"] == pytest.approx(bound - target)
    with pytest.raises(InfeasibleError, match="more than 30 processors"):
        fewest_for(CHAIN, bound * (1 + 1e-12), most=30)


def test_the_fewest_for_a_target() -> None:
    few = fewest_for(CHAIN, 1.6)
    assert few.prediction.total <= 1.6
    assert assign(CHAIN, few.processors - 1).prediction.total > 1.6
    assert fewest_for(CHAIN, 1.6, most=few.processors).counts == few.counts
    with pytest.raises(InfeasibleError):
        fewest_for(CHAIN, 1.6, most=few.processors - 1)


@pytest.mark.parametrize("model", ["mmk", "gigk", "whitt"])
def test_targets_are_met_where_times_are_not_exponential(model: str) -> None:
    network = Network(
        (Operator("a", 1.0, 2.5, 2.0, 0.3), Operator("b", 3.0, service_scv=3.0)),
        (Edge("a", "b", 1.0),),
    )
    few = fewest_for(network, 1.5, Wanted(model))
    assert few.prediction.total <= 1.5
    assert assign(network, few.processors - 1, Wanted(model)).prediction.total > 1.5


def test_forks_get_processors_where_the_tree_waits() -> None:
    fork = Network(
        (Operator("r", 20.0, 4.0, everything=True), Operator("slow", 1.0), Operator("quick", 20.0)),
        (Edge("r", "slow", 1.0), Edge("r", "quick", 1.0)),
    )
    weights = weights_of(fork, (1, 6, 1), "gigk")
    assert weights[0] > 0.5
    assert weights[1] > 0.9
    assert weights[2] < 0.5
    few = fewest_for(fork, 1.3)
    assert few.prediction.total <= 1.3
    assert few.prediction.summed > few.prediction.total
    # A target that equation 4 could never meet.
    bound = least_time(fork)
    assert bound < sum(v / o.service_rate for v, o in zip(fork.visits, fork.operators, strict=True))


def test_a_key_too_heavy_for_one_processor_is_told() -> None:
    hot = Network((Operator("a", 1.0, 3.0, form="keyed", heaviest=0.4),))
    with pytest.raises(InfeasibleError, match=r"heaviest key brings 1\.2 tuples a second"):
        assign(hot, 100)
    with pytest.raises(InfeasibleError, match="split that key"):
        fewest_for(hot, 5.0)


def test_a_loop_that_never_dies_out_is_named() -> None:
    network = Network(
        (Operator("a", 1.0, 1.0), Operator("b", 1.0, everything=True), Operator("c", 1.0)),
        (Edge("a", "b", 1.0), Edge("b", "c", 2.0), Edge("c", "b", 0.6)),
    )
    with pytest.raises(UnstableLoop, match=r"the loop b -> c -> b makes 1\.1 tuples") as caught:
        predict(network, {"a": 1, "b": 1, "c": 1})
    assert caught.value.loop == ("b", "c")


def test_mistakes_in_a_network_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Network(
            (Operator("a", 0.0, 1.0), Operator("b", 1.0, heaviest=2.0)),
            (Edge("a", "x", 0.5), Edge("b", "a", 0.7), Edge("b", "b", 0.6)),
        )
    told = str(caught.value)
    for word in ("service_rate", "heaviest", "no operator 'x'", "add up to 1.3"):
        assert word in told
    with pytest.raises(ConfigError, match="nothing comes from outside"):
        Network((Operator("a", 1.0),))
    with pytest.raises(ConfigError, match=r"vary by 0\.25 at least"):
        Network((Operator("a", 1.0, 1.0, everything=True),), (Edge("a", "a", 0.5, 0.1),))


def test_an_operator_that_cannot_keep_up_takes_for_ever() -> None:
    there = predict(CHAIN, {"a": 2, "b": 2, "c": 1})
    assert there.total == math.inf
    assert there.overrun == ("a",)
    assert there.to_dict()["total"] is None


def test_micro_batches_are_part_of_the_network() -> None:
    epochs = Epochs(trigger=2.0, overhead=0.2, commit=0.1)
    network = Network(
        (Operator("a", 5.0, 6.0, form="keyed", epochs=epochs), Operator("b", 50.0)),
        (Edge("a", "b", 1.0),),
    )
    there = predict(network, {"a": 3, "b": 1})
    assert there.total > 1.0 + 0.3
    assert least_time(network) > 1.3
    found = assign(network, 12)
    assert found.processors == 12
    assert found.prediction.total < there.total
    few = fewest_for(network, 2.5)
    assert few.prediction.total <= 2.5


def test_the_example_in_the_docs_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "drs.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(compile(code, "docs/drs.md", "exec"), names)
    assert assign(names["app"], 22).counts == {"extract": 9, "match": 12, "gather": 1}  # type: ignore[arg-type]
