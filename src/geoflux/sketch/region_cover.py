"""How much of each region cell the shapes of a scope cover.

A cell is the box of all places with its geohash: its west and south edges belong to it, its east
and north edges to its neighbours. So a closed box covers it wholly when it reaches the last number
before those edges. Boxes and prefixes give exact shares of the area in degrees; a circle's share of
a cell that it cuts is taken at 16 by 16 places of the cell, while "wholly" and "not at all" come
from the cell's farthest and nearest place along the sphere.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.scope import Box, Circle, Prefix, Region
from geoflux.spatial import geohash

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NONE, PART, WHOLE = 0, 1, 2
_RADIUS_KM = 6371.0088
_PLACES = 16


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """Geohash cells by their edges in degrees; ``last_x`` and ``last_y`` are the largest
    numbers that still belong to each."""

    west: Floats
    south: Floats
    east: Floats
    north: Floats
    last_x: Floats
    last_y: Floats
    column: Ints
    row: Ints


def cells_of(codes: Ints, bits: int) -> Cells:
    """The cells of geohash codes of ``bits`` bits, longitude bit first.

    >>> cells = cells_of(np.array([1]), 1)
    >>> float(cells.west[0]), float(cells.east[0]), float(cells.south[0])
    (0.0, 180.0, -90.0)
    """
    west, south, east, north = geohash.bounds(codes, bits)
    # The ends of the world belong to the last cells.
    last_x = np.where(east >= 180.0, 180.0, np.nextafter(east, -np.inf))
    last_y = np.where(north >= 90.0, 90.0, np.nextafter(north, -np.inf))
    return Cells(west, south, east, north, last_x, last_y, *geohash.cells(codes, bits))


@dataclass(frozen=True, eq=False, slots=True)
class Shapes:
    """A union of shapes, ready for many cells: boxes (west, south, east, north) that do not cross
    the date line and overlap in edges only, and circles (longitude, latitude, kilometres)."""

    boxes: Floats
    circles: Floats


def shapes_of(regions: tuple[Region, ...] | None) -> Shapes | None:
    """The shapes of a scope; ``None``: everywhere."""
    if regions is None:
        return None
    boxes: list[tuple[float, float, float, float]] = []
    circles: list[tuple[float, float, float]] = []
    for region in regions:
        if isinstance(region, Circle):
            circles.append((region.lon, region.lat, region.km))
        elif isinstance(region, Prefix):
            cell = cells_of(np.array([region.code]), region.bits)
            edges = (cell.west, cell.south, cell.last_x, cell.last_y)
            boxes.append(tuple(float(e[0]) for e in edges))  # type: ignore[arg-type]
        else:
            boxes.extend(_straight(region))
    return Shapes(
        _disjoint(np.array(boxes, float).reshape(-1, 4)), np.array(circles, float).reshape(-1, 3)
    )


def _straight(box: Box) -> list[tuple[float, float, float, float]]:
    if box.west <= box.east:
        return [(box.west, box.south, box.east, box.north)]
    return [
        (box.west, box.south, 180.0, box.north),
        (-180.0, box.south, box.east, box.north),
    ]


def _disjoint(boxes: Floats) -> Floats:
    """The same area in boxes that have no area in common: columns between all their edges, in
    each the stretches of latitude that some box covers."""
    if len(boxes) < 2 or not _overlapping(boxes):
        return boxes
    xs = np.unique(boxes[:, [0, 2]])
    found: list[tuple[float, float, float, float]] = []
    for west, east in itertools.pairwise(xs):
        inside = boxes[(boxes[:, 0] <= west) & (boxes[:, 2] >= east)]
        top = -np.inf
        for south, north in sorted(zip(inside[:, 1], inside[:, 3], strict=True)):
            if found and found[-1][0] == west and south <= top:
                top = max(top, north)
                found[-1] = (west, found[-1][1], east, top)
            else:
                found.append((west, south, east, north))
                top = north
    # Boxes without width (a line, a point) have no share, but may hold places.
    thin = boxes[boxes[:, 0] == boxes[:, 2]]
    return np.concatenate([np.array(found, float).reshape(-1, 4), thin])


def _overlapping(boxes: Floats) -> bool:
    west, south, east, north = (boxes[:, k] for k in range(4))
    apart = (west[:, None] >= east) | (west >= east[:, None])
    apart |= (south[:, None] >= north) | (south >= north[:, None])
    return bool((~apart).sum() > len(boxes))


@dataclass(frozen=True, eq=False, slots=True)
class CellShares:
    """Of each cell: NONE, PART or WHOLE, and the share of its width and of its height that is
    covered (their product is the share of its area). ``column`` and ``row`` number what it is cut
    with: cells of one column are cut alike by the side of a box. A cell that is cut by a circle or
    by several boxes has a number of its own, and its share as that of its width."""

    state: npt.NDArray[np.int8]
    wide: Floats
    tall: Floats
    column: Ints
    row: Ints

    def both(self, other: CellShares) -> CellShares:
        """What lies in both; a cell that both cut has the product of its shares."""
        state = np.minimum(self.state, other.state)
        twice = (self.state == PART) & (other.state == PART)
        mine = (self.state == PART) & ~twice
        wide = np.where(mine, self.wide, other.wide)
        tall = np.where(mine, self.tall, other.tall)
        area = self.wide * self.tall * other.wide * other.tall
        column = np.where(
            twice, -1 - np.arange(len(state)), np.where(mine, self.column, other.column)
        )
        return CellShares(
            state, np.where(twice, area, wide), np.where(twice, 1.0, tall), column, self.row
        )


def region_shares(cells: Cells, shapes: Shapes | None) -> CellShares:
    """How much of each cell the shapes cover."""
    n = len(cells.west)
    if shapes is None:
        return CellShares(
            np.full(n, WHOLE, np.int8), np.ones(n), np.ones(n), cells.column, cells.row
        )
    state, wide, tall, own = _shares(
        cells.west, cells.south, cells.east, cells.north, cells.last_x, cells.last_y,
        shapes.boxes, shapes.circles,
    )  # fmt: skip
    column = np.where(own, -1 - np.arange(n), cells.column)
    return CellShares(state, wide, tall, column, cells.row)


@numba.njit(cache=True)
def _cosine(lat: float, lon: float, lat0: float, lon0: float) -> float:
    """Cosine of the angle between two places in radians."""
    return np.sin(lat) * np.sin(lat0) + np.cos(lat) * np.cos(lat0) * np.cos(lon - lon0)


@numba.njit(cache=True)
def _circle_state(west: Any, south: Any, east: Any, north: Any, lon: Any, lat: Any, km: Any) -> Any:
    """Whether a circle covers a box (radians) wholly, in part or not: for a longitude the angle is
    a sine of the latitude, with its one turning point on each half of the meridian."""
    apart = np.pi
    near = np.pi
    for turn in (-2.0 * np.pi, 0.0, 2.0 * np.pi):
        at = lon + turn
        inside = 0.0 if west <= at <= east else min(abs(at - west), abs(at - east))
        near = min(near, inside)
    far = 0.0
    for edge in (west, east):
        gap = abs(edge - lon) % (2.0 * np.pi)
        far = max(far, min(gap, 2.0 * np.pi - gap))
    for turn in (-np.pi, np.pi):
        if west <= lon + turn <= east:
            far = apart
    a = np.sin(lat)
    top = np.arctan2(a, np.cos(lat) * np.cos(near))
    top = min(max(top, south), north)
    nearest = max(
        _cosine(top, near, lat, 0.0),
        max(_cosine(south, near, lat, 0.0), _cosine(north, near, lat, 0.0)),
    )
    bottom = np.arctan2(a, np.cos(lat) * np.cos(far))
    bottom = bottom - np.pi if bottom > 0 else bottom + np.pi
    bottom = min(max(bottom, south), north)
    farthest = min(
        _cosine(bottom, far, lat, 0.0),
        min(_cosine(south, far, lat, 0.0), _cosine(north, far, lat, 0.0)),
    )
    least = np.cos(min(km / _RADIUS_KM, np.pi))
    # A hair of doubt counts as cut: an answer is then a bound, never wrong.
    if farthest > least + 1e-13:
        return 2
    return 0 if nearest < least - 1e-13 else 1


@numba.njit(cache=True)
def _shares(
    west: Any, south: Any, east: Any, north: Any, last_x: Any, last_y: Any, boxes: Any, circles: Any
) -> Any:  # fmt: skip
    n = west.size
    state = np.zeros(n, np.int8)
    wide, tall = np.zeros(n, np.float64), np.ones(n, np.float64)
    own = np.zeros(n, np.bool_)
    turn = np.pi / 180.0
    for i in range(n):
        boxed, cut = 0, False
        for b in range(boxes.shape[0]):
            if boxes[b, 0] > last_x[i] or boxes[b, 2] < west[i]:
                continue
            if boxes[b, 1] > last_y[i] or boxes[b, 3] < south[i]:
                continue
            if (
                boxes[b, 0] <= west[i] and boxes[b, 2] >= last_x[i]
                and boxes[b, 1] <= south[i] and boxes[b, 3] >= last_y[i]
            ):  # fmt: skip
                state[i] = 2
                break
            state[i] = 1
            boxed += 1
            reach_x = boxes[b, 2] >= last_x[i]
            reach_y = boxes[b, 3] >= last_y[i]
            width = (east[i] if reach_x else boxes[b, 2]) - max(boxes[b, 0], west[i])
            height = (north[i] if reach_y else boxes[b, 3]) - max(boxes[b, 1], south[i])
            width, height = width / (east[i] - west[i]), height / (north[i] - south[i])
            if boxed == 1:
                wide[i], tall[i] = width, height
            else:
                wide[i], tall[i] = min(wide[i] * tall[i] + width * height, 1.0), 1.0
        for c in range(circles.shape[0]):
            if state[i] == 2:
                break
            got = _circle_state(
                west[i] * turn, south[i] * turn, east[i] * turn, north[i] * turn,
                circles[c, 0] * turn, circles[c, 1] * turn, circles[c, 2],
            )  # fmt: skip
            state[i] = max(state[i], got)
            cut = cut or got == 1
        if state[i] == 2:
            wide[i], tall[i] = 1.0, 1.0
        elif cut:
            wide[i] = _sampled(west[i], south[i], east[i], north[i], boxes, circles)
            tall[i] = 1.0
        own[i] = state[i] == 1 and (cut or boxed > 1)
    return state, wide, tall, own


@numba.njit(cache=True)
def _sampled(west: Any, south: Any, east: Any, north: Any, boxes: Any, circles: Any) -> Any:
    turn = np.pi / 180.0
    hits = 0
    for j in range(_PLACES):
        lat = south + (j + 0.5) / _PLACES * (north - south)
        for k in range(_PLACES):
            lon = west + (k + 0.5) / _PLACES * (east - west)
            inside = False
            for b in range(boxes.shape[0]):
                inside = inside or (
                    boxes[b, 0] <= lon <= boxes[b, 2] and boxes[b, 1] <= lat <= boxes[b, 3]
                )
            for c in range(circles.shape[0]):
                near = _cosine(lat * turn, lon * turn, circles[c, 1] * turn, circles[c, 0] * turn)
                inside = inside or near >= np.cos(min(circles[c, 2] / _RADIUS_KM, np.pi))
            hits += inside
    return hits / _PLACES**2
