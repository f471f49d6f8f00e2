"""Attackers against the real balancing decisions, with Guard in between; all in memory.

A twentieth of the dissertation's activity: 100 normal users with 45,000 queries and 30 a second,
attackers with 5,000 queries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoflux.guard import GuardTuning
from geoflux.workload.attackers import VARIANTS, Attack, Attackers, Crowd, Gathering
from geoflux.workload.requests import NormalUsers, Population
from guard_loop import Loop, World

SCALE = 1 / 20
MINUTES = 14
GUARD = GuardTuning(least_place=2.0)  # of 200 cells


def normal_users(seed: int) -> NormalUsers:
    return NormalUsers(seed, rate=600 * SCALE, queries=round(900_000 * SCALE))


def attacked(
    attack: Attack, seed: int, tuning: GuardTuning | None, *more: Population
) -> tuple[Loop, Attackers]:
    attackers = Attackers(attack.scaled(SCALE), seed)
    loop = Loop([normal_users(seed), attackers, *more], tuning, seed).run(MINUTES)
    return loop, attackers


def innocent(loop: Loop) -> set[str]:
    return {name for name in loop.blocked() if not name.startswith("attacker")}


def test_an_attack_keeps_the_plan_changing_and_guard_ends_that() -> None:
    bare, _ = attacked(Attack(rate=1200.0), 2, None)
    loop, attackers = attacked(Attack(rate=1200.0), 2, GUARD)
    assert set(loop.blocked()) == set(attackers.names)
    assert max(loop.blocked().values()) <= 300.0 + 4 * 60.0
    assert loop.refused > 0
    assert loop.changes < bare.changes


@pytest.mark.parametrize("users", [1, 10, 40])
def test_groups_of_any_size_are_blocked_and_nobody_else(users: int) -> None:
    loop, attackers = attacked(Attack(users=users), 1, GUARD)
    assert set(loop.blocked()) == set(attackers.names)


@pytest.mark.parametrize("name", ["rotating", "joining_late", "mimicking", "snapshots"])
def test_variants_are_not_missed(name: str) -> None:
    """At this scale some have not taken part twice when the run ends; most have."""
    loop, attackers = attacked(VARIANTS[name], 1, GUARD)
    assert not innocent(loop)
    assert len(loop.blocked()) >= len(attackers.names) // 2


def test_without_an_attack_nobody_is_blocked() -> None:
    loop = Loop([normal_users(3)], GUARD, 3).run(MINUTES)
    assert loop.hotspots
    assert not loop.blocked()


@pytest.mark.parametrize(
    "gathering",
    [
        Gathering(),
        Gathering(users=100, queries=30, refresh=60.0),
        Gathering(users=60, queries=100, moving=True, arriving=400.0),
    ],
    ids=["arriving", "walking", "moving_in"],
)
def test_innocent_crowds_are_never_blocked(gathering: Gathering) -> None:
    at = tuple(World(2).middles[0].tolist())
    calm = Loop([normal_users(2)], GUARD, 2).run(MINUTES)
    loop = Loop([normal_users(2), Crowd(replace(gathering, at=at), 2)], GUARD, 2).run(MINUTES)
    assert len(loop.hotspots) > len(calm.hotspots)  # the crowd is rebalanced for
    assert not loop.blocked()


def test_attackers_in_a_crowd_are_told_from_it() -> None:
    at = tuple(World(1).middles[0].tolist())
    crowd = Crowd(Gathering(at=at), 1)
    loop, attackers = attacked(Attack(first=at), 1, GUARD, crowd)
    assert set(loop.blocked()) == set(attackers.names)


def test_restarts_change_nothing() -> None:
    runs = []
    for restarts in (False, True):
        attackers = Attackers(Attack().scaled(SCALE), 1)
        loop = Loop([normal_users(1), attackers], GUARD, 1, restarts=restarts).run(8)
        runs.append((loop.blocked(), [(v.reason, v.suspected) for v in loop.verdicts]))
    assert runs[0] == runs[1]
    assert runs[0][0]


# the populations themselves


def uniform(seed: int) -> World:
    return World(seed)


def requested(population: Population, seconds: float, seed: int = 1) -> list:
    world = uniform(seed)
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
    assert np.abs(new.x[new.op == 0] - x).max() <= 0.011
    assert np.abs(new.y[new.op == 0] - y).max() <= 0.011
    assert len(set(new.user.tolist())) == 3


def test_a_crowd_comes_stays_and_goes() -> None:
    crowd = Crowd(Gathering(users=8, queries=5, start=20.0, arriving=30.0, staying=60.0), 1)
    steps = requested(crowd, 140.0)
    placed = sum(int((s.op == 0).sum()) for s in steps)
    ended = sum(int((s.op == 1).sum()) for s in steps)
    assert placed == ended == 40
    assert sum(len(s) for s in steps[:4]) == 0
