"""Retention and snapshots of the engine against brute force, without Spark: through plan changes,
compaction, expiry and restarts, whatever is asked while the run goes or beside it."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_engine_laws import LAT, LON, Shuffling, shapes
from test_window_laws import FUNCTIONS, crashing
from watched_run import (
    COLUMNS,
    NOWHERE,
    ROWS,
    Watched,
    crash_before_the_manifest,
    table_of,
    watched,
)

import snapshots_by_hand
from geoflux.balance.policy import Decision, Observed, Policy, Static
from geoflux.engine.snapshot_reader import Snapshots
from geoflux.plan import GridPlan, Merge, Move, Split
from handmade import SPEEDS

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
TIMES = st.sampled_from([pa.int64(), pa.float64(), pa.timestamp("us", "UTC"), pa.string()])
RETENTIONS = st.sampled_from(
    [{"time": "30s"}, {"time": "0s"}, {"time": "2 minutes"}, {"events": 1}, {"events": 20},
     {"bytes": "6 KB"}, {"bytes": "20 KB"}, {"bytes": "100 B"}, {"time": "1 minute", "events": 15},
     {"time": "40s", "bytes": "12 KB"}, {"events": 1_000_000}]
)  # fmt: skip


@st.composite
def shapes_over_the_antimeridian(draw: st.DrawFn) -> dict[str, Any]:
    wide, south, high = draw(st.floats(1, 60)), draw(st.floats(-80, 40)), draw(st.floats(1, 40))
    kind = draw(st.sampled_from(["rectangle", "circle", "MultiPolygon"]))
    if kind == "rectangle":
        edges = {"west": 180 - wide, "south": south, "east": -180 + wide, "north": south + high}
        return {"type": kind, **edges}
    if kind == "circle":
        lon = draw(st.sampled_from([-180.0, 180.0, 179.5, -175.0]))
        return {"type": kind, "lon": lon, "lat": south, "radius_m": wide * 111_000}
    west, north = 180 - wide, south + high
    halves = [
        [[[side * west, south], [side * 180, south], [side * 180, north], [side * west, south]]]
        for side in (1, -1)
    ]
    return {"type": kind, "coordinates": halves}


def is_in_degrees(shape: dict[str, Any]) -> bool:
    """Not so far east that the record would be refused."""
    polygons = shape["coordinates"] if shape["type"] == "MultiPolygon" else []
    return all(x <= 180 for polygon in polygons for ring in polygon for x, _ in ring)


@st.composite
def aggregates(draw: st.DrawFn) -> dict[str, Any]:
    known = [f for f in FUNCTIONS if not any(c in f for c in ("object", "(n", ", 0)"))]
    asked: dict[str, Any] = {
        "functions": draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    }
    kind = draw(st.sampled_from(["all", "all", "time", "events"]))
    if kind == "time":
        asked["window"] = draw(st.sampled_from(["7s", "10s", "45s", "2 minutes"]))
        if draw(st.booleans()):
            asked["slide"] = draw(st.sampled_from(["3s", "5s", "700 ms"]))
        if draw(st.booleans()):
            asked["empty"] = draw(st.booleans())
    elif kind == "events":
        asked["window"] = draw(st.integers(1, 6))
        if draw(st.booleans()):
            asked["slide"] = draw(st.integers(1, asked["window"]))
    return asked


@st.composite
def snapshots(draw: st.DrawFn) -> dict[str, Any]:
    query: dict[str, Any] = {"op": "snapshot"}
    if draw(st.integers(0, 3)):
        query["shape"] = draw(
            st.one_of(shapes_over_the_antimeridian(), shapes().filter(is_in_degrees))
        )
    if draw(st.integers(0, 2)) == 0:
        query["where"] = draw(st.sampled_from([*SPEEDS]))
    if draw(st.integers(0, 2)) == 0:
        query["from"] = draw(st.integers(0, 150))
    if draw(st.integers(0, 2)) == 0:
        query["to"] = query.get("from", 0) + draw(st.integers(0, 100))
    if draw(st.integers(0, 2)) == 0:
        query["aggregate"] = draw(aggregates())
    if draw(st.integers(0, 2)) == 0:
        query["nearest"] = {"lon": draw(LON), "lat": draw(LAT), "k": draw(st.integers(1, 12))}
    return query


IDS = st.sampled_from(["a", "b", "bb", "ä", "", "10", "9"])


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Time goes on, with events that come too late, and some that lie nowhere; several have the
    same id or place."""
    disorder, of_text = draw(st.sampled_from([0, 5, 40, 150])), draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(1, 60))):
        order = draw(st.integers(0, 150))
        rows.append(
            {
                "order": order, "id": draw(IDS) if of_text else draw(st.integers(0, 30)),
                "lon": draw(LON), "lat": draw(LAT) if draw(st.integers(0, 9)) else NOWHERE,
                "time": max(order + draw(st.integers(-disorder, disorder)), 0),
                "speed": draw(st.one_of(st.none(), st.floats(-5, 40))),
                "kind": draw(st.sampled_from(["taxi", "bus", None])),
            }
        )  # fmt: skip
    rows.sort(key=lambda row: row.pop("order"))
    return [row | {"serial": serial} for serial, row in enumerate(rows)]


@st.composite
def stories(draw: st.DrawFn) -> dict[str, Any]:
    """Events in epochs, what is asked before each, and what happens to the run."""
    batches = draw(st.lists(st.lists(snapshots(), max_size=4), min_size=2, max_size=9))
    for number, batch in enumerate(batches):
        for place, query in enumerate(batch):
            query["id"] = f"s{number}-{place}"
    columns = draw(st.sampled_from([None, ["serial", "speed", "kind"]]))
    more = {} if columns is None else {"columns": columns}
    return {
        "rows": draw(events()), "batches": batches, "slots": draw(st.sampled_from([1, 4, 22])),
        "retention": draw(RETENTIONS) | more, "mode": draw(st.sampled_from(["rows", "counts"])),
        "time": draw(TIMES),
        "incidents": draw(st.dictionaries(
            st.integers(0, 8), st.sampled_from(["restart", "opened", "executed", "decided"]))),
        "tiers": draw(st.sampled_from([(2, 2, 1 << 20), (3, 4, 20), (2, 4, 12), (8, 8192, 1 << 20)])),
    }  # fmt: skip


QUERIES = [
    {"op": "register", "id": "w", "shape": snapshots_by_hand.WORLD,
     "aggregate": {"functions": ["count", "avg(speed)"], "window": "20s", "slide": "10s"}},
    {"op": "register", "id": "m", "shape": snapshots_by_hand.WORLD, "where": "kind = 'taxi'"},
]  # fmt: skip


class Deepening(Policy):
    """A policy that changes what it changed before, so that lineage grows long; or rests."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def decide(self, seen: Observed, plan: GridPlan, state: dict[str, Any]) -> Any:
        n = self._numbers[seen.epoch % len(self._numbers)]
        newest, to = max(plan.partitions, key=lambda p: p.id), n % plan.slots
        changes: list[Any] = []
        if n % 6 == 1:
            changes = [Move(newest.id, to)]
        elif n % 6 == 2:
            changes = [Merge(newest.id, other.id, to) for other in plan.partitions]
        elif n % 6 > 2:
            columns = Split(newest.id, "columns", newest.col0 + 1, to, newest.slot)
            rows = Split(newest.id, "rows", newest.row1 - 1, to, newest.slot)
            changes = [columns, rows] if n % 2 else [rows, columns]
        for change in changes:
            with contextlib.suppress(ValueError):
                plan.apply(change)
                return Decision((change,), "goes on"), state
        return Decision((), "rests"), state


@settings(max_examples=40, phases=PHASES, deadline=None)
@given(stories(), st.one_of(
    st.just(Static()), st.none(),
    st.lists(st.integers(0, 99), min_size=1, max_size=8).map(Deepening),
    st.lists(st.integers(0, 99), min_size=1, max_size=8).map(Shuffling),
))  # fmt: skip
def test_snapshots_equal_brute_force_through_changes_compaction_expiry_and_restarts(
    story: dict[str, Any], policy: Any
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for limit, value in zip(
            ("FAN_IN", "SMALLEST_TIER", "MOST_ROWS"), story["tiers"], strict=True
        ):
            patch.setattr(f"geoflux.operators.compaction.{limit}", value)
        watch = watched(Path(name), story, policy)
        watch.start(table_of(story["rows"], story["time"]), QUERIES)
        run, batches, beside = watch.run, story["batches"], None
        asked: set[str] = set()
        for number, batch in enumerate(batches):
            run.tell(batch)
            # Every third epoch has no events.
            first, last = (run.end * min(j - j // 3, 6) // 6 for j in (number, number + 1))
            last = run.end if number == len(batches) - 1 else last
            happens = story["incidents"].get(number)
            if happens == "restart":
                run.recover()
            elif happens == "decided":
                crash_before_the_manifest(run, number, (first, last))
            elif happens is not None:
                crashing(run, number, (first, last), late=happens == "executed")
            if happens is not None:
                assert watch.on_disk() == watch.named()
            sight = watch.sight()
            for query in batch if beside else ():
                sight.check(query, snapshots_by_hand.answer_of(beside.ask(query)))
            watch.epoch((first, last))
            beside = beside or Snapshots(watch.out)
            answers = snapshots_by_hand.answers(watch.out)
            asked |= {query["id"] for query in batch}
            assert set(answers) == asked
            for query in batch:
                assert answers[query["id"]].epochs == {number}
                sight.check(query, answers[query["id"]])
        for query in (query for batch in batches for query in batch):
            watch.sight().check(query, snapshots_by_hand.answer_of(beside.ask(query)))
        assert all(len(told.matched) == 1 for told in snapshots_by_hand.answers(watch.out).values())
        report = run.verified()
        assert report.is_clean, report


PLACES = range(-175, 180, 10)


class Scripted(Policy):
    """A policy that makes the changes that it was given, epoch by epoch."""

    def __init__(self, *changes: Any) -> None:
        self._changes = changes

    def decide(self, seen: Observed, plan: GridPlan, state: dict[str, Any]) -> Any:
        changes = self._changes[seen.epoch : seen.epoch + 1]
        return Decision(tuple(c for c in changes if c is not None), "as written"), state


def scripted(folder: Path, times: list[int], policy: Any) -> Watched:
    """A run over one event every ten degrees, all at one time in an epoch; not yet begun."""
    rows = [
        {"id": lon, "lon": float(lon), "lat": 0.0, "time": time, "speed": None, "kind": "bus"}
        for time in times
        for lon in PLACES
    ]
    rows = [row | {"serial": serial} for serial, row in enumerate(rows)]
    story = {"rows": rows, "slots": 2, "mode": "rows", "retention": {"time": "30s"}}
    folder.mkdir(exist_ok=True)
    watch = watched(folder, story, policy)
    watch.start(table_of(rows, pa.int64()), [])
    return watch


def span_of(epoch: int) -> tuple[int, int]:
    return len(PLACES) * epoch, len(PLACES) * (epoch + 1)


def plan_of(watch: Watched) -> GridPlan:
    plan = watch.run.engine.plan
    assert isinstance(plan, GridPlan)
    return plan


def ask_here_and_there(watch: Watched) -> None:
    """All events, and those around each place."""
    reader, sight = Snapshots(watch.out), watch.sight()
    for lon in PLACES:
        small = {"west": lon - 1, "south": -1, "east": lon + 1, "north": 1}
        for query in ({}, {"shape": {"type": "rectangle", **small}}):
            sight.check(query, snapshots_by_hand.answer_of(reader.ask(query)))


def test_what_expired_is_deleted_and_the_partitions_that_held_it_are_forgotten(
    tmp_path: Path,
) -> None:
    first, second = (p.id for p in GridPlan.initial(COLUMNS, ROWS, 2).partitions)
    a, b, c, d, e = range(second + 1, second + 6)
    changes = (
        Split(first, "columns", 4, 0, 1),  # a b | second
        Split(b, "rows", 5, 1, 0),  # a c/d | second
        Merge(c, d, 0),  # a e | second
        Move(e, 1),
        Move(e, 0),
        Move(a, 1),
    )
    watch = scripted(tmp_path, [0, 5, 10, 15, 1000, 1001], Scripted(*changes))
    for number in range(4):
        watch.epoch(span_of(number))
        ask_here_and_there(watch)
    assert {p.id for p in plan_of(watch).retired} == {first, b, c, d}
    assert len(watch.visible()) == 4 * len(PLACES)
    for number in (4, 5):
        watch.epoch(span_of(number))
        ask_here_and_there(watch)
    assert plan_of(watch).retired == ()
    assert watch.on_disk() == watch.named()
    assert len(watch.visible()) == 2 * len(PLACES)


def test_events_that_have_expired_when_they_come_leave_nothing_behind(tmp_path: Path) -> None:
    times = [1000, 1, 2, 1001]
    watch = scripted(tmp_path, times, Static())
    for number in range(len(times)):
        watch.epoch(span_of(number))
    assert {row["time"] for row in watch.visible()} == {1000, 1001}
    assert watch.on_disk() == watch.named()


@pytest.mark.parametrize("change", [None, Move(2, 0)])
def test_a_snapshot_sees_the_same_again_after_a_crash_before_the_manifest(
    tmp_path: Path, change: Any
) -> None:
    """What the crashed attempt had forgotten of the lineage is still asked for."""
    watch = scripted(tmp_path, [0, 5, 1000], Scripted(Split(1, "columns", 4, 0, 1), None, change))
    for number in (0, 1):
        watch.epoch(span_of(number))
    query = {"op": "snapshot", "id": "s"}
    watch.run.tell([query])
    sight, reader = watch.sight(), Snapshots(watch.out)
    assert len(sight.rows) == 2 * len(PLACES)
    crash_before_the_manifest(watch.run, 2, span_of(2))
    sight.check(query, snapshots_by_hand.answer_of(reader.ask(query)))
    sight.check(query, snapshots_by_hand.answer_of(Snapshots(watch.out).ask(query)))
    watch.epoch(span_of(2))
    sight.check(query, snapshots_by_hand.answers(watch.out)["s"])
