"""Which rows derive from inputs that are followed, on their way through an operator.

A few inputs from outside are followed (one in ``one_in``); every record that derives from one
carries its root and an id of its own through the streams. Within an epoch that is kept beside the
rows, for the few that have it: rows that are not followed cost nothing. What was processed is
acknowledged with what came out of it (``scale.acks``), and manifests tell both.

Invariant: ids follow from positions and parents alone, so that a replay acknowledges the same.

Source: DRS IV-A.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.blobs import Run
from geoflux.engine.source import RawBatch
from geoflux.scale.acks import Ids, copies, followed

ROOT, RECORD = "@root", "@record"
"""Columns of streams between operators, as readers see them: the input that a row derives from, and
the row's id; null for rows that derive from none that is followed. Files have them in their
metadata, for the few rows that have any."""
MARKS = frozenset({ROOT, RECORD})
MARKED = b"marks"
"""Where the metadata of a blob has its marks."""
_FIELDS = [pa.field(ROOT, pa.uint64()), pa.field(RECORD, pa.uint64())]
_METADATA = "geoflux.marks"
_EPOCH = 0x9E3779B97F4A7C15

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sampling:
    """Who is followed through an operator.

    ``seed`` is the application's, ``number`` the operator's own in it. ``one_in`` inputs from
    outside one is followed; ``None``: the operator reads streams, and begins no trees. ``readers``
    are, by stream of its results, the numbers of the operators that read it.
    """

    seed: int
    number: int
    one_in: int | None = None
    readers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[str]:
        """What to read beside the operator's own columns."""
        return MARKS if self.one_in is None else frozenset()


def rooted_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a stream with those that tell where its rows come from."""
    return pa.schema([*schema, *_FIELDS])


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
        known = np.zeros(len(order), np.bool_)
        known[self.places] = True
        places = np.flatnonzero(known[order])
        found = np.searchsorted(self.places, order[places])
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
    def from_bytes(cls, data: bytes) -> Marks:
        """What :meth:`to_bytes` gave."""
        places, roots, ids = np.frombuffer(data, np.uint64).reshape(3, -1)
        return cls(places.view(np.int64), roots, ids)


def joined_marks(pieces: Sequence[tuple[Marks, int]]) -> Marks:
    """Of tables one after another, each with its number of rows.

    >>> one = Marks(np.array([1]), np.array([7], np.uint64), np.array([8], np.uint64))
    >>> joined_marks([(one, 3), (one, 2)]).places.tolist()
    [1, 4]
    """
    some, start = [], 0
    for marks, rows in pieces:
        if len(marks):
            some.append((marks, start))
        start += rows
    if not some:
        return Marks()
    return Marks(
        np.concatenate([marks.places + start for marks, start in some]),
        np.concatenate([marks.roots for marks, _ in some]),
        np.concatenate([marks.ids for marks, _ in some]),
    )


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
    runs = [run for _, some in contents for run in some]
    partitions = np.array([run.partition for run in runs], np.int64)
    rows = np.array([run.rows for run in runs], np.int64)
    order = np.argsort(partitions, kind="stable")
    inside = np.cumsum(rows[order]) - rows[order]
    new = np.r_[True, partitions[order][1:] != partitions[order][:-1]]
    firsts = np.flatnonzero(new)
    earlier = np.array([before.get(int(p), 0) for p in partitions[order][firsts]], np.int64)
    inside += np.repeat(earlier - inside[firsts], np.diff(np.r_[firsts, len(runs)]))
    offsets = np.empty(len(runs), np.int64)
    offsets[order] = inside
    ends = np.cumsum(rows)
    told = [
        (Marks.from_bytes(about[MARKED]) if MARKED in about else Marks(),
         sum(run.rows for run in some))
        for about, some in contents
    ]  # fmt: skip
    marks = joined_marks(told)
    run = np.searchsorted(ends, marks.places, side="right")
    places = marks.places - (ends - rows)[run] + offsets[run]
    return Placed(partitions[run], Marks(places, marks.roots, marks.ids))


@dataclass
class Followed:
    """What a routing task found: the inputs that begin trees, and rows that were acknowledged
    because nobody will process them."""

    roots: list[Ids] = field(default_factory=list)
    """Root, id of its first record, position, in columns."""
    acks: list[Ids] = field(default_factory=list)
    """Root and acknowledgement, in columns."""

    def marks(self, sampling: Sampling, batch: RawBatch, lane_epoch: int | None) -> Marks:
        """The followed rows of a batch. ``lane_epoch``: of a stream whose positions begin anew in
        every epoch, the epoch."""
        if sampling.one_in is None:
            return _received(sampling, batch.table)
        seed = sampling.seed
        if lane_epoch is not None:
            seed = (seed + (lane_epoch + 1) * _EPOCH) % (1 << 64)
        places, ids = followed(seed, sampling.number, batch.positions, sampling.one_in)
        positions = batch.positions[places].astype(np.uint64)
        self.roots.append(np.column_stack([ids, ids, positions]))
        return Marks(places, ids, ids)

    def accepted(self, marks: Marks, batch: RawBatch, kept: Ints) -> Marks:
        """The marks of the rows at the positions ``kept``; the others are acknowledged: their trees
        end in quarantine."""
        if len(kept) == len(batch.positions) or not len(marks):
            return marks
        positions = batch.positions[marks.places]
        order = np.argsort(kept, kind="stable")
        places = np.searchsorted(kept, positions, sorter=order)
        good = places < len(kept)
        good[good] = kept[order[places[good]]] == positions[good]
        self.acks.append(marks.taken(~good).pairs())
        left = marks.taken(good)
        return Marks(order[places[good]], left.roots, left.ids)


def with_marks(table: pa.Table, first: int, metadata: Mapping[bytes, bytes] | None) -> pa.Table:
    """Rows of a file, from the row ``first`` on, with the columns of the marks that its metadata
    tell of, where these columns are there to be filled."""
    text = (metadata or {}).get(_METADATA.encode())
    if text is None or not set(table.schema.names) >= MARKS:
        return table
    marks = Marks.from_bytes(b64decode(text)).between(first, first + len(table))
    for name, known in ((ROOT, marks.roots), (RECORD, marks.ids)):
        values, missing = np.zeros(len(table), np.uint64), np.ones(len(table), np.bool_)
        values[marks.places], missing[marks.places] = known, False
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, mask=missing))
    return table


def without_marks(batch: RawBatch) -> RawBatch:
    """A batch without these columns: they are nobody's concern who reads what was refused."""
    names = [name for name in (ROOT, RECORD) if name in batch.table.schema.names]
    return replace(batch, table=batch.table.drop_columns(names)) if names else batch


def as_text(columns: Sequence[Ids]) -> str:
    """Numbers in columns as text, for a report; nothing as nothing.

    >>> from_text(as_text([np.array([[1, 2 ** 63]], np.uint64)]), 2).tolist()
    [[1, 9223372036854775808]]
    """
    return b64encode(np.concatenate(columns).tobytes()).decode() if columns else ""


def from_text(text: str, width: int) -> Ids:
    """What :func:`as_text` gave, in so many columns."""
    return np.frombuffer(b64decode(text), np.uint64).reshape(-1, width)


def told(roots: Iterable[str], acks: Iterable[str]) -> dict[str, list[list[int]]]:
    """The keys of a manifest: roots by position, acknowledgements by root, those of one root as one
    (exclusive or takes them in any order).

    >>> told([], [as_text([np.array([[5, 1], [4, 9]], np.uint64), np.array([[5, 3]], np.uint64)])])
    {'roots': [], 'acks': [[4, 9], [5, 2]]}
    """
    begun = np.concatenate([from_text("", 3), *(from_text(text, 3) for text in roots)])
    pairs = np.concatenate([from_text("", 2), *(from_text(text, 2) for text in acks)])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    first = np.flatnonzero(np.r_[True, pairs[1:, 0] != pairs[:-1, 0]][: len(pairs)])
    values = np.bitwise_xor.reduceat(pairs[:, 1], first) if len(pairs) else pairs[:, 1]
    return {
        "roots": begun[np.argsort(begun[:, 2], kind="stable")].tolist(),
        "acks": np.column_stack([pairs[first, 0], values]).tolist(),
    }


def _received(sampling: Sampling, table: pa.Table) -> Marks:
    """The marks of rows of a stream: of its records this reader has copies of its own."""
    if not set(table.schema.names) >= MARKS:
        return Marks()
    roots, records = table.column(ROOT), table.column(RECORD)
    if roots.null_count == len(roots):
        return Marks()
    places = np.flatnonzero(roots.is_valid().to_numpy())
    some = pa.array(places)
    roots, records = (column.take(some).to_numpy() for column in (roots, records))
    return Marks(places, roots, copies(records, sampling.number))
