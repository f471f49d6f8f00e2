"""Which inputs are followed into an operator, and what manifests tell of them.

A few inputs from outside are followed (one in ``one_in``); every record that derives from one
carries its root and an id of its own through the streams (``marks``). What was processed is
acknowledged with what came out of it (``scale.acks``), and manifests tell both.

Invariant: ids follow from positions and parents alone, so that a replay acknowledges the same.

Source: DRS IV-A.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from geoflux.engine.marks import Ints, Marks
from geoflux.engine.source import RawBatch
from geoflux.scale.acks import Ids, copies, followed

_EPOCH = 0x9E3779B97F4A7C15


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


class Watch:
    """Adds up the seconds of what is done under it.

    >>> watch = Watch()
    >>> with watch:
    ...     _ = sum(range(1000))
    >>> watch.seconds > 0
    True
    """

    seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began


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
            given = batch.marks  # of records of a stream this reader has copies of its own
            return Marks(given.places, given.roots, copies(given.ids, sampling.number))
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
