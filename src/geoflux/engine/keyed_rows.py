"""Rows on their way to a keyed operator: judged, and kept in segments between epochs.

A segment of rows holds those of several partitions one after another. It is how a slot notes what
it took in since a state was last saved (a journal), and how it hands back what it did not get to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.intake import POSITION_ID, converted, explained, micros_of, whole_array
from geoflux.engine.marks import Marks, Placed
from geoflux.engine.source import RawBatch, Rejected
from geoflux.operators.keyed import ID, TIME, Divisible, Operator
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
        names = {self.operator.key, *self.operator.columns, self.id} - {""}
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
            named = [n for n in (operator.key, *operator.columns) if n not in (ID, "")]
            columns = {n: whole_array(table.column(n)) for n in named}
            columns[ID] = self._ids(batch)
            columns[TIME], known = self._times(table)
            key = columns[operator.key] if operator.key else None
            for code, good in (
                (2, None if key is None else pc.is_valid(key).to_numpy(zero_copy_only=False)),
                (3, known),
                (4, pc.is_valid(columns[ID]).to_numpy(zero_copy_only=False)),
            ):
                if good is not None:
                    verdict[(verdict == 0) & ~good] = code
            refused = operator.judged(pa.table(columns))
            if refused is not None:
                first = (verdict == 0) & (refused > 0)
                verdict[first] = refused[first] + len(_SENTENCES)
        sentences = {**_SENTENCES, **operator.refusals}
        rejected = list(batch.rejected) + explained(table, verdict, lacking, sentences)
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
    store: Store, name: str, rows: Mapping[int, pa.Table], followed: Placed | None = None,
    batch: int | None = None,
) -> None:  # fmt: skip
    """Rows of several partitions, in the order given, as one segment; with those of them that are
    followed, and in batches of how many they were processed."""
    table = together(list(rows.values()))
    ends = np.cumsum([len(part) for part in rows.values()])
    arrays = {_ROWS + name: table.column(name) for name in table.schema.names}
    arrays["partitions"] = np.array(list(rows), np.int64)
    arrays["ends"] = ends.astype(np.int64)
    if followed is not None and len(followed):
        arrays["mark.partitions"] = followed.partitions
        arrays |= {f"mark.{field}": getattr(followed.marks, field) for field in _MARKED}
    about = {"kind": "rows", "columns": table.schema.names, "batch": batch}
    write_segment(store, name, arrays, about)


def read_rows(store: Store, ref: Ref) -> pa.Table:
    """The rows of one partition, without copying."""
    segment = reopened(store, ref.segment)
    place = int(np.flatnonzero(segment.array("partitions") == ref.partition)[0])
    ends = segment.array("ends")
    first = int(ends[place - 1]) if place else 0
    names = segment.about["columns"]
    table = pa.table({name: segment.columns[_ROWS + name] for name in names})
    return table.slice(first, int(ends[place]) - first)


def batches_of(store: Store, ref: Ref) -> Iterator[pa.Table]:
    """The rows of a journal as they were processed: an operator whose state depends on how rows are
    cut into batches has the same one again."""
    rows = read_rows(store, ref)
    batch = reopened(store, ref.segment).about.get("batch") or max(len(rows), 1)
    for first in range(0, len(rows), batch):
        yield rows.slice(first, batch)


def read_carried(store: Store, operator: Operator[Any], ref: Ref) -> tuple[pa.Table, Marks]:
    """Rows that were handed back, in their order, and those of them that are followed; of a
    partition that was split or merged since, the rows that are meant of it."""
    rows, marks = read_rows(store, ref), _followed(store, ref)
    if ref.prefix is None:
        return rows, marks
    assert isinstance(operator, Divisible), "only places have prefixes"
    code, bits = ref.prefix
    mine = np.flatnonzero(operator.place(rows) >> (operator.code_bits - bits) == code)
    return rows.take(pa.array(mine)), marks.among(mine)


def _followed(store: Store, ref: Ref) -> Marks:
    known = reopened(store, ref.segment)
    if "mark.partitions" not in known.columns:
        return Marks()
    marks = Marks(*(known.array(f"mark.{field}") for field in _MARKED))
    return marks.taken(known.array("mark.partitions") == ref.partition)
