"""Attackers against the real balancing decisions, with Guard in between; all in memory.

A tenth of the dissertation's population on the benchmark's simulated cluster: 100 normal users with
90,000 queries and 60 a second, attackers with 10,000 queries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoflux.bench.guard_cluster import Cluster, Placed
from geoflux.bench.guard_runs import CROWDS, counted
from geoflux.bench.guard_slots import Costs, Size
from geoflux.bench.guard_world import World
from geoflux.guard import GuardTuning
from geoflux.workload.attackers import VARIANTS, Attack, Attackers, Crowd, Gathering
from geoflux.workload.requests import NormalUsers, Population

SCALE = 0.1
MINUTES = 9
SIZE = Size(side=200)
GUARD = GuardTuning(least_place=2.0)  # of 200 cells


def normal_users(seed: int) -> NormalUsers:
    return NormalUsers(seed, rate=600 * SCALE, queries=round(900_000 * SCALE))


def cluster(
    populations: list[Population], seed: int, tuning: GuardTuning | None,
    attackers: Attackers | None = None, restarts: bool = False,
) -> Cluster:  # fmt: skip
    costs = Costs().of_scale(SCALE)
    return Cluster(populations, tuning, seed, SIZE, costs, attackers, restarts)


def attacked(
    attack: Attack, seed: int, tuning: GuardTuning | None, *more: Population
) -> tuple[Cluster, Attackers]:
    attackers = Attackers(attack.scaled(SCALE), seed)
    run = cluster([normal_users(seed), attackers, *more], seed, tuning, attackers).run(MINUTES)
    return run, attackers


def gathered(gathering: Gathering, seed: int) -> Crowd:
    at = tuple(World(seed).middles[0].tolist())
    return Crowd(replace(gathering, at=at, queries=round(gathering.queries * SCALE)), seed)


def test_an_attack_keeps_the_plan_changing_and_guard_ends_that() -> None:
    bare, _ = attacked(Attack(rate=1200.0), 2, None)
    run, attackers = attacked(Attack(rate=1200.0), 2, GUARD)
    assert set(run.blocked()) == set(attackers.names)
    assert max(run.blocked().values()) <= 300.0 + 2 * 60.0
    assert run.refused > 0
    assert run.changes < bare.changes
    since = round(6 * 60 / 5)
    carried, unguarded = (
        np.mean([one.capability for one in some.carried[since:]]) for some in (run, bare)
    )
    assert carried > 1.3 * unguarded


@pytest.mark.parametrize(("placed", "left"), [("stay", 10_000), ("expire", 0), ("remove", 0)])
def test_what_blocked_users_had_placed_expires_or_stays_or_goes(placed: Placed, left: int) -> None:
    attackers = Attackers(Attack(rate=1200.0).scaled(SCALE), 2)
    run = cluster([normal_users(2), attackers], 2, GUARD, attackers)
    run.placed = placed
    run.run(MINUTES)
    theirs = np.isin(run.store.user, run.store.codes(attackers.names)) & run.store.alive
    assert theirs.sum() == left
    assert run.store.alive.sum() - left == round(900_000 * SCALE)
    assert run.store.per_cell.sum() == run.store.alive.sum()


@pytest.mark.parametrize("users", [1, 10, 40])
def test_groups_of_any_size_are_blocked_and_nobody_else(users: int) -> None:
    run, attackers = attacked(Attack(users=users), 1, GUARD)
    assert set(run.blocked()) == set(attackers.names)


@pytest.mark.parametrize("name", ["rotating", "joining_late", "mimicking", "snapshots"])
def test_variants_are_not_missed(name: str) -> None:
    outcome = counted(*attacked(VARIANTS[name], 1, GUARD))
    assert outcome.made >= 2
    assert outcome.blocked
    assert not outcome.missed
    assert not outcome.wrongly


def test_without_an_attack_nobody_is_blocked() -> None:
    run = cluster([normal_users(3)], 3, GUARD).run(MINUTES)
    assert run.sensed
    assert not run.blocked()


@pytest.mark.parametrize("name", ["arriving", "walking", "moving_in", "one_by_one"])
def test_innocent_crowds_are_never_blocked(name: str) -> None:
    gathering = CROWDS[name].gathering
    assert gathering is not None
    run = cluster([normal_users(2), gathered(gathering, 2)], 2, GUARD).run(MINUTES)
    visited = [s for s in run.sensed if sum(k for n, k in s.recent.items() if "visitor" in n) > 99]
    assert visited  # the crowd is rebalanced for
    assert not run.blocked()


def test_attackers_in_a_crowd_are_told_from_it() -> None:
    at = tuple(World(1).middles[0].tolist())
    gathering = CROWDS["arriving"].gathering
    assert gathering is not None
    run, attackers = attacked(Attack(rate=1200.0, first=at), 1, GUARD, gathered(gathering, 1))
    assert set(run.blocked()) == set(attackers.names)


def test_restarts_change_nothing() -> None:
    runs = []
    for restarts in (False, True):
        attackers = Attackers(Attack().scaled(SCALE), 1)
        run = cluster([normal_users(1), attackers], 1, GUARD, attackers, restarts).run(7)
        runs.append((run.blocked(), [(now, v.reason, v.suspected) for now, v in run.verdicts]))
    assert runs[0] == runs[1]
    assert runs[0][0]


def test_the_world_of_a_seed_is_the_same_whatever_was_drawn_from_it() -> None:
    one, other = World(4, side=50), World(4, side=50)
    one.sample(1000)
    for world in (one, other):
        world.pass_time(60.0)
    assert (one.density() == other.density()).all()


def test_events_are_drawn_as_they_are_reckoned() -> None:
    world = World(5, side=200)
    x, y = world.sample(200_000)
    drawn = np.histogram2d(y, x, bins=20, range=[[0, 1], [0, 1]])[0] / len(x)
    reckoned = world.density().reshape(20, 10, 20, 10).sum(axis=(1, 3))
    assert np.abs(drawn - reckoned).max() < 0.005


# the populations themselves


def requested(population: Population, seconds: float, seed: int = 1) -> list:
    world = World(seed)
    return [population.step(t, 5.0, world.sample) for t in np.arange(0.0, seconds, 5.0)]


def test_the_same_seed_asks_the_same() -> None:
    for make in (
        lambda: NormalUsers(4, users=9, rate=5.0, queries=50),
        lambda: Attackers(Attack(users=3, rate=20.0, queries=300, start=10.0, decoys=0.3), 4),
        lambda: Crowd(Gathering(users=5, queries=3, start=5.0, arriving=20.0, refresh=30.0), 4),
    ):
        one, other = requested(make(), 60.0), requested(make(), 60.0)
        for a, b in zip(one, other, strict=True):
            assert a.op.tolist() == b.op.tolist()
            assert a.key.tolist() == b.key.tolist()
            assert a.x.tolist() == b.x.tolist()


def test_a_fifth_of_the_users_place_four_fifths() -> None:
    steps = requested(NormalUsers(1, rate=100.0, queries=20_000), 100.0)
    placed = np.bincount(np.concatenate([s.user[s.op == 0] for s in steps]), minlength=100)
    assert np.sort(placed)[::-1][:20].sum() / placed.sum() == pytest.approx(0.8, abs=0.03)


def test_as_many_end_as_are_registered_and_only_what_is_there() -> None:
    population = Attackers(Attack(users=4, rate=50.0, queries=400, start=20.0), 1)
    live: set[int] = set()
    for step in requested(population, 200.0):
        for op, key in zip(step.op.tolist(), step.key.tolist(), strict=True):
            if op == 0:
                assert key not in live
                live.add(key)
            else:
                live.remove(key)
        assert len(live) == 400
    assert len(population.targets) > 10


def test_attackers_gather_at_the_target_and_take_turns() -> None:
    population = Attackers(Attack(users=10, rate=50.0, queries=1000, start=0.0, taking_part=0.3), 1)
    steps = requested(population, 15.0)
    new = [s for s in steps if len(s)][-1]
    _, x, y = population.targets[-1]
    assert np.abs(new.x[new.op == 0] - x).max() <= 0.0041
    assert np.abs(new.y[new.op == 0] - y).max() <= 0.0041
    assert len(set(new.user.tolist())) == 3


def test_a_crowd_comes_stays_and_goes() -> None:
    crowd = Crowd(Gathering(users=8, queries=5, start=20.0, arriving=30.0, staying=60.0), 1)
    steps = requested(crowd, 140.0)
    placed = sum(int((s.op == 0).sum()) for s in steps)
    ended = sum(int((s.op == 1).sum()) for s in steps)
    assert placed == ended == 40
    assert sum(len(s) for s in steps[:4]) == 0
