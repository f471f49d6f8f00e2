"""What the default detector takes for evidence: places, rounds, amounts, and for how long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geoflux.guard import Summary
from geoflux.guard.evidence import Evidence, newest
from geoflux.guard.places import Reach, apart, meet
from geoflux.guard.sensor import Kind
from geoflux.guard.verdicts import removal_round
from guard_by_hand import (
    CREW,
    LISBON,
    OSLO,
    PLACES,
    ROBUST,
    ROME,
    Stage,
    raid,
    warm,
)


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


def swing(stage: Stage, user: str, count: int, late: bool = False) -> None:
    """A user places, there are more slots, and what was placed is withdrawn; fewer slots come then,
    or, ``late``, when it is back."""

    def scaled(kind: Kind) -> None:
        table = [[10, 10, 10, 10, 10, 30]] * len(stage.normals)
        names, now = stage.normals, stage.guard.rounds.current
        if any(row[0] == user for row in stage.rows):
            names, table = [user, *names], [[count, 0, 0, 0, 0, 0], *table]
        stage.occasion += 1
        counts = np.array(table, np.int64)
        stage.guard.sense(Summary(kind, 0, stage.occasion, now, tuple(names), counts, 1000))

    stage.place(user, count)
    if late:
        scaled("scale_in")
    scaled("scale_out")
    stage.end(user, count)
    if not late:
        scaled("scale_in")
    stage.close()


def test_the_autoscaler_can_be_fed_as_well() -> None:
    """A load that swings so that scaling goes on for ever; decisions to scale have no place."""
    stage = warm(ROBUST)
    for _ in range(3):
        assert not stage.blocked
        swing(stage, "yo-yo", 80)
    assert stage.blocked == {"yo-yo"}


def test_slots_that_go_late_do_not_hide_who_withdrew() -> None:
    stage = warm(ROBUST)
    for _ in range(3):
        swing(stage, "yo-yo", 80, late=True)
    assert stage.blocked == {"yo-yo"}


def test_who_is_too_small_has_not_made_slots_come_and_go() -> None:
    """Something else did: clients that come and go are a hundredth of what there is."""
    stage = warm(ROBUST)
    for _ in range(4):
        swing(stage, "client", 10)
    assert not stage.blocked
    for _ in range(3):
        swing(stage, "yo-yo", 80)
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
    scaled, plans = (
        replace(clear, kind="scale_out"),
        [replace(clear, round=k) for k in range(6, 11)],
    )
    assert newest([scaled, *plans], 3) == [scaled, *plans[-3:]]


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
