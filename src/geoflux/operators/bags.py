"""Per group of events: the different values of a column, and how often each occurred.

Exact counts of distinct values and exact quantiles are read from it. Values are coded by a
dictionary that a batch (or a merge) shares; merging unites dictionaries and adds counts, so it is
associative and commutative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.measures import Mask, Where, numbers_of
from geoflux.operators.runs import Runs
from geoflux.spatial.space import IntArray

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Coded:
    """A column of a batch as codes into its different values; -1 where there is none."""

    codes: npt.NDArray[np.int32]
    values: pa.Array

    @classmethod
    def numbers(cls, column: pa.Array) -> Coded:
        """The column as finite numbers, for quantiles."""
        numbers = numbers_of(column)
        return cls._encoded(pa.array(numbers, mask=np.isnan(numbers)))

    @classmethod
    def things(cls, column: pa.Array) -> Coded:
        """The column as it is, to tell its values apart."""
        if pa.types.is_floating(column.type):
            floats = column.fill_null(np.nan).to_numpy(zero_copy_only=False)
            column = pa.array(floats + floats.dtype.type(0), mask=np.isnan(floats))
        return cls._encoded(column)

    @classmethod
    def _encoded(cls, column: pa.Array) -> Coded:
        if pa.types.is_null(column.type) or pa.types.is_nested(column.type):
            return cls(np.full(len(column), -1, np.int32), pa.nulls(0))
        encoded = column.dictionary_encode()
        codes = encoded.indices
        if codes.null_count:
            codes = codes.fill_null(-1)
        return cls(codes.to_numpy(zero_copy_only=False), encoded.dictionary)


@dataclass(frozen=True)
class Bag:
    """The values of group ``g`` are ``codes[offsets[g]:offsets[g + 1]]``, each ``counts`` times;
    where only the values matter there are no ``counts``."""

    offsets: Counts
    codes: npt.NDArray[np.int32]
    counts: Counts
    values: pa.Array

    @classmethod
    def empty(cls, groups: int, values: pa.Array | None = None) -> Bag:
        """Groups without any value."""
        none = np.empty(0, np.int32)
        values = pa.nulls(0) if values is None else values
        return cls(np.zeros(groups + 1, np.int64), none, np.empty(0, np.int64), values)

    def taken(self, rows: npt.NDArray[np.int64]) -> Bag:
        """Some of the groups, in the order given."""
        offsets = np.zeros(rows.size + 1, np.int64)
        np.cumsum(np.diff(self.offsets)[rows], out=offsets[1:])
        codes = np.empty(int(offsets[-1]), np.int32)
        counts = np.empty(codes.size if self.counts.size else 0, np.int64)
        _copy(rows, self.offsets, self.codes, self.counts, codes, counts)
        return Bag(offsets, codes, counts, self.values)

    def pruned(self) -> Bag:
        """With a dictionary of those values only that occur, where they are few."""
        if self.codes.size >= len(self.values):
            return self
        used = np.zeros(len(self.values), np.bool_)
        _mark(self.codes, used)
        if used.all():
            return self
        place = np.cumsum(used, dtype=np.int32) - np.int32(1)
        kept = self.values.take(pa.array(np.flatnonzero(used)))
        return Bag(self.offsets, place[self.codes], self.counts, kept)


class BagFiller:
    """Fills a bag from runs of matches, piece by piece; ``counted``: with how often each value
    came, else only which did."""

    def __init__(self, coded: Coded, asks: Mask, counted: bool) -> None:
        self._coded = coded
        self._asks = asks
        self._counted = counted
        self._marks = np.full(len(coded.values), -1, np.int32)
        self._filled = 0
        self._pieces: list[tuple[IntArray, IntArray, IntArray, Counts]] = []

    def add(self, runs: Runs) -> None:
        """Take in the value of every match whose query asks; equal ones of a run become one."""
        codes = np.empty(runs.event.size, np.int32)
        counts = np.empty(codes.size if self._counted else 0, np.int64)
        sizes = np.zeros(runs.group.size, np.int32)
        found = _of_runs(
            (runs.event, runs.rank, runs.group, runs.start, runs.stop, self._asks),
            self._coded.codes, (self._marks, self._filled), (codes, counts, sizes),
        )  # fmt: skip
        self._filled += found
        self._pieces.append(
            (runs.group.copy(), sizes, codes[:found].copy(), counts[: min(found, counts.size)])
        )

    def bag(self, groups: int) -> Bag:
        """All that was taken in, of so many groups."""
        if len(self._pieces) == 1:
            group, sizes, some, often = self._pieces[0]
            if group.size == groups and (group == np.arange(groups)).all():
                offsets = np.zeros(groups + 1, np.int64)
                np.cumsum(sizes, out=offsets[1:])
                return Bag(offsets, some, often, self._coded.values)
        starts = np.zeros(groups + 1, np.int64)
        runs = np.zeros(groups, np.int32)
        for group, sizes, _, _ in self._pieces:
            _tally(group, sizes, starts[1:], runs)
        np.cumsum(starts, out=starts)
        places = starts[:-1].copy()
        codes = np.empty(int(starts[-1]), np.int32)
        counts = np.empty(codes.size if self._counted else 0, np.int64)
        for group, sizes, some, often in self._pieces:
            _by_group(group, sizes, (some, often), places, (codes, counts))
        return _told_apart((starts, runs), codes, counts, self._coded.values)


def regrouped(parts: Sequence[tuple[Bag | None, Where]], groups: int) -> Bag:
    """Groups of several bags put together."""
    known = [(bag, where) for bag, where in parts if bag is not None and len(bag.values)]
    if not known:
        return Bag.empty(groups)
    values, moved = _together(of_one_kind([bag.values for bag, _ in known]))
    starts = np.zeros(groups + 1, np.int64)
    runs = np.zeros(groups, np.int32)
    for bag, where in known:
        _sizes(where, bag.offsets, starts[1:], runs)
    np.cumsum(starts, out=starts)
    places = starts[:-1].copy()
    codes = np.empty(int(starts[-1]), np.int32)
    counts = np.empty(codes.size if any(bag.counts.size for bag, _ in known) else 0, np.int64)
    for (bag, where), now in zip(known, moved, strict=True):
        _put(where, (bag.offsets, bag.codes, bag.counts), now, places, codes, counts)
    return _told_apart((starts, runs), codes, counts, values)


def of_one_kind(dictionaries: list[pa.Array]) -> list[pa.Array]:
    """As texts where a source has changed a column's type."""
    if len({values.type for values in dictionaries}) == 1:
        return dictionaries
    return [values.cast(pa.string()) for values in dictionaries]


def _together(dictionaries: list[pa.Array]) -> tuple[pa.Array, list[IntArray]]:
    """All values of several dictionaries, and where those of each are now (nothing: where they
    were, as for the first one)."""
    stay = np.empty(0, np.int32)
    if len(dictionaries) == 1:
        return dictionaries[0], [stay]
    encoded = pa.concat_arrays(dictionaries).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    ends = np.cumsum([len(values) for values in dictionaries])
    return encoded.dictionary, [stay, *np.split(codes[ends[0] :], ends[1:-1] - ends[0])]


def _told_apart(
    groups: tuple[Counts, IntArray], codes: Any, counts: Any, values: pa.Array
) -> Bag:  # fmt: skip
    """Equal codes of a group become one, by a mark per code: no table has to be searched.
    ``groups`` says where each begins and how many parts it came in; those of a part differ."""
    starts, parts = groups
    if parts.max(initial=0) <= 1:
        return Bag(starts, codes, counts, values)
    offsets = np.zeros(starts.size, np.int64)
    _distinct(starts, codes, counts, np.full(len(values), -1, np.int32), offsets)
    found = int(offsets[-1])
    return Bag(offsets, codes[:found].copy(), counts[: min(found, counts.size)].copy(), values)


@numba.njit(cache=True)
def _of_runs(runs: Any, codes: Any, marking: Any, out: Any) -> Any:
    """The different codes of each run, one run after the other; ``marks`` holds where each code
    was last put, counted over all calls."""
    event, rank, group, start, stop, asks = runs
    marks, filled = marking
    found, often, sizes = out
    counted = often.size > 0
    n = np.int64(0)
    for k in range(group.size):
        if not asks[rank[k]]:
            continue
        begin = n
        first = np.int32(filled + n)
        for i in range(start[k], stop[k]):
            code = codes[np.uint32(event[np.uint64(i)])]
            if code < 0:
                continue
            c = np.uint32(code)
            place = marks[c]
            new = place < first
            found[np.uint64(n)] = code
            if counted:
                if new:
                    often[n] = 1
                else:
                    often[place - filled] += 1
            marks[c] = np.int32(filled + n) if new else place
            n += np.int64(new)
        sizes[k] = n - begin
    return n


@numba.njit(cache=True)
def _tally(group: Any, sizes: Any, totals: Any, runs: Any) -> None:
    for k in range(group.size):
        totals[group[k]] += sizes[k]
        runs[group[k]] += np.int32(sizes[k] > 0)


@numba.njit(cache=True)
def _mark(codes: Any, used: Any) -> None:
    for i in range(codes.size):
        used[codes[i]] = True


@numba.njit(cache=True)
def _copy(rows: Any, offsets: Any, codes: Any, counts: Any, to: Any, to_counts: Any) -> None:
    k = 0
    for i in range(rows.size):
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            to[k] = codes[j]
            if counts.size:
                to_counts[k] = counts[j]
            k += 1


@numba.njit(cache=True)
def _sizes(where: Any, offsets: Any, totals: Any, runs: Any) -> None:
    rows, target = where
    for i in range(rows.size):
        size = offsets[rows[i] + 1] - offsets[rows[i]]
        totals[target[i]] += size
        runs[target[i]] += np.int32(size > 0)


@numba.njit(cache=True)
def _put(where: Any, source: Any, moved: Any, places: Any, to: Any, to_counts: Any) -> None:
    """Copy the codes of rows to the places of their targets, as they are coded now."""
    rows, target = where
    offsets, codes, counts = source
    for i in range(rows.size):
        k = places[target[i]]
        first, last = offsets[rows[i]], offsets[rows[i] + 1]
        if moved.size:
            for j in range(last - first):
                to[np.uint64(k + j)] = moved[np.uint32(codes[np.uint64(first + j)])]
        else:
            for j in range(last - first):
                to[np.uint64(k + j)] = codes[np.uint64(first + j)]
        if counts.size:
            for j in range(first, last):
                to_counts[k + j - first] = counts[j]
        places[target[i]] = k + last - first


@numba.njit(cache=True)
def _by_group(group: Any, sizes: Any, source: Any, places: Any, out: Any) -> None:
    codes, counts = source
    to, to_counts = out
    j = 0
    for k in range(group.size):
        place = places[group[k]]
        for i in range(sizes[k]):
            to[place + i] = codes[j + i]
            if counts.size:
                to_counts[place + i] = counts[j + i]
        places[group[k]] += sizes[k]
        j += sizes[k]


@numba.njit(cache=True)
def _distinct(starts: Any, codes: Any, tally: Any, marks: Any, offsets: Any) -> None:
    """Move the first of equal codes of each group to the front, in place; ``marks`` holds where
    each code was last put."""
    counted = tally.size > 0
    k = np.int64(0)
    for g in range(starts.size - 1):
        first = np.int32(k)
        for i in range(starts[g], starts[g + 1]):
            c = np.uint32(codes[np.uint64(i)])
            place = marks[c]
            new = place < first
            if counted:
                if new:
                    tally[k] = tally[i]
                else:
                    tally[place] += tally[i]
            codes[np.uint64(k)] = np.int32(c)
            marks[c] = np.int32(k) if new else place
            k += np.int64(new)
        offsets[g + 1] = k
