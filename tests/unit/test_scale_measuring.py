"""From slots' sums to a network with numbers in it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geoflux.errors import ConfigError
from geoflux.scale.acks import Trees, followed, record_ids, sampled
from geoflux.scale.measuring import InputWindow, OperatorSums, SlotWindow, aggregated
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.observing import NotReady, measured_network
from geoflux.scale.smoothing import Smoothed, Smoothing

TOPOLOGY = Network(
    (Operator("a", 1.0, 1.0), Operator("b", 1.0, form="keyed", everything=True)),
    (Edge("a", "b", 0.5), Edge("b", "b", 0.1)),
)


def slot(operator: str, number: int, services: np.ndarray, **more: object) -> SlotWindow:
    return SlotWindow(
        operator, number, 10.0, len(services), len(services), float(services.sum()),
        float((services**2).sum()), len(services), **more,
    )  # fmt: skip


def test_slots_add_up_to_their_operator() -> None:
    draw = np.random.default_rng(1)
    services = [draw.exponential(0.2, n) for n in (40, 60, 100)]
    gaps = draw.gamma(4.0, 0.025, 200)
    inputs = InputWindow("a", 10.0, 200, 200, float(gaps.sum()), float((gaps**2).sum()))
    sums = aggregated([slot("a", i, s) for i, s in enumerate(services)], [inputs])["a"]
    everything = np.concatenate(services)
    assert sums.slots == 3
    assert sums.arrivals == pytest.approx(20.0)
    assert sums.outside == pytest.approx(20.0)
    assert sums.service_rate == pytest.approx(1 / everything.mean())
    assert sums.service_scv == pytest.approx(everything.var() / everything.mean() ** 2)
    assert sums.arrival_scv == pytest.approx(gaps.var() / gaps.mean() ** 2)
    assert sums.busiest_share == pytest.approx(0.5)
    assert sums.heaviest == pytest.approx((0.5 * 3 - 1) / 2)


def test_services_may_be_timed_once_in_a_while() -> None:
    half = SlotWindow("a", 0, 10.0, 100, 100, 5.0, 0.6, 50)
    sums = aggregated([half])["a"]
    assert sums.service_rate == pytest.approx(10.0)
    assert sums.served == pytest.approx(10.0)


def test_alpha_is_the_weight_of_the_old_value() -> None:
    """Trap 14a."""
    known = Smoothed(Smoothing(alpha=0.9))
    for arrivals in (10.0, 20.0):
        known = known.after({"a": OperatorSums(1, arrivals=arrivals, derived={"b": arrivals})})
    assert known.now["a"].arrivals == pytest.approx(11.0)
    assert known.now["a"].derived["b"] == pytest.approx(11.0)


def test_a_window_is_the_mean_of_the_last_ones() -> None:
    known = Smoothed(Smoothing(window=3))
    for arrivals in (100.0, 10.0, 20.0, 30.0):
        known = known.after({"a": OperatorSums(2, arrivals=arrivals)})
    assert known.now["a"].arrivals == pytest.approx(20.0)
    again = Smoothed.from_dict(json.loads(json.dumps(known.to_dict())), known.how)
    assert again == known
    assert Smoothed.from_dict({}, known.how).now == {}


def test_other_slots_than_before_are_not_mixed_with_them() -> None:
    known = Smoothed(Smoothing(window=3))
    known = known.after({"a": OperatorSums(2, arrivals=10.0, by_slot={0: 9.0, 1: 1.0})})
    known = known.after({"a": OperatorSums(3, arrivals=10.0, by_slot={0: 3.0, 1: 3.0, 2: 4.0})})
    now = known.now["a"]
    assert now.slots == 3
    assert now.busiest_share == pytest.approx(0.4)
    assert now.arrivals == pytest.approx(10.0)


@pytest.mark.parametrize("wrong", [{"window": 0}, {"alpha": 1.0}, {"alpha": -0.1}])
def test_smoothing_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Smoothing(**wrong)  # type: ignore[arg-type]


def test_a_topology_gets_the_measured_numbers() -> None:
    windows = [
        SlotWindow("a", 0, 10.0, 80, 80, 8.0, 1.6, 80, {"b": 60}),
        SlotWindow("b", 0, 10.0, 60, 50, 25.0, 25.0, 50, {"b": 15}, {"b": 45.0}),
        SlotWindow("b", 1, 10.0, 20, 20, 10.0, 10.0, 20, {"b": 6}, {"b": 18.0}),
    ]
    sums = aggregated(windows, [InputWindow("a", 10.0, 80)])
    network = measured_network(TOPOLOGY, sums)
    assert isinstance(network, Network)
    a, b = network.operators
    assert (a.arrivals, a.service_rate) == (pytest.approx(8.0), pytest.approx(10.0))
    assert a.service_scv == pytest.approx(1.0)
    assert b.arrivals == 0
    assert b.heaviest == pytest.approx((0.75 * 2 - 1) / 1)
    assert network.derived == pytest.approx(np.array([[0, 0.75], [0, 0.3]]))
    assert network.edges[1].spread == pytest.approx(63 / 70 - 0.09)
    assert network.rates[1] == pytest.approx(8 * 0.75 / 0.7)


def test_too_little_is_not_ready_and_no_failure() -> None:
    idle = SlotWindow("a", 0, 10.0, 0, 0, 0.0, 0.0, 0)
    sums = aggregated([idle])
    assert isinstance(measured_network(TOPOLOGY, sums), NotReady)
    busy = aggregated([slot("a", 0, np.full(5, 0.1)), slot("b", 0, np.full(5, 0.1))])
    assert measured_network(TOPOLOGY, busy) == NotReady("nothing comes from outside")
    assert isinstance(measured_network(TOPOLOGY, busy, least_timed=20.0), NotReady)


def test_ids_are_the_same_on_replay_and_never_twice() -> None:
    ids = record_ids(7, 1, 0, 100_000)
    assert len(np.unique(ids)) == 100_000
    np.testing.assert_array_equal(ids[500:600], record_ids(7, 1, 500, 100))
    assert not set(ids.tolist()) & set(record_ids(7, 2, 0, 100_000).tolist())
    assert (ids != 0).all()


@pytest.mark.parametrize("one_in", [1, 2, 7, 50])
def test_one_in_so_many_is_followed_and_each_has_its_chance(one_in: int) -> None:
    positions = np.arange(100 * one_in)
    kept = [sampled(seed, 1, positions, one_in) for seed in range(60)]
    for seed, mask in enumerate(kept):
        assert mask.reshape(-1, one_in).sum(axis=1).tolist() == [1] * 100
        places, ids = followed(seed, 1, positions, one_in)
        assert places.tolist() == np.flatnonzero(mask).tolist()
        assert ids.tolist() == record_ids(seed, 1, 0, 100 * one_in)[places].tolist()
    chance = np.mean(kept, axis=0).reshape(-1, one_in).mean(axis=0)
    assert chance == pytest.approx(1 / one_in, rel=0.5)


def test_trees_that_never_end_are_counted_out() -> None:
    ids = record_ids(1, 0, 0, 3)
    trees, _ = Trees().begun(ids, ids, np.array([1.0, 2.0, 3.0]))
    trees, lost = trees.without(before=2.5)
    assert lost == 2
    assert trees.roots.tolist() == [ids[2]]
