"""Layers: the sizes that are promised, the smallest differences, and what a segment gives back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import parse_lines
from geoflux.errors import StateError
from geoflux.operators.events import Events
from geoflux.operators.index import MOST_CELLS, Buckets
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.operators.queries import no_queries
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.segments import read_segment
from geoflux.state.store import Store

WORLD = Space("lonlat", -180.0, -90.0, 180.0, 90.0)


def box(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    return {"type": "rectangle", "west": west, "south": south, "east": east, "north": north}


def rows_of(*shapes: dict[str, Any], space: Space = WORLD) -> pa.Table:
    records = [{"op": "register", "id": str(i), "shape": s} for i, s in enumerate(shapes)]
    found = parse_lines(
        [json.dumps(r).encode() for r in records], RecordRules(space, pa.schema([]), 10**6)
    )
    assert found.rejected == []
    return found.rows


def whole(grid: Grid) -> Partition:
    return Partition(0, 0, 0, grid.columns, grid.rows, 0)


def counts(layer: Layer, grid: Grid, points: list[tuple[float, float]]) -> list[int]:
    """Matches per query; counted, and listed pair by pair."""
    x, y = (np.array([p[i] for p in points], np.float64) for i in (0, 1))
    events = Events(x, y, np.zeros(x.size, np.int64), None, {})
    ready = SortedEvents.of(events, grid, whole(grid))
    matcher = LayerMatcher(layer, grid)
    found = matcher.counts(ready, Work())
    listed = [query for _, query in matcher.pairs(ready, Work())]
    pairs = np.bincount(np.concatenate([np.empty(0, np.int32), *listed]), minlength=found.size)
    assert found.tolist() == pairs.tolist()
    return found.tolist()


@pytest.mark.parametrize("size", [(1000, 1000), (1, 1), (8192, 1), (33, 700)])
@pytest.mark.parametrize(
    "shape",
    [
        box(-180, -90, 180, 90),
        {"type": "circle", "lon": 0, "lat": 0, "radius_m": 3e7},
        {"type": "Polygon", "coordinates": [[[-180, -90], [180, -90], [180, 90], [-180, -90]]]},
    ],
    ids=["rectangle", "circle", "polygon"],
)
def test_a_query_over_everything_takes_few_entries(
    size: tuple[int, int], shape: dict[str, Any]
) -> None:
    grid = Grid(WORLD, *size)
    layer = Layer.build(rows_of(shape), grid, whole(grid))
    entries = layer.plain.query.size + layer.refine.query.size
    assert 1 <= entries <= MOST_CELLS


def test_small_queries_live_at_the_finest_level() -> None:
    grid = Grid(WORLD, 1000, 1000)
    layer = Layer.build(rows_of(box(0, 0, 0.1, 0.1), box(-180, -90, 180, 90)), grid, whole(grid))
    shifts = layer.plain.levels[:, 2].tolist()
    assert shifts[0] == 0
    assert shifts[-1] >= 8
    assert len(shifts) == 2  # levels without an entry are not looked into


def test_buckets_end_in_a_single_one() -> None:
    levels = Buckets(0, 0, 33, 5).levels
    assert levels[:, 2].tolist() == [0, 2, 4, 6]
    assert levels[:, 1].tolist() == [33, 9, 3, 1]
    assert Buckets(0, 0, 33, 5).count == 33 * 5 + 9 * 2 + 3 * 1 + 1
    assert Buckets(0, 0, 1, 1).count == 1


@pytest.mark.parametrize("many", [1, 30], ids=["few events", "many events"])
def test_a_hair_outside_an_edge_is_outside(many: int) -> None:
    grid = Grid(WORLD, 36, 18)
    west, south, east, north = 10.1, 20.2, 30.3, 40.4
    layer = Layer.build(rows_of(box(west, south, east, north)), grid, whole(grid))
    inside = [(west, south), (east, north), (west, north), (np.nextafter(west, 99), 30.0)]
    beside = [
        (np.nextafter(west, -999), 30.0), (np.nextafter(east, 999), 30.0),
        (15.0, np.nextafter(south, -999)), (15.0, np.nextafter(north, 999)),
    ]  # fmt: skip
    assert (WORLD.ticks_x(np.array([west, np.nextafter(west, -999)])) == WORLD.ticks_x(
        np.array([west]))[0]).all()  # fmt: skip
    assert counts(layer, grid, inside * many) == [4 * many]
    assert counts(layer, grid, beside * many) == [0]
    assert counts(layer, grid, (inside + beside) * many) == [4 * many]


def test_degenerate_boxes() -> None:
    grid = Grid(WORLD, 36, 18)
    x = 10.123456789
    line, point = box(x, -90, x, 90), box(x, 5.5, x, 5.5)
    layer = Layer.build(rows_of(line, point), grid, whole(grid))
    near = [(np.nextafter(x, 99), 5.5), (np.nextafter(x, -99), 5.5), (x, np.nextafter(5.5, 9))]
    assert counts(layer, grid, [(x, 5.5)]) == [1, 1]
    assert counts(layer, grid, near) == [1, 0]


@pytest.mark.parametrize("many", [1, 30], ids=["few events", "many events"])
def test_both_halves_of_a_box_over_the_antimeridian(many: int) -> None:
    grid = Grid(WORLD, 36, 18)
    layer = Layer.build(rows_of(box(170.5, -5, -170.5, 5)), grid, whole(grid))
    inside = [(180.0, 0.0), (-180.0, 0.0), (170.5, 5.0), (-170.5, -5.0)]
    beside = [(np.nextafter(170.5, 0), 0.0), (np.nextafter(-170.5, 0), 0.0), (0.0, 0.0)]
    assert counts(layer, grid, (inside + beside) * many) == [4 * many]


@pytest.mark.parametrize("many", [1, 30], ids=["few events", "many events"])
def test_a_gap_smaller_than_a_tick(many: int) -> None:
    """West just east of east: all longitudes but a hair."""
    grid = Grid(WORLD, 36, 18)
    east = 10.123456789
    west = float(np.nextafter(np.nextafter(east, 99), 99))
    layer = Layer.build(rows_of(box(west, -5, east, 5)), grid, whole(grid))
    points = [(east, 0.0), (west, 0.0), (float(np.nextafter(east, 99)), 0.0), (0.0, 0.0)]
    assert counts(layer, grid, points * many) == [3 * many]


@pytest.mark.parametrize("many", [1, 30], ids=["few events", "many events"])
def test_a_wrapping_box_that_reaches_over_the_east_of_a_smaller_space(many: int) -> None:
    space = Space("lonlat", -170.0, -50.0, -100.0, 50.0)
    grid = Grid(space, 10, 10)
    layer = Layer.build(rows_of(box(-50, 0, -60, 10), space=space), grid, whole(grid))
    on_edges = [(-150.0, 0.0), (-150.0, 10.0), (-170.0, 5.0), (-100.0, 5.0), (-120.0, 5.0)]
    assert counts(layer, grid, on_edges * many) == [5 * many]


def test_a_layer_comes_back_as_it_was(tmp_path: Path) -> None:
    grid = Grid(WORLD, 36, 18)
    polygon = {"type": "Polygon", "coordinates": [[[0, 0], [40, 0], [20, 40], [0, 0]]]}
    circle = {"type": "circle", "lon": 179, "lat": 10, "radius_m": 900_000}
    layer = Layer.build(rows_of(box(0, 0, 9, 9), polygon, circle), grid, whole(grid))
    store = Store(str(tmp_path))
    written = layer.write(store, "state/base.arrow", {"kind": "base", "partition": 3})
    assert written == store.size("state/base.arrow")
    about = {"kind": "base", "partition": 3, "buckets": [0, 0, 36, 18]}
    assert read_segment(store, "state/base.arrow").about == about
    opened = Layer.open(store, "state/base.arrow")
    assert opened.rows.equals(layer.rows)
    for one, other in ((opened.plain, layer.plain), (opened.refine, layer.refine)):
        for name in ("levels", "offsets", "x0", "y0", "x1", "y1", "query"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    with pytest.raises(StateError, match="missing"):
        Layer.open(store, "state/other.arrow")


def test_an_empty_layer_matches_nothing(tmp_path: Path) -> None:
    grid = Grid(WORLD, 4, 4)
    layer = Layer.build(no_queries(), grid, whole(grid))
    layer.write(Store(str(tmp_path)), "state/none.arrow", {})
    opened = Layer.open(Store(str(tmp_path)), "state/none.arrow")
    assert counts(layer, grid, [(0.0, 0.0)]) == counts(opened, grid, [(0.0, 0.0)]) == []


def test_no_events_match_nothing() -> None:
    grid = Grid(WORLD, 4, 4)
    layer = Layer.build(rows_of(box(0, 0, 9, 9)), grid, whole(grid))
    assert counts(layer, grid, []) == [0]
