"""What comes out of followed rows: acknowledgements, and results that carry their roots on.

An operator that says by ``@row`` which row each of its results comes from has its trees go on where
its streams are read; without it they end at the operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.rooted import RECORD, ROOT, Ints, Marks, Pairs, Sampling, joined_marks
from geoflux.errors import OperatorError
from geoflux.operators.keyed import ROW, STREAM, Operator
from geoflux.scale.acks import acknowledgements, copies, derived_ids


def check_rows(operator: Operator[Any]) -> None:
    """Raise :class:`OperatorError` where the column of rows has another type."""
    output = operator.output
    if ROW in output.names and output.field(ROW).type != pa.int64():
        raise OperatorError(
            f"{type(operator).__name__}: {ROW} is {output.field(ROW).type} in its output; "
            "expected int64, the place of the row that a result comes from"
        )


class Tracer:
    """Follows rows through one slot's work; made once per slot and epoch."""

    def __init__(self, operator: Operator[Any], sampling: Sampling | None) -> None:
        self._operator = operator
        self._sampling = sampling
        self._told: list[tuple[Marks, int]] = []
        self._squares: Counter[str] = Counter()
        self.acks: Pairs = []

    def took(self, marks: Marks, rows: int, results: pa.Table) -> pa.Table:
        """A batch of so many rows was processed, some of them followed; gives the results back
        without the column of their rows."""
        parents = None
        if ROW in results.schema.names:
            parents = _parents(results.column(ROW), rows)
            results_told = results.drop_columns([ROW])
        else:
            results_told = results
        if self._sampling is not None:
            self._count(parents, rows, results)
            found = Marks()
            if len(marks) and parents is not None and self._sampling.readers:
                found = self._derived(marks, parents, results)
            elif len(marks):
                self.acks += marks.pairs()
            self._told.append((found, len(results)))
        return results_told

    def _count(self, parents: Ints | None, rows: int, results: pa.Table) -> None:
        """Add up, by stream, the squares of how many results each row had."""
        if parents is None or not len(parents):
            return
        streams = self._operator.streams
        for stream in streams:
            mine = parents
            if len(streams) > 1:
                same = pc.equal(results.column(STREAM), stream).fill_null(False)
                mine = parents[same.to_numpy()]
            counts = np.bincount(mine[mine >= 0] if len(mine) else mine, minlength=rows)
            self._squares[stream] += int(counts @ counts)

    def derived(self, results: Mapping[str, int]) -> dict[str, list[float]]:
        """By stream the number of results, and where it was counted the sum of their squares."""
        if self._sampling is None or ROW not in self._operator.output.names:
            return {stream: [count] for stream, count in results.items()}
        return {stream: [count, self._squares[stream]] for stream, count in results.items()}

    def _derived(self, marks: Marks, parents: Ints, results: pa.Table) -> Marks:
        """The marks of results; their ids are those of records, of which readers get copies."""
        assert self._sampling is not None
        place = np.searchsorted(marks.places, parents)
        place[place == len(marks)] = 0
        hits = np.flatnonzero(marks.places[place] == parents)
        of = place[hits]
        order = np.argsort(of, kind="stable")
        begins = np.searchsorted(of[order], of[order])
        ordinals = np.empty(len(of), np.int64)
        ordinals[order] = np.arange(len(of)) - begins
        records = derived_ids(marks.ids[of], ordinals)
        streams = self._operator.streams
        named = np.full(len(hits), streams[0], object)
        if len(streams) > 1:
            named = results.column(STREAM).take(pa.array(hits)).to_numpy()
        parent, derived = [of[:0]], [records[:0]]
        for stream, readers in self._sampling.readers.items():
            mine = named == stream
            for reader in readers:
                parent.append(of[mine])
                derived.append(copies(records[mine], reader))
        values = acknowledgements(marks.ids, np.concatenate(parent), np.concatenate(derived))
        self.acks += Marks(marks.places, marks.roots, values).pairs()
        return Marks(hits, marks.roots[of], records)

    def with_roots(self, table: pa.Table) -> pa.Table:
        """All results in their order with the columns of streams, where any stream is read."""
        if self._sampling is None or not self._sampling.readers:
            return table
        marks = joined_marks(self._told)
        for name, known in ((ROOT, marks.roots), (RECORD, marks.ids)):
            column = pa.nulls(len(table), pa.uint64())
            if len(marks):
                values, missing = np.zeros(len(table), np.uint64), np.ones(len(table), np.bool_)
                values[marks.places], missing[marks.places] = known, False
                column = pa.array(values, mask=missing)
            table = table.append_column(name, column)
        return table

    def unread(self, stream: str, table: pa.Table) -> pa.Table:
        """Without these columns, if nobody reads the stream."""
        if ROOT not in table.schema.names or (
            self._sampling is not None and self._sampling.readers.get(stream)
        ):
            return table
        return table.drop_columns([ROOT, RECORD])


def _parents(column: pa.ChunkedArray, rows: int) -> Ints:
    """The places of the rows that results come from; -1: of none."""
    if len(column) == 0:
        return np.empty(0, np.int64)
    least, most = pc.min_max(column).values()
    if least.is_valid and not (least.as_py() >= 0 and most.as_py() < rows):
        wrong = least.as_py() if least.as_py() < 0 else most.as_py()
        raise OperatorError(
            f"results say that they come from row {wrong} in {ROW}; expected 0 to {rows - 1}, "
            "the places of the rows that were given"
        )
    if column.null_count:
        column = column.fill_null(-1)
    places: Ints = column.to_numpy()
    return places
