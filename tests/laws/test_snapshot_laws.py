"""Snapshots against brute force in plain Python, through plan changes, compaction and expiry."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from shapely.geometry import Point, shape

from geoflux.engine.nearest import first_radius, search_box
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.snapshot_records import parse_snapshot
from geoflux.engine.snapshots import View, answered
from geoflux.operators.compaction import retain
from geoflux.operators.events import Events
from geoflux.operators.selection import Naming
from geoflux.operators.snapshot import SnapshotQuery
from geoflux.plan import GridPlan, Merge, Move, ReplicatedPlan, Split
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.held import Kept, Limits, Retained, rows_by_partition
from geoflux.state.lineage import forgettable
from geoflux.state.store import Store
from handmade import SPEEDS, _metres

COLUMNS, ROWS = 20, 10
WORLD = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
PLANE = Space("planar", 0.0, -50.0, 100.0, 50.0)
QUICK = settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])

X = {
    "lonlat": st.one_of(
        st.sampled_from([-180.0, 180.0, 0.0, -179.5, 179.5, 36.0]), st.floats(-180, 180)
    ),
    "planar": st.one_of(st.sampled_from([0.0, 100.0, 50.0, 5.0]), st.floats(0, 100)),
}
Y = {
    "lonlat": st.one_of(st.sampled_from([-90.0, 90.0, 0.0, 18.0]), st.floats(-90, 90)),
    "planar": st.one_of(st.sampled_from([-50.0, 50.0, 0.0]), st.floats(-50, 50)),
}


@st.composite
def events(draw: st.DrawFn, kind: str) -> list[dict[str, Any]]:
    return [
        {
            "id": draw(st.integers(0, 400)), "x": draw(X[kind]), "y": draw(Y[kind]),
            "time": draw(st.integers(0, 100)),
            "speed": draw(st.one_of(st.none(), st.floats(0, 40))),
            "kind": draw(st.sampled_from(["taxi", "bus", None])),
        }
        for _ in range(draw(st.integers(0, 12)))
    ]  # fmt: skip


@st.composite
def shapes(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    which = draw(st.sampled_from(["rectangle", "rectangle", "circle", "Polygon"]))
    x, y = draw(X[kind]), draw(Y[kind])
    if which == "rectangle":
        other = draw(X[kind])
        west, east = (x, other) if kind == "lonlat" else sorted([x, other])
        south, north = sorted([y, draw(Y[kind])])
        return {"type": which, "west": west, "south": south, "east": east, "north": north}
    if which == "circle":
        if kind == "lonlat":
            radius = draw(st.one_of(st.floats(0, 21e6), st.sampled_from([0.0, 1e5, 3e6])))
            return {"type": which, "lon": x, "lat": y, "radius_m": radius}
        return {"type": which, "x": x, "y": y, "radius": draw(st.floats(0, 120))}
    west, south = min(x, 100.0), min(y, 40.0)
    wide, high = draw(st.floats(0.01, 70)), draw(st.floats(0.01, 45))
    ring = [[west, south], [west + wide, south], [west + wide / 2, south + high], [west, south]]
    hole = [
        [west + wide * a, south + high * b]
        for a, b in ((0.4, 0.1), (0.5, 0.5), (0.6, 0.1), (0.4, 0.1))
    ]
    return {"type": which, "coordinates": [ring, hole] if draw(st.booleans()) else [ring]}


@st.composite
def queries(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    query: dict[str, Any] = {"op": "snapshot", "id": "s"}
    if draw(st.integers(0, 4)):
        query["shape"] = draw(shapes(kind))
    if draw(st.booleans()):
        query["where"] = draw(st.sampled_from([*SPEEDS]))
    if draw(st.booleans()):
        query["from"] = draw(st.integers(0, 100))
    if draw(st.booleans()):
        query["to"] = query.get("from", 0) + draw(st.integers(0, 60))
    return query


class Keeper:
    """Retains events as the engine does, and remembers in plain lists which segment has which."""

    def __init__(self, folder: str, space: Space, plan: Any, limits: Limits) -> None:
        self.store = Store(folder)
        self.grid = Grid(space, COLUMNS, ROWS)
        self.plan, self.limits = plan, limits
        self.retained, self.contents, self.rectangles = Retained(), {}, {}
        self.epoch, self.max_time = 0, None
        names = ("lon", "lat") if space.is_lonlat else ("x", "y")
        kinds = [
            (names[0], pa.float64()),
            (names[1], pa.float64()),
            ("speed", pa.float64()),
            ("kind", pa.string()),
        ]
        own: Any = {names[0]: "x", names[1]: "y"}
        self.naming = Naming(("speed", "kind"), own, pa.schema(kinds), pa.int64())

    def take(self, rows: list[dict[str, Any]]) -> None:
        """One epoch."""
        where = (np.array([r[k] for r in rows], np.float64) for k in ("x", "y"))
        x, y = where
        at = np.arange(len(rows), dtype=np.int64)
        place = self.plan.locate(self.grid.columns_of(x), self.grid.rows_of(y), at)
        kept: list[Kept] = []
        for i, partition in enumerate(self.plan.partitions):
            mine = [row for row, p in zip(rows, place, strict=True) if p == i]
            self.rectangles[partition.id] = partition
            held = self.retained.by_partition.get(partition.id, ())
            for item in retain((self.store, self.grid, partition), held, _batch(mine), self.epoch):
                old = [row for name in item.replaces for row in self.contents[name]]
                self.contents[item.held.segment] = old + (
                    mine if item.held.last_epoch == self.epoch else []
                )
                assert item.held.rows == len(self.contents[item.held.segment])
                kept.append(item)
        times = [row["time"] * 1_000_000 for row in rows]
        self.max_time = max(
            [*times, *([] if self.max_time is None else [self.max_time])], default=None
        )
        before = self.retained.replaced(kept)
        self.retained, dropped = before.expired(self.limits, self.max_time)
        assert sum(rows_by_partition(dropped).values()) == before.rows - self.retained.rows
        for name in before.segments() - self.retained.segments():
            self.store.delete(name)
        self.epoch += 1

    def change(self, n: int) -> None:
        """A move, merge or split, by a number."""
        if not isinstance(self.plan, GridPlan):
            return
        plan, to = self.plan, n % self.plan.slots
        p = plan.partitions[n % len(plan.partitions)]
        changes: list[Any] = [Move(p.id, to)]
        if n % 3 == 1:
            changes = [Merge(p.id, other.id, to) for other in plan.partitions]
        elif n % 3 == 2 and p.columns > 1:
            changes = [Split(p.id, "columns", p.col0 + 1 + n % (p.columns - 1), to, p.slot)]
        elif n % 3 == 2 and p.rows > 1:
            changes = [Split(p.id, "rows", p.row0 + 1, to, p.slot)]
        for change in changes:
            try:
                self.plan = plan.apply(change)
                return
            except ValueError:
                continue

    @property
    def view(self) -> View:
        cut = self.limits.cut(self.max_time)
        return View(self.store, self.grid, self.plan, self.retained, cut, self.naming)

    def visible(self) -> list[dict[str, Any]]:
        cut = self.limits.cut(self.max_time)
        rows = [row for held in self.retained.held for row in self.contents[held.segment]]
        return [row for row in rows if cut is None or row["time"] * 1_000_000 >= cut]

    def parsed(self, query: dict[str, Any]) -> SnapshotQuery:
        return parse_snapshot(query, RecordRules(self.grid.space, self.naming.schema, 10_000))

    def may_read(self, query: dict[str, Any]) -> tuple[int, int]:
        """How many partitions and segments can have an event that the query asks for."""
        asked = self.parsed(query)
        box = asked.shape.box if asked.shape else (-math.inf, -math.inf, math.inf, math.inf)
        west, south, east, north = box
        parts = [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]
        rows = self.grid.rows_of(np.array([south, north]))
        edges = [self.grid.columns_of(np.array(part)) for part in parts]
        wanted = {
            (c, r) for a, b in edges for c in range(a, b + 1) for r in range(rows[0], rows[1] + 1)
        }
        low = max(asked.start or -math.inf, self.limits.cut(self.max_time) or -math.inf)
        high = math.inf if asked.stop is None else asked.stop
        able = []
        for held in self.retained.held:
            p = self.rectangles[held.partition]
            touches = any(p.col0 <= c < p.col1 and p.row0 <= r < p.row1 for c, r in wanted)
            if touches and held.last_time >= low and held.first_time <= high:
                able.append(held)
        return len({held.partition for held in able}), len(able)


def _batch(rows: list[dict[str, Any]]) -> Events:
    return Events(
        np.array([r["x"] for r in rows], np.float64), np.array([r["y"] for r in rows], np.float64),
        np.array([r["time"] * 1_000_000 for r in rows], np.int64), pa.array([r["id"] for r in rows], pa.int64()),
        {"speed": pa.array([r["speed"] for r in rows], pa.float64()),
         "kind": pa.array([r["kind"] for r in rows], pa.string()).dictionary_encode()},
    )  # fmt: skip


def _inside(given: dict[str, Any] | None, x: float, y: float) -> bool:
    if given is None:
        return True
    if given["type"] == "rectangle":
        w, s, e, n = (given[k] for k in ("west", "south", "east", "north"))
        return s <= y <= n and (w <= x <= e if w <= e else x >= w or x <= e)
    if given["type"] == "circle" and "lon" in given:
        return _metres(given["lon"], given["lat"], x, y) <= given["radius_m"]
    if given["type"] == "circle":
        return math.hypot(x - given["x"], y - given["y"]) <= given["radius"]
    return bool(shape(given).intersects(Point(x, y)))


def expected(keeper: Keeper, query: dict[str, Any]) -> list[dict[str, Any]]:
    test = SPEEDS.get(query.get("where", ""), lambda _: True)
    return [
        row
        for row in keeper.visible()
        if _inside(query.get("shape"), row["x"], row["y"]) and test(row)
        and query.get("from", 0) <= row["time"] <= query.get("to", math.inf)
    ]  # fmt: skip


def as_bag(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((r["id"], r["x"], r["y"], r["time"], r["speed"], r["kind"]) for r in rows)


def found_bag(table: pa.Table) -> Counter[Any]:
    rows = [{**row, "time": row["time"].timestamp()} for row in table.to_pylist()]
    return as_bag(rows)


KINDS = st.sampled_from(["lonlat", "planar"])
LIMITS = st.sampled_from(
    [Limits(), Limits(time_micros=30_000_000), Limits(events=15), Limits(bytes=12_000),
     Limits(time_micros=60_000_000, events=10)]
)  # fmt: skip


@st.composite
def stories(draw: st.DrawFn) -> tuple[str, Any, Limits, list[tuple[list[dict[str, Any]], int]]]:
    """A space, a first plan, limits; then epochs, each followed by a change of the plan."""
    kind = draw(KINDS)
    plan = draw(
        st.sampled_from(
            [GridPlan.initial(COLUMNS, ROWS, n) for n in (1, 3, 4)]
            + [ReplicatedPlan(COLUMNS, ROWS, 3)]
        )
    )
    steps = [(draw(events(kind)), draw(st.integers(0, 99))) for _ in range(draw(st.integers(1, 9)))]
    return kind, plan, draw(LIMITS), steps


def told(folder: str, story: Any) -> Keeper:
    kind, plan, limits, steps = story
    keeper = Keeper(folder, WORLD if kind == "lonlat" else PLANE, plan, limits)
    for rows, number in steps:
        keeper.take(rows)
        keeper.change(number)
    return keeper


def check(keeper: Keeper, query: dict[str, Any]) -> None:
    answer = answered(keeper.view, keeper.parsed(query))
    assert found_bag(answer.rows) == as_bag(expected(keeper, query))
    assert answer.matched == len(answer.rows)
    partitions, segments = keeper.may_read(query)
    assert answer.partitions_read <= partitions
    assert answer.segments_read <= segments


@QUICK
@given(stories(), st.data(), st.sampled_from([2, 3, 8]))
def test_answers_equal_brute_force_through_changes_compaction_and_expiry(
    story: Any, data: st.DataObject, fan_in: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.compaction.FAN_IN", fan_in)
        patch.setattr("geoflux.operators.compaction.SMALLEST_TIER", 4)
        keeper = told(folder, story)
        check(keeper, {"id": "all"})
        for _ in range(6):
            check(keeper, data.draw(queries(story[0])))


@QUICK
@given(stories(), st.data())
def test_a_chain_is_cut_only_where_nothing_is_held_behind_it(
    story: Any, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keeper = told(folder, story)
        if not isinstance(keeper.plan, GridPlan):
            return
        before = keeper.plan
        keeper.plan = before.forget(forgettable(before, keeper.retained))
        left = {p.id for p in keeper.plan.retired}
        for p in before.retired:
            holds = p.id in keeper.retained.by_partition
            assert (p.id in left) == (holds or bool(left.intersection(p.parents)))
        check(keeper, {"id": "all"})
        for _ in range(3):
            check(keeper, data.draw(queries(story[0])))


@QUICK
@given(stories(), st.data(), st.integers(1, 12))
def test_the_nearest_are_the_nearest(story: Any, data: st.DataObject, k: int) -> None:
    kind = story[0]
    names = ("lon", "lat") if kind == "lonlat" else ("x", "y")
    with tempfile.TemporaryDirectory() as folder:
        keeper = told(folder, story)
        for _ in range(4):
            query = data.draw(queries(kind))
            x, y = data.draw(X[kind]), data.draw(Y[kind])
            if kind == "planar" and data.draw(st.booleans()):
                x += 1000.0
            query["nearest"] = {names[0]: x, names[1]: y, "k": k}
            away = _metres if kind == "lonlat" else lambda a, b, c, d: math.hypot(c - a, d - b)
            wanted = sorted(
                (away(x, y, r["x"], r["y"]), -r["time"], r["id"]) for r in expected(keeper, query)
            )[:k]
            answer = answered(keeper.view, keeper.parsed(query))
            rows = answer.rows.to_pylist()
            distances = [row["distance"] for row in rows]
            assert distances == sorted(distances)
            assert distances == pytest.approx(
                [w[0] for w in wanted], abs=1e-2 if kind == "lonlat" else 1e-9
            )
            assert answer.matched == len(wanted)
            for row in rows:
                assert row["distance"] == pytest.approx(away(x, y, row["x"], row["y"]), abs=1e-2)
            assert not as_bag([{**r, "time": r["time"].timestamp()} for r in rows]) - as_bag(
                expected(keeper, query)
            )


def test_the_nearest_at_one_place_are_the_newest_then_by_id() -> None:
    rows = [
        {"id": i, "x": 5.0, "y": 5.0, "time": t, "speed": None, "kind": None}
        for i, t in ((3, 1), (1, 1), (2, 9))
    ]
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(folder, PLANE, GridPlan.initial(COLUMNS, ROWS, 2), Limits())
        keeper.take(rows)
        answer = answered(
            keeper.view, keeper.parsed({"id": 1, "nearest": {"x": 0, "y": 0, "k": 2}})
        )
        assert answer.rows.column("id").to_pylist() == [2, 1]


def test_an_event_in_a_corner_of_the_search_is_not_nearer_than_one_just_outside() -> None:
    corner = {"id": 1, "x": 85.0, "y": 35.0, "time": 0, "speed": None, "kind": None}
    outside = {"id": 2, "x": 7.0, "y": 0.0, "time": 0, "speed": None, "kind": None}
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(folder, PLANE, GridPlan.initial(COLUMNS, ROWS, 2), Limits())
        keeper.take([corner, outside])
        query = keeper.parsed({"id": 1, "nearest": {"x": 50, "y": 0, "k": 1}})
        assert query.nearest is not None
        radius = first_radius(keeper.grid, query.nearest, 2, None)
        box = search_box(PLANE, query.nearest, radius)
        assert box[0] > 7, "the first search does not reach the nearer one"
        assert box[2] > 85, "but the farther one"
        assert answered(keeper.view, query).rows.column("id").to_pylist() == [2]


@QUICK
@given(stories(), st.data())
def test_aggregates_are_over_the_matching_events(story: Any, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keeper = told(folder, story)
        query = data.draw(queries(story[0]))
        query["aggregate"] = {"functions": ["count", "sum(speed)", "max(speed)", "distinct(kind)"]}
        answer = answered(keeper.view, keeper.parsed(query))
        rows = expected(keeper, query)
        speeds = [row["speed"] for row in rows if row["speed"] is not None]
        values = dict(
            zip(
                answer.rows.column("function").to_pylist(),
                answer.rows.column("value").to_pylist(),
                strict=True,
            )
        )
        assert answer.matched == len(rows)
        assert values == {
            "count": float(len(rows)), "sum(speed)": math.fsum(speeds) if speeds else None,
            "max(speed)": max(speeds, default=None),
            "distinct(kind)": float(len({row["kind"] for row in rows} - {None})),
        }  # fmt: skip
        assert answer.rows.column("count").to_pylist() == [len(rows)] * 4
