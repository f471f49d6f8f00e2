"""The area that a snapshot asks about, as cells: which to skip, to test, to take as a whole.

The area's boxes are cut into at most :data:`MOST_BLOCKS` blocks of cells each. Events of a block
that lies wholly inside the shape need no look at their coordinates; those of a block outside are
never read. The map from coordinates to cells is monotone, so a cell strictly between the cells of
two edges lies strictly between the edges, whatever the rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import shapely

from geoflux.operators.cover import cover_circles, cover_polygons
from geoflux.operators.index import Buckets
from geoflux.spatial.grid import CellRanges, Grid
from geoflux.spatial.shapes import CIRCLE, POLYGON, Shape, circle_of, within_circle
from geoflux.spatial.space import FloatArray, Space

Box = tuple[float, float, float, float]
Cells = tuple[int, int, int, int]
Mask = npt.NDArray[np.bool_]

SKIP, TEST, TAKE = 0, 1, 2
MOST_BLOCKS = 1024


@dataclass(frozen=True)
class Part:
    """A closed box that does not wrap, the cells it touches (both ends included), and what to do
    with each block of ``2 ** shift`` cells a side: :data:`SKIP`, :data:`TEST` or :data:`TAKE`."""

    box: Box
    cells: Cells
    shift: int
    verdict: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Area:
    """A shape (``None``: the whole space) within boxes; no point lies in two of its parts."""

    space: Space
    shape: Shape | None
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, grid: Grid, shape: Shape | None, within: Box | None = None) -> Area:
        """The area of a shape, or of what lies of it within a box (which may wrap)."""
        space = grid.space
        boxes = boxes_of(space, None if shape is None else shape.box)
        if within is not None:
            boxes = _intersections(boxes, boxes_of(space, within))
        parts = (_part(grid, shape, box) for box in boxes)
        return cls(space, shape, tuple(part for part in parts if part is not None))

    @property
    def ranges(self) -> CellRanges:
        """The cells of the parts."""
        cells = np.array([part.cells for part in self.parts], np.int32).reshape(-1, 4)
        return CellRanges(*(np.ascontiguousarray(cells[:, i]) for i in range(4)))

    @property
    def is_box(self) -> bool:
        """Whether the boxes say it all."""
        return self.shape is None or self.shape.kind not in (CIRCLE, POLYGON)

    def holds(self, x: FloatArray, y: FloatArray) -> Mask:
        """Which points, all of them in the boxes, lie in the shape."""
        if self.is_box:
            return np.ones(x.size, np.bool_)
        assert self.shape is not None
        assert self.shape.body is not None
        if self.shape.kind == CIRCLE:
            circle = np.array(circle_of(self.shape.body)).reshape(1, 3)
            return within_circle(self.space, x, y, circle)
        found: Mask = shapely.intersects_xy(self._polygon, x, y)
        return found

    @cached_property
    def _polygon(self) -> shapely.Geometry:
        assert self.shape is not None
        polygon = shapely.from_wkb(self.shape.body)
        shapely.prepare(polygon)
        return polygon


def boxes_of(space: Space, box: Box | None) -> list[Box]:
    """A box as boxes that do not wrap; without one, the space."""
    if box is None:
        return [(space.west, space.south, space.east, space.north)]
    west, south, east, north = box
    if west <= east:
        return [box]
    return [(west, south, 180.0, north), (-180.0, south, east, north)]


def covers(space: Space, outer: Box, inner: Box | None) -> bool:
    """Whether a box holds all of the space that another one holds.

    >>> world = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
    >>> covers(world, (170.0, -9.0, -170.0, 9.0), (175.0, 0.0, -175.0, 1.0))
    True
    """
    whole = boxes_of(space, None)
    given = _intersections(boxes_of(space, outer), whole)
    asked = _intersections(boxes_of(space, inner), whole)
    return all(any(_intersections([a], [g]) == [a] for g in given) for a in asked)


def _intersections(some: list[Box], others: list[Box]) -> list[Box]:
    met = [
        (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))
        for a in some
        for b in others
    ]
    return [box for box in met if box[0] <= box[2] and box[1] <= box[3]]


def _part(grid: Grid, shape: Shape | None, box: Box) -> Part | None:
    ranges = grid.ranges(*(np.array([edge], np.float64) for edge in box))
    col0, row0, col1, row1 = (
        int(v[0]) for v in (ranges.col0, ranges.row0, ranges.col1, ranges.row1)
    )
    if col1 < col0:
        return None
    shift = 0
    while ((col1 >> shift) - (col0 >> shift) + 1) * ((row1 >> shift) - (row0 >> shift) + 1) > (
        MOST_BLOCKS
    ):
        shift += 1
    verdict = _box_verdict(grid, box, (col0, row0, col1, row1), shift)
    if shape is not None and shape.kind in (CIRCLE, POLYGON):
        verdict = np.minimum(verdict, _shape_verdict(grid, shape, (col0, row0, col1, row1), shift))
    return Part(box, (col0, row0, col1, row1), shift, verdict)


def _box_verdict(grid: Grid, box: Box, cells: Cells, shift: int) -> npt.NDArray[np.uint8]:
    """Blocks between the cells of the edges are taken; an edge on or beyond the border of the
    space cuts nothing off, since every event lies in the space."""
    space = grid.space
    inside_x = _between(
        (cells[0], cells[2]), shift, (box[0] <= space.west, box[2] >= space.east), grid.columns
    )
    inside_y = _between(
        (cells[1], cells[3]), shift, (box[1] <= space.south, box[3] >= space.north), grid.rows
    )
    return np.where(inside_y[:, None] & inside_x[None, :], TAKE, TEST).astype(np.uint8)


def _between(
    ends: tuple[int, int], shift: int, whole: tuple[bool, bool], count: int
) -> Mask:  # fmt: skip
    """Which blocks along one axis have no cell at an edge of the box, nor beyond it."""
    low = -1 if whole[0] else ends[0]
    high = count if whole[1] else ends[1]
    blocks = np.arange(ends[0] >> shift, (ends[1] >> shift) + 1)
    last = np.minimum((blocks << shift) + (1 << shift) - 1, count - 1)
    found: Mask = (blocks << shift > low) & (last < high)
    return found


def _shape_verdict(grid: Grid, shape: Shape, cells: Cells, shift: int) -> npt.NDArray[np.uint8]:
    assert shape.body is not None
    columns = np.arange(cells[0] >> shift, (cells[2] >> shift) + 1, dtype=np.int32)
    rows = np.arange(cells[1] >> shift, (cells[3] >> shift) + 1, dtype=np.int32)
    column, row = np.tile(columns, rows.size), np.repeat(rows, columns.size)
    side = np.int32((1 << shift) - 1)
    blocks = CellRanges(
        column << shift, row << shift,
        np.minimum((column << shift) + side, grid.columns - 1),
        np.minimum((row << shift) + side, grid.rows - 1),
    )  # fmt: skip
    whole = Buckets(0, 0, grid.columns, grid.rows)
    if shape.kind == CIRCLE:
        circles = np.tile(np.array(circle_of(shape.body)), (column.size, 1))
        cover = cover_circles(grid, whole, blocks, circles)
    else:
        polygons = np.full(column.size, shapely.from_wkb(shape.body), np.object_)
        cover = cover_polygons(grid, whole, blocks, polygons)
    # Neighbouring buckets share an edge: if one of a block is not touched, none beside it lies
    # wholly inside. So a block is inside when all of its buckets that are touched are.
    verdict = np.full(column.size, SKIP, np.uint8)
    verdict[cover.row] = TAKE
    verdict[cover.row[~cover.inside]] = TEST
    return verdict.reshape(rows.size, columns.size)
