"""Which buckets a circle or polygon touches, and which lie wholly inside it.

A bucket wholly inside needs no exact test: its entry matches every event. Buckets are widened by a
hair before they are compared with a shape, since an event is put into a cell by rounded
arithmetic: the cover may hold a bucket too many, never one too few, and calls none "inside" that
is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import shapely

from geoflux.operators.index import Buckets, level_of
from geoflux.spatial import sphere
from geoflux.spatial.grid import CellRanges, Grid
from geoflux.spatial.space import FloatArray, IntArray

_HAIR = 1e-9
"""By how much of a cell a bucket is widened; rounding moves an event by about 1e-12 of one."""


@dataclass(frozen=True)
class Cover:
    """Buckets touched by shapes: entry by entry the bucket, the shape's row, whether inside."""

    bucket: npt.NDArray[np.int64]
    row: IntArray
    inside: npt.NDArray[np.bool_]


def cover_polygons(
    grid: Grid, buckets: Buckets, ranges: CellRanges, polygons: npt.NDArray[np.object_]
) -> Cover:
    """The cover of polygons; ``ranges`` are the cells of their boxes, relative to the partition."""
    bucket, row, west, south, east, north = _expand(grid, buckets, ranges)
    shapely.prepare(polygons)
    boxes = shapely.box(west, south, east, north)
    touched = shapely.intersects(polygons[row], boxes)
    inside = np.zeros(touched.size, np.bool_)
    inside[touched] = shapely.contains_properly(polygons[row[touched]], boxes[touched])
    return Cover(bucket[touched], row[touched], inside[touched])


def cover_circles(grid: Grid, buckets: Buckets, ranges: CellRanges, circles: FloatArray) -> Cover:
    """The cover of circles, given as rows (x, y, radius)."""
    bucket, row, west, south, east, north = _expand(grid, buckets, ranges)
    cx, cy, radius = circles[row, 0], circles[row, 1], circles[row, 2]
    corners = ((west, south), (west, north), (east, south), (east, north))
    if not grid.space.is_lonlat:
        farthest = np.max([np.hypot(x - cx, y - cy) for x, y in corners], axis=0)
        return Cover(bucket, row, farthest < radius * (1 - 1e-9))
    # Up to a quarter of the globe away the distance is largest at a corner: along a parallel it
    # grows with the difference in longitude, along a meridian it has its only extremum nearby.
    # Farther away it may peak inside a box, so such boxes are left to the exact test.
    farthest = np.max([sphere.distance_m(cx, cy, x, y) for x, y in corners], axis=0)
    near = (_turn(west, cx) <= 90) & (_turn(east, cx) <= 90) & (east - west < 180)
    return Cover(bucket, row, near & (farthest < radius * (1 - 1e-9) - 1e-3))


def _turn(lon: FloatArray, centre: FloatArray) -> FloatArray:
    """The difference of longitudes the short way round."""
    return np.abs((lon - centre + 180) % 360 - 180)


def _expand(grid: Grid, buckets: Buckets, ranges: CellRanges) -> tuple[Any, ...]:
    """Every bucket of every range with its row and its box in the space's unit."""
    levels = buckets.levels
    level = level_of(levels, ranges)
    bucket, row, col0, row0, size = _list_buckets(
        levels, level, ranges.col0, ranges.row0, ranges.col1, ranges.row1
    )
    wide, high = grid.cell_width, grid.cell_height
    west = grid.space.west + (buckets.col0 + col0 - _HAIR) * wide
    south = grid.space.south + (buckets.row0 + row0 - _HAIR) * high
    east = grid.space.west + (buckets.col0 + col0 + size + _HAIR) * wide
    north = grid.space.south + (buckets.row0 + row0 + size + _HAIR) * high
    if grid.space.is_lonlat:
        south, north = np.maximum(south, -90.0), np.minimum(north, 90.0)
    return bucket, row, west, south, east, north


@numba.njit(cache=True)
def _list_buckets(levels: Any, level: Any, col0: Any, row0: Any, col1: Any, row1: Any) -> Any:
    total = 0
    for q in range(col0.size):
        if col1[q] >= col0[q]:
            shift = levels[level[q], 2]
            wide = (col1[q] >> shift) - (col0[q] >> shift) + 1
            total += wide * ((row1[q] >> shift) - (row0[q] >> shift) + 1)
    bucket = np.empty(total, np.int64)
    row_of = np.empty(total, np.int32)
    left = np.empty(total, np.int64)
    low = np.empty(total, np.int64)
    size = np.empty(total, np.int64)
    k = 0
    for q in range(col0.size):
        if col1[q] < col0[q]:
            continue
        first, columns, shift = levels[level[q]]
        for row in range(row0[q] >> shift, (row1[q] >> shift) + 1):
            for column in range(col0[q] >> shift, (col1[q] >> shift) + 1):
                bucket[k] = first + row * columns + column
                row_of[k] = q
                left[k] = column << shift
                low[k] = row << shift
                size[k] = 1 << shift
                k += 1
    return bucket, row_of, left, low, size
