"""Deltas: what control records changed, per partition, in one segment for all partitions.

The driver writes one such segment per epoch that has control changes; a slot reads the rows of its
own partitions out of it. A slot may fold many of them into one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.operators import queries
from geoflux.plan.plan import Plan
from geoflux.spatial.grid import Grid
from geoflux.state.segments import read_segment, reopened, write_segment
from geoflux.state.store import Store

Numbers = npt.NDArray[np.int64]
_LAST = "last."
_ENDED = "ended.box."
_ENDED_USER = "ended.user"
_BOX = ("x0", "y0", "x1", "y1")


@dataclass(frozen=True)
class Delta:
    """Queries that came, and the numbers of queries that ended, in one partition."""

    rows: pa.Table
    ended: Numbers


def write_deltas(
    store: Store, name: str, where: tuple[Grid, Plan], came: pa.Table, ended: pa.Table
) -> list[int]:
    """Write what came and what ended; returns the ids of the partitions concerned. Of queries
    that aggregate the whole rows are kept when they end: some windows are still to be told."""
    grid, plan = where
    came_offsets, came_rows = _rows_by_place(came, grid, plan)
    end_offsets, end_rows = _rows_by_place(ended, grid, plan)
    arrays = {
        **queries.to_arrays(came),
        "ended": ended.column("number").combine_chunks(),
        "ended.id": ended.column("id").combine_chunks(),
        **{_ENDED + n: ended.column(n).combine_chunks() for n in _BOX},
        "partitions": np.array([p.id for p in plan.partitions], np.int64),
        "came.offsets": came_offsets,
        "came.rows": came_rows,
        "end.offsets": end_offsets,
        "end.rows": end_rows,
        **queries.to_arrays(ended.filter(pc.is_valid(ended.column("aggregate"))), _LAST),
    }
    if ended.column("user").null_count < len(ended):
        arrays[_ENDED_USER] = ended.column("user").combine_chunks()
    write_segment(store, name, arrays, {"kind": "delta"})
    touched = (np.diff(came_offsets) > 0) | (np.diff(end_offsets) > 0)
    return [plan.partitions[i].id for i in np.flatnonzero(touched)]


def _rows_by_place(rows: pa.Table, grid: Grid, plan: Plan) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """For every partition the rows that touch it, ascending: offsets and rows."""
    places = len(plan.partitions)
    if len(rows) == 0:
        return np.zeros(places + 1, np.int64), np.empty(0, np.int32)
    row, edges = queries.boxes_as_parts(rows)
    offsets, parts = plan.overlaps(grid.ranges(*edges)).by_place(places)
    if row.size == len(rows):
        return offsets, parts.astype(np.int32)
    # The two halves of a box over the antimeridian may touch the same partition.
    place = np.repeat(np.arange(places), np.diff(offsets))
    pairs = np.unique(place * len(rows) + row[parts])
    counts = np.bincount(pairs // len(rows), minlength=places)
    return np.concatenate(([0], np.cumsum(counts))), (pairs % len(rows)).astype(np.int32)


def write_folded(store: Store, name: str, partition: int, delta: Delta) -> int:
    """Write one partition's changes as a segment of its own; returns the bytes."""
    came, ended = len(delta.rows), delta.ended.size
    arrays = {
        **queries.to_arrays(delta.rows),
        "ended": delta.ended,
        "ended.id": pa.array([], pa.string()),
        "partitions": np.array([partition], np.int64),
        "came.offsets": np.array([0, came], np.int64),
        "came.rows": np.arange(came, dtype=np.int32),
        "end.offsets": np.array([0, ended], np.int64),
        "end.rows": np.arange(ended, dtype=np.int32),
    }
    return write_segment(store, name, arrays, {"kind": "delta"})


def read_delta(store: Store, name: str, partition: int) -> Delta:
    """The changes of one partition."""
    segment = read_segment(store, name)
    place = int(np.flatnonzero(segment.array("partitions") == partition)[0])
    came = _slice(segment.array("came.offsets"), segment.array("came.rows"), place)
    ended = _slice(segment.array("end.offsets"), segment.array("end.rows"), place)
    rows = queries.from_arrays(segment.columns).take(pa.array(came)).combine_chunks()
    return Delta(rows, segment.array("ended")[ended])


def read_change(store: Store, name: str, partition: int) -> tuple[pa.Table, pa.Table]:
    """The boxes of the queries that came and of those that ended, in one partition."""
    segment = reopened(store, name)
    place = int(np.flatnonzero(segment.array("partitions") == partition)[0])
    tables = []
    for prefix, kind in (("query.", "came"), (_ENDED, "end")):
        rows = _slice(segment.array(f"{kind}.offsets"), segment.array(f"{kind}.rows"), place)
        boxes = pa.table({n: segment.columns[prefix + n] for n in _BOX})
        tables.append(boxes.take(pa.array(rows)))
    return tables[0], tables[1]


def read_owners(store: Store, name: str) -> tuple[pa.Table, pa.Table]:
    """Users and boxes of all queries that came with a delta, and of those that ended."""
    segment = reopened(store, name)
    tables = []
    for prefix, user in (("query.", "query.user"), (_ENDED, _ENDED_USER)):
        boxes = {n: segment.columns[prefix + n] for n in _BOX}
        known = segment.columns.get(user)
        nobody = pa.nulls(len(boxes["x0"]), pa.string())
        tables.append(pa.table({"user": nobody if known is None else known, **boxes}))
    return tables[0], tables[1]


def read_ended(store: Store, name: str) -> pa.Table:
    """The queries that aggregate and ended with a delta."""
    return queries.from_arrays(read_segment(store, name).columns, _LAST)


def _slice(offsets: Numbers, rows: npt.NDArray[np.int32], place: int) -> npt.NDArray[np.int32]:
    return rows[offsets[place] : offsets[place + 1]]


def joined(deltas: Sequence[Delta]) -> Delta:
    """Several deltas as one: what came and did not end, each query once, in order."""
    if not deltas:
        return Delta(queries.no_queries(), np.empty(0, np.int64))
    ended = np.unique(np.concatenate([d.ended for d in deltas]))
    return Delta(once([d.rows for d in deltas], ended), ended)


def once(tables: Sequence[pa.Table], ended: Numbers) -> pa.Table:
    """Rows by ascending number, each once, without those that ended. Tables that came one after
    another are put together in that order, where nothing has to be sorted."""
    filled = sorted((t for t in tables if len(t)), key=lambda t: t.column("number")[0].as_py())
    if not filled:
        return queries.no_queries()
    rows = pa.concat_tables(filled)
    numbers = queries.numeric(rows, "number")
    _, first = np.unique(numbers, return_index=True)
    kept = first[~np.isin(numbers[first], ended)]
    if kept.size == len(rows) and (kept == np.arange(kept.size)).all():
        return rows.combine_chunks()
    return rows.take(pa.array(kept)).combine_chunks()


def write_catalogue(store: Store, name: str, rows: pa.Table) -> int:
    """Write live queries as a segment that belongs to no partition; returns the bytes."""
    return write_folded(store, name, -1, Delta(rows, np.empty(0, np.int64)))
