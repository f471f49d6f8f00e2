"""Laws of scaling: formulas, traffic, the greedy against brute force, trees, and the scheduler."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.bench.drs_networks import random_network
from geoflux.errors import InfeasibleError, UnstableLoop
from geoflux.scale.acks import Trees, acknowledgements, followed, record_ids, sampled
from geoflux.scale.allocation import Wanted, assign, fewest_for
from geoflux.scale.curves import curve_of
from geoflux.scale.erlang import Erlang, blocked, delayed
from geoflux.scale.memory import Failed, OnTrial, ScaleMemory
from geoflux.scale.network import Network, Operator
from geoflux.scale.policy import ScalePolicy
from geoflux.scale.sojourn import predict
from geoflux.scale.traffic import loops, solved
from geoflux.scale.tuning import ScaleTuning
from geoflux.scale.unequal import gumbel
from geoflux.scale.variability import arrival_scvs
from scale_plant import CHAIN, Plant


def erlang_c(load: Decimal, k: int) -> Decimal:
    """As the text has it, with factorials, in sixty digits."""
    with localcontext() as context:
        context.prec = 60
        term, whole = Decimal(1), Decimal(1)
        for n in range(1, k):
            term = term * load / n
            whole += term
        last = term * load / k * k / (k - load)
        return last / (whole + last)


@given(st.integers(1, 400), st.floats(0.001, 0.999))
def test_erlang_c_is_the_textbooks(k: int, used: float) -> None:
    exact = float(erlang_c(Decimal(k * used), k))
    assert delayed(k * used, k) == pytest.approx(exact, rel=1e-9, abs=1e-300)


@given(st.integers(1, 3000), st.one_of(st.floats(0, 2), st.just(1.0)), st.floats(0, 5000))
def test_no_load_and_no_number_overflows(k: int, used: float, load: float) -> None:
    for offered in (k * used, load):
        check_queue(offered, k)


def check_queue(load: float, k: int) -> None:
    queue = Erlang(load, k)
    assert 0 <= queue.blocked <= 1
    assert 0 <= queue.delayed <= 1
    assert queue.blocked == blocked(load, k)
    assert queue.wait >= 0
    assert math.isfinite(queue.wait) == (load < k)


@given(
    st.floats(0.01, 60), st.floats(0.1, 10), st.floats(0, 4), st.floats(0, 4),
    st.sampled_from(["shared", "keyed"]), st.sampled_from(["mmk", "gigk"]), st.floats(0, 0.5),
)  # fmt: skip
def test_curves_fall_and_are_convex(
    load: float, rate: float, arrivals: float, services: float, form: str, model: str, heavy: float
) -> None:
    # The heaviest key alone must leave its processor room, and arrivals that come in bunches are
    # divided: both bend the curve, and are checked where the law is promised.
    heavy = min(heavy, 0.9 / load) if form == "keyed" else 0.0
    operator = Operator("a", rate, 1.0, service_scv=services, form=form, heaviest=heavy)
    if heavy > 0 and load < 1:
        return
    curve = curve_of(operator, load * rate, model, arrivals if form == "shared" else 1.0)
    times = [curve.time]
    for _ in range(30):
        curve.add()
        times.append(curve.time)
    steps = -np.diff(times)
    slack = 1e-12 * times[0]
    assert (steps >= -slack).all()
    assert (np.diff(steps) <= slack).all(), "every processor more gains less than the one before"
    assert times[-1] >= curve.least * (1 - 1e-12)


@given(st.integers(0, 10**6), st.sampled_from(["mmk", "forks"]))
@settings(max_examples=60)
def test_what_comes_in_is_what_the_traffic_equations_say(seed: int, kind: str) -> None:
    network, _ = random_network(kind, seed)
    outside = np.array([o.arrivals for o in network.operators])
    rates = network.rates
    np.testing.assert_allclose(rates, outside + network.derived.T @ rates, rtol=1e-9, atol=1e-12)
    # Followed step by step: what is left after many rounds is nothing.
    total, step = outside.copy(), outside.copy()
    for _ in range(400):
        step = network.derived.T @ step
        total += step
    np.testing.assert_allclose(rates, total, rtol=1e-6)


@given(st.integers(2, 5), st.floats(0.2, 3.0))
def test_a_loop_is_refused_exactly_when_it_makes_more_than_goes_in(size: int, gain: float) -> None:
    derived = np.zeros((size, size))
    for i in range(size):
        derived[i, (i + 1) % size] = gain ** (1 / size)
    names = tuple(f"op{i}" for i in range(size))
    outside = np.eye(1, size)[0]
    assert len(loops(derived)) == 1
    if gain >= 1:
        with pytest.raises(UnstableLoop, match="op0 -> op1") as caught:
            solved(names, derived, outside)
        assert set(caught.value.loop) == set(names)
        assert caught.value.gain == pytest.approx(gain ** (1 / size))
    else:
        assert solved(names, derived, outside)[0] == pytest.approx(1 / (1 - gain))


def all_allocations(least: list[int], processors: int) -> list[tuple[int, ...]]:
    """Every way to hand out so many processors, each operator at least what it needs."""
    spare = processors - sum(least)
    return [
        tuple(a + b for a, b in zip(least, given, strict=True))
        for given in itertools.product(range(spare + 1), repeat=len(least))
        if sum(given) == spare
    ]


@given(st.integers(0, 10**9), st.integers(0, 6))
@settings(max_examples=100)
def test_the_greedy_equals_brute_force_on_networks_with_loops(seed: int, spare: int) -> None:
    network, _ = random_network("mmk", seed, most_processors=4)
    network = Network(network.operators[:4], tuple(
        e for e in network.edges if {e.source, e.target} <= {o.name for o in network.operators[:4]}
    ))  # fmt: skip
    wanted = Wanted("mmk")
    with pytest.raises(InfeasibleError, match="too few"):
        assign(network, 0, wanted)
    least = fewest_counts(network)
    processors = sum(least) + spare
    best = min(
        predict(network, dict(zip(network.index, counts, strict=True)), "mmk").total
        for counts in all_allocations(least, processors)
    )
    found = assign(network, processors, wanted)
    assert found.processors == processors, "neither one too many nor one too few"
    assert found.prediction.total == pytest.approx(best, rel=1e-12)
    # The fewest for just that time are no more than these, and one fewer does not do.
    few = fewest_for(network, best * (1 + 1e-9), wanted)
    assert few.prediction.total <= best * (1 + 1e-8)
    assert few.processors <= processors
    if few.processors > sum(least):
        assert assign(network, few.processors - 1, wanted).prediction.total > best


def alone(operator: Operator, rate: float, k: int) -> float:
    """The time at one operator by itself."""
    network = Network((Operator("it", operator.service_rate, rate, form=operator.form),))
    return predict(network, {"it": k}, "mmk").total


def fewest_counts(network: Network) -> list[int]:
    return [
        next(k for k in range(1, 10_000) if math.isfinite(alone(o, rate, k)))
        for o, rate in zip(network.operators, network.rates, strict=True)
    ]


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_exponential_networks_stay_exponential(seed: int) -> None:
    network, counts = random_network("mmk", seed)
    scvs = arrival_scvs(network, list(counts.values()))
    np.testing.assert_allclose(scvs, 1.0, rtol=1e-12)
    totals = [predict(network, counts, model).total for model in ("mmk", "gigk", "whitt")]
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-12)


@given(st.floats(0.05, 0.95), st.integers(1, 40))
def test_equal_processors_by_gumbel_are_mmk(used: float, k: int) -> None:
    queue = gumbel(used * k, (1.0,) * k)
    assert queue is not None
    same = Erlang(used * k, k)
    assert queue.delayed == pytest.approx(same.delayed, rel=1e-9, abs=1e-12)
    assert queue.sojourn == pytest.approx(same.wait + 1, rel=1e-9)


@st.composite
def forests(draw: st.DrawFn) -> list[tuple[int, int | None]]:
    """Records as (tree, parent), parents first; a loop is a long branch."""
    records: list[tuple[int, int | None]] = []
    for tree in range(draw(st.integers(1, 4))):
        first = len(records)
        records.append((tree, None))
        for _ in range(draw(st.integers(0, 7))):
            records.append((tree, draw(st.integers(first, len(records) - 1))))
    return records


@given(forests(), st.randoms(use_true_random=False), st.integers(0, 2**32))
def test_a_tree_is_complete_exactly_when_all_its_records_are(
    records: list[tuple[int, int | None]], shuffle: object, seed: int
) -> None:
    ids = record_ids(seed, 3, 0, len(records))
    roots = np.array([ids[[t for t, _ in records].index(tree)] for tree, _ in records])
    children: dict[int, list[int]] = {}
    for place, (_, parent) in enumerate(records):
        if parent is not None:
            children.setdefault(parent, []).append(place)
    rows = [("done", i) for i in range(len(records))]
    rows += [("begun", i) for i, (_, parent) in enumerate(records) if parent is None]
    shuffle.shuffle(rows)  # type: ignore[attr-defined]
    trees, told, finished, begun = Trees(), set(), set(), set()
    for what, i in rows:
        if what == "begun":
            trees, done = trees.begun(roots[[i]], ids[[i]], np.array([float(i)]))
            begun.add(int(roots[i]))
        else:
            derived = np.array(children.get(i, []), np.int64)
            value = acknowledgements(ids[[i]], np.zeros(len(derived), np.int64), ids[derived])
            trees, done = trees.acknowledged(roots[[i]], value, np.array([100.0 + i]))
            finished.add(i)
        trees = Trees.from_columns(trees.to_columns())
        told |= {int(root) for root in done.roots}
        complete = {
            int(root)
            for root in set(roots.tolist()) & begun
            if all(n in finished for n in np.flatnonzero(roots == root))
        }
        assert told == complete
        for root, began, ended in zip(done.roots, done.began, done.ended, strict=True):
            of_tree = np.flatnonzero(roots == root)
            assert began == float(of_tree[0])
            assert ended == 100.0 + float(of_tree[-1])
    assert len(trees) == 0


@given(forests(), st.integers(1, 5))
def test_columns_at_once_give_what_rows_give(
    records: list[tuple[int, int | None]], parts: int
) -> None:
    ids = record_ids(1, 0, 0, len(records))
    firsts = [i for i, (_, parent) in enumerate(records) if parent is None]
    roots = ids[[firsts[tree] for tree, _ in records]]
    of = np.array([i for i, (_, parent) in enumerate(records) if parent is not None], np.int64)
    parents = np.array([p for _, p in records if p is not None], np.int64)
    values = acknowledgements(ids, parents, ids[of])
    trees, _ = Trees().begun(roots[firsts], ids[firsts], np.zeros(len(firsts)))
    found = 0
    for part in np.array_split(np.arange(len(records)), parts):
        trees, done = trees.acknowledged(roots[part], values[part], np.ones(len(part)))
        found += len(done.roots)
    assert found == len(firsts)
    assert len(trees) == 0


POLICIES = {
    "latency": ScaleTuning("latency", most=12),
    "processors": ScaleTuning("processors", longest=2.0, shortest=1.4, most=40),
}


@pytest.mark.parametrize("name", POLICIES)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.03, 0.06, 0.1]), st.integers(0, 20))
@settings(max_examples=8, deadline=None)
def test_a_constant_load_is_left_alone(name: str, seed: int, noise: float, more: int) -> None:
    tuning = POLICIES[name]
    start = assign(CHAIN, 12) if name == "latency" else fewest_for(CHAIN, 1.75)
    plant = Plant(ScalePolicy(tuning), dict(start.counts), noise=noise, seed=seed)
    plant.now = 10.0 * more
    assert plant.run(3600).changes == []


@given(st.integers(0, 10**6), st.floats(1.3, 3.0))
@settings(max_examples=6, deadline=None)
def test_a_step_settles_in_few_changes_and_the_target_is_met(seed: int, factor: float) -> None:
    tuning = POLICIES["processors"]
    start = fewest_for(CHAIN, 1.75)
    plant = Plant(
        ScalePolicy(tuning), dict(start.counts), noise=0.03, seed=seed,
        load=lambda t: factor if 300 < t <= 2100 else 1.0,
    )  # fmt: skip
    plant.run(2100)
    assert plant.sojourns[-1] <= tuning.longest
    assert sum(d.action == "scale_out" for d in plant.changes) <= 2
    plant.run(3000)
    assert plant.sojourns[-1] <= tuning.longest
    actions = [d.action for d in plant.changes if d.action != "rearrange"]
    # Up, then down in steps (first what worked off the backlog): never up again after down.
    assert actions == sorted(actions, reverse=True), actions
    assert len(plant.changes) <= 6


counts = st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), min_size=1)
times = st.floats(0, 1e6)
trials = st.builds(
    OnTrial, st.just("scale_out"), counts, counts, times, st.one_of(st.none(), times), times, times,
    times, times,
)  # fmt: skip
memories = st.builds(
    ScaleMemory, st.integers(0, 99), st.one_of(st.none(), times), st.one_of(st.none(), times),
    st.sampled_from(["none", "shortage"]), st.integers(0, 9), st.one_of(st.none(), times),
    st.lists(st.tuples(times, st.integers(1, 99)), max_size=3).map(tuple), st.one_of(st.none(), trials),
    st.lists(st.builds(Failed, st.just("scale_in"), counts, times, times), max_size=2).map(tuple),
    st.dictionaries(st.sampled_from(["scale_out", "rearrange"]), times), st.floats(-9, 9),
    st.one_of(st.none(), counts),
)  # fmt: skip


@given(memories)
def test_what_the_scheduler_remembers_survives_the_manifest(known: ScaleMemory) -> None:
    assert ScaleMemory.from_dict(json.loads(json.dumps(known.to_dict()))) == known


@given(st.integers(0, 10**6), st.floats(0, 0.1))
@settings(max_examples=5, deadline=None)
def test_a_restart_decides_the_same(seed: int, noise: float) -> None:
    def ran(restarts: bool) -> list[object]:
        plant = Plant(
            ScalePolicy(POLICIES["processors"]), dict(fewest_for(CHAIN, 1.75).counts), noise=noise,
            seed=seed, load=lambda t: 1 + (t // 600) % 2, restarts=restarts,
        )  # fmt: skip
        return [json.dumps(d.to_dict(), sort_keys=True) for d in plant.run(2400).decisions]

    assert ran(True) == ran(False)


@given(
    st.integers(0, 2**60), st.lists(st.integers(1, 9), max_size=60), st.integers(1, 20),
    st.integers(0, 60),
)  # fmt: skip
def test_who_is_followed_does_not_depend_on_where_batches_end(
    first: int, gaps: list[int], one_in: int, cut: int
) -> None:
    positions = first + np.cumsum(np.array(gaps, np.int64))
    whole, _ = followed(3, 2, positions, one_in)
    assert whole.tolist() == np.flatnonzero(sampled(3, 2, positions, one_in)).tolist()
    cut = min(cut, len(positions))
    a, _ = followed(3, 2, positions[:cut], one_in)
    b, _ = followed(3, 2, positions[cut:], one_in)
    assert [*a.tolist(), *(b + cut).tolist()] == whole.tolist()
