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

import numpy as np
import numpy.typing as npt

from geoflux.sketch.region_kernels import cell_shares
from geoflux.sketch.scope import Box, Circle, Prefix, Region
from geoflux.spatial import geohash

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NONE, PART, WHOLE = 0, 1, 2


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
    state, wide, tall, own = cell_shares(
        cells.west, cells.south, cells.east, cells.north, cells.last_x, cells.last_y,
        shapes.boxes, shapes.circles,
    )  # fmt: skip
    column = np.where(own, -1 - np.arange(n), cells.column)
    return CellShares(state, wide, tall, column, cells.row)
