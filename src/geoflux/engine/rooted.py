"""Which rows derive from inputs that are followed, on their way through an operator.

A few inputs from outside are followed (one in ``one_in``); every record that derives from one
carries its root and an id of its own through the streams. Within an epoch that is kept beside the
rows, for the few that have it: rows that are not followed cost nothing. What was processed is
acknowledged with what came out of it (``scale.acks``), and manifests tell both.

Invariant: ids follow from positions and parents alone, so that a replay acknowledges the same.

Source: DRS IV-A.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.source import RawBatch
from geoflux.scale.acks import Ids, copies, followed

ROOT, RECORD = "@root", "@record"
"""Columns of streams between operators: the input that a row derives from, and the row's id; null
for rows that derive from none that is followed."""
MARKS = frozenset({ROOT, RECORD})
_FIELDS = [pa.field(ROOT, pa.uint64()), pa.field(RECORD, pa.uint64())]
_EPOCH = 0x9E3779B97F4A7C15

Ints = npt.NDArray[np.int64]
Pairs = list[list[int]]


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
        known = np.full(len(order), -1, np.int64)
        known[self.places] = np.arange(len(self))
        found = known[order]
        places = np.flatnonzero(found >= 0)
        return Marks(places, self.roots[found[places]], self.ids[found[places]])

    def pairs(self) -> Pairs:
        """Root and id of each: the acknowledgement of rows of which nothing came."""
        return np.column_stack([self.roots, self.ids]).tolist() if len(self) else []

    def to_text(self) -> str:
        """For the metadata of a blob."""
        return json.dumps([self.places.tolist(), self.roots.tolist(), self.ids.tolist()])

    @classmethod
    def from_text(cls, text: bytes) -> Marks:
        """What :meth:`to_text` gave."""
        places, roots, ids = json.loads(text)
        return cls(np.array(places, np.int64), np.array(roots, np.uint64), np.array(ids, np.uint64))


def joined_marks(pieces: Sequence[tuple[Marks, int]]) -> Marks:
    """Of tables one after another, each with its number of rows.

    >>> one = Marks(np.array([1]), np.array([7], np.uint64), np.array([8], np.uint64))
    >>> joined_marks([(one, 3), (one, 2)]).places.tolist()
    [1, 4]
    """
    starts = np.cumsum([0, *(rows for _, rows in pieces)])[:-1]
    some = [(marks, start) for (marks, _), start in zip(pieces, starts, strict=True) if len(marks)]
    if not some:
        return Marks()
    return Marks(
        np.concatenate([marks.places + start for marks, start in some]),
        np.concatenate([marks.roots for marks, _ in some]),
        np.concatenate([marks.ids for marks, _ in some]),
    )


@dataclass
class Followed:
    """What a routing task found: the inputs that begin trees, and rows that were acknowledged
    because nobody will process them."""

    roots: Pairs = field(default_factory=list)
    """Root, id of its first record, position."""
    acks: Pairs = field(default_factory=list)

    def marks(self, sampling: Sampling, batch: RawBatch, lane_epoch: int | None) -> Marks:
        """The followed rows of a batch. ``lane_epoch``: of a stream whose positions begin anew in
        every epoch, the epoch."""
        if sampling.one_in is None:
            return _received(sampling, batch.table)
        seed = sampling.seed
        if lane_epoch is not None:
            seed = (seed + (lane_epoch + 1) * _EPOCH) % (1 << 64)
        places, ids = followed(seed, sampling.number, batch.positions, sampling.one_in)
        positions = batch.positions[places].tolist()
        self.roots += [[i, i, p] for i, p in zip(ids.tolist(), positions, strict=True)]
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
        self.acks += marks.taken(~good).pairs()
        left = marks.taken(good)
        return Marks(order[places[good]], left.roots, left.ids)


def marks_by_partition(blobs: Sequence[Any]) -> dict[int, list[tuple[Marks, int]]]:
    """The marks of the rows that :func:`geoflux.engine.blobs.by_partition` gives, in its order:
    those of each run, and how many rows it has."""
    pieces: dict[int, list[tuple[Marks, int]]] = {}
    for blob in blobs:
        about = pa.ipc.open_stream(blob).schema.metadata
        marks = Marks.from_text(about[b"marks"]) if b"marks" in about else Marks()
        first = 0
        for partition, rows in json.loads(about[b"runs"]):
            pieces.setdefault(partition, []).append((marks.between(first, first + rows), rows))
            first += rows
    return pieces


def told(roots: Iterable[Pairs], acks: Iterable[Pairs]) -> dict[str, Pairs]:
    """The keys of a manifest: roots by position, acknowledgements by root, those of one root as one
    (exclusive or takes them in any order).

    >>> told([], [[[5, 1]], [[4, 9], [5, 3]]])
    {'roots': [], 'acks': [[4, 9], [5, 2]]}
    """
    begun = sorted((root for some in roots for root in some), key=lambda root: root[2])
    pairs = np.array([pair for some in acks for pair in some], np.uint64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    first = np.flatnonzero(np.r_[True, pairs[1:, 0] != pairs[:-1, 0]][: len(pairs)])
    values = np.bitwise_xor.reduceat(pairs[:, 1], first) if len(pairs) else pairs[:, 1]
    return {"roots": begun, "acks": np.column_stack([pairs[first, 0], values]).tolist()}


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
