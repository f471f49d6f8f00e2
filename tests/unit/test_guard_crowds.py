"""Crowds and groups that move in: many are innocent, few who do it again are not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from geoflux.guard import Guard, GuardTuning
from guard_by_hand import (
    LISBON,
    ROBUST,
    Stage,
    raid,
    warm,
)


def test_a_crowd_at_one_place_is_never_blocked() -> None:
    """Many users, one place, one moment; the plan is changed again and again meanwhile."""
    stage = warm(ROBUST)
    for visitor in range(60):
        stage.place(f"visitor-{visitor}", 10, LISBON)
    for k in range(8):
        for strip in range(3):  # pieces of the event, as it is split up
            stage.hotspot((LISBON[0] - 6 + 6 * strip, LISBON[1]), reach=3.0, donor=strip)
        stage.hotspot(LISBON, donor=9)
        for visitor in range(k, 60, 8):
            stage.place(f"visitor-{visitor}", 10, LISBON)
        stage.close()
    assert not stage.blocked


def test_a_crowd_that_walks_about_is_never_blocked() -> None:
    """Everybody replaces what they have every round, within the place."""
    stage = warm(ROBUST)
    for _ in range(10):
        for visitor in range(12):
            stage.place(f"visitor-{visitor}", 10, LISBON)
            stage.end(f"visitor-{visitor}", 10 if stage.now > 360 else 0)
        stage.hotspot(LISBON)
        stage.close()
    assert not stage.blocked


def relocate(stage: Stage, users: list[str], rounds: int) -> None:
    """All bring what they had elsewhere, bit by bit."""
    for _ in range(rounds):
        for user in users:
            stage.place(user, 40, LISBON)
            stage.end(user, 40)
        stage.hotspot(LISBON)
        stage.close()


@pytest.mark.parametrize(("users", "blocked"), [(3, 3), (12, 0)])
def test_few_who_move_in_are_a_group_and_many_are_a_crowd(users: int, blocked: int) -> None:
    stage = Stage(ROBUST, 20)
    movers = [f"mover-{i}" for i in range(users)]
    for mover in movers:
        stage.place(mover, 200)
    stage.warm_up(6)
    relocate(stage, movers, 2)
    assert len(stage.blocked) == blocked
    if blocked:
        assert "moved into a hotspot" in stage.guard.blocks.listed()[0].reason


def bring(stage: Stage, users: list[str], seconds: float = 20.0) -> bool:
    """Users bring some of what they had elsewhere, and the plan changes; says whether it is time to
    judge."""
    for user in users:
        stage.place(user, 40, LISBON)
        stage.end(user, 40)
    stage.hotspot(LISBON)
    stage.now += seconds
    return stage.guard.is_due(stage.now)


def with_movers(tuning: GuardTuning, users: int) -> tuple[Stage, list[str]]:
    stage = Stage(tuning, 20)
    movers = [f"mover-{i}" for i in range(users)]
    for mover in movers:
        stage.place(mover, 400)
    stage.warm_up(6)
    return stage, movers


def test_who_moves_in_is_judged_at_once_and_the_round_goes_on() -> None:
    stage, movers = with_movers(ROBUST, 3)
    round = stage.guard.rounds
    assert bring(stage, movers)
    verdict = stage.guard.close(stage.now, stage.number)
    assert set(verdict.suspected) == set(movers)
    assert not stage.blocked
    assert not stage.guard.is_due(stage.now + 5.0)  # judged hotspots are not judged again
    assert bring(stage, movers)
    stage.guard.close(stage.now, stage.number)
    assert stage.blocked == set(movers)
    assert stage.guard.rounds == round
    stage.close()
    assert stage.guard.rounds.current == round.current + 1


@pytest.mark.parametrize(
    "tuning",
    [replace(ROBUST, judge_early=False), GuardTuning.published()],
    ids=["off", "published"],
)
def test_a_round_takes_its_time_where_nothing_is_judged_early(tuning: GuardTuning) -> None:
    stage, movers = with_movers(tuning, 3)
    assert not bring(stage, movers)
    assert stage.guard.is_due(stage.now + 40.0)


def test_nothing_is_judged_early_while_everything_is_new_or_nobody_moves_in() -> None:
    cold = Stage(ROBUST, 20)
    cold.place("mover", 40)
    assert not bring(cold, ["mover"])
    stage, _ = with_movers(ROBUST, 1)
    for user in stage.normals:
        stage.place(user, 10)
    stage.hotspot(LISBON, reach=300.0)
    assert not stage.guard.is_due(stage.now + 20.0)


def test_a_crowd_of_which_others_keep_coming_is_not_a_group() -> None:
    stage, movers = with_movers(ROBUST, 12)
    for first in range(0, 9, 2):
        bring(stage, movers[first : first + 4])
        stage.guard.close(stage.now, stage.number)
    assert not stage.blocked


def test_judging_early_survives_a_restart() -> None:
    decisions = []
    for restarts in (False, True):
        stage, movers = with_movers(ROBUST, 3)
        for _ in range(2):
            bring(stage, movers)
            if restarts:
                saved = json.loads(json.dumps(stage.guard.to_dict()))
                stage.guard = Guard.from_dict(ROBUST, saved)
            assert stage.guard.is_due(stage.now)
            stage.guard.close(stage.now, stage.number)
        decisions.append([block.to_dict() for block in stage.guard.blocks.listed()])
    assert decisions[0] == decisions[1]
    assert len(decisions[0]) == 3


def test_moving_in_takes_two_rounds_and_can_be_turned_off() -> None:
    for tuning, rounds in ((ROBUST, 1), (replace(ROBUST, relocated_rate=1.1), 5)):
        stage = Stage(tuning, 20)
        stage.place("mover", 400)
        stage.warm_up(6)
        relocate(stage, ["mover"], rounds)
        assert not stage.blocked


def test_who_withdraws_and_comes_back_again_and_again_is_blocked() -> None:
    stage = warm(ROBUST)
    for _ in range(2):
        raid(stage, ["pulse"], LISBON)
    assert not stage.blocked
    raid(stage, ["pulse"], LISBON)
    assert stage.blocked == {"pulse"}
    assert "came back 2 times" in stage.guard.blocks.listed()[0].reason
