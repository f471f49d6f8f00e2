"""The published detector, and how it is evaded and errs where the default does not."""

from __future__ import annotations

from dataclasses import replace

from geoflux.guard import GuardTuning
from guard_by_hand import (
    CREW,
    LISBON,
    OSLO,
    PLACES,
    PUBLISHED,
    ROBUST,
    ROME,
    Stage,
    raid,
    warm,
)


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
