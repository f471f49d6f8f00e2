"""Moments of leaves, compiled: groups of leaves become one.

A row is a leaf of one observation, so that rows and leaves are merged by the same loop. Groups are
merged in two passes (means first, then squares about them): the form for many of the formulas of
Chan, Golub and LeVeque, and more exact than merging one by one.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

MISSING = 255
"""The bin of a feature that was not observed."""
EXACT = 254
"""The bin of a value of a tree that has no bins yet: the leaf is one observation."""


@numba.njit(cache=True)
def heavy_rows(count: Any) -> Any:
    """Numbers of the leaves of more than one observation, -1 for the others."""
    out = np.empty(count.size, np.int64)
    heavy = 0
    for i in range(count.size):
        if count[i] > 1:
            out[i] = heavy
            heavy += 1
        else:
            out[i] = -1
    return out


@numba.njit(cache=True)
def combine(
    order: Any, starts: Any, count: Any, heavy: Any, mean: Any, m2: Any, low: Any, high: Any,
    cross: Any,
) -> Any:  # fmt: skip
    """The moments of groups of leaves: count, mean and, where count > 1, m2, low, high, cross."""
    groups, features, pairs = starts.size - 1, mean.shape[1], cross.shape[1]
    counts = np.empty(groups, np.int64)
    many = 0
    for g in range(groups):
        counts[g] = 0
        for k in range(starts[g], starts[g + 1]):
            counts[g] += count[order[k]]
        many += counts[g] > 1
    means = np.empty((groups, features))
    m2s, lows, highs = (
        np.empty((many, features)), np.empty((many, features)), np.empty((many, features)),
    )  # fmt: skip
    crosses = np.empty((many, pairs))
    apart = np.empty(features)
    h = 0
    for g in range(groups):
        i = order[starts[g]]
        if starts[g + 1] - starts[g] == 1:
            j = heavy[i]
            for f in range(features):
                means[g, f] = mean[i, f]
            if j >= 0:
                for f in range(features):
                    m2s[h, f], lows[h, f], highs[h, f] = m2[j, f], low[j, f], high[j, f]
                for p in range(pairs):
                    crosses[h, p] = cross[j, p]
                h += 1
            continue
        _means(order[starts[g] : starts[g + 1]], count, heavy, mean, low, high,
               apart, lows[h], highs[h])  # fmt: skip
        for f in range(features):
            # Rounding may carry a mean past the ends of what it is the mean of.
            means[g, f] = min(max(mean[i, f] + apart[f] / counts[g], lows[h, f]), highs[h, f])
        _squares(order[starts[g] : starts[g + 1]], count, heavy, mean, m2, cross,
                 apart, means[g], m2s[h], crosses[h])  # fmt: skip
        h += 1
    return counts, means, m2s, lows, highs, crosses


@numba.njit(cache=True, inline="always")
def _means(
    rows: Any, count: Any, heavy: Any, mean: Any, low: Any, high: Any,
    apart: Any, least: Any, most: Any,
) -> None:  # fmt: skip
    """Weighted sums of the distances of leaves from the first one, and the ends of all."""
    first, features = rows[0], mean.shape[1]
    for f in range(features):
        apart[f] = 0.0
        least[f], most[f] = np.inf, -np.inf
    for i in rows:
        j = heavy[i]
        for f in range(features):
            value = mean[i, f]
            apart[f] += count[i] * (value - mean[first, f])
            least[f] = min(least[f], value if j < 0 else low[j, f])
            most[f] = max(most[f], value if j < 0 else high[j, f])


@numba.njit(cache=True, inline="always")
def _squares(
    rows: Any, count: Any, heavy: Any, mean: Any, m2: Any, cross: Any,
    apart: Any, centre: Any, squares: Any, products: Any,
) -> None:  # fmt: skip
    """Squares and products of the distances of leaves from the mean of all, and their own."""
    features = mean.shape[1]
    squares[:] = 0.0
    products[:] = 0.0
    for i in rows:
        j = heavy[i]
        for f in range(features):
            apart[f] = mean[i, f] - centre[f]
        p = 0
        for a in range(features):
            weighted = count[i] * apart[a]
            squares[a] += weighted * apart[a]
            for b in range(a + 1, features):
                products[p] += weighted * apart[b]
                p += 1
        if j >= 0:
            for f in range(features):
                squares[f] += m2[j, f]
            for p in range(products.size):
                products[p] += cross[j, p]
