"""Per group of events: how many values a column had, the smallest, the largest, the exact sums.

A group is a query and a stretch of time (or a whole window). Merging measures is associative and
commutative to the last bit, because the sums are exact (:mod:`geoflux.operators.exact_sum`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.aggregates import is_numeric
from geoflux.operators.exact_sum import Terms, Wide, aligned, normalise
from geoflux.operators.runs import Runs
from geoflux.spatial.space import FloatArray, IntArray

Mask = npt.NDArray[np.bool_]
Where = tuple[IntArray, IntArray]
"""Rows of a part, and the group that each of them goes into."""
_NO_SUMS = np.zeros((0, 0), np.int64)


def numbers_of(column: pa.Array) -> FloatArray:
    """A column as floats; what is missing, no number or not finite is NaN, and there is one zero.
    (A column that turns out to be of another kind was accepted before any event was seen.)"""
    if pa.types.is_null(column.type) or not is_numeric(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_decimal(column.type):  # Arrow's own cast does not round correctly
        column = column.cast(pa.string())
    floats = column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)
    if floats.null_count:
        floats = floats.fill_null(np.nan)
    values = floats.to_numpy(zero_copy_only=False) + 0.0
    values[~np.isfinite(values)] = np.nan
    return values


@dataclass(frozen=True)
class Values:
    """A column of a batch, ready to be added to measures; ``wants`` is 0 for the extremes alone,
    1 with sums, 2 with sums of squares too."""

    numbers: FloatArray
    terms: Terms
    squares: Terms

    @classmethod
    def of(cls, column: pa.Array, wants: int) -> Values:
        """Split the numbers once, however many queries ask for them."""
        numbers = numbers_of(column)
        nothing = Terms(np.empty(0, np.int32), _NO_SUMS, 0, 0)
        return cls(
            numbers,
            Terms.of(numbers) if wants >= 1 else nothing,
            Terms.squares_of(numbers) if wants >= 2 else nothing,
        )


@dataclass
class Measure:
    """One row per group; ``sums`` and ``squares`` have no columns where nobody asks for them."""

    n: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray
    sums: Wide
    base: int
    squares: Wide
    squares_base: int

    @classmethod
    def empty(cls, groups: int, shape: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Measure:
        """Nothing seen yet; ``shape`` is limbs and base of the sums, then of the squares."""
        return cls(
            np.zeros(groups, np.int64),
            np.full(groups, np.inf),
            np.full(groups, -np.inf),
            np.zeros((groups, shape[0]), np.int64),
            shape[1],
            np.zeros((groups, shape[2]), np.int64),
            shape[3],
        )

    @classmethod
    def ready_for(cls, groups: int, values: Values) -> Measure:
        """Nothing seen yet, with room for what the values can add up to."""
        terms, squares = values.terms, values.squares
        return cls.empty(groups, (terms.limbs, terms.base, squares.limbs, squares.base))

    def grown(self, groups: int) -> Measure:
        """With room for more groups."""
        larger = Measure.empty(groups, self.shape)
        for name in ("n", "low", "high", "sums", "squares"):
            getattr(larger, name)[: self.n.size] = getattr(self, name)
        return larger

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Limbs and base of the sums, then of the squares."""
        return self.sums.shape[1], self.base, self.squares.shape[1], self.squares_base

    def taken(self, rows: Any) -> Measure:
        """Some of the groups, by their places or as a slice."""
        return Measure(
            self.n[rows], self.low[rows], self.high[rows],
            self.sums[rows], self.base, self.squares[rows], self.squares_base,
        )  # fmt: skip

    def add(self, runs: Runs, asks: Mask, values: Values) -> None:
        """Take in one value for every match whose query asks."""
        asking = (runs.event, runs.rank, runs.group, runs.start, runs.stop, asks)
        terms, squares = values.terms, values.squares
        _add(
            asking, values.numbers, (self.n, self.low, self.high),
            (terms.first, terms.parts, self.sums),
        )  # fmt: skip
        if self.squares.shape[1]:
            _add_squares(asking, (squares.first, squares.parts, self.squares))


def joined(parts: Sequence[tuple[int, Measure | None]]) -> Measure:
    """Measures of several parts (with so many groups each), one below the other, in limbs that
    hold all of them; ``None`` where a part has no such column."""
    known = [m for _, m in parts if m is not None]
    sums = _span([(m.sums.shape[1], m.base) for m in known])
    squares = _span([(m.squares.shape[1], m.squares_base) for m in known])
    made = [m or Measure.empty(groups, (*sums, *squares)) for groups, m in parts]
    wide = [aligned(m.sums, m.base, sums[1], sums[0]) for m in made]
    wider = [aligned(m.squares, m.squares_base, squares[1], squares[0]) for m in made]
    n, low, high = (
        np.concatenate([getattr(m, name) for m in made]) for name in ("n", "low", "high")
    )
    return Measure(
        n, low, high, np.concatenate(wide), sums[1], np.concatenate(wider), squares[1]
    )  # fmt: skip


def regrouped(parts: Sequence[tuple[Measure | None, Where]], groups: int) -> Measure:
    """Groups of several measures put together."""
    known = [(m, where) for m, where in parts if m is not None]
    sums = _span([(m.sums.shape[1], m.base) for m, _ in known])
    squares = _span([(m.squares.shape[1], m.squares_base) for m, _ in known])
    out = Measure.empty(groups, (*sums, *squares))
    for m, where in known:
        _merge(
            where, (m.n, m.low, m.high, m.sums, m.squares),
            (m.base - out.base, m.squares_base - out.squares_base),
            (out.n, out.low, out.high, out.sums, out.squares),
        )  # fmt: skip
    normalise(out.sums)
    normalise(out.squares)
    return out


def _span(parts: list[tuple[int, int]]) -> tuple[int, int]:
    """Limbs and base that hold all of several (limbs, base), with room to carry."""
    used = [(limbs, base) for limbs, base in parts if limbs]
    if not used:
        return 0, 0
    low = min(base for _, base in used)
    return max(base + limbs for limbs, base in used) - low + (1 if len(used) > 1 else 0), low


@numba.njit(cache=True)
def _add(runs: Any, numbers: Any, plain: Any, terms: Any) -> None:
    """What is no number has terms of zero. Terms wait in registers as long as the numbers of a
    run are of like size."""
    event, rank, group, start, stop, asks = runs
    n, low, high = plain
    first, parts, wide = terms
    has_sums = wide.shape[1] > 0
    for k in range(group.size):
        if not asks[rank[k]]:
            continue
        g = group[k]
        least, most = low[g], high[g]
        known = np.int64(0)
        if not has_sums:
            for i in range(start[k], stop[k]):
                v = numbers[np.uint32(event[np.uint64(i)])]
                known += np.int64(v == v)
                least = v if v < least else least
                most = v if v > most else most
        else:
            limb = first[event[start[k]]]
            a = b = c = np.int64(0)
            for i in range(start[k], stop[k]):
                e = np.uint32(event[np.uint64(i)])
                v = numbers[e]
                known += np.int64(v == v)
                least = v if v < least else least
                most = v if v > most else most
                if first[e] != limb:
                    wide[g, limb] += a
                    wide[g, limb + 1] += b
                    wide[g, limb + 2] += c
                    a = b = c = np.int64(0)
                    limb = first[e]
                a += parts[e, np.uint32(0)]
                b += parts[e, np.uint32(1)]
                c += parts[e, np.uint32(2)]
            wide[g, limb] += a
            wide[g, limb + 1] += b
            wide[g, limb + 2] += c
        n[g] += known
        low[g], high[g] = least, most


@numba.njit(cache=True)
def _add_squares(runs: Any, terms: Any) -> None:
    event, rank, group, start, stop, asks = runs
    first, parts, wide = terms
    for k in range(group.size):
        if asks[rank[k]]:
            sums = wide[group[k]]
            for i in range(start[k], stop[k]):
                e = event[i]
                for j in range(parts.shape[1]):
                    sums[first[e] + j] += parts[e, j]


@numba.njit(cache=True)
def _merge(where: Any, source: Any, shifts: Any, out: Any) -> None:
    rows, target = where
    n, low, high, sums, squares = source
    shift, shift2 = shifts
    out_n, out_low, out_high, out_sums, out_squares = out
    for i in range(rows.size):
        r, g = rows[i], target[i]
        if n[r] == 0:
            continue
        out_n[g] += n[r]
        if low[r] < out_low[g]:
            out_low[g] = low[r]
        if high[r] > out_high[g]:
            out_high[g] = high[r]
        for k in range(sums.shape[1]):
            out_sums[g, k + shift] += sums[r, k]
        for k in range(squares.shape[1]):
            out_squares[g, k + shift2] += squares[r, k]
