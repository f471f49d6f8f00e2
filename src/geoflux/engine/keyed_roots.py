"""What comes out of followed rows: acknowledgements, and results that carry their roots on.

An operator that says by ``@row`` which row each of its results comes from has its trees go on where
its streams are read; without it they end at the operator. All results of a slot are looked at
together when its work is done: a batch costs nothing but noting where its rows are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.rooted import Ints, Marks, Placed, Sampling
from geoflux.errors import OperatorError
from geoflux.operators.keyed import ROW, STREAM, Operator
from geoflux.scale.acks import Ids, acknowledgements, copies, derived_ids

_NONE = np.iinfo(np.int64).min
"""For null: a result that comes from no row."""
_NOT_YET = [0, 0]


def check_rows(operator: Operator[Any]) -> None:
    """Raise :class:`OperatorError` where the column of rows has another type."""
    output = operator.output
    if ROW in output.names and output.field(ROW).type != pa.int64():
        raise OperatorError(
            f"{type(operator).__name__}: {ROW} is {output.field(ROW).type} in its output; "
            "expected int64, the place of the row that a result comes from"
        )


class Tracer:
    """Follows rows through one slot's work; made once per slot and epoch. Rows and results are
    numbered in the order in which they were processed, batch after batch."""

    def __init__(self, operator: Operator[Any], sampling: Sampling | None) -> None:
        self._operator = operator
        self._sampling = sampling
        self._says = ROW in operator.output.names
        self.followed = Placed()
        """The input's rows that are followed."""
        self._begun: dict[int, list[int]] = {}
        self._sizes: list[int] = []
        self._total = 0
        self._parents: list[Ints] = []
        self._streams: list[pa.ChunkedArray] = []

    def begin(self, partition: int) -> None:
        """The next batches are the first rows of a partition, one after another."""
        self._begun[partition] = [self._total, 0]
        self._now = self._begun[partition]

    def took(self, rows: int, results: pa.Table) -> pa.Table:
        """A batch of so many rows was processed. Gives the results back without the column of
        their rows."""
        if self._sampling is None:
            return results.drop_columns([ROW]) if self._says else results
        self._sizes.append(rows)
        self._total += rows
        self._now[1] += rows
        if not self._says:
            return results
        self._parents.append(_places(results.column(ROW)))
        if len(self._operator.streams) > 1:
            self._streams.append(results.column(STREAM))
        return results.drop_columns([ROW])

    @cached_property
    def _where(self) -> tuple[Ints, Ints]:
        """Of every followed row: the number of the first row of its partition, and how many of its
        partition were processed."""
        found = [self._begun.get(p, _NOT_YET) for p in self.followed.partitions.tolist()]
        starts, done = np.array(found, np.int64).reshape(-1, 2).T
        return starts, done

    @cached_property
    def _rows(self) -> Marks:
        """The followed rows that were processed."""
        starts, done = self._where
        some = self.followed.taken(self.followed.marks.places < done).marks
        places = some.places + starts[self.followed.marks.places < done]
        order = np.argsort(places)
        return Marks(places[order], some.roots[order], some.ids[order])

    def left(self) -> Placed:
        """The followed rows that were not processed, at their places among those that are left."""
        _, done = self._where
        rest = self.followed.marks.places >= done
        return self.followed.taken(rest, -done[rest])

    @cached_property
    def _walk(self) -> tuple[Ints, Ints, Ints]:
        """The results that come from followed rows, the rows that these come from, and by stream
        the sum over rows of the squared number of their results."""
        places = np.concatenate([*self._parents, np.empty(0, np.int64)])
        results = np.array([len(some) for some in self._parents], np.int64)
        known = np.zeros(self._total, np.bool_)
        known[self._rows.places] = True
        stream = self._stream if self._streams else np.empty(0, np.int32)
        hits, rows, squares, batch, wrong = _walked(
            places, results, np.array(self._sizes, np.int64), known, stream,
            len(self._operator.streams),
        )  # fmt: skip
        if batch >= 0:
            raise OperatorError(
                f"{type(self._operator).__name__}.process: a result comes from row {wrong}, as "
                f"{ROW} says; expected 0 to {self._sizes[batch] - 1}, the rows that were given"
            )
        return hits, rows, squares

    @cached_property
    def _stream(self) -> Any:
        """The stream of each result, as a number; -1: none of them."""
        column = pa.chunked_array([c for s in self._streams for c in s.chunks], pa.string())
        names = pa.array(self._operator.streams)
        return pc.index_in(column, names).fill_null(-1).to_numpy().astype(np.int32, copy=False)

    @cached_property
    def _results(self) -> tuple[Marks, Ints]:
        """The results that derive from followed rows, with the ids of their records, and the place
        of the parent of each among those rows."""
        rows = self._rows
        if not (len(rows) and self._says and self._sampling and self._sampling.readers):
            return Marks(), np.empty(0, np.int64)
        hits, origins, _ = self._walk
        parents = np.searchsorted(rows.places, origins)
        order = np.argsort(parents, kind="stable")
        ordinals = np.empty(len(hits), np.int64)
        ordinals[order] = np.arange(len(hits)) - np.searchsorted(parents[order], parents[order])
        records = derived_ids(rows.ids[parents], ordinals)
        return Marks(hits, rows.roots[parents], records), parents

    def acks(self) -> list[Ids]:
        """Roots and acknowledgements of all followed rows: each id together with the ids of the
        copies that readers will get of what came out of it."""
        rows, (results, parents) = self._rows, self._results
        if self._sampling is None or not len(rows):
            return []
        of, derived = [parents[:0]], [results.ids[:0]]
        for number, stream in enumerate(self._operator.streams):
            for reader in self._sampling.readers.get(stream, ()):
                mine = slice(None)
                if self._streams and len(results):
                    mine = self._stream[results.places] == number
                of.append(parents[mine])
                derived.append(copies(results.ids[mine], reader))
        values = acknowledgements(rows.ids, np.concatenate(of), np.concatenate(derived))
        return [Marks(rows.places, rows.roots, values).pairs()]

    def derived(self, results: Mapping[str, int]) -> dict[str, list[float]]:
        """By stream the number of results and, where rows are followed and results say where they
        come from, the sum over rows of their squared numbers."""
        if self._sampling is None or not self._says:
            return {stream: [count] for stream, count in results.items()}
        squares = dict(zip(self._operator.streams, self._walk[2].tolist(), strict=True))
        return {stream: [count, squares[stream]] for stream, count in results.items()}

    def marks_of(self, stream: str) -> Marks:
        """The rows of a stream that derive from followed ones, with the ids of their records; none,
        if nobody reads it."""
        if self._sampling is None or not self._sampling.readers.get(stream):
            return Marks()
        marks, _ = self._results
        if not (self._streams and len(marks)):
            return marks
        mine = np.flatnonzero(self._stream == self._operator.streams.index(stream))
        some = marks.taken(np.isin(marks.places, mine))
        return Marks(np.searchsorted(mine, some.places), some.roots, some.ids)


def _places(column: pa.ChunkedArray) -> Ints:
    """The rows that results of a batch come from."""
    places: Ints = (column.fill_null(_NONE) if column.null_count else column).to_numpy()
    return places


@numba.njit(cache=True)
def _walked(
    places: Any, results: Any, sizes: Any, known: Any, stream: Any, streams: int
) -> Any:  # fmt: skip
    """One pass over the results of batches, each with so many results and so many rows. Where a
    result names a row that was not given, its batch and that row instead (-1: nowhere)."""
    hits, rows = np.empty(places.size, np.int64), np.empty(places.size, np.int64)
    counts, squares = np.zeros((streams, known.size), np.int32), np.zeros(streams, np.int64)
    at, start, found = 0, 0, 0
    for batch in range(results.size):
        for _ in range(results[batch]):
            place = places[at]
            if 0 <= place < sizes[batch]:
                row, of = start + place, stream[at] if stream.size else 0
                if of >= 0:
                    squares[of] += 2 * counts[of, row] + 1
                    counts[of, row] += 1
                if known[row]:
                    hits[found], rows[found] = at, row
                    found += 1
            elif place != _NONE:
                return hits, rows, squares, batch, place
            at += 1
        start += sizes[batch]
    return hits[:found].copy(), rows[:found].copy(), squares, -1, 0
