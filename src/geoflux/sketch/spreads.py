"""Values of a feature leaf by leaf, and what they say of shares and quantiles.

A leaf spreads its observations evenly from its low to its mean and from its mean to its high, so
that its mean is right; that is the estimate. The ends of leaves give bounds that always hold: at
most those with a low up to a value lie up to it, at least those with their high up to it. They are
at most one bin apart, since low and high lie in a bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.pools import Pool

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_BUCKETS = 4096
_HALVINGS = 40


@dataclass(frozen=True, eq=False, slots=True)
class Spreads:
    """Items that have the feature, ascending by group: expected, fewest and most observations, low,
    mean and high of those."""

    first: Ints
    expected: Floats
    fewest: Floats
    most: Floats
    low: Floats
    mean: Floats
    high: Floats


def spreads_of(pool: Pool, feature: int) -> Spreads:
    """The values of a feature in a pool of leaves."""
    parts = []
    for cover, group in zip(pool.covers, pool.groups.of_items, strict=True):
        rows, items = cover.rows, cover.items
        has = np.flatnonzero((rows.present[items.row] >> np.uint32(feature)) & np.uint32(1))
        row = items.row[has]
        heavy = rows.heavy[row]
        mean = rows.mean[row, feature]
        low, high = mean.copy(), mean.copy()
        many = heavy >= 0
        low[many], high[many] = rows.low[heavy[many], feature], rows.high[heavy[many], feature]
        if cover.ranges is not None:
            bottom, top = cover.ranges.hull(feature)
            low, high = np.maximum(low, bottom), np.minimum(high, top)
            mean = np.clip(mean, low, high)
        n = rows.count[row]
        expected = np.where(items.whole[has], n, n * items.share[has])
        fewest, most = items.fewest[has], items.most[has]
        parts.append([group[has], expected, fewest, most, low, mean, high])
    columns = [np.concatenate([p[k] for p in parts]) for k in range(7)]
    size = len(pool.groups)
    if size > 1:
        order = np.argsort(columns[0], kind="stable")
        columns = [c[order] for c in columns]
    first = np.searchsorted(columns[0], np.arange(size + 1))
    return Spreads(first, *columns[1:])


@numba.njit(cache=True)
def _selected(values: Any, weights: Any, target: float) -> float:
    """The least value up to which the weights come to the target: by buckets, then sorted in the
    bucket that has it."""
    low, high = values.min(), values.max()
    if not low < high:
        return low
    scale = _BUCKETS / (high - low)
    sums = np.zeros(_BUCKETS)
    for i in range(values.size):
        sums[min(int((values[i] - low) * scale), _BUCKETS - 1)] += weights[i]
    before, bucket = 0.0, 0
    while bucket < _BUCKETS - 1 and before + sums[bucket] < target:
        before += sums[bucket]
        bucket += 1
    mine = np.empty(values.size, np.int64)
    size = 0
    for i in range(values.size):
        if min(int((values[i] - low) * scale), _BUCKETS - 1) == bucket:
            mine[size] = i
            size += 1
    if size == 0:
        return high
    order = np.argsort(values[mine[:size]])
    for k in order:
        before += weights[mine[k]]
        if before >= target:
            return values[mine[k]]
    # Rounding left the target a hair beyond the bucket: the next value up is meant.
    best = high
    for i in range(values.size):
        at = min(int((values[i] - low) * scale), _BUCKETS - 1)
        if at > bucket and weights[i] > 0.0:
            best = min(best, values[i])
    return best


@numba.njit(cache=True)
def _below(low: Any, mean: Any, high: Any, weight: Any, value: float) -> float:
    """Expected observations up to a value."""
    total = 0.0
    for i in range(low.size):
        if value >= high[i]:
            total += weight[i]
        elif value >= low[i]:
            lower = (high[i] - mean[i]) / (high[i] - low[i])
            if value < mean[i]:
                total += weight[i] * lower * (value - low[i]) / (mean[i] - low[i])
            else:
                upper = (value - mean[i]) / max(high[i] - mean[i], 1e-300)
                total += weight[i] * (lower + (1.0 - lower) * upper)
    return total


@numba.njit(cache=True)
def quantiles(
    first: Any, expected: Any, fewest: Any, most: Any, low: Any, mean: Any, high: Any, shares: Any
) -> Any:
    """Of each group and share: the least value with at least that share of all up to it, expected,
    at least and at most; NaN where there are no observations."""
    groups = first.size - 1
    out = np.full((3, groups, shares.size), np.nan)
    for g in range(groups):
        s = slice(first[g], first[g + 1])
        few, many, weight = fewest[s], most[s], expected[s]
        if many.sum() <= 0.0:
            continue
        for j in range(shares.size):
            q = shares[j]
            # Which observations match is not known: those that pull the quantile down (or up).
            bottom = _selected(low[s], (1.0 - q) * many + q * few, _reached(q * few.sum()))
            top = _selected(high[s], (1.0 - q) * few + q * many, _reached(q * many.sum()))
            out[0, g, j] = _between(low[s], mean[s], high[s], weight, bottom, top, q)
            out[1, g, j], out[2, g, j] = bottom, top
    return out


@numba.njit(cache=True)
def _between(
    low: Any, mean: Any, high: Any, weight: Any, bottom: float, top: float, q: float
) -> float:
    """Where in between the expected share is reached; only leaves that reach in matter."""
    near = np.empty(low.size, np.int64)
    size, wanted = 0, 0.0
    for i in range(low.size):
        wanted += q * weight[i]
        if high[i] < bottom:
            wanted -= weight[i]
        elif low[i] <= top:
            near[size] = i
            size += 1
    which = near[:size]
    a, b, c, w = low[which], mean[which], high[which], weight[which]
    for _ in range(_HALVINGS):
        if top - bottom <= 1e-12 * max(abs(bottom), abs(top)):
            break
        middle = 0.5 * (bottom + top)
        if _below(a, b, c, w, middle) >= wanted:
            top = middle
        else:
            bottom = middle
    return top


@numba.njit(cache=True)
def _reached(target: float) -> float:
    """A hair less, so that rounding does not carry a sum past the value that is meant; more than
    nothing, since the least value is meant with a share of 0."""
    return max(target * (1.0 - 1e-12), 5e-324)


@numba.njit(cache=True)
def histogram(
    low: Any, mean: Any, high: Any, weight: Any, start: float, width: float, cells: int
) -> Any:
    """Expected observations in cells of one width."""
    out = np.zeros(cells)
    for i in range(low.size):
        whole = high[i] - low[i]
        for half in range(2):
            a, b = (low[i], mean[i]) if half == 0 else (mean[i], high[i])
            mass = 0.5 * weight[i]
            if whole > 0.0:
                mass = weight[i] * (high[i] - mean[i] if half == 0 else mean[i] - low[i]) / whole
            first = min(max(int((a - start) / width), 0), cells - 1)
            last = min(max(int((b - start) / width), 0), cells - 1)
            if first == last or b <= a:
                out[first] += mass
                continue
            for cell in range(first, last + 1):
                part = min(b, start + (cell + 1) * width) - max(a, start + cell * width)
                out[cell] += mass * max(part, 0.0) / (b - a)
    return out


@numba.njit(cache=True)
def smoothed(share: Any, start: float, width: float, bandwidth: float, at: Any) -> Any:
    """The density of cells at some values, each cell widened to a normal of the bandwidth."""
    out = np.zeros(at.size)
    reach = int(6.0 * bandwidth / width) + 1
    for k in range(at.size):
        middle = int((at[k] - start) / width)
        for cell in range(max(middle - reach, 0), min(middle + reach + 1, share.size)):
            z = (start + (cell + 0.5) * width - at[k]) / bandwidth
            out[k] += share[cell] * math.exp(-0.5 * z * z)
    return out / (bandwidth * math.sqrt(2.0 * math.pi))
