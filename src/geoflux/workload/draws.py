"""Random draws by number: word ``n`` of a stream is the same whoever asks for it, and with what.

Made for workers that each expand some range of a simulated run. A counter-based generator
(Philox) jumps to any word at once, and a draw uses a fixed number of words. What follows from a
word goes through integers, tables and single roundings only, so that two processors with
different vector units still draw the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_PER_COUNTER = 4  # Philox makes four words from one value of its counter
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_KNOT_BITS = 12
_FRACTION_BITS = np.uint64(32 - _KNOT_BITS)


class Stream(IntEnum):
    """Which draws a word is for. A number never changes its meaning: it would change every run."""

    EVENT_CITY = 1
    EVENT_PLACE = 2
    EVENT_OBJECT = 3
    EVENT_SPEED = 4
    HOTSPOT_CHANCE = 5
    HOTSPOT_PLACE = 6
    QUERY_TIME = 7
    QUERY_CITY = 8
    QUERY_PLACE = 9
    QUERY_TRAITS = 10
    HOTSPOT_QUERY_PLACE = 1_000  # and one more for each hotspot
    HOTSPOT_QUERY_TRAITS = 1_000_000  # and one more for each hotspot


def words(seed: int, stream: int, start: int, count: int) -> Words:
    """Words ``start`` to ``start + count`` of one of the streams of a seed.

    >>> bool((words(7, 1, 1000, 5)[2:] == words(7, 1, 1002, 3)).all())
    True
    """
    generator = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))
    skipped, inside = divmod(start, _PER_COUNTER)
    generator.advance(skipped)
    return generator.random_raw(inside + count)[inside:]


def high(drawn: Words) -> Words:
    """The upper 32 bits of each word."""
    return drawn >> _HALF


def low(drawn: Words) -> Words:
    """The lower 32 bits of each word."""
    return drawn & _LOW


def unit(bits: Words) -> Floats:
    """Numbers in [0, 1) from 32 bits each."""
    return bits.astype(np.float64) * 2.0**-32


@lru_cache(maxsize=1)
def _normal_knots() -> tuple[Floats, Floats]:
    """Quantiles of the standard normal, and the step from each to the next."""
    knots = 1 << _KNOT_BITS
    normal = NormalDist()
    shares = [min(max(i, 0.25), knots - 0.25) / knots for i in range(knots + 1)]
    quantiles = np.array([round(normal.inv_cdf(share), 9) for share in shares], dtype=np.float64)
    step: Floats = np.subtract(quantiles[1:], quantiles[:-1])
    return quantiles[:-1].copy(), step


def normal(bits: Words) -> Floats:
    """Standard normal numbers from 32 bits each, by interpolated quantiles; none beyond 3.9."""
    base, step = _normal_knots()
    knot = (bits >> _FRACTION_BITS).astype(np.intp)
    fraction = bits & np.uint64((1 << int(_FRACTION_BITS)) - 1)
    drawn: Floats = step.take(knot)
    drawn *= fraction
    drawn *= 2.0 ** -int(_FRACTION_BITS)
    drawn += base.take(knot)
    return drawn


def fold(values: Floats, low_edge: float, high_edge: float) -> Floats:
    """Values mirrored at the edges, as often as needed, into [low edge, high edge).

    >>> fold(np.array([-1.0, 2.0, 10.5, 25.0]), 0.0, 10.0).tolist()
    [1.0, 2.0, 9.5, 5.0]
    """
    outside = np.flatnonzero((values < low_edge) | (values >= high_edge))
    if not len(outside):
        return values
    span = high_edge - low_edge
    phase = np.mod(values[outside] - low_edge, 2 * span)
    inside = low_edge + np.minimum(phase, 2 * span - phase)
    folded = values.copy()
    folded[outside] = np.clip(inside, low_edge, np.nextafter(high_edge, low_edge))
    return folded


@dataclass(frozen=True)
class AliasTables:
    """Several discrete distributions, each drawn from in O(1) by one 32-bit number.

    Walker's alias method in Vose's form. Table ``t`` takes the entries ``first[t]`` to
    ``first[t] + size[t]``; a drawn entry is counted over all tables.

    >>> tables = AliasTables.of([[1, 9], [0, 0, 5]])
    >>> bits = low(words(7, 0, 0, 1000))
    >>> sorted(set(tables.draw(np.int64(1), bits).tolist()))
    [4]
    >>> round(float((tables.draw(np.int64(0), bits) == 1).mean()), 1)
    0.9
    """

    first: Indices
    size: Words
    threshold: Words
    other: Indices

    @classmethod
    def of(cls, weights: Sequence[Sequence[int]]) -> AliasTables:
        """Tables for rows of whole weights; each row has at least one that is not 0."""
        size = [len(row) for row in weights]
        first = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64)
        threshold: list[int] = []
        other: list[int] = []
        for row in weights:
            base = len(threshold)
            kept, alias = _vose(row)
            threshold += kept
            other += [base + i for i in alias]
        return cls(
            first,
            np.array(size, dtype=np.uint64),
            np.array(threshold, dtype=np.uint64),
            np.array(other, dtype=np.int64),
        )

    def draw(self, table: np.int64 | Indices, bits: Words) -> Indices:
        """The entry that each number draws from its table."""
        scaled = bits * self.size[table]
        entry = (scaled >> _HALF).astype(np.int64)
        entry += self.first[table]
        kept = low(scaled) < self.threshold.take(entry)
        return np.where(kept, entry, self.other.take(entry))


def _vose(weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """Of each entry: how much of 2**32 is its own, and who gets the rest. Exact: whole numbers."""
    count, total = len(weights), sum(weights)
    if total <= 0:
        raise ValueError(f"weights {list(weights)[:5]} draw nothing; one must be above 0")
    left = [weight * count for weight in weights]
    small = [i for i, weight in enumerate(left) if weight < total]
    large = [i for i, weight in enumerate(left) if weight >= total]
    kept, alias = [1 << 32] * count, list(range(count))
    while small and large:
        poor, rich = small.pop(), large[-1]
        kept[poor], alias[poor] = (left[poor] << 32) // total, rich
        left[rich] -= total - left[poor]
        if left[rich] < total:
            small.append(large.pop())
    return kept, alias
