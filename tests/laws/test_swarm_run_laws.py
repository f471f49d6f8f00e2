"""Whole runs under SWARM, without Spark: exact through all its changes, still when the load is, and
the same after a restart."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_laws import matches
from test_retention_laws import PHASES
from test_window_laws import Run, bits, crashing
from watched_run import COLUMNS, ROWS, crash_before_the_manifest, table_of

from geoflux.balance.policy import Decision, Observed, Orders, Policy, SlotLoad, Static
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.plan import GridPlan, plan_from_dict
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

MODES = ("geoflux", "published")


class Measured(Policy):
    """SWARM whose slots are as busy as they have checks: times of this machine decide nothing."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning: Tuning = tuning
        self._swarm = SwarmPolicy(tuning)

    def orders(self, now: float, state: Mapping[str, Any]) -> Orders:
        return self._swarm.orders(now, state)

    def resized(self, state: dict[str, Any]) -> dict[str, Any]:
        return self._swarm.resized(state)

    def decide(
        self, seen: Observed, plan: GridPlan, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        loads = [replace(load, busy_seconds=self.busy(seen.epoch, load)) for load in seen.loads]
        return self._swarm.decide(replace(seen, loads=tuple(loads)), plan, state)

    def busy(self, epoch: int, load: SlotLoad) -> float:
        return 1e-6 * (load.checks + 16 * load.events)


class Failing(Measured):
    """SWARM that finds throughput falling all the time: it rebalances twice, then does nothing but
    merge twice, and so on."""

    def busy(self, epoch: int, load: SlotLoad) -> float:
        return 2.0**epoch


def tuning_of(mode: str, **more: Any) -> Tuning:
    """As settings make it; a round is as long as the tests' clock goes on in one epoch."""
    given = {"mode": mode, "round": "1s", "gain": 0.0} | more
    return Tuning.of(Config.from_dict({"swarm": given}).swarm)


@st.composite
def clustered(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events around a place that goes elsewhere, and some anywhere; time goes on, with late ones."""
    dice = random.Random(draw(st.integers(0, 10**6)))
    count, wide = draw(st.integers(30, 150)), draw(st.sampled_from([0.0, 5.0, 30.0]))
    places = [(dice.uniform(-170, 170), dice.uniform(-80, 80)) for _ in range(3)]
    rows = []
    for serial in range(count):
        lon, lat = places[3 * serial // count]
        lon, lat = dice.gauss(lon, wide), dice.gauss(lat, wide)
        if dice.random() < 0.2 or abs(lon) > 180 or abs(lat) > 90:
            lon, lat = dice.uniform(-180, 180), dice.uniform(-90, 90)
        rows.append(
            {
                "id": dice.randrange(30), "lon": lon, "lat": 90.5 if serial % 17 == 16 else lat,
                "time": max(serial - (60 if dice.random() < 0.05 else dice.randrange(5)), 0),
                "speed": dice.choice([None, dice.uniform(0, 40)]), "kind": dice.choice("ab"),
                "serial": serial,
            }
        )  # fmt: skip
    return rows


def query(dice: random.Random, name: str) -> dict[str, Any]:
    """A query over some tens of degrees, a fourth of them over the antimeridian or a circle."""
    west, south = dice.uniform(-180, 180), dice.uniform(-90, 60)
    east = west + dice.uniform(0, 60)
    box = {"type": "rectangle", "west": west, "south": south, "north": south + dice.uniform(0, 30),
           "east": east if east <= 180 else east - 360}  # fmt: skip
    circle = {"type": "circle", "lon": west, "lat": south, "radius_m": dice.uniform(0, 3e6)}
    found: dict[str, Any] = {"op": "register", "id": name, "shape": dice.choice([box, box, circle])}
    if dice.random() < 0.3:
        found["where"] = dice.choice(["speed > 10", "kind = 'a'"])
    if dice.random() < 0.3:
        asked: dict[str, Any] = {"functions": ["count", "avg(speed)", "distinct(id)"]}
        windows: list[dict[str, Any]] = [
            {"window": "20s"},
            {"window": "30s", "slide": "10s"},
            {"window": 5},
        ]
        found["aggregate"] = asked | dice.choice(windows)
    if dice.random() < 0.2:
        found["valid_until"] = dice.randrange(150)
    return found


@st.composite
def stories(draw: st.DrawFn) -> dict[str, Any]:
    """Events in epochs, control records before each, and what happens to the run."""
    dice = random.Random(draw(st.integers(0, 10**6)))
    epochs = draw(st.integers(6, 14))
    batches: list[list[dict[str, Any]]] = [[query(dice, f"q0-{k}") for k in range(20)]]
    for number in range(1, epochs):
        end = [{"op": "terminate", "id": f"q{dice.randrange(number)}-{dice.randrange(5)}"}]
        come = [query(dice, f"q{number}-{k}") for k in range(dice.randrange(4))]
        batches.append(dice.choice([[], end, come, end + come]))
    return {
        "rows": draw(clustered()), "batches": batches, "slots": draw(st.sampled_from([1, 2, 4, 7])),
        "retention": draw(st.sampled_from([{}, {}, {"time": "30s"}, {"events": 20}])),
        "incidents": draw(st.dictionaries(
            st.integers(0, 13), st.sampled_from(["restart", "opened", "executed", "decided"]))),
        "wanted": draw(st.lists(st.sampled_from([None, 1, 2, 3, 5, 9]), max_size=6)),
    }  # fmt: skip


def started(folder: Path, story: dict[str, Any], policy: Policy) -> Run:
    slots = story["slots"]
    config = {
        "engine": {"slots": slots, "lateness": "30s"}, "run": {"mode": "follow"},
        "retention": story["retention"],
    }  # fmt: skip
    run = Run(folder, config, GridPlan.initial(COLUMNS, ROWS, slots), policy)
    if story.get("wanted"):
        run.wanted = lambda: story["wanted"][int(run.now) % len(story["wanted"])]
    run.start(table_of(story["rows"], pa.int64()), [])
    return run


def played(run: Run, story: dict[str, Any]) -> list[Manifest]:
    """All epochs, and one that closes the stream; the clock goes on by a second in each."""
    count = len(story["batches"])
    for number, batch in enumerate(story["batches"]):
        run.tell(batch)
        run.now += 1.0
        span = run.end * number // count, run.end * (number + 1) // count
        happens = story["incidents"].get(number)
        if happens == "restart":
            run.recover()
        elif happens == "decided":
            crash_before_the_manifest(run, number, span)
        elif happens is not None:
            crashing(run, number, span, late=happens == "executed")
        run.epoch(number, span)
    run.epoch(count, (run.end, run.end), final=True)
    return list(EpochLog(run.setting.store).manifests())


def check_plans(store: Store, manifests: list[Manifest]) -> None:
    """Every cell has one owner in every version; an id stands for one area, and is not used again
    once it is gone."""
    areas: dict[int, Any] = {}
    gone: set[int] = set()
    next_id, last = 0, 1
    for manifest in manifests:
        assert manifest["plan"] == last
        last = manifest["next_plan"]
        plan = plan_from_dict(store.read_json(f"plans/{manifest['plan']:08d}.json"))
        assert isinstance(plan, GridPlan)
        assert plan.version == manifest["plan"]
        owners = Counter(
            (column, row)
            for p in plan.partitions
            for column in range(p.col0, p.col1)
            for row in range(p.row0, p.row1)
        )
        assert set(owners.values()) == {1}
        assert set(owners) == {(c, r) for c in range(COLUMNS) for r in range(ROWS)}
        assert all(0 <= p.slot < plan.slots for p in plan.partitions)
        assert [slot["slot"] for slot in manifest["slots"]] == list(range(plan.slots))
        ids = {p.id for p in plan.partitions}
        assert len(ids) == len(plan.partitions)
        assert not ids & gone
        assert all(p.id < plan.next_id for p in plan.partitions)
        for p in plan.partitions:
            area = p.col0, p.row0, p.col1, p.row1
            assert areas.setdefault(p.id, area) == area
        gone |= set(areas) - ids
        assert plan.next_id >= next_id
        next_id = plan.next_id


def check_counts(run: Run, rows: list[dict[str, Any]], manifests: list[Manifest]) -> None:
    for m in manifests:
        assert m["received"] == m["processed"] + m["quarantined"]
        assert m["processed"] == sum(slot["processed"] for slot in m["slots"])
    assert sum(m["received"] for m in manifests) == len(rows)
    assert sum(m["quarantined"] for m in manifests) == sum(row["lat"] == 90.5 for row in rows)
    report = run.verified()
    assert report.is_clean, report
    assert report.events == len(rows) - report.quarantined


def outcome(folder: Path, story: dict[str, Any], policy: Policy) -> tuple[Any, Any, list[Manifest]]:
    """The matches and windows of a run that was found to be right, and its manifests."""
    folder.mkdir()
    run = started(folder, story, policy)
    manifests = played(run, story)
    check_plans(run.setting.store, manifests)
    check_counts(run, story["rows"], manifests)
    return matches(folder), bits(run.windows()), manifests


def changes(manifests: list[Manifest]) -> list[int]:
    """How many there were after each epoch."""
    return [len(m["decision"]["changes"]) for m in manifests]


@settings(max_examples=20, phases=PHASES, deadline=None)
@given(stories(), st.sampled_from(MODES), st.sampled_from([0.0, 1.0]),
       st.sampled_from([Failing, Failing, SwarmPolicy]))  # fmt: skip
def test_matches_and_windows_are_those_of_a_static_plan(
    story: dict[str, Any], mode: str, forecast: float, policy: Any
) -> None:
    with tempfile.TemporaryDirectory() as name:
        tuning = tuning_of(mode, round="0s", forecast=forecast)
        found = outcome(Path(name) / "swarm", story, policy(tuning))
        still = story | {"incidents": {}, "wanted": []}
        expected = outcome(Path(name) / "static", still, Static())
        assert found[:2] == expected[:2]
        assert [m["matches"] for m in found[2]] == [m["matches"] for m in expected[2]]
        if not story["wanted"]:  # questions that are still open are dropped when slots change
            assert sum(m["round"] is not None for m in found[2]) >= len(found[2]) // 2 - 1
        assert not any(changes(expected[2]))


def test_such_runs_change_nearly_all_the_time() -> None:
    """What the law above rests on: it would hold as well if nothing ever changed."""
    kinds: Counter[str] = Counter()
    for mode in MODES:
        for seed in range(3):
            dice = random.Random(seed)
            queries = [query(dice, f"q{k}") for k in range(40)]
            story = {"rows": moving(20 * 40, seed), "batches": [queries, *[[]] * 19], "slots": 4,
                     "wanted": [3, None, None, None, 6, None, None, None, 1] if seed else []}  # fmt: skip
            manifests = decided(story, Failing(tuning_of(mode, round="0s")))
            kinds.update(c["kind"] for m in manifests for c in m["decision"]["changes"])
            assert sum(n > 0 for n in changes(manifests)) >= 5
            sizes = [len(m["slots"]) for m in manifests]
            assert len(set(sizes)) == (4 if seed else 1)
    assert set(kinds) == {"move", "split", "merge", "resize"}


def decided(story: dict[str, Any], policy: Policy) -> list[Manifest]:
    """The manifests of a run whose results are not looked at."""
    with tempfile.TemporaryDirectory() as name:
        story = {"retention": {}, "incidents": {}} | story
        run = started(Path(name), story, policy)
        manifests = played(run, story)
        check_plans(run.setting.store, manifests)
        return manifests


def moving(count: int, seed: int) -> list[dict[str, Any]]:
    """A crowd that goes around most of the world, and stays then."""
    dice = random.Random(seed)
    where = [min(360 * k / count, 240) - 180 for k in range(count)]
    return [
        {"id": k, "lon": max(-180.0, min(180.0, dice.gauss(where[k], 15))),
         "lat": max(-90.0, min(90.0, dice.gauss(0, 15))), "time": k, "speed": 1.0, "kind": "a",
         "serial": k}
        for k in range(count)
    ]  # fmt: skip


def constant(epoch: list[tuple[float, float]], epochs: int) -> list[dict[str, Any]]:
    """The same places in every epoch."""
    places = epoch * epochs
    return [
        {"id": k, "lon": lon, "lat": lat, "time": k, "speed": 1.0, "kind": "a", "serial": k}
        for k, (lon, lat) in enumerate(places)
    ]


def cities(count: int, seed: int) -> list[tuple[float, float]]:
    dice = random.Random(seed)
    centres = [(dice.uniform(-150, 150), dice.uniform(-70, 70)) for _ in range(6)]
    places = []
    for k in range(count):
        lon, lat = centres[k % 2 if k % 3 else k % 6]
        places.append((dice.gauss(lon, 8), max(-90.0, min(90.0, dice.gauss(lat, 8)))))
    return places


def told(places: list[tuple[float, float]], tuning: Tuning, epochs: int) -> list[Manifest]:
    """The manifests of a run under a constant load."""
    dice = random.Random(5)
    queries = [query(dice, f"q{k}") for k in range(60)]
    for record in queries:
        record.pop("valid_until", None)
    batches = [queries, *[[]] * (epochs - 1)]
    story = {"rows": constant(places, epochs), "batches": batches, "slots": 4}
    return decided(story, Measured(tuning))


@pytest.mark.parametrize(
    ("mode", "gain"), [("geoflux", 0.0), ("geoflux", 0.05), ("published", 0.05)]
)
def test_a_constant_load_means_no_changes_after_a_few_rounds(mode: str, gain: float) -> None:
    """Not as published without a threshold: two that are merged cost more than both, so that there
    is always something to gain by cutting them again."""
    manifests = told(cities(150, 2), tuning_of(mode, gain=gain), 50)
    assert sum(m["round"] is not None for m in manifests) >= 25
    assert sum(changes(manifests)[:30]) > 0
    assert sum(changes(manifests)[30:]) == 0, [m["decision"]["reason"] for m in manifests[30:]]
    work = [[s["checks"] + 16 * s["processed"] for s in m["slots"]] for m in manifests[:50]]
    assert max(work[-1]) < max(work[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("others", [0, 100])
def test_a_hotspot_in_a_single_cell_ends_in_rest(mode: str, others: int) -> None:
    dice = random.Random(1)
    places = [(2.0, 48.0)] * 100
    places += [(dice.uniform(-180, 180), dice.uniform(-90, 90)) for _ in range(others)]
    manifests = told(places, tuning_of(mode, gain=0.05), 64)
    assert sum(changes(manifests)) <= 40
    assert sum(changes(manifests)[48:]) == 0, [m["decision"]["reason"] for m in manifests[48:]]
    assert any("cannot" in m["decision"]["reason"] for m in manifests)


@settings(max_examples=8, phases=PHASES, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(MODES), st.sampled_from([2, 4]),
    st.sampled_from([0.0, 0.5]),
    st.dictionaries(st.integers(0, 13), st.sampled_from(["restart", "opened", "executed", "decided"]),
                    min_size=1),
)  # fmt: skip
def test_a_restart_decides_what_a_run_without_one_would(
    seed: int, mode: str, slots: int, forecast: float, incidents: dict[int, str]
) -> None:
    dice = random.Random(seed)
    batches = [[query(dice, f"q{k}") for k in range(30)]]
    batches += [[query(dice, f"q{n}-{k}") for k in range(3)] for n in range(1, 14)]
    story = {"rows": moving(14 * 30, seed), "batches": batches, "slots": slots,
             "retention": dice.choice([{}, {"events": 50}]),
             "wanted": dice.choice([[], [None, 5, None, None, 2, 3, None]])}  # fmt: skip
    runs = []
    for happens in ({}, incidents):
        policy = Failing(tuning_of(mode, round="0s", forecast=forecast))
        runs.append(decided(story | {"incidents": happens}, policy))
    assert any(changes(runs[0]))
    for plain, restarted in zip(*runs, strict=True):
        for field in ("decision", "round", "policy", "next_plan", "matches"):
            assert json.dumps(plain[field]) == json.dumps(restarted[field]), plain["epoch"]
