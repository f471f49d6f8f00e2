"""The grid of cells over a space: the resolution at which plans route and indexes bucket.

Columns run west to east and rows south to north. The map from coordinate to column is monotone and
is used for points and for the edges of shapes alike: a point inside a rectangle therefore always
lies in a cell that the rectangle's range of cells contains, whatever the rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.spatial.space import FloatArray, IntArray, Space


@dataclass(frozen=True)
class CellRanges:
    """Ranges of cells, both ends included, one entry per rectangle; empty where ``col1 < col0``."""

    col0: IntArray
    row0: IntArray
    col1: IntArray
    row1: IntArray

    def __len__(self) -> int:
        return int(self.col0.size)

    def take(self, rows: npt.NDArray[Any]) -> CellRanges:
        """Some of the ranges."""
        return CellRanges(self.col0[rows], self.row0[rows], self.col1[rows], self.row1[rows])


@dataclass(frozen=True)
class Grid:
    """``columns`` x ``rows`` cells of equal size over a space.

    >>> grid = Grid(Space("planar", 0.0, 0.0, 10.0, 10.0), 5, 5)
    >>> grid.columns_of(np.array([0.0, 1.9, 2.0, 10.0]))
    array([0, 0, 1, 4], dtype=int32)
    """

    space: Space
    columns: int
    rows: int

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.columns * self.rows

    @property
    def cell_width(self) -> float:
        """Width of a cell in the space's unit."""
        return self.space.width / self.columns

    @property
    def cell_height(self) -> float:
        """Height of a cell in the space's unit."""
        return self.space.height / self.rows

    def columns_of(self, x: FloatArray) -> IntArray:
        """Column of each coordinate; what lies outside gets the nearest column."""
        return _indices(x, self.space.west, self.columns / self.space.width, self.columns)

    def rows_of(self, y: FloatArray) -> IntArray:
        """Row of each coordinate; what lies outside gets the nearest row."""
        return _indices(y, self.space.south, self.rows / self.space.height, self.rows)

    def ranges(self, x0: FloatArray, y0: FloatArray, x1: FloatArray, y1: FloatArray) -> CellRanges:
        """The cells that closed rectangles touch; empty for such as lie outside the space."""
        col0, row0 = self.columns_of(x0), self.rows_of(y0)
        col1, row1 = self.columns_of(x1), self.rows_of(y1)
        space = self.space
        outside = (
            (x1 < space.west) | (x0 > space.east) | (y1 < space.south) | (y0 > space.north)
            | (x1 < x0) | (y1 < y0)
        )  # fmt: skip
        col1[outside] = -1
        col0[outside] = 0
        return CellRanges(col0, row0, col1, row1)


@numba.njit(cache=True)
def _indices(values: Any, origin: float, scale: float, count: int) -> Any:
    out = np.empty(values.size, np.int32)
    for i in range(values.size):
        place = (values[i] - origin) * scale
        if not place > 0:
            out[i] = 0
        elif place >= count:
            out[i] = count - 1
        else:
            out[i] = np.int32(place)
    return out
