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

from geoflux.engine.marks import Ints, Marks, Placed
from geoflux.engine.rooted import Sampling
from geoflux.errors import OperatorError
from geoflux.operators.keyed import ROW, Operator
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

    def __init__(self, operator: Operator[Any], sampling: Sampling | None, rows: Placed) -> None:
        """``rows`` are those of the slot's input that are followed."""
        self._operator = operator
        self._sampling = sampling
        self._says = ROW in operator.output.names
        self._followed = rows
        self._begun: dict[int, list[int]] = {}
        self._sizes: list[int] = []
        self._counts: list[int] = []
        self._total = 0
        self._parents: pa.ChunkedArray | None = None
        self._numbers: Ints | None = None

    def begin(self, partition: int) -> None:
        """The next batches are the first rows of a partition, one after another."""
        self._now = self._begun[partition] = [self._total, 0]

    def took(self, rows: int, results: int) -> None:
        """A batch of so many rows was processed, and so many results came of it."""
        self._sizes.append(rows)
        self._counts.append(results)
        self._total += rows
        self._now[1] += rows

    def gave(self, parents: pa.ChunkedArray | None, numbers: Ints | None) -> None:
        """All results: what they say of the rows that they come from, and of their streams, as
        numbers; ``None``: nothing, and that there is but one."""
        self._parents, self._numbers = parents, numbers

    @cached_property
    def _where(self) -> tuple[Ints, Ints]:
        """Of every followed row: the number of the first row of its partition, and how many of its
        partition were processed."""
        found = [self._begun.get(p, _NOT_YET) for p in self._followed.partitions.tolist()]
        starts, done = np.array(found, np.int64).reshape(-1, 2).T
        return starts, done

    @cached_property
    def _rows(self) -> Marks:
        """The followed rows that were processed."""
        marks, (starts, done) = self._followed.marks, self._where
        places = np.where(marks.places < done, marks.places + starts, -1)
        order = np.argsort(places)[np.count_nonzero(places < 0) :]
        return Marks(places[order], marks.roots[order], marks.ids[order])

    def left(self) -> Placed:
        """The followed rows that were not processed, at their places among those that are left."""
        _, done = self._where
        rest = self._followed.marks.places >= done
        return self._followed.taken(rest, -done[rest])

    @cached_property
    def _hits(self) -> tuple[Ints, Ints]:
        """The results that come from followed rows, and for each which of these it comes from."""
        if self._parents is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        column = self._parents
        hits, parents, batch, wrong = found_among(
            (column.fill_null(_NONE) if column.null_count else column).to_numpy(),
            np.array(self._counts, np.int64), np.array(self._sizes, np.int64), self._rows.places,
        )  # fmt: skip
        if batch >= 0:
            raise OperatorError(
                f"{type(self._operator).__name__}.process: a result comes from row {wrong}, as "
                f"{ROW} says; expected 0 to {self._sizes[batch] - 1}, the rows that were given"
            )
        return hits, parents

    @cached_property
    def _results(self) -> tuple[Marks, Ints]:
        """The results that derive from followed rows, with the ids of their records, and the place
        of the parent of each among those rows."""
        rows = self._rows
        if not (len(rows) and self._says and self._sampling and self._sampling.readers):
            return Marks(), np.empty(0, np.int64)
        hits, parents = self._hits
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
                mine = self._of_stream(results.places, number)
                of.append(parents[mine])
                derived.append(copies(results.ids[mine], reader))
        values = acknowledgements(rows.ids, np.concatenate(of), np.concatenate(derived))
        return [Marks(rows.places, rows.roots, values).pairs()]

    def derived(self, results: Mapping[str, int]) -> dict[str, list[int]]:
        """By stream the number of results and, where results say where they come from, how many of
        them come from followed rows, and the sum over these rows of their squared numbers."""
        if self._sampling is None or not self._says:
            return {stream: [count] for stream, count in results.items()}
        hits, parents = self._hits
        told = {}
        for stream, count in results.items():
            mine = self._of_stream(hits, self._operator.streams.index(stream))
            _, each = np.unique(parents[mine], return_counts=True)
            told[stream] = [count, int(each.sum()), int(each @ each)]
        return told

    def marks_of(self, stream: str) -> Marks:
        """The rows of a stream that derive from followed ones, with the ids of their records; none,
        if nobody reads it."""
        if self._sampling is None or not self._sampling.readers.get(stream):
            return Marks()
        marks, _ = self._results
        if self._numbers is None or not len(marks):
            return marks
        number = self._operator.streams.index(stream)
        some = marks.taken(self._of_stream(marks.places, number))
        places = np.searchsorted(np.flatnonzero(self._numbers == number), some.places)
        return Marks(places, some.roots, some.ids)

    def _of_stream(self, places: Ints, number: int) -> Any:
        """Which results at some places go to a stream."""
        return slice(None) if self._numbers is None else self._numbers[places] == number


@numba.njit(cache=True)
def found_among(places: Any, counts: Any, sizes: Any, rows: Any) -> Any:
    """The results of batches, each with so many results and so many rows, that come from the given
    rows (ascending), and for each which of these. Where a result names a row that was not given to
    its batch, the batch and that row (-1: none).

    Mostly results come in the order of their rows: then these are looked up, and a result that
    comes from none of them costs little more than to be read.
    """
    hits, parents = np.empty(places.size, np.int64), np.empty(places.size, np.int64)
    first, start, found, low = 0, 0, 0, 0
    for batch in range(counts.size):
        some, size = places[first : first + counts[batch]], sizes[batch]
        # Whole stretches at once, by what has no branches: most results are of no further interest.
        falls, outside = 0, 0
        for at in range(some.size):
            outside += int(np.uint64(some[at]) >= np.uint64(size))
        for at in range(1, some.size):
            falls += int(some[at] < some[at - 1])
        ascend = falls == 0 and outside == 0
        if outside:
            for place in some:
                if not 0 <= place < size and place != _NONE:
                    return hits, parents, batch, place
        high = low
        while high < rows.size and rows[high] < start + size:
            high += 1
        if ascend:
            for row in range(low, high):
                wanted = rows[row] - start
                hit = wanted  # where it is if every row gives one result
                if hit >= some.size or some[hit] != hit or (hit > 0 and some[hit - 1] == hit):
                    hit = np.searchsorted(some, wanted)
                while hit < some.size and some[hit] == wanted:
                    hits[found], parents[found] = first + hit, row
                    found, hit = found + 1, hit + 1
        elif high > low:
            for at in range(some.size):
                row = low + np.searchsorted(rows[low:high], start + some[at])
                if some[at] != _NONE and row < high and rows[row] == start + some[at]:
                    hits[found], parents[found] = first + at, row
                    found += 1
        first, start, low = first + counts[batch], start + size, high
    return hits[:found].copy(), parents[:found].copy(), -1, 0
