"""A layer: queries of one partition with the two indexes over them.

``plain`` holds boxes that decide a match by themselves, ``refine`` those after which something
else is asked: the exact shape, the validity interval, the ``where``. A layer is immutable; it is
built in memory from rows, or opened from a segment without reading it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from geoflux.operators import queries
from geoflux.operators.cover import Cover, cover_circles, cover_polygons
from geoflux.operators.index import ALWAYS, Buckets, CellIndex, Entries
from geoflux.operators.kernels import EASTERN_PART
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import CellRanges, Grid
from geoflux.spatial.shapes import CIRCLE, POLYGON, RECTANGLE, circle_of
from geoflux.spatial.space import TICKS, FloatArray, IntArray, Space
from geoflux.state.segments import Segment, read_segment, write_segment
from geoflux.state.store import Store


@dataclass(frozen=True)
class Layer:
    """Queries and their indexes over the cells of one partition: the one that they were written
    for, or a part of it, whose events find in them what they find in the whole."""

    rows: pa.Table
    plain: CellIndex
    refine: CellIndex
    buckets: Buckets
    opened: Segment | None = None
    """What its arrays are views of. Held, so that who opens the same segment again finds it."""

    @classmethod
    def build(cls, rows: pa.Table, grid: Grid, partition: Partition) -> Layer:
        """Index the rows; they should all touch the partition."""
        return _build(rows, grid, Buckets.of(partition))

    @classmethod
    def open(cls, store: Store, name: str) -> Layer:
        """Open a stored layer; only what matching touches is ever read."""
        segment: Segment = read_segment(store, name)
        return cls(
            queries.from_arrays(segment.columns),
            CellIndex.from_arrays(segment.arrays("plain."), "plain."),
            CellIndex.from_arrays(segment.arrays("refine."), "refine."),
            Buckets(*segment.about["buckets"]),
            segment,
        )

    def write(self, store: Store, name: str, about: dict[str, Any]) -> int:
        """Store the layer; returns its bytes."""
        arrays = {
            **queries.to_arrays(self.rows),
            **self.plain.arrays("plain."),
            **self.refine.arrays("refine."),
        }
        return write_segment(store, name, arrays, {**about, "buckets": astuple(self.buckets)})

    def __len__(self) -> int:
        return int(self.rows.num_rows)


def circles_of(bodies: list[bytes]) -> FloatArray:
    """Circles as rows (x, y, radius)."""
    return np.array([circle_of(body) for body in bodies], np.float64).reshape(-1, 3)


def _build(rows: pa.Table, grid: Grid, buckets: Buckets) -> Layer:
    row, edges = queries.boxes_as_parts(rows)
    ranges = buckets.local(grid.ranges(*edges))
    ticks = _ticks(grid.space, row, edges, len(rows))
    kind = queries.numeric(rows, "kind")[row]
    filtered = queries.has_filter(rows)
    simple = kind == RECTANGLE
    certain = np.flatnonzero(simple & ~filtered[row])
    doubtful = np.flatnonzero(simple & filtered[row])
    plain_extra, refine_extra = Entries.none(), Entries.none()
    if not simple.all():
        plain_extra, refine_extra = _complex_entries(
            rows, grid, buckets, (row, kind, ranges, ticks)
        )
    return Layer(
        rows,
        CellIndex.build(buckets, ranges.take(certain), _take(ticks, certain), plain_extra),
        CellIndex.build(buckets, ranges.take(doubtful), _take(ticks, doubtful), refine_extra),
        buckets,
    )


def _ticks(space: Space, row: IntArray, edges: list[FloatArray], count: int) -> Entries:
    """The boxes in ticks; a half of a wrapping box is open towards the antimeridian."""
    x0, y0 = space.ticks_x(edges[0]), space.ticks_y(edges[1])
    x1, y1 = space.ticks_x(edges[2]), space.ticks_y(edges[3])
    if row.size > count:
        eastern = np.arange(count, row.size)
        x0[eastern] = EASTERN_PART
        x1[row[eastern]] = TICKS + 1
    return Entries(np.empty(0, np.int64), x0, y0, x1, y1, row)


def _take(entries: Entries, which: npt.NDArray[Any]) -> Entries:
    return Entries(
        np.empty(0, np.int64), entries.x0[which], entries.y0[which],
        entries.x1[which], entries.y1[which], entries.query[which],
    )  # fmt: skip


def _complex_entries(
    rows: pa.Table, grid: Grid, buckets: Buckets,
    parts: tuple[IntArray, npt.NDArray[np.uint8], CellRanges, Entries],
) -> tuple[Entries, Entries]:  # fmt: skip
    """Entries of circles and polygons: (those that decide, those to refine)."""
    row, kind, ranges, ticks = parts
    filtered = queries.has_filter(rows)
    bodies = rows.column("body")
    plain: list[Entries] = []
    refine: list[Entries] = []
    for wanted in (CIRCLE, POLYGON):
        part = np.flatnonzero((kind == wanted) & (ranges.col1 >= ranges.col0))
        if part.size == 0:
            continue
        given = bodies.take(pa.array(row[part])).to_pylist()
        cover: Cover
        if wanted == CIRCLE:
            cover = cover_circles(grid, buckets, ranges.take(part), circles_of(given))
        else:
            cover = cover_polygons(grid, buckets, ranges.take(part), shapely.from_wkb(given))
        which = part[cover.row]
        decides = cover.inside & ~filtered[row[which]]
        plain.append(_always(cover.bucket[decides], row[which[decides]]))
        inside = cover.inside & ~decides
        refine.append(_always(cover.bucket[inside], row[which[inside]]))
        border = ~cover.inside
        edge = which[border]
        refine.append(
            Entries(
                cover.bucket[border], ticks.x0[edge], ticks.y0[edge],
                ticks.x1[edge], ticks.y1[edge], row[edge],
            )
        )  # fmt: skip
    return _joined(plain), _joined(refine)


def _always(bucket: npt.NDArray[np.int64], query: IntArray) -> Entries:
    x0, y0, x1, y1 = (np.full(bucket.size, edge, np.int32) for edge in ALWAYS)
    return Entries(bucket, x0, y0, x1, y1, query)


def _joined(parts: list[Entries]) -> Entries:
    if not parts:
        return Entries.none()
    names = ("bucket", "x0", "y0", "x1", "y1", "query")
    return Entries(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))
