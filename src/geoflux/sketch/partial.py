"""Rows that a scope covers in part, one by one, with what is known of those that match.

Bounds need them so: each leaf has its own mean, low, high and possible counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.cover import Covered

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """Items that are covered in part, ascending by group; ``first[g]`` to ``first[g + 1]`` are
    those of group ``g``. ``cover`` and ``row`` say where each comes from. ``clusters`` number what
    it is cut with (column and row of regions, time bin; -1: not cut): items of one cluster are cut
    alike. ``shares`` as of items; ``n``: its observations, and the expected, fewest and most that
    match."""

    first: Ints
    cover: Ints
    row: Ints
    present: npt.NDArray[np.uint32]
    clusters: Ints
    shares: Floats
    n: Floats
    expected: Floats
    fewest: Floats
    most: Floats
    by: npt.NDArray[np.int8]

    def having(self, present: Any) -> Cut:
        """Those that are marked."""
        before = np.append(0, np.cumsum(present))
        rest = (getattr(self, name)[..., present] for name in self.__slots__[1:])
        return Cut(before[self.first], *rest)


@dataclass(frozen=True, eq=False, slots=True)
class Partial:
    """What is covered in part and has the features ``x`` and ``y``. Of each item, by feature: mean,
    variance, low and high of its observations, low and high of those that match, expected mean and
    variance of those; ``cross`` is the covariance of both."""

    cut: Cut
    x: Floats
    y: Floats
    cross: Floats


MEAN, VARIANCE, LOW, HIGH, LOW_IN, HIGH_IN, MEAN_IN, VARIANCE_IN = range(8)
"""Rows of ``Partial.x`` and ``Partial.y``."""


def cut_items(covers: tuple[Covered, ...], groups: tuple[Ints, ...], size: int) -> Cut:
    """The items of all covers that are covered in part; there are ``size`` groups."""
    parts = []
    for number, (cover, group) in enumerate(zip(covers, groups, strict=True)):
        items, rows, cells = cover.items, cover.rows, cover.cells
        cut = np.flatnonzero(~items.whole)
        row = items.row[cut]
        region = rows.region[row]
        keys = np.empty((3, len(cut)), np.int64)
        keys[0], keys[1] = cells.column[region], cells.row[region]
        keys[2] = cover.view.times[rows.time[row]]
        # A cell that is cut on its own is so within its forest.
        keys[0] -= np.where(keys[0] < 0, number << 40, 0)
        n, shares = rows.count[row].astype(np.float64), items.shares[:, cut]
        parts.append(
            [
                group[cut], np.full(len(cut), number), row, rows.present[row], keys, shares, n,
                n * shares.prod(axis=0), items.fewest[cut], items.most[cut], items.cut[cut],
            ]
        )  # fmt: skip
    columns = parts[0]
    if len(parts) > 1:
        columns = [np.concatenate([p[k] for p in parts], axis=-1) for k in range(11)]
    if size > 1:
        order = np.argsort(columns[0], kind="stable")
        columns = [c[..., order] for c in columns]
    group, keys, shares = columns[0], columns[4], columns[5]
    first = np.searchsorted(group, np.arange(size + 1))
    columns[4] = _clusters(group, keys, shares)
    return Cut(first, *columns[1:])


@numba.njit(cache=True)
def _clusters(group: Any, keys: Any, shares: Any) -> Any:
    """Numbers of the keys of each group, kind by kind, in the order in which they come; -1 where
    the share is whole."""
    out = np.full(keys.shape, -1, np.int64)
    bits = 4
    while (1 << bits) < 2 * group.size:
        bits += 1
    table = np.empty(1 << bits, np.int64)
    for kind in range(keys.shape[0]):
        table[:] = -1
        found = 0
        for i in range(group.size):
            if shares[kind, i] >= 1.0:
                continue
            word = np.uint64(keys[kind, i] * 1_000_003 + group[i]) * np.uint64(0x9E3779B97F4A7C15)
            at = np.int64(word >> np.uint64(64 - bits))
            while table[at] >= 0 and (
                keys[kind, table[at]] != keys[kind, i] or group[table[at]] != group[i]
            ):
                at = (at + 1) & ((1 << bits) - 1)
            if table[at] < 0:
                table[at] = i
                out[kind, i] = found
                found += 1
            else:
                out[kind, i] = out[kind, table[at]]
    return out


def feature_numbers(covers: tuple[Covered, ...], cut: Cut, f: int) -> Floats:
    """The numbers of one feature of all items; 0 where it is missing."""
    if len(covers) == 1:
        return _feature(covers[0], cut, f)
    out = np.empty((8, len(cut.n)))
    for number, cover in enumerate(covers):
        mine = cut.cover == number
        out[:, mine] = _feature(cover, cut.having(mine), f)
    return out


def covariances(covers: tuple[Covered, ...], cut: Cut, pair: int) -> Floats:
    """The covariance of a pair of features of all items."""
    out = np.zeros(len(cut.n))
    for number, cover in enumerate(covers):
        mine = np.flatnonzero(cut.cover == number)
        heavy = cover.rows.heavy[cut.row[mine]]
        mine, heavy = mine[heavy >= 0], heavy[heavy >= 0]
        out[mine] = cover.rows.cross[heavy, pair] / cut.n[mine]
    return out


def _feature(cover: Covered, cut: Cut, f: int) -> Floats:
    rows, ranges = cover.rows, cover.ranges
    ends = (-np.inf, np.inf) if ranges is None else ranges.hull(f)
    out: Floats = _numbers(
        cut.row, cut.n, rows.heavy, rows.mean[:, f], rows.m2[:, f], rows.low[:, f],
        rows.high[:, f], ends[0], ends[1],
    )  # fmt: skip
    if ranges is not None:
        _shift_means(cover, cut, rows.heavy[cut.row], f, out)
    return out


@numba.njit(cache=True)
def _numbers(
    row: Any, n: Any, heavy: Any, mean: Any, m2: Any, low: Any, high: Any, least: float, most: float
) -> Any:
    """The rows of ``Partial.x``; those that match lie from ``least`` to ``most``."""
    out = np.empty((8, row.size))
    for k in range(row.size):
        i = row[k]
        h = heavy[i]
        out[0, k] = out[6, k] = out[2, k] = out[3, k] = mean[i]
        out[1, k] = 0.0
        if h >= 0:
            out[1, k] = m2[h] / n[k]
            out[2, k], out[3, k] = low[h], high[h]
        out[4, k], out[5, k] = max(out[2, k], least), min(out[3, k], most)
        out[7, k] = out[1, k]
    return out


def _shift_means(cover: Covered, cut: Cut, heavy: Ints, f: int, out: Floats) -> None:
    """Expected mean and variance of what matches, where a range cuts: of the feature that it is
    on those of a normal distribution between the ends, of others what the covariance says."""
    row, n, by = cut.row, cut.n, cut.by
    for other in np.unique(by[by >= 0]):
        mine = np.flatnonzero((by == other) & (heavy >= 0))
        if other == f:
            own = out[:, mine]
        else:
            own = np.empty((8, len(mine)))
            at = heavy[mine]
            own[MEAN] = cover.rows.mean[row[mine], other]
            own[VARIANCE] = cover.rows.m2[at, other] / n[mine]
            low, high = cover.ranges.hull(int(other))  # type: ignore[union-attr]
            own[LOW_IN] = np.maximum(cover.rows.low[at, other], low)
            own[HIGH_IN] = np.minimum(cover.rows.high[at, other], high)
        mean, variance = _between(own[MEAN], own[VARIANCE], own[LOW_IN], own[HIGH_IN])
        if other == f:
            out[MEAN_IN, mine], out[VARIANCE_IN, mine] = mean, variance
            continue
        pairs = cover.view.schema.pairs
        cross = cover.rows.cross[heavy[mine], pairs.index((min(f, other), max(f, other)))]
        slope = cross / n[mine] / np.maximum(own[VARIANCE], 1e-300)
        shifted = out[MEAN, mine] + slope * (mean - own[MEAN])
        out[MEAN_IN, mine] = np.clip(shifted, out[LOW_IN, mine], out[HIGH_IN, mine])


@numba.njit(cache=True)
def _between(mean: Any, variance: Any, low: Any, high: Any) -> Any:
    """Mean and variance of normal distributions cut off at low and high, by 32 steps."""
    means, variances = np.empty(mean.size), np.empty(mean.size)
    for k in range(mean.size):
        width = high[k] - low[k]
        if width <= 0.0 or variance[k] <= 0.0:
            means[k] = min(max(mean[k], low[k]), high[k])
            variances[k] = 0.0
            continue
        weight, first, second = 0.0, 0.0, 0.0
        # The exponent is taken off its greatest value, so that far tails do not vanish.
        near = min(max(mean[k], low[k]), high[k]) - mean[k]
        for step in range(32):
            value = low[k] + (step + 0.5) / 32 * width
            off = value - mean[k]
            w = np.exp(-0.5 * (off * off - near * near) / variance[k])
            weight += w
            first += w * value
            second += w * value * value
        means[k] = first / weight
        variances[k] = max(second / weight - means[k] ** 2, 0.0)
    return means, variances
