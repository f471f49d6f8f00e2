"""Shapes of standing queries: rectangles, circles, GeoJSON polygons; all closed.

A shape is stored as its kind, its bounding box and, where the box does not say it all, a few
bytes: a circle's centre and radius, or a polygon's WKB. A box whose west is greater than its east
wraps the antimeridian. What cannot be understood is a :class:`RejectedRecord`, never a guess.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from geoflux.errors import RejectedRecord
from geoflux.spatial import sphere
from geoflux.spatial.space import FloatArray, Space

RECTANGLE, CIRCLE, POLYGON = 0, 1, 2


@dataclass(frozen=True)
class Shape:
    """A validated shape: ``kind``, bounding ``box`` (west, south, east, north), exact ``body``."""

    kind: int
    box: tuple[float, float, float, float]
    body: bytes | None = None


def parse_shape(given: Any, space: Space) -> Shape:
    """A shape from its JSON form.

    >>> lonlat = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
    >>> given = {"type": "rectangle", "west": 170, "south": -5, "east": -170, "north": 5}
    >>> parse_shape(given, lonlat)
    Shape(kind=0, box=(170.0, -5.0, -170.0, 5.0), body=None)
    """
    if not isinstance(given, Mapping):
        raise _invalid(f"the shape is {_short(given)}; expected an object with a type")
    kind = given.get("type")
    if kind == "rectangle":
        return _rectangle(given, space)
    if kind == "circle":
        return _circle(given, space)
    if kind in ("Polygon", "MultiPolygon"):
        return _polygon(given, space)
    raise _invalid(
        f"the shape's type is {_short(kind)}; expected rectangle, circle, Polygon or MultiPolygon"
    )


def _rectangle(given: Mapping[str, Any], space: Space) -> Shape:
    west, south, east, north = (
        finite_number(given, key) for key in ("west", "south", "east", "north")
    )
    if south > north:
        raise _invalid(f"south {south:g} is above north {north:g}")
    _check_degrees(space, (west, east), (south, north))
    if west > east and not space.is_lonlat:
        raise _invalid(f"west {west:g} is right of east {east:g}, and a planar space does not wrap")
    return Shape(RECTANGLE, (west, south, east, north))


def _circle(given: Mapping[str, Any], space: Space) -> Shape:
    names = ("lon", "lat", "radius_m") if space.is_lonlat else ("x", "y", "radius")
    x, y, radius = (finite_number(given, key) for key in names)
    if radius < 0:
        raise _invalid(f"{names[2]} is {radius:g}; expected 0 or more")
    _check_degrees(space, (x,), (y,))
    if space.is_lonlat:
        box = sphere.box_around(x, y, radius)
    else:
        slack = 1e-12 * (abs(x) + abs(y) + radius)
        reach = radius + slack
        box = (x - reach, y - reach, x + reach, y + reach)
    return Shape(CIRCLE, box, struct.pack("<3d", x, y, radius))


def _polygon(given: Mapping[str, Any], space: Space) -> Shape:
    try:
        text = json.dumps({"type": given["type"], "coordinates": given.get("coordinates")})
        polygon = shapely.force_2d(shapely.from_geojson(text))
    except (shapely.errors.GEOSException, TypeError, ValueError, RecursionError) as error:
        raise _invalid(f"the coordinates are no {given['type']}: {_first_line(error)}") from None
    if polygon is None or polygon.is_empty:
        raise _invalid(f"the {given['type']} is empty")
    if not np.isfinite(shapely.get_coordinates(polygon)).all():
        raise _invalid("a coordinate is not a finite number")
    if not polygon.is_valid:
        raise _invalid(f"the {given['type']} is invalid: {shapely.is_valid_reason(polygon)}")
    west, south, east, north = (float(edge) for edge in polygon.bounds)
    _check_degrees(space, (west, east), (south, north))
    return Shape(POLYGON, (west, south, east, north), shapely.to_wkb(polygon))


def outside(space: Space, box: tuple[float, float, float, float]) -> bool:
    """Whether a box lies wholly outside the space, so that nothing can ever match."""
    west, south, east, north = box
    if north < space.south or south > space.north:
        return True
    if west > east:
        return west > space.east and east < space.west
    return east < space.west or west > space.east


def circle_of(body: bytes) -> tuple[float, float, float]:
    """Centre and radius of a circle."""
    x, y, radius = struct.unpack("<3d", body)
    return x, y, radius


def within_circle(
    space: Space, x: FloatArray, y: FloatArray, centres: FloatArray
) -> npt.NDArray[np.bool_]:
    """Which points lie in which circle; ``centres`` has a row (x, y, radius) for each point."""
    cx, cy, radius = centres[:, 0], centres[:, 1], centres[:, 2]
    if space.is_lonlat:
        inside = sphere.distance_m(cx, cy, x, y) <= radius
    else:
        inside = np.hypot(x - cx, y - cy) <= radius
    found: npt.NDArray[np.bool_] = inside
    return found


def finite_number(given: Mapping[str, Any], key: str, code: str = "invalid_shape") -> float:
    """A number of a record; :class:`RejectedRecord` with the code where it is none."""
    value = given.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RejectedRecord(code, f"{key} is {_short(value)}; expected a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RejectedRecord(code, f"{key} is {number}; expected a finite number")
    return number


def _check_degrees(space: Space, lons: tuple[float, ...], lats: tuple[float, ...]) -> None:
    if not space.is_lonlat:
        return
    for lon in lons:
        if not -180 <= lon <= 180:
            raise _invalid(f"longitude {lon:g} is outside -180 to 180")
    for lat in lats:
        if not -90 <= lat <= 90:
            raise _invalid(f"latitude {lat:g} is outside -90 to 90")


def _invalid(detail: str) -> RejectedRecord:
    return RejectedRecord("invalid_shape", detail)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["not readable"])[0][:200]
