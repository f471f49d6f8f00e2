"""Whole runs with Guard, without Spark: it changes nothing where nobody is blocked, and whom it
blocks, refuses and removes does not depend on crashes and restarts."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_engine_laws import matches
from test_retention_laws import PHASES
from test_swarm_run_laws import Failing, tuning_of
from test_window_laws import crashing
from watched_run import crash_before_the_manifest

from geoflux.engine.epochs import Manifest
from guarded_run import ATTACKERS, GUARD, Run, Story, blocks, play, quarantined, started

EAGER = GUARD | {"round": "3s", "warm_up_rounds": 1}
MALICIOUS = {f"attacker-{k}" for k in range(ATTACKERS)}


def outcome(run: Run, story: Story, incidents: dict[int, str] | None = None) -> list[Manifest]:
    """All manifests of a run that was found to be right."""

    def happens(number: int, span: tuple[int, int]) -> None:
        what = (incidents or {}).get(number)
        if what == "restart":
            run.recover()
        elif what == "decided":
            crash_before_the_manifest(run, number, span)
        elif what is not None:
            crashing(run, number, span, late=what == "executed")

    manifests = play(run, story, before=happens)
    for m in manifests:
        assert m["received"] + m["carried_in"] == (
            m["processed"] + m["quarantined"] + m["carried_out"]
        )
    report = run.verified()
    assert report.is_clean, report
    return manifests


def remembered(run: Run) -> Any:
    return json.loads(json.dumps(run.engine._guarding.guard.to_dict()))


@settings(max_examples=3, phases=PHASES, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([False, True]), st.sampled_from([str, lambda _: None])
)
def test_where_nobody_is_blocked_it_changes_nothing(seed: int, observing: bool, named: Any) -> None:
    """Plans are changed in most epochs. Observed only, an attack is noted and goes on."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        for guard in ({}, EAGER | {"observe_only": True} if observing else EAGER):
            story = Story(seed, 14, 30, attack=4 if observing else 99, named=named)
            policy = Failing(tuning_of("geoflux", round="0s"))
            folder = Path(name) / str(len(found))
            run = started(folder, story, guard, policy)
            manifests = outcome(run, story)
            told = [(m["matches"], m["registered"], m["ended"], m["next_plan"]) for m in manifests]
            found.append((matches(folder), told))
        assert found[0] == found[1]
        assert sum(len(m["decision"]["changes"]) > 0 for m in manifests) >= 4
        hotspots = sum(m["guard"]["hotspots"] for m in manifests)
        assert (hotspots > 0) == (named is str), "hotspots are told only where users are known"
        assert sum(m["guard"]["refused"] for m in manifests) == 0
        observed = [b["observed"] for m in manifests for b in m["guard"]["blocks"]]
        assert all(observed)
        assert not observed or observing


@pytest.mark.long
@settings(max_examples=3, phases=PHASES, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(["expire", "remove"]),
    st.dictionaries(
        st.integers(0, 19), st.sampled_from(["restart", "opened", "executed", "decided"]),
        min_size=4,
    ),
)  # fmt: skip
@example(0, "remove", dict.fromkeys(range(1, 20), "restart"))
def test_crashes_and_restarts_change_neither_blocks_nor_results(
    seed: int, placed: str, incidents: dict[int, str]
) -> None:
    found = []
    with tempfile.TemporaryDirectory() as name:
        for part in ({}, incidents):
            story = Story(seed, 20, 40, attack=4)
            folder = Path(name) / str(len(found))
            run = started(folder, story, EAGER | {"placed": placed})
            manifests = outcome(run, story, part)
            guards = [
                {k: m["guard"][k] for k in ("refused", "removed", "blocks", "ended", "round", "in_force", "closed", "hotspots")}
                for m in manifests
            ]  # fmt: skip
            told = [(m["matches"], m["control_rejected"], m["live_queries"]) for m in manifests]
            found.append((matches(folder), told, guards, remembered(run)))
            refused = Counter(row["reason"] for row in quarantined(folder))
            assert refused["blocked_user"] == sum(m["guard"]["refused"] for m in manifests)
        assert found[0] == found[1]
        assert set(blocks(manifests)) <= MALICIOUS


def test_such_attacks_are_found_out_and_ended() -> None:
    """What the law above rests on: it would hold as well if nobody was ever blocked."""
    ended = []
    for seed in range(3):
        with tempfile.TemporaryDirectory() as name:
            story = Story(seed, 24, 40, attack=4)
            run = started(Path(name), story, EAGER | {"placed": "remove"})
            manifests = outcome(run, story)
            ended.append(set(blocks(manifests)))
            live = Counter(run.engine.catalogue.live_rows().column("user").to_pylist())
            assert not set(live) & ended[-1]
            removed = [user for m in manifests for user in m["guard"]["removed"]]
            assert sorted(removed) == sorted(ended[-1])
            for m in manifests:
                for block in m["guard"]["blocks"]:
                    evidence = block["evidence"]
                    assert evidence["hotspots"]
                    assert set(evidence["features"]) >= {"new_queries", "lrb_queries_rate"}
    assert ended == [MALICIOUS] * 3
