"""When everything derived from an input is done: acknowledgement by exclusive or.

Every record has a random 64-bit id. When one is processed, its id and the ids of what derives from
it go into its root's ledger by exclusive or, in one step. Each id goes in twice, when the record is
made and when it is done, so the ledger is zero exactly when nothing is left, in whatever order that
comes in; by chance it is zero earlier once in 2**64 looks. Splits, joins and loops need nothing
more: a record with several parents belongs to the root of each of them that it acknowledges.

Ids come from a seed, so an epoch that is replayed makes the same ones.

Source: DRS IV-A (the acknowledgement mechanism of Storm).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint64]
Times = npt.NDArray[np.float64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def record_ids(seed: int, stream: int, first: int, count: int) -> Ids:
    """Ids of the records ``first``, ``first + 1``, … of a stream: random, never 0, never the same
    twice within a stream.

    >>> record_ids(7, 0, 2, 1)[0] == record_ids(7, 0, 0, 3)[2]
    np.True_
    """
    return _ids_at(seed, stream, np.arange(first, first + count))


def sampled(
    seed: int, stream: int, positions: npt.NDArray[np.int64], one_in: int
) -> npt.NDArray[np.bool_]:
    """Which inputs at some positions are followed: in every ``one_in`` positions one, by chance,
    the same ones on every replay."""
    blocks = positions // one_in
    return positions - blocks * one_in == _offsets(seed, stream, blocks, one_in)


def followed(
    seed: int, stream: int, positions: npt.NDArray[np.int64], one_in: int
) -> tuple[npt.NDArray[np.int64], Ids]:
    """The places of followed inputs among positions that ascend, and their ids: what
    :func:`sampled` and :func:`record_ids` say of them. Where no position is left out, an input that
    is not followed costs nothing.

    >>> places, ids = followed(7, 0, np.arange(10, 20), 4)
    >>> (record_ids(7, 0, 10, 10)[places] == ids).all()
    np.True_
    """
    count = len(positions)
    if count == 0 or positions[-1] - positions[0] != count - 1:
        places = np.flatnonzero(sampled(seed, stream, positions, one_in))
    else:
        first = int(positions[0])
        blocks = np.arange(first // one_in, (first + count - 1) // one_in + 1)
        places = blocks * one_in + _offsets(seed, stream, blocks, one_in) - first
        places = places[(places >= 0) & (places < count)]
    return places, _ids_at(seed, stream, positions[places])


def derived_ids(parents: Ids, ordinals: npt.NDArray[np.int64]) -> Ids:
    """Ids of records that came out of others: the parents' ids, and which of its results each is.
    So they are the same however the rows were cut into batches, and in every replay."""
    return _never_zero(_mixed(parents + (ordinals.astype(np.uint64) + np.uint64(1)) * _GOLDEN))


def copies(records: Ids, reader: int) -> Ids:
    """Ids of the copies of records that one reader of their stream gets: two readers acknowledge
    two copies."""
    mark = _mixed(np.array([reader], np.uint64) + _GOLDEN)
    return _never_zero(_mixed(records ^ mark))


def acknowledgements(ids: Ids, parents: npt.NDArray[np.int64], derived: Ids) -> Ids:
    """What goes into the ledgers for processed records: ``derived[i]`` came out of the record
    ``ids[parents[i]]``.

    >>> acknowledgements(np.array([8], np.uint64), np.array([0, 0]), np.array([1, 2], np.uint64))
    array([11], dtype=uint64)
    """
    values = ids.astype(np.uint64, copy=True)
    np.bitwise_xor.at(values, parents, derived)
    return values


@dataclass(frozen=True, eq=False)
class Done:
    """Trees that are complete: roots, when they came in and when the last of each was done."""

    roots: Ids
    began: Times
    ended: Times

    @property
    def sojourns(self) -> Times:
        """Total sojourn times, in seconds."""
        return self.ended - self.began


def _no_ids() -> Ids:
    return np.empty(0, np.uint64)


def _no_times() -> Times:
    return np.empty(0, np.float64)


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees that are not complete yet, as columns sorted by root. A new value comes out of
    every change; nothing is changed in place.

    >>> one = np.array([5], np.uint64)
    >>> trees, done = Trees().begun(one, one, np.array([1.0]))
    >>> trees, done = trees.acknowledged(one, one, np.array([4.0]))
    >>> done.sojourns.tolist(), len(trees)
    ([3.0], 0)
    """

    roots: Ids = field(default_factory=_no_ids)
    ledger: Ids = field(default_factory=_no_ids)
    known: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Whether the root itself was told of; what derives from it may be told earlier."""
    began: Times = field(default_factory=_no_times)
    latest: Times = field(default_factory=_no_times)

    def __len__(self) -> int:
        return len(self.roots)

    def begun(self, roots: Ids, ids: Ids, times: Times) -> tuple[Trees, Done]:
        """Inputs came in: their roots, the ids of their first records, and when."""
        return self._with(roots, ids, times, begins=True)

    def acknowledged(self, roots: Ids, values: Ids, times: Times) -> tuple[Trees, Done]:
        """Records were processed: their roots, what :func:`acknowledgements` gave, and when."""
        return self._with(roots, values, times, begins=False)

    def _with(self, roots: Ids, values: Ids, times: Times, begins: bool) -> tuple[Trees, Done]:
        everything = np.concatenate([self.roots, roots])
        if not len(everything):
            return self, Done(_no_ids(), _no_times(), _no_times())
        order = np.argsort(everything, kind="stable")
        sorted_roots = everything[order]
        first = np.flatnonzero(np.r_[True, sorted_roots[1:] != sorted_roots[:-1]])
        new = len(roots)
        ledger = np.bitwise_xor.reduceat(np.concatenate([self.ledger, values])[order], first)
        known = np.concatenate([self.known, np.full(new, begins)])
        began = np.concatenate([self.began, times if begins else np.full(new, np.inf)])
        latest = np.concatenate([self.latest, np.full(new, -np.inf) if begins else times])
        known = np.logical_or.reduceat(known[order], first)
        began = np.minimum.reduceat(began[order], first)
        latest = np.maximum.reduceat(latest[order], first)
        found = sorted_roots[first]
        done = known & (ledger == 0)
        left = ~done
        return (
            Trees(found[left], ledger[left], known[left], began[left], latest[left]),
            Done(found[done], began[done], latest[done]),
        )

    def without(self, before: float) -> tuple[Trees, int]:
        """Without trees that came in before so long and never became complete, and how many: what
        crashed or was thrown away on purpose is not waited for for ever."""
        kept = ~self.known | (self.began >= before)
        left = Trees(
            self.roots[kept], self.ledger[kept], self.known[kept], self.began[kept],
            self.latest[kept],
        )  # fmt: skip
        return left, int((~kept).sum())

    def to_columns(self) -> dict[str, npt.NDArray[np.generic]]:
        """For a segment."""
        return dict(vars(self))

    @classmethod
    def from_columns(cls, columns: Mapping[str, npt.NDArray[np.generic]]) -> Trees:
        """What :meth:`to_columns` gave."""
        return cls(**columns)  # type: ignore[arg-type]


def _start(seed: int, stream: int) -> Ids:
    base = np.array([seed, stream], np.uint64)
    return _mixed(_mixed(base[:1]) ^ _mixed(base[1:] + _GOLDEN))


def _ids_at(seed: int, stream: int, positions: npt.NDArray[np.int64]) -> Ids:
    counted = positions.astype(np.uint64) + np.uint64(1)
    return _never_zero(_mixed(_start(seed, stream) + counted * _GOLDEN))


def _offsets(
    seed: int, stream: int, blocks: npt.NDArray[np.int64], one_in: int
) -> npt.NDArray[np.int64]:
    """Which of the positions of each block is followed."""
    chances = _mixed(_ids_at(seed, stream, blocks) + _GOLDEN)
    return (chances % np.uint64(one_in)).astype(np.int64)


def _never_zero(ids: Ids) -> Ids:
    ids[ids == 0] = _GOLDEN
    return ids


def _mixed(x: Ids) -> Ids:
    """SplitMix64's finaliser: every input has its own output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
