"""Marks: which rows of a table derive from followed inputs, kept beside the rows.

They go along through files, batches and blobs for the few rows that have them: a row that is not
followed costs nothing.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.engine.blobs import Run
from geoflux.scale.acks import Ids

MARKED = b"marks"
"""Where the metadata of a blob has its marks."""
_METADATA = "geoflux.marks"
"""Where those of a Parquet file have them."""

Ints = npt.NDArray[np.int64]


def _no_ints() -> Ints:
    return np.empty(0, np.int64)


def _no_ids() -> Ids:
    return np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Marks:
    """The followed rows of a table: their places, ascending, their roots, and the ids under which
    they are acknowledged."""

    places: Ints = field(default_factory=_no_ints)
    roots: Ids = field(default_factory=_no_ids)
    ids: Ids = field(default_factory=_no_ids)

    def __len__(self) -> int:
        return len(self.places)

    def between(self, first: int, last: int) -> Marks:
        """Of the rows ``first`` to ``last`` (excluded), with places counted from the first."""
        a, b = np.searchsorted(self.places, (first, last))
        return Marks(self.places[a:b] - first, self.roots[a:b], self.ids[a:b])

    def taken(self, rows: npt.NDArray[np.bool_]) -> Marks:
        """Some of them, at the places that they have."""
        return Marks(self.places[rows], self.roots[rows], self.ids[rows])

    def ordered(self, order: Any) -> Marks:
        """After rows were put into another order: row ``i`` is the one that was at ``order[i]``."""
        if not len(self):
            return self
        places, found = _found(order, self.places)
        return Marks(places, self.roots[found], self.ids[found])

    def among(self, rows: Ints) -> Marks:
        """Of the rows at these places, which ascend; at their places among them.

        >>> ids = np.array([7, 8], np.uint64)
        >>> Marks(np.array([1, 4]), ids, ids).among(np.array([0, 3, 4])).places.tolist()
        [2]
        """
        found = np.searchsorted(rows, self.places)
        good = found < len(rows)
        good[good] = rows[found[good]] == self.places[good]
        return Marks(found[good], self.roots[good], self.ids[good])

    def pairs(self) -> Ids:
        """Root and id of each: the acknowledgement of rows of which nothing came."""
        return np.column_stack([self.roots, self.ids])

    def to_bytes(self) -> bytes:
        """For the metadata of a blob."""
        return np.stack([self.places.view(np.uint64), self.roots, self.ids]).tobytes()

    def to_metadata(self) -> dict[str, str]:
        """For a Parquet file of the rows: a column of mostly nulls would cost something per row."""
        return {_METADATA: b64encode(self.to_bytes()).decode()}

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None) -> Marks:
        """What :meth:`to_metadata` gave, as a file has it; none, if it tells of none."""
        text = (metadata or {}).get(_METADATA.encode())
        return cls() if text is None else cls.from_bytes(b64decode(text))

    @classmethod
    def from_bytes(cls, data: bytes) -> Marks:
        """What :meth:`to_bytes` gave."""
        places, roots, ids = np.frombuffer(data, np.uint64).reshape(3, -1)
        return cls(places.view(np.int64), roots, ids)


@numba.njit(cache=True)
def _found(order: Any, places: Any) -> Any:
    """Where in an order the given places are, and which of them each is."""
    known = np.zeros(order.size, np.bool_)
    known[places] = True
    found, count = np.empty(places.size, np.int64), 0
    for i in range(order.size):
        if known[order[i]]:
            found[count] = i
            count += 1
    ranks = np.empty(places.size, np.int64)
    which = np.empty(order.size, np.int32)  # only where something is followed: never read elsewhere
    for rank in range(places.size):
        which[places[rank]] = rank
    for k in range(count):
        ranks[k] = which[order[found[k]]]
    return found, ranks


@dataclass(frozen=True, eq=False)
class Placed:
    """Followed rows of several partitions: the partition of each, and its mark, whose place is that
    among the rows of its partition."""

    partitions: Ints = field(default_factory=_no_ints)
    marks: Marks = field(default_factory=Marks)

    def __len__(self) -> int:
        return len(self.partitions)

    def taken(self, rows: npt.NDArray[np.bool_], moved: Ints | int = 0) -> Placed:
        """Some of them, with their places moved."""
        marks = self.marks.taken(rows)
        return Placed(
            self.partitions[rows], Marks(marks.places + moved, marks.roots, marks.ids)
        )  # fmt: skip

    def __add__(self, other: Placed) -> Placed:
        if not (len(self) and len(other)):
            return self if len(self) else other
        a, b = self.marks, other.marks
        return Placed(
            np.concatenate([self.partitions, other.partitions]),
            Marks(
                np.concatenate([a.places, b.places]), np.concatenate([a.roots, b.roots]),
                np.concatenate([a.ids, b.ids]),
            ),
        )  # fmt: skip


def placed(
    contents: Sequence[tuple[Mapping[bytes, bytes], Sequence[Run]]], before: Mapping[int, int]
) -> Placed:
    """The marks of blobs in their order, by what each tells of itself and its runs, where so many
    rows of partitions come ``before`` those of the blobs."""
    if not any(MARKED in about for about, _ in contents):
        return Placed()
    known, found = dict(before), []
    for about, runs in contents:
        if MARKED in about:
            marks = Marks.from_bytes(about[MARKED])
            ends = np.cumsum([run.rows for run in runs])
            which = np.searchsorted(ends, marks.places, side="right")
            mine = [(runs[n].partition, runs[n].rows) for n in which.tolist()]
            partitions, rows = np.array(mine, np.int64).T
            earlier = np.array([known.get(partition, 0) for partition, _ in mine], np.int64)
            places = marks.places - (ends[which] - rows) + earlier
            found.append((partitions, places, marks.roots, marks.ids))
        for run in runs:
            known[run.partition] = known.get(run.partition, 0) + run.rows
    partitions, *columns = (np.concatenate(column) for column in zip(*found, strict=True))
    return Placed(partitions, Marks(*columns))
