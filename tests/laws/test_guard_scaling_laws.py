"""Users who make slots come and go (yo-yo attacks) are found out in a run, without Spark: what the
sensor tells of a scaling, who is blocked for it, and that crashes change nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_swarm_run_laws import Measured, tuning_of
from test_window_laws import crashing
from watched_run import crash_before_the_manifest

from geoflux.balance.policy import Static
from geoflux.engine.epochs import Manifest
from geoflux.engine.sensing import sensed_scaling
from geoflux.guard import Summary
from geoflux.guard.rounds import Rounds
from guarded_run import CITIES, GUARD, SLOTS, Run, Story, blocks, box, play, register, started

EAGER = GUARD | {"warm_up_rounds": 1}
WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}
EPOCHS = 18
YOYO = [f"yoyo-{k}" for k in range(3)]
EACH, RISES = 30, range(4, EPOCHS, 4)
"""Queries of each attacker, and when they come; they go two epochs later."""


def swinging() -> Story:
    """Three who place and withdraw, in all cities; a newcomer who comes with them and stays; and
    the usual users, who end an old query for each new one."""
    story = Story(1, EPOCHS, 20, attack=99)
    batches, dice = story.batches, story.dice
    for rise in RISES:
        for user in YOYO:
            names = [f"{user}-{rise}-{k}" for k in range(EACH)]
            batches[rise] += [register(user, name, box(dice, dice.randrange(len(CITIES)))) for name in names]  # fmt: skip
            if rise + 2 < EPOCHS:
                batches[rise + 2] += [{"op": "terminate", "id": name} for name in names]
    batches[RISES[1]] += [register("newcomer", f"new-{k}", box(dice, k % 6)) for k in range(EACH)]
    return story


def by_load(run: Run) -> int:
    """More slots while there are many queries."""
    return SLOTS + 2 if len(run.engine.catalogue) > 390 else SLOTS


def begun(folder: Path, guard: dict[str, Any], policy: Any = None, **more: Any) -> tuple[Run, Story]:  # fmt: skip
    story = swinging()
    return started(folder, story, guard, policy or Static(), by_load, **more), story


def resizes(manifests: list[Manifest]) -> dict[int, int]:
    return {
        m["epoch"]: change["slots"]
        for m in manifests
        for change in m["decision"]["changes"]
        if change["kind"] == "resize"
    }


def test_who_makes_slots_come_and_go_is_blocked_and_nobody_else(tmp_path: Path) -> None:
    run, story = begun(tmp_path, EAGER | {"placed": "remove"})
    manifests = play(run, story)
    found, scalings = blocks(manifests), resizes(manifests)
    assert sorted(found) == YOYO
    assert [scalings[rise] for rise in RISES[:3]] == [SLOTS + 2] * 3
    assert [scalings[rise + 2] for rise in RISES[:2]] == [SLOTS] * 2
    last = max(epoch for epoch, _ in found.values())
    assert last < RISES[3], "after the third time"
    assert all(epoch <= last + 1 for epoch in scalings), "slots stay once they are gone"
    for m in manifests:
        assert m["guard"]["hotspots"] == (m["epoch"] in scalings)
        for block in m["guard"]["blocks"]:
            said = "withdrew what slots were added for and came back 2 times"
            assert block["reason"].startswith(said)
            told = block["evidence"]["hotspots"]
            assert [item["kind"] for item in told] == ["scale_out"] * 3
            assert [item["queries"] for item in told] == [EACH] * 3
            assert [item["place"] for item in told] == [None] * 3
    assert sum(m["guard"]["refused"] for m in manifests) == len(RISES[3:]) * 3 * EACH
    assert run.verified().is_clean


def test_plans_that_change_all_the_while_hide_nobody(tmp_path: Path) -> None:
    run, story = begun(tmp_path, EAGER, Measured(tuning_of("geoflux")))
    manifests = play(run, story, range(15))
    scalings = resizes(manifests)
    assert all(m["guard"]["hotspots"] > 1 for m in manifests if m["epoch"] in scalings)
    assert sorted(blocks(manifests)) == YOYO
    for m in manifests:
        for block in m["guard"]["blocks"]:
            kinds = [item["kind"] for item in block["evidence"]["hotspots"]]
            assert kinds == ["scale_out"] * 3


def test_crashes_change_nothing(tmp_path: Path) -> None:
    """In every epoch: before its work is done, before it is committed, before it counts, or after;
    each of them in one that is followed by other slots."""

    def happens(number: int, span: tuple[int, int]) -> None:
        what = number // 2 % 4
        if what == 0:
            run.recover()
        elif what == 1:
            crash_before_the_manifest(run, number, span)
        else:
            crashing(run, number, span, late=what == 2)

    found = []
    for before in (None, happens):
        run, story = begun(tmp_path / str(len(found)), EAGER)
        manifests = play(run, story, range(14), before=before)
        told = [{k: m["guard"][k] for k in ("blocks", "round", "closed", "hotspots")} for m in manifests]  # fmt: skip
        remembered = json.loads(json.dumps(run.engine._guarding.guard.to_dict()))
        found.append((resizes(manifests), told, remembered))
    assert found[0] == found[1]
    assert {epoch // 2 % 4 for epoch in found[0][0]} == {0, 1, 2, 3}
    assert sorted(blocks(manifests)) == YOYO
    assert run.verified().is_clean


def test_without_guard_or_without_scaling_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("geoflux.engine.catalogue.Catalogue.layers", asked)
    run, story = begun(tmp_path / "unguarded", {})
    manifests = play(run, story, range(7))
    assert len(resizes(manifests)) == 2
    assert [m["guard"] for m in manifests] == [None] * 7
    assert not [name for name in run.setting.store.names("state") if "guard" in name]
    steady = started(tmp_path / "steady", story, EAGER, Static(), lambda run: SLOTS)
    assert [m["guard"]["hotspots"] for m in play(steady, story, range(7))] == [0] * 7
    guarded, story = begun(tmp_path / "guarded", EAGER)
    with pytest.raises(AssertionError):
        play(guarded, story, range(7))


def test_a_scaling_is_told_by_every_query_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many partitions it lies in; of those that live, by user and round."""
    monkeypatch.setattr("geoflux.engine.catalogue._MERGE_AT", 250)
    run, story = begun(tmp_path, EAGER)
    for k, batch in enumerate(story.batches):
        batch += [register(None, f"nobody-{k}", WORLD), register("user-3", f"wide-{k}", WORLD)]
    play(run, story, range(10))
    catalogue = run.engine.catalogue
    assert len(catalogue._places), "both ways of keeping places are looked at"
    assert len(catalogue._recent)
    for rounds in (run.engine._guarding.guard.rounds, Rounds(9, 0.0, (300, 330, 400, 520, 540))):
        said = sensed_scaling(catalogue, rounds, 4, 6, 8)
        assert said is not None
        summary = Summary.from_dict(json.loads(said))
        assert (summary.key, summary.round) == (("scale_out", 0, 8), rounds.current)
        assert (summary.box, summary.places) == (None, None)
        rows = catalogue.live_rows()
        ages = np.minimum(rounds.current - rounds.of(rows.column("number").to_numpy()), 5)
        wanted = Counter(zip(rows.column("user").to_pylist(), ages.tolist(), strict=True))
        assert summary.rows == len(rows) == wanted.total()
        counts = {
            (user, age): count
            for user, row in zip(summary.users, summary.counts.tolist(), strict=True)
            for age, count in enumerate(row)
            if count
        }
        assert counts == {key: n for key, n in wanted.items() if key[0] is not None}
    fewer = sensed_scaling(catalogue, rounds, 6, 4, 8)
    assert fewer is not None
    assert json.loads(fewer)["kind"] == "scale_in"
    assert sensed_scaling(catalogue, rounds, 4, 4, 8) is None


def test_where_queries_have_no_users_nothing_is_told(tmp_path: Path) -> None:
    story = Story(1, 3, 20, attack=99, named=lambda _: None)
    run = started(tmp_path, story, EAGER, Static(), lambda run: SLOTS + 1)
    manifests = play(run, story)
    assert resizes(manifests) == {0: SLOTS + 1}
    assert [m["guard"]["hotspots"] for m in manifests] == [0, 0, 0]
