"""Shapes: what is parsed, what is refused with which sentence, and which points a circle holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from geoflux.errors import RejectedRecord
from geoflux.spatial.shapes import (
    CIRCLE,
    POLYGON,
    RECTANGLE,
    circle_of,
    outside,
    parse_shape,
    within_circle,
)
from geoflux.spatial.space import Space

WORLD = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
PLANE = Space("planar", 0.0, 0.0, 1000.0, 1000.0)
RING = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]


def test_a_rectangle_is_its_box() -> None:
    given = {"type": "rectangle", "west": -180, "south": -90, "east": 180.0, "north": 90}
    shape = parse_shape(given, WORLD)
    assert (shape.kind, shape.box, shape.body) == (RECTANGLE, (-180.0, -90.0, 180.0, 90.0), None)
    point = parse_shape({"type": "rectangle", "west": 1, "south": 2, "east": 1, "north": 2}, WORLD)
    assert point.box == (1.0, 2.0, 1.0, 2.0)


def test_a_circle_keeps_its_centre_and_radius() -> None:
    shape = parse_shape({"type": "circle", "lon": 10.1, "lat": 20.2, "radius_m": 1000.5}, WORLD)
    assert shape.kind == CIRCLE
    assert shape.body is not None
    assert circle_of(shape.body) == (10.1, 20.2, 1000.5)
    west, south, east, north = shape.box
    assert west < 10.1 < east
    assert south < 20.2 < north
    assert north - south == pytest.approx(2 * 1000.5 / 111_195.08, rel=1e-5)


def test_a_planar_circle() -> None:
    shape = parse_shape({"type": "circle", "x": 10, "y": 20, "radius": 5}, PLANE)
    assert shape.box == pytest.approx((5, 15, 15, 25))
    assert shape.box[0] < 5 < 15 < shape.box[2]
    edge = np.array([[10.0, 20.0, 5.0]] * 3)
    inside = within_circle(PLANE, np.array([15.0, 13.0, 15.1]), np.array([20.0, 24.0, 20.0]), edge)
    assert inside.tolist() == [True, True, False]


def test_a_circle_over_the_antimeridian_and_over_a_pole() -> None:
    west, _, east, _ = parse_shape(
        {"type": "circle", "lon": 179.9, "lat": 0, "radius_m": 50_000}, WORLD
    ).box
    assert west > east
    polar = parse_shape({"type": "circle", "lon": 0, "lat": 89, "radius_m": 300_000}, WORLD)
    assert (polar.box[0], polar.box[2], polar.box[3]) == (-180.0, 180.0, 90.0)


def test_a_polygon_keeps_its_holes_and_loses_its_heights() -> None:
    hole = [[1, 1], [2, 1], [2, 2], [1, 1]]
    lifted = [[x, y, 7] for x, y in RING]
    shape = parse_shape({"type": "Polygon", "coordinates": [lifted, hole]}, WORLD)
    assert (shape.kind, shape.box) == (POLYGON, (0.0, 0.0, 4.0, 4.0))
    polygon = shapely.from_wkb(shape.body)
    assert polygon.equals(shapely.Polygon(RING, [hole]))
    assert not polygon.has_z


@pytest.mark.parametrize(
    ("space", "given", "sentence"),
    [
        (WORLD, 5, "the shape is 5; expected an object with a type"),
        (WORLD, {"type": "box"}, "the shape's type is 'box'; expected rectangle, circle, Polygon"),
        (WORLD, {"type": "rectangle", "west": 0}, "south is None; expected a number"),
        (WORLD, {"type": "circle", "lon": 0, "lat": 0, "radius_m": -2}, "radius_m is -2; expected 0"),
        (WORLD, {"type": "circle", "lon": 181, "lat": 0, "radius_m": 1}, "longitude 181 is outside"),
        (PLANE, {"type": "circle", "lon": 1, "lat": 0, "radius_m": 1}, "x is None; expected a number"),
        (WORLD, {"type": "Polygon", "coordinates": []}, "the Polygon is empty"),
        (WORLD, {"type": "Polygon", "coordinates": [RING[:4]]}, "the coordinates are no Polygon"),
        (WORLD, {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]},
         "Self-intersection"),
    ],
    ids=str,
)  # fmt: skip
def test_refusals_say_what_was_given_and_what_was_expected(
    space: Space, given: Any, sentence: str
) -> None:
    with pytest.raises(RejectedRecord) as caught:
        parse_shape(given, space)
    assert caught.value.code == "invalid_shape"
    assert sentence in caught.value.detail
    assert len(caught.value.detail) < 400


def test_a_long_value_is_shown_short() -> None:
    with pytest.raises(RejectedRecord) as caught:
        parse_shape("x" * 10_000, WORLD)
    assert len(caught.value.detail) < 200


@pytest.mark.parametrize(
    ("box", "is_outside"),
    [
        ((10, 10, 20, 20), False), ((0, 0, 10, 10), False), ((0, 0, 9.9, 10), True),
        ((20.1, 0, 30, 30), True), ((0, 20.1, 30, 30), True), ((0, 0, 30, 9), True),
        ((170, 10, -170, 20), True), ((15, 10, -170, 20), False), ((170, 10, 12, 20), False),
        ((15, 21, 12, 22), True),
    ],
)  # fmt: skip
def test_outside(box: tuple[float, float, float, float], is_outside: bool) -> None:
    assert outside(Space("lonlat", 10.0, 10.0, 20.0, 20.0), box) is is_outside
