"""The two detectors: what is published and how it is evaded, and what the default withstands."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from geoflux.balance.tuning import Tuning
from geoflux.guard import Guard, GuardTuning, Summary
from geoflux.guard.clusters import alqr, divide, two_means
from geoflux.guard.evidence import Evidence, newest
from geoflux.guard.features import X3, X11, X14, Features
from geoflux.guard.places import Reach, apart, meet
from geoflux.guard.verdicts import removal_round
from guard_by_hand import LISBON, OSLO, ROME, Stage

PUBLISHED, ROBUST = GuardTuning.published(), GuardTuning()
PLACES = [LISBON, OSLO, ROME, (500.0, 500.0), (900.0, 900.0), (300.0, 700.0), (850.0, 550.0)]
CREW = [f"crew-{i}" for i in range(6)]


def warm(tuning: GuardTuning, normals: int = 20) -> Stage:
    stage = Stage(tuning, normals)
    stage.warm_up()
    return stage


def raid(stage: Stage, members: list[str], at: tuple[float, float], count: int = 40) -> None:
    """Members make a hotspot, and are gone when the round is over."""
    for member in members:
        stage.place(member, count, at)
    stage.hotspot(at)
    stage.close()
    for member in members:
        stage.end(member, count)


def table(rows: dict[str, dict[int, float]]) -> Features:
    values = np.zeros((len(rows), 14))
    for k, cells in enumerate(rows.values()):
        for feature, value in cells.items():
            values[k, feature] = value
    return Features(tuple(rows), values)


# clusters


def test_guards_factor_is_not_swarms_beta() -> None:
    """Trap 9."""
    assert (ROBUST.factor, Tuning().beta) == (3.0, 20)


def test_the_cluster_that_aims_at_hotspots_is_found() -> None:
    rows = {f"n{i}": {X14: 0.05 + i / 1000} for i in range(20)}
    rows |= {f"m{i}": {X14: 0.9, X11: 7.0, X3: 1.0} for i in range(4)}
    found = divide(table(rows), PUBLISHED, seed=1)
    assert sorted(found.suspicious.tolist()) == [20, 21, 22, 23]
    assert found.spread == 0.0
    assert found.suspicious_rate == pytest.approx(0.9)


@pytest.mark.parametrize("rows", [{}, {"a": {X14: 1.0}}, {n: {X14: 0.5, X11: 3.0} for n in "abcd"}])
def test_a_cluster_that_cannot_be_split_ends_the_loop(rows: dict[str, dict[int, float]]) -> None:
    """Trap 10: nobody, one user, identical rows."""
    found = divide(table(rows), PUBLISHED, seed=1)
    assert found.splits == 0
    assert len(found.suspicious) == len(rows)


def test_rows_that_differ_by_less_than_rounding_end_the_loop() -> None:
    points = np.full((5, 3), 0.1)
    points[0, 0] = np.nextafter(0.1, 1.0)
    assert two_means(points, seed=1, sample=100) is None or two_means(points, 1, 100).sum() in (
        1,
        4,
    )


def test_large_clusters_are_split_by_a_sample() -> None:
    points = np.vstack((np.zeros((3000, 2)), np.ones((50, 2))))
    second = two_means(points, seed=3, sample=500)
    assert second is not None
    assert sorted([int(second.sum()), int((~second).sum())]) == [50, 3000]


def test_the_rate_of_nobody_is_zero() -> None:
    assert alqr(np.empty(0)) == 0.0


def test_colliding_sums_look_like_company_as_published_only() -> None:
    """Trap 12: {1, 4} and {2, 3} were never together, and have the same sum."""
    spreads = {}
    for tuning in (PUBLISHED, ROBUST):
        stage = warm(replace(tuning, spread=0.0))
        table = stage.guard._table
        table.rows_of(["a", "b"])
        for hotspot, user in ((1, "a"), (2, "b"), (3, "b"), (4, "a")):
            counts = np.array([[9, 0, 0, 0, 0, 0]], np.int64)
            table.involve(hotspot, Summary("plan", 0, hotspot, 5, (user,), counts, 9), 5)
        features = table.close()
        pair = [features.users.index(user) for user in "ab"]
        spreads[tuning.mode] = float(features.normalised()[pair, X11].std())
    assert spreads["published"] == 0.0
    assert spreads["robust"] > 0.0


# as published


def test_published_blocks_a_cluster_that_is_suspected_twice() -> None:
    stage = warm(PUBLISHED)
    raid(stage, CREW, LISBON)
    assert stage.blocked == set()
    raid(stage, CREW, OSLO)
    assert stage.blocked == set(CREW)
    evidence = stage.guard.blocks.explain("crew-0")[0].evidence
    assert evidence is not None
    assert (evidence["rounds"], evidence["cluster"]) == ([5, 6], CREW)


def rotated(tuning: GuardTuning) -> Stage:
    """Three members of six, other ones each time."""
    stage = warm(tuning)
    crews = [(0, 1, 2), (3, 4, 5), (0, 3, 4), (1, 2, 5), (0, 4, 5), (1, 2, 3), (0, 2, 4)]
    for members, at in zip(crews, PLACES, strict=True):
        raid(stage, [CREW[m] for m in members if CREW[m] not in stage.blocked], at)
    return stage


def test_rotating_members_evade_the_published_rule_and_not_the_robust_one() -> None:
    """Trap 12."""
    assert not stage_blocked_crew(rotated(PUBLISHED))
    assert rotated(ROBUST).blocked == set(CREW)


def stage_blocked_crew(stage: Stage) -> set[str]:
    return stage.blocked & set(CREW)


def joined_late(tuning: GuardTuning) -> Stage:
    """With every hotspot one more takes part, so that no cluster is seen twice."""
    stage = warm(tuning)
    for k, at in enumerate(PLACES):
        members = [f"crew-{i}" for i in range(3 + k)]
        raid(stage, [m for m in members if m not in stage.blocked], at)
    return stage


def test_members_that_join_late_evade_the_published_rule_and_not_the_robust_one() -> None:
    assert not joined_late(PUBLISHED).blocked
    late = joined_late(ROBUST)
    assert late.blocked == {f"crew-{i}" for i in range(8)}
    assert not any(name.startswith("normal") for name in late.blocked)


def test_published_accuses_an_innocent_when_nobody_else_is_in_hotspots() -> None:
    """Trap 11: the normal rate is 0, so any rate is more than three times that. One query each time,
    where the plan happened to change."""
    accused = {}
    for tuning in (PUBLISHED, ROBUST):
        stage = warm(tuning)
        for at in (LISBON, OSLO, ROME):
            stage.place("unlucky", 1, at)
            stage.hotspot(at)
            stage.close()
        accused[tuning.mode] = "unlucky" in stage.blocked
    assert accused == {"published": True, "robust": False}


def test_published_accuses_at_cold_start_and_robust_does_not() -> None:
    accused = {}
    for tuning in (PUBLISHED, ROBUST):
        stage = Stage(tuning)
        for at in (LISBON, OSLO):
            raid(stage, ["early"], at)
        accused[tuning.mode] = "early" in stage.blocked
    assert accused == {"published": True, "robust": False}


# the default


def test_two_hotspots_at_places_apart_are_enough_even_in_one_round() -> None:
    stage = warm(ROBUST)
    for donor, at in enumerate((LISBON, ROME)):
        stage.place("mallory", 40, at)
        stage.hotspot(at, donor=donor)
    assert [a.user for a in stage.close().accused] == ["mallory"]


def test_on_a_quiet_night_nobody_is_blocked() -> None:
    """Hardly anyone is awake to compare with."""
    stage = warm(ROBUST, normals=3)
    for at in PLACES:
        raid(stage, ["night-owl"], at)
    assert not stage.blocked
    stage.hotspot(LISBON)
    assert stage.close().reason == "no verdict: too few users to compare with"


def test_few_queries_are_no_evidence() -> None:
    stage = warm(ROBUST)
    for at in PLACES:
        raid(stage, ["tourist"], at, count=7)
    assert not stage.blocked


def test_who_has_not_made_the_hotspot_is_not_blamed_for_it() -> None:
    """Their queries are a hundredth of the partition's."""
    stage = warm(ROBUST)
    for at in PLACES[:3]:
        for local in range(40):
            stage.place(f"local-{at[0]}-{local}", 60, at)
    stage.warm_up(6)
    for at in PLACES[:3]:
        raid(stage, ["courier"], at, count=20)
    assert not stage.blocked


def test_who_has_always_been_there_is_not_moved_by_the_plan() -> None:
    """A steady user of two places, both of which are rebalanced now and then."""
    stage = warm(ROBUST)
    for k in range(16):
        for at in (LISBON, OSLO):
            stage.place("commuter", 10, at)
            if k > 11:
                stage.hotspot(at, donor=int(at[1]))
        stage.close()
    assert not stage.blocked


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


def test_the_autoscaler_can_be_fed_as_well() -> None:
    """A load that swings so that scaling goes on for ever; decisions to scale have no place."""
    stage = warm(ROBUST)
    for k in range(3):
        stage.place("yo-yo", 80)
        for kind, occasion in (("scale_out", 2 * k), ("scale_in", 2 * k + 1)):
            count = 80 if kind == "scale_out" else 0
            counts = np.array([[count, 0, 0, 0, 0, 0]] + [[10, 10, 10, 10, 10, 30]] * 20, np.int64)
            users = ("yo-yo", *stage.normals)
            now = stage.guard.rounds.current
            stage.guard.sense(Summary(kind, 0, occasion, now, users, counts, 1000))  # type: ignore[arg-type]
            if kind == "scale_out":
                stage.end("yo-yo", 80)
        stage.close()
    assert stage.blocked == {"yo-yo"}


def test_drifting_in_small_steps_does_not_stay_one_place() -> None:
    stage = warm(ROBUST)
    for step in range(8):
        raid(stage, ["drifter"], (100.0 + 12.0 * step, 100.0))
        if stage.blocked:
            break
    assert stage.blocked == {"drifter"}
    assert step >= 2


def test_pieces_of_a_split_event_are_one_place() -> None:
    whole, west, east = (0, 0, 30, 10), (0, 0, 5, 10), (25, 0, 30, 10)
    near = Reach(0.5)
    assert not meet(west, east, near)
    assert apart(west, east, [], near)
    assert not apart(west, east, [whole], near)
    assert apart(west, (900, 900, 910, 910), [whole], near)


def test_a_target_across_partitions_is_judged_as_one() -> None:
    """Half of the crew's queries in each piece, which would be too little by itself."""
    stage = warm(replace(ROBUST, least_rate=0.55))
    for at in (LISBON, OSLO):
        for member in CREW:
            stage.place(member, 60, at)
        for k in range(2):
            stage.hotspot((at[0] - 6 + 12 * k, at[1]), reach=6.0, donor=k)
        stage.close()
        for member in CREW:
            stage.end(member, 60)
    assert stage.blocked == set(CREW)


def test_weak_evidence_does_not_push_out_what_is_clear() -> None:
    clear = Evidence((1,), "plan", (0,), 5, 1, 9.0, 0.5, 0.1, 0.2, None, True, False, 9.0, 0.0)
    weak = [replace(clear, hotspots=(k,), clear=False) for k in range(2, 9)]
    assert newest([clear, *weak], 3) == [clear, *weak[-3:]]


def test_suspicion_lapses_after_a_time_that_nobody_can_wait_for() -> None:
    draws = [removal_round(1, 10, str(who), (5, 30)) - 10 for who in range(400)]
    assert (min(draws), max(draws)) == (5, 30)
    assert len(set(draws)) == 26
    stage = warm(replace(ROBUST, removal_rounds=(5, 5)))
    raid(stage, ["slow"], LISBON)
    stage.warm_up(6)
    raid(stage, ["slow"], OSLO)
    assert not stage.blocked
    stage.warm_up(2)
    raid(stage, ["slow"], ROME)
    assert stage.blocked == {"slow"}


def test_published_suspicion_lapses_as_well() -> None:
    stage = warm(replace(PUBLISHED, removal_rounds=(5, 5)))
    raid(stage, CREW, LISBON)
    stage.warm_up(6)
    raid(stage, CREW, OSLO)
    assert not stage.blocked & set(CREW)
    raid(stage, CREW, ROME)
    assert set(CREW) <= stage.blocked


def test_a_verdict_without_hotspots_says_so() -> None:
    stage = warm(ROBUST)
    assert stage.close().reason == "no attack: nothing was rebalanced"
    stage.hotspot(LISBON)
    assert "out of the common" in stage.close().reason


def test_published_clears_a_cluster_that_was_in_no_hotspot_this_round() -> None:
    stage = warm(PUBLISHED)
    raid(stage, CREW, LISBON)
    for _ in range(3):
        verdict = stage.close()
        assert verdict.accused == ()
    assert verdict.reason == "no attack: the cluster was in no hotspot"
