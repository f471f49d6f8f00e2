"""Matching equals brute force: mixed shapes, any partition, points on edges and between ticks."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import parse_lines
from geoflux.operators import matching, queries
from geoflux.operators.events import Events
from geoflux.operators.index import MOST_CELLS
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

SCHEMA = pa.schema([("speed", pa.float64())])
SPACES = {
    "world": Space("lonlat", -180.0, -90.0, 180.0, 90.0),
    "part": Space("lonlat", -170.0, -50.0, -100.0, 50.0),
    "east": Space("lonlat", 100.0, -90.0, 180.0, 60.0),
    "plane": Space("planar", 0.0, 0.0, 100.0, 50.0),
}
Shapes = dict[str, dict[str, Any]]


class Draws:
    """Coordinates that often coincide, or differ by less than a tick."""

    def __init__(self, space: Space, grid: Grid, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self._space = space
        pools = []
        for low, high, cells in (
            (space.west, space.east, grid.columns),
            (space.south, space.north, grid.rows),
        ):
            borders = low + (high - low) * self.random.integers(0, cells + 1, 3) / cells
            anywhere = self.random.uniform(low, high, 3)
            pools.append(np.concatenate(([low, high], borders, anywhere)))
        self.pool_x, self.pool_y = pools

    def _one(self, pool: Any, low: float, high: float) -> float:
        value = float(self.random.choice(pool))
        kind = self.random.integers(0, 6)
        if kind == 0:
            value = float(self.random.uniform(low, high))
        elif kind == 1:
            value = float(np.nextafter(value, self.random.choice([-np.inf, np.inf])))
        elif kind == 2:
            value += float(self.random.normal()) * (high - low) * 1e-10
        return min(max(value, low), high)

    def x(self) -> float:
        return self._one(self.pool_x, self._space.west, self._space.east)

    def y(self) -> float:
        return self._one(self.pool_y, self._space.south, self._space.north)

    def shape(self) -> dict[str, Any]:
        kind = self.random.choice(["rectangle", "rectangle", "circle", "Polygon"])
        if kind == "rectangle":
            return self._rectangle()
        if kind == "circle":
            radius = float(self.random.choice([0.0, 10.0 ** self.random.uniform(0, 7.4)]))
            if self._space.is_lonlat:
                return {"type": "circle", "lon": self.x(), "lat": self.y(), "radius_m": radius}
            return {"type": "circle", "x": self.x(), "y": self.y(), "radius": radius / 1e5}
        while True:
            ring = [[self.x(), self.y()] for _ in range(int(self.random.integers(3, 6)))]
            if shapely.Polygon(ring).is_valid and shapely.Polygon(ring).area > 0:
                return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}

    def _rectangle(self) -> dict[str, Any]:
        south, north = sorted([self.y(), self.y()])
        west, east = self.x(), self.x()
        if self._space.is_lonlat and self.random.integers(0, 3) == 0:
            west, east = (float(self.random.uniform(-180, 180)) for _ in range(2))
        if not self._space.is_lonlat:
            west, east = sorted([west, east])
        if self.random.integers(0, 6) == 0:
            west, south, east, north = -180.0, -90.0, 180.0, 90.0
        return {"type": "rectangle", "west": west, "south": south, "east": east, "north": north}


def layer_rows(draws: Draws, space: Space, count: int) -> tuple[pa.Table, dict[str, Any]]:
    """Valid queries as rows, numbered; and the records that they come from, by id."""
    records = {}
    for i in range(count):
        record: dict[str, Any] = {"op": "register", "id": f"q{i}", "shape": draws.shape()}
        if draws.random.integers(0, 4) == 0:
            record["where"] = f"speed > {int(draws.random.integers(0, 3))}"
        if draws.random.integers(0, 5) == 0:
            record["valid_from"] = int(draws.random.integers(0, 3))
            record["valid_until"] = record["valid_from"] + int(draws.random.integers(0, 3))
        records[f"q{i}"] = record
    lines = [json.dumps(r).encode() for r in records.values()]
    rows = parse_lines(lines, RecordRules(space, SCHEMA, 10**6)).rows
    numbers = pa.array(np.arange(len(rows)))
    return rows.set_column(0, queries.QUERY_SCHEMA.field("number"), numbers), records


def is_in(space: Space, given: dict[str, Any], x: float, y: float) -> bool | None:
    """Whether a point lies in a shape; ``None`` within a millimetre of a circle's line."""
    if given["type"] == "rectangle":
        west, south, east, north = (given[k] for k in ("west", "south", "east", "north"))
        beside = west <= x <= east if west <= east else x >= west or x <= east
        return bool(beside and south <= y <= north)
    if given["type"] == "Polygon":
        return bool(shapely.Polygon(given["coordinates"][0]).intersects(shapely.Point(x, y)))
    if not space.is_lonlat:
        far = math.hypot(x - given["x"], y - given["y"]) - given["radius"]
        return None if abs(far) < 1e-9 else far < 0
    a, b = math.radians(given["lat"]), math.radians(y)
    h = math.sin((b - a) / 2) ** 2
    h += math.cos(a) * math.cos(b) * math.sin(math.radians(x - given["lon"]) / 2) ** 2
    far = 2 * 6_371_008.8 * math.asin(min(1.0, math.sqrt(h))) - given["radius_m"]
    return None if abs(far) < 1e-3 else far < 0


def expected(space: Space, records: Any, events: Events) -> tuple[set[Any], set[Any]]:
    """Pairs (event, query id) that must be found, and those that may be."""
    must, may = set(), set()
    speeds = events.columns["speed"].to_pylist()
    for name, record in records.items():
        for i in range(len(events)):
            seconds = events.time[i] / 1e6
            if "where" in record and not speeds[i] > int(record["where"].split()[-1]):
                continue
            if not record.get("valid_from", -1) <= seconds <= record.get("valid_until", 99):
                continue
            verdict = is_in(space, record["shape"], float(events.x[i]), float(events.y[i]))
            if verdict is not False:
                may.add((i, name))
            if verdict:
                must.add((i, name))
    return must, may


def events_in(draws: Draws, grid: Grid, partition: Partition, count: int) -> Events:
    x = np.array([draws.x() for _ in range(count)])
    y = np.array([draws.y() for _ in range(count)])
    x[: count // 3], y[: count // 3] = x[0], np.where(np.arange(count // 3) % 2, y[0], y[1])
    column, row = grid.columns_of(x), grid.rows_of(y)
    inside = (column >= partition.col0) & (column < partition.col1)
    inside &= (row >= partition.row0) & (row < partition.row1)
    x, y = x[inside], y[inside]
    speed = pa.array(draws.random.integers(0, 4, x.size).astype(np.float64))
    time = draws.random.integers(0, 5, x.size) * 1_000_000
    return Events(x, y, time, pa.array(np.arange(x.size)), {"speed": speed})


def found_by(layer: Layer, grid: Grid, partition: Partition, events: Events) -> Counter[Any]:
    """The pairs that a layer's matcher lists; its counts must agree."""
    matcher, ready = LayerMatcher(layer, grid), SortedEvents.of(events, grid, partition)
    names = layer.rows.column("id").to_pylist()
    found: Counter[Any] = Counter()
    numbers = ready.events.id.to_numpy()
    for event, query in matcher.pairs(ready, Work()):
        found.update((int(e), names[q]) for e, q in zip(numbers[event], query, strict=True))
    counts = dict(zip(names, matcher.counts(ready, Work()).tolist(), strict=True))
    by_query = Counter(name for _, name in found)
    assert counts == {name: by_query[name] for name in names}
    return found


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    seed=st.integers(0, 2**32),
    size=st.tuples(st.integers(1, 40), st.integers(1, 30)),
    corners=st.tuples(*[st.integers(0, 10**6)] * 4),
    room=st.sampled_from([1, 5, 1 << 20]),
)
def test_counts_and_pairs_equal_brute_force(
    name: str, seed: int, size: tuple[int, int], corners: tuple[int, ...], room: int
) -> None:
    space = SPACES[name]
    grid = Grid(space, *size)
    col0, col1 = sorted((corners[0] % size[0], corners[1] % size[0]))
    row0, row1 = sorted((corners[2] % size[1], corners[3] % size[1]))
    partition = Partition(1, col0, row0, col1 + 1, row1 + 1, 0)
    draws = Draws(space, grid, seed)
    everything, records = layer_rows(draws, space, 25)
    rows = everything.filter(pa.array(queries.touching(everything, grid, partition.box)))
    events = events_in(draws, grid, partition, 60)
    layer = Layer.build(rows, grid, partition)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(matching, "_ROOM", room)
        found = found_by(layer, grid, partition, events)
        must, may = expected(space, records, events)
        assert max(found.values(), default=1) == 1
        assert must <= set(found) <= may
        store = Store(folder)
        assert layer.write(store, "state/layer.arrow", {"kind": "base"}) > 0
        opened = Layer.open(store, "state/layer.arrow")
        assert opened.rows.equals(layer.rows)
        assert found_by(opened, grid, partition, events) == found
    for index in (layer.plain, layer.refine):
        most = np.bincount(index.query, minlength=1).max()
        assert most <= 2 * MOST_CELLS  # a box over the antimeridian is two
