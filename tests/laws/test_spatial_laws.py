"""Laws of space, grid and sphere: monotone ticks, cells that contain, boxes that are never small."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from geoflux.spatial import sphere
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import TICKS, Space

WORLD = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
SPACES = [
    WORLD,
    Space("lonlat", -10.5, 35.25, 30.1, 70.7),
    Space("planar", 0.0, 0.0, 1.0, 1e-6),
    Space("planar", -1e9, 1e9, 1e9, 1e9 + 3.0),
]


@st.composite
def coordinates(draw: st.DrawFn, space: Space, low: float, high: float) -> float:
    """Places inside and outside, and such as lie next to an edge or a border of cells."""
    kind = draw(st.sampled_from(["share", "edge", "near", "any"]))
    if kind == "any":
        return draw(st.floats(allow_nan=False))
    if kind == "edge":
        return draw(st.sampled_from([low, high]))
    share = draw(
        st.floats(-0.5, 1.5) if kind == "share" else st.integers(0, 16).map(lambda n: n / 16)
    )
    value = low + share * (high - low)
    return float(np.nextafter(value, draw(st.sampled_from([-np.inf, value, np.inf]))))


@pytest.mark.parametrize("space", SPACES, ids=str)
@given(data=st.data())
def test_ticks_are_monotone_and_stay_in_range(space: Space, data: st.DataObject) -> None:
    for ticks, low, high in (
        (space.ticks_x, space.west, space.east),
        (space.ticks_y, space.south, space.north),
    ):
        values = np.sort(data.draw(st.lists(coordinates(space, low, high), min_size=2)))
        found = ticks(values).astype(np.int64)
        assert (np.diff(found) >= 0).all()
        assert ((found >= -1) & (found <= TICKS + 1)).all()
        inside = (values >= low) & (values <= high)
        assert ((found[inside] >= 0) & (found[inside] <= TICKS)).all()


@pytest.mark.parametrize("space", SPACES, ids=str)
@given(data=st.data())
def test_the_cell_of_a_point_in_a_rectangle_is_in_its_range(
    space: Space, data: st.DataObject
) -> None:
    grid = Grid(space, data.draw(st.integers(1, 1000)), data.draw(st.integers(1, 16)))
    xs = st.lists(coordinates(space, space.west, space.east), min_size=3, max_size=3)
    ys = st.lists(coordinates(space, space.south, space.north), min_size=3, max_size=3)
    x0, x, x1 = sorted(data.draw(xs))
    y0, y, y1 = sorted(data.draw(ys))
    assume(space.inside(np.array([x]), np.array([y]))[0])
    ranges = grid.ranges(*(np.array([edge]) for edge in (x0, y0, x1, y1)))
    column, row = int(grid.columns_of(np.array([x]))[0]), int(grid.rows_of(np.array([y]))[0])
    assert ranges.col0[0] <= column <= ranges.col1[0]
    assert ranges.row0[0] <= row <= ranges.row1[0]
    assert ranges.col0[0] >= 0
    assert ranges.col1[0] < grid.columns
    assert ranges.row0[0] >= 0
    assert ranges.row1[0] < grid.rows


@given(
    st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)
)  # fmt: skip
def test_a_range_is_empty_exactly_where_the_rectangle_does_not_touch_the_space(
    x0: float, y0: float, x1: float, y1: float
) -> None:
    grid = Grid(Space("planar", -1e3, -1e3, 1e3, 1e3), 10, 10)
    found = grid.ranges(*(np.array([edge]) for edge in (x0, y0, x1, y1)))
    touches = x0 <= x1 and y0 <= y1 and x1 >= -1e3 and x0 <= 1e3 and y1 >= -1e3 and y0 <= 1e3
    assert (found.col1[0] >= found.col0[0]) == touches


def destination(lon: float, lat: float, bearing: float, angle: float) -> tuple[float, float]:
    """Where one gets on a great circle."""
    phi = math.radians(lat)
    ahead = math.cos(phi) * math.cos(angle) - math.sin(phi) * math.sin(angle) * math.cos(bearing)
    aside = math.sin(angle) * math.sin(bearing)
    up = math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(bearing)
    turned = lon + math.degrees(math.atan2(aside, ahead))
    turned += 360 * ((turned < -180) - (turned > 180))
    return turned, math.degrees(math.atan2(up, math.hypot(ahead, aside)))


LON = st.one_of(st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.999, -179.999, 0.0]))
LAT = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, 90.0, 89.9, -89.9, 0.0]))
RADIUS = st.one_of(
    st.floats(0, 2.1e7), st.floats(0, 1e5), st.sampled_from([0.0, 1.0, 1e7, 10_007_557.0, 2.1e7])
)


@settings(max_examples=400)
@given(LON, LAT, RADIUS, st.floats(0, 2 * math.pi), st.floats(0, 1))
@example(180.0, 0.0, 1000.0, math.pi / 2, 1.0)
@example(-180.0, 0.0, 1000.0, 3 * math.pi / 2, 1.0)
@example(0.0, 80.0, 1_200_000.0, 0.0, 1.0)
@example(0.0, 60.0, 3_300_000.0, 1.5, 1.0)
def test_the_box_around_contains_everything_within_the_distance(
    lon: float, lat: float, radius: float, bearing: float, share: float
) -> None:
    angle = share * min(radius / sphere.EARTH_RADIUS_M, math.pi) * (1 - 1e-9)
    x, y = destination(lon, lat, bearing, angle)
    assert float(sphere.distance_m(lon, lat, x, y)) <= radius + 1e-3
    west, south, east, north = sphere.box_around(lon, lat, radius)
    assert -180 <= west <= 180
    assert -180 <= east <= 180
    assert -90 <= south <= lat <= north <= 90
    assert south <= y <= north
    beside = x >= west or x <= east if west > east else west <= x <= east
    assert beside or abs(y) > 90 - 1e-9  # at the pole every longitude is the same place


@given(LON, LAT, RADIUS)
def test_the_box_around_is_not_needlessly_large(lon: float, lat: float, radius: float) -> None:
    _, south, _, north = sphere.box_around(lon, lat, radius)
    reach = math.degrees(radius / sphere.EARTH_RADIUS_M) + 1e-6
    assert south >= lat - reach
    assert north <= lat + reach


@given(LON, LAT, LON, LAT)
def test_distance_is_symmetric_and_at_most_half_the_globe(
    lon1: float, lat1: float, lon2: float, lat2: float
) -> None:
    there = float(sphere.distance_m(lon1, lat1, lon2, lat2))
    back = float(sphere.distance_m(lon2, lat2, lon1, lat1))
    assert there == pytest.approx(back, abs=1e-6)
    assert 0 <= there <= math.pi * sphere.EARTH_RADIUS_M + 1e-6
    assert float(sphere.distance_m(lon1, lat1, lon1, lat1)) == 0
