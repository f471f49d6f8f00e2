"""Standing queries as columns: the rows that control records become and partitions hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.spatial.grid import CellRanges, Grid
from geoflux.spatial.space import FloatArray, IntArray

QUERY_SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("user", pa.string()),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("x0", pa.float64(), nullable=False),
        pa.field("y0", pa.float64(), nullable=False),
        pa.field("x1", pa.float64(), nullable=False),
        pa.field("y1", pa.float64(), nullable=False),
        pa.field("body", pa.binary()),
        pa.field("where", pa.string()),
        pa.field("valid_from", pa.int64()),
        pa.field("valid_until", pa.int64()),
        pa.field("aggregate", pa.string()),
        pa.field("since", pa.int64()),
    ]
)
"""``number`` is unique for ever and grows; ``x0..y1`` is the bounding box (``x0 > x1`` wraps the
antimeridian); times are microseconds since 1970. ``aggregate`` is the canonical text of what is
asked about windows, ``since`` what was closed already when such a query was registered. Rows are
always in the order of ``number``."""

_OPTIONAL = ("user", "body", "where", "valid_from", "valid_until", "aggregate", "since")


def no_queries() -> pa.Table:
    """An empty table of queries."""
    return QUERY_SCHEMA.empty_table()


def numeric(rows: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column without nulls as an array."""
    column = rows.column(name)
    if column.num_chunks == 1:
        values: npt.NDArray[Any] = column.chunk(0).to_numpy()
        return values
    joined: npt.NDArray[Any] = column.to_numpy()
    return joined


def to_arrays(rows: pa.Table, prefix: str = "query.") -> dict[str, pa.Array]:
    """The columns to store in a segment; optional ones that say nothing are left out."""
    arrays = {}
    for name in QUERY_SCHEMA.names:
        column = rows.column(name)
        if name in _OPTIONAL and column.null_count == len(column):
            continue
        arrays[prefix + name] = (
            column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        )
    return arrays


def from_arrays(columns: Any, prefix: str = "query.") -> pa.Table:
    """The table that :func:`to_arrays` stored; nothing but what was left out is made anew."""
    length = len(columns[prefix + "number"])
    arrays = []
    for field in QUERY_SCHEMA:
        stored = columns.get(prefix + field.name)
        arrays.append(pa.nulls(length, field.type) if stored is None else stored)
    return pa.Table.from_arrays(arrays, schema=QUERY_SCHEMA)


def boxes_as_parts(rows: pa.Table) -> tuple[IntArray, list[FloatArray]]:
    """Boxes that do not wrap: the row that each belongs to, and its edges x0, y0, x1, y1.

    A box over the antimeridian becomes two, the western one with ``x1`` = 180 first.
    """
    x0, y0, x1, y1 = (numeric(rows, name) for name in ("x0", "y0", "x1", "y1"))
    wraps = np.flatnonzero(x0 > x1)
    row = np.arange(len(rows), dtype=np.int32)
    if wraps.size == 0:
        return row, [x0, y0, x1, y1]
    east_half = x1.copy()
    east_half[wraps] = 180.0
    return (
        np.concatenate((row, wraps.astype(np.int32))),
        [
            np.concatenate((x0, np.full(wraps.size, -180.0))),
            np.concatenate((y0, y0[wraps])),
            np.concatenate((east_half, x1[wraps])),
            np.concatenate((y1, y1[wraps])),
        ],
    )


def touching(rows: pa.Table, grid: Grid, area: tuple[int, int, int, int]) -> npt.NDArray[np.bool_]:
    """Which queries have a cell of their box in an area (columns and rows from, and up to)."""
    col0, row0, col1, row1 = area
    row, edges = boxes_as_parts(rows)
    ranges: CellRanges = grid.ranges(*edges)
    inside = (
        (ranges.col1 >= ranges.col0)
        & (ranges.col0 < col1) & (ranges.col1 >= col0)
        & (ranges.row0 < row1) & (ranges.row1 >= row0)
    )  # fmt: skip
    touches = np.zeros(len(rows), np.bool_)
    touches[row[inside]] = True
    return touches


def ranges_in(rows: pa.Table, grid: Grid, partition: Any) -> CellRanges:
    """The cells of each query's box, one range each, for counting in a partition: of a box over the
    antimeridian the part that touches it, or both as one where both do."""
    row, edges = boxes_as_parts(rows)
    ranges: CellRanges = grid.ranges(*edges)
    count = len(rows)
    if row.size == count:
        return ranges
    touches = (
        (ranges.col1 >= ranges.col0)
        & (ranges.col0 < partition.col1) & (ranges.col1 >= partition.col0)
    )  # fmt: skip
    col0, col1 = ranges.col0[:count].copy(), ranges.col1[:count].copy()
    wraps, eastern = row[count:], np.flatnonzero(touches[count:])
    second = wraps[eastern]
    western = touches[second]
    col0[second] = np.where(western, 0, ranges.col0[count:][eastern])
    col1[second] = np.where(western, grid.columns - 1, ranges.col1[count:][eastern])
    return CellRanges(col0, ranges.row0[:count], col1, ranges.row1[:count])


def has_filter(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Which queries ask for more than a place."""
    asks = [pc.is_valid(rows.column(n)) for n in ("where", "valid_from", "valid_until")]
    found: npt.NDArray[np.bool_] = pc.or_(pc.or_(asks[0], asks[1]), asks[2]).to_numpy()
    return found


def anchors(rows: pa.Table, grid: Grid) -> tuple[IntArray, IntArray]:
    """The cell (column, row) that stands for each query: the lower left one of its box. The
    partition that holds it is the query's home, where its windows are put together."""
    space = grid.space
    x = np.clip(numeric(rows, "x0"), space.west, space.east)
    y = np.clip(numeric(rows, "y0"), space.south, space.north)
    return grid.columns_of(x), grid.rows_of(y)


def middles(rows: pa.Table, grid: Grid) -> tuple[FloatArray, FloatArray]:
    """The middle of each query's box in cells: columns and rows, with fractions. Of a box that
    reaches out of the space, of what is inside."""
    space = grid.space
    x0, y0, x1, y1 = (numeric(rows, name) for name in ("x0", "y0", "x1", "y1"))
    x = (np.maximum(x0, space.west) + np.minimum(x1, space.east)) / 2
    y = (np.maximum(y0, space.south) + np.minimum(y1, space.north)) / 2
    wraps = np.flatnonzero(x0 > x1)
    if wraps.size:
        over = (x0[wraps] + x1[wraps]) / 2 + 180
        x[wraps] = np.clip(np.where(over > 180, over - 360, over), space.west, space.east)
    return (x - space.west) / grid.cell_width, (y - space.south) / grid.cell_height
