"""The search for the nearest events: a distance, the box around it, and how to widen it.

The box holds everything within the distance, across the antimeridian and over the poles too, so
that k events found within the distance are certain to hold the k nearest.
"""

from __future__ import annotations

import math

import numpy as np

from geoflux.operators.area import Box, boxes_of
from geoflux.operators.snapshot import Nearest
from geoflux.spatial import sphere
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import FloatArray, Space

_LEAST_GROWTH, _MOST_GROWTH = 2.0, 4.0


def distances(space: Space, point: Nearest, x: FloatArray, y: FloatArray) -> FloatArray:
    """From the point to others: metres along the great circle, or in the unit of the plane."""
    if space.is_lonlat:
        found: FloatArray = sphere.distance_m(point.x, point.y, x, y)
        return found
    return np.hypot(x - point.x, y - point.y)


def search_box(space: Space, point: Nearest, radius: float) -> Box:
    """A box around everything within a distance; it may wrap the antimeridian."""
    if space.is_lonlat:
        return sphere.box_around(point.x, point.y, radius)
    reach = radius + 1e-12 * (abs(point.x) + abs(point.y) + radius)
    return point.x - reach, point.y - reach, point.x + reach, point.y + reach


def first_radius(grid: Grid, point: Nearest, events: int, asked: Box | None) -> float:
    """The distance within which k events would lie if all were spread evenly; in a plane at least
    the distance to where events may lie."""
    space = grid.space
    share = min(1.0, point.k / max(events, 1))
    if space.is_lonlat:
        return max(1.0, 2 * sphere.EARTH_RADIUS_M * math.sqrt(share))
    spread = math.sqrt(share * space.width * space.height / math.pi)
    away = min(_away(box, point) for box in (*boxes_of(space, asked), *boxes_of(space, None)))
    return away + max(spread, grid.cell_width / 1024)


def _away(box: Box, point: Nearest) -> float:
    dx = max(box[0] - point.x, 0.0, point.x - box[2])
    dy = max(box[1] - point.y, 0.0, point.y - box[3])
    return math.hypot(dx, dy)


def wider(radius: float, distance: FloatArray, k: int) -> float:
    """The next distance to try, after fewer than k events were found within this one.

    ``distance`` are those of all events in the box, so also of some that lie farther away: with k
    of them it is certain how far the k-th nearest can be.

    >>> round(wider(10.0, np.array([3.0, 11.0]), 2), 6), wider(10.0, np.array([]), 2)
    (11.0, 40.0)
    """
    if distance.size >= k:
        return float(np.partition(distance, k - 1)[k - 1]) * (1 + 1e-9)
    growth = 1.25 * math.sqrt(k / distance.size) if distance.size else _MOST_GROWTH
    return radius * min(max(growth, _LEAST_GROWTH), _MOST_GROWTH)
