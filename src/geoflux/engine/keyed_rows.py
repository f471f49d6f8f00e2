"""Rows on their way to a keyed operator: judged, and kept in segments between epochs.

A segment of rows holds those of several partitions one after another. It is how a slot notes what
it took in since a state was last saved (a journal), and how it hands back what it did not get to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.intake import POSITION_ID, converted, explained, micros_of, whole_array
from geoflux.engine.marks import Marks, Placed
from geoflux.engine.source import RawBatch, Rejected
from geoflux.operators.keyed import ID, TIME, Operator
from geoflux.state.refs import Ref
from geoflux.state.segments import reopened, write_segment
from geoflux.state.store import Store

_SENTENCES = {
    "missing_column": "a column that the operator needs is missing",
    "missing_key": "the row has no key",
    "bad_time": "the time is missing or cannot be read as a time",
    "missing_id": "the row has no id",
}
_ROWS = "row."
_MARKED = ("places", "roots", "ids")


@dataclass(frozen=True)
class KeyedIntake:
    """Judges raw rows and gives them the form that operators get."""

    operator: Operator[Any]
    id: str
    time: str
    time_unit: str

    @property
    def needed(self) -> frozenset[str]:
        """The columns to read."""
        names = {self.operator.key, *self.operator.columns, self.id}
        return frozenset(names | ({self.time} if self.operator.needs_time else set())) - {
            POSITION_ID, ID,
        }  # fmt: skip

    def accept(self, batch: RawBatch) -> tuple[pa.Table, npt.NDArray[np.int64], list[Rejected]]:
        """Valid rows with their positions, and what was rejected, each for the first reason."""
        table, operator = batch.table, self.operator
        lacking = self.needed - set(table.schema.names)
        verdict = np.full(len(table), 1 if lacking else 0, np.uint8)
        columns: dict[str, pa.Array] = {}
        if not lacking:
            named = [n for n in (operator.key, *operator.columns) if n != ID]
            columns = {n: whole_array(table.column(n)) for n in named}
            columns[ID] = self._ids(batch)
            columns[TIME], known = self._times(table)
            for code, good in (
                (2, pc.is_valid(columns[operator.key]).to_numpy(zero_copy_only=False)),
                (3, known),
                (4, pc.is_valid(columns[ID]).to_numpy(zero_copy_only=False)),
            ):
                if good is not None:
                    verdict[(verdict == 0) & ~good] = code
        rejected = list(batch.rejected) + explained(table, verdict, lacking, _SENTENCES)
        if lacking:
            return pa.table({}), batch.positions[:0], rejected
        rows = pa.table(columns)
        if not verdict.any():
            return rows, batch.positions, rejected
        kept = np.flatnonzero(verdict == 0)
        return rows.take(pa.array(kept)).combine_chunks(), batch.positions[kept], rejected

    def _ids(self, batch: RawBatch) -> pa.Array:
        if self.id == POSITION_ID:
            return pa.array(batch.positions).cast(pa.string())
        return converted(whole_array(batch.table.column(self.id)), pa.string())

    def _times(self, table: pa.Table) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
        if not self.operator.needs_time:
            return pa.array(np.zeros(len(table), np.int64)), None
        micros, known = micros_of(table, self.time, self.time_unit)
        return pa.array(micros), known


def together(pieces: Sequence[pa.Table]) -> pa.Table:
    """Tables of rows as one; a column that some rows never had is null there."""
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_tables(pieces, promote_options="permissive").combine_chunks()


def write_rows(
    store: Store, name: str, rows: Mapping[int, pa.Table], followed: Placed | None = None
) -> None:
    """Rows of several partitions, in the order given, as one segment; with those of them that are
    followed."""
    table = together(list(rows.values()))
    ends = np.cumsum([len(part) for part in rows.values()])
    arrays = {_ROWS + name: table.column(name) for name in table.schema.names}
    arrays["partitions"] = np.array(list(rows), np.int64)
    arrays["ends"] = ends.astype(np.int64)
    if followed is not None and len(followed):
        arrays["mark.partitions"] = followed.partitions
        arrays |= {f"mark.{field}": getattr(followed.marks, field) for field in _MARKED}
    write_segment(store, name, arrays, {"kind": "rows", "columns": table.schema.names})


def read_rows(store: Store, ref: Ref) -> pa.Table:
    """The rows of one partition, without copying."""
    segment = reopened(store, ref.segment)
    place = int(np.flatnonzero(segment.array("partitions") == ref.partition)[0])
    ends = segment.array("ends")
    first = int(ends[place - 1]) if place else 0
    names = segment.about["columns"]
    table = pa.table({name: segment.columns[_ROWS + name] for name in names})
    return table.slice(first, int(ends[place]) - first)


def read_followed(store: Store, segment: str) -> Placed:
    """Those of the rows of a segment that are followed."""
    known = reopened(store, segment)
    if "mark.partitions" not in known.columns:
        return Placed()
    marks = Marks(*(known.array(f"mark.{field}") for field in _MARKED))
    return Placed(known.array("mark.partitions"), marks)
