"""The inner loops of the densities, compiled: new samples in, components merged until few are left.

A mixture is kept as components in ascending order of their means: observations, mean, variance.
Only neighbours are ever merged. The mixture's own mean and variance survive every merge, since a
merged component has the mean and variance of the two (moment matching). The cost of a merge bounds
the squared Hellinger distance between the densities before and after it: squared Hellinger distance
is jointly convex, so the pair is no farther from its replacement than its weighted parts are.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from geoflux.sketch.bandwidth import silverman

_LARGE = 8
"""A batch with more than so many times K samples of one tree and feature is looked at more closely:
it becomes 2 K pieces of equal mass before the compression, a smaller one K. Sorting is cheap, and
finding the cheapest pair again and again is not."""


@numba.njit(cache=True)
def by_tree(tree_index: Any, trees: int) -> Any:
    """Rows in the order of their trees (stable), and where each tree's rows begin."""
    starts = np.zeros(trees + 1, np.int64)
    for i in range(tree_index.size):
        starts[tree_index[i] + 1] += 1
    for t in range(trees):
        starts[t + 1] += starts[t]
    at = starts[:-1].copy()
    order = np.empty(tree_index.size, np.int64)
    for i in range(tree_index.size):
        tree = tree_index[i]
        order[at[tree]] = i
        at[tree] += 1
    return order, starts


@numba.njit(cache=True)
def _hellinger(deviation: float, variance: float, merged: float) -> float:
    """Squared Hellinger distance of two normal densities, their means ``deviation`` apart."""
    both = variance + merged
    return 1.0 - math.sqrt(2.0 * math.sqrt(variance * merged) / both) * math.exp(
        -0.25 * deviation * deviation / both
    )


@numba.njit(cache=True)
def _cost(weight: Any, mean: Any, variance: Any, i: int, j: int, wide: float, atom: float) -> float:
    """What merging i and j costs; a value that was met again and again stays by itself."""
    both = weight[i] + weight[j]
    share = weight[j] / both
    apart = mean[j] - mean[i]
    merged = (1.0 - share) * variance[i] + share * variance[j] + share * (1.0 - share) * apart**2
    cost = weight[i] * _hellinger(share * apart, variance[i] + wide, merged + wide)
    cost += weight[j] * _hellinger((1.0 - share) * apart, variance[j] + wide, merged + wide)
    if apart > 0.0 and (
        (variance[i] == 0.0 and weight[i] >= atom) or (variance[j] == 0.0 and weight[j] >= atom)
    ):
        cost += 1e3 * both  # not infinite: there may be nothing else left
    return cost


@numba.njit(cache=True)
def _pieces(samples: Any, size: int, most: int, out: Any) -> int:
    """Sorted samples as components: equal ones as one, then pieces of equal mass if too many."""
    weight, mean, variance = out[0], out[1], out[2]
    target = size / most if size > most else 1.0
    count, i = 0, 0
    held, first, sums, squares = 0.0, 0.0, 0.0, 0.0
    while i < size:
        value = samples[i]
        j = i + 1
        while j < size and samples[j] == value:
            j += 1
        alike = float(j - i)
        i = j
        heavy = alike >= target
        if held > 0.0 and (heavy or held >= target):
            weight[count] = held
            mean[count] = first + sums / held
            variance[count] = max(0.0, squares / held - (sums / held) ** 2)
            count += 1
            held = 0.0
        if heavy:
            weight[count] = alike
            mean[count] = value
            variance[count] = 0.0
            count += 1
            continue
        if held == 0.0:
            first, sums, squares = value, 0.0, 0.0
        away = value - first  # small beside the value itself: nothing is lost to rounding
        held += alike
        sums += alike * away
        squares += alike * away * away
    if held > 0.0:
        weight[count] = held
        mean[count] = first + sums / held
        variance[count] = max(0.0, squares / held - (sums / held) ** 2)
        count += 1
    return count


@numba.njit(cache=True)
def _interleaved(old: Any, size: int, new: Any, count: int, out: Any) -> int:
    """Both lists of components as one, by mean; the same single value twice becomes one."""
    a, b, n = 0, 0, 0
    while a < size or b < count:
        if b >= count or (a < size and old[1][a] <= new[1][b]):
            w, m, v = old[0][a], old[1][a], old[2][a]
            a += 1
        else:
            w, m, v = new[0][b], new[1][b], new[2][b]
            b += 1
        if n > 0 and v == 0.0 and out[2][n - 1] == 0.0 and out[1][n - 1] == m:
            out[0][n - 1] += w
        else:
            out[0][n], out[1][n], out[2][n] = w, m, v
            n += 1
    return n


@numba.njit(cache=True)
def compress(parts: Any, size: int, most: int, wide: float, costs: Any, after: Any) -> int:
    """Merge the cheapest pair of neighbours until ``most`` components are left; how many are."""
    weight, mean, variance = parts[0], parts[1], parts[2]
    if size <= most:
        return size
    total = 0.0
    for k in range(size):
        total += weight[k]
        after[k] = k + 1
    atom = total / most
    for k in range(size - 1):
        costs[k] = _cost(weight, mean, variance, k, k + 1, wide, atom)
    costs[size - 1] = np.inf
    before = after[size:]
    for k in range(size):
        before[k] = k - 1
    for _ in range(size - most):
        i, least = 0, np.inf
        for k in range(size - 1):
            if costs[k] < least:
                i, least = k, costs[k]
        j = after[i]
        both = weight[i] + weight[j]
        share = weight[j] / both
        apart = mean[j] - mean[i]
        variance[i] = (
            (1.0 - share) * variance[i] + share * variance[j] + share * (1.0 - share) * apart**2
        )
        mean[i] += share * apart
        weight[i] = both
        weight[j] = 0.0
        costs[j] = np.inf
        follower = after[j]
        after[i] = follower
        costs[i] = np.inf
        if follower < size:
            before[follower] = i
            costs[i] = _cost(weight, mean, variance, i, follower, wide, atom)
        if before[i] >= 0:
            costs[before[i]] = _cost(weight, mean, variance, before[i], i, wide, atom)
    return _closed_up(parts, size)


@numba.njit(cache=True)
def _closed_up(parts: Any, size: int) -> int:
    n = 0
    for k in range(size):
        if parts[0][k] > 0.0:
            for row in range(3):
                parts[row][n] = parts[row][k]
            n += 1
    return n


@numba.njit(cache=True)
def absorb(mixtures: Any, totals: Any, tree_index: Any, values: Any, scale: float) -> None:
    """Take a batch into the mixtures [T, F, 3, K] and totals [T, F, 3], in place."""
    trees, features, _, most = mixtures.shape
    order, starts = by_tree(tree_index, trees)
    longest = 0
    for t in range(trees):
        longest = max(longest, starts[t + 1] - starts[t])
    room = 4 * most + 2
    samples = np.empty(longest)
    pieces = np.empty((3, room))
    parts = np.empty((3, room + most))
    costs = np.empty(room + most)
    after = np.empty(2 * (room + most), np.int64)
    for t in range(trees):
        if starts[t] == starts[t + 1]:
            continue
        for f in range(features):
            size = 0
            for at in range(starts[t], starts[t + 1]):
                value = values[order[at], f]
                if abs(value) < np.inf:
                    samples[size] = value + 0.0  # -0.0 is 0.0
                    size += 1
            if size == 0:
                continue
            samples[:size].sort()
            old = mixtures[t, f]
            known = 0
            while known < most and old[0, known] > 0.0:
                known += 1
            finest = 2 * most if size > _LARGE * most else most
            count = _pieces(samples, size, finest, pieces)
            count = _interleaved(old, known, pieces, count, parts)
            if count > most:
                wide = (scale * silverman(parts, count, most)) ** 2
                count = compress(parts, count, most, max(wide, 1e-300), costs, after)
            for row in range(3):
                old[row, :count] = parts[row, :count]
            old[0, count:] = 0.0
            totals[t, f, 0] += size
            totals[t, f, 1] = min(totals[t, f, 1], samples[0])
            totals[t, f, 2] = max(totals[t, f, 2], samples[size - 1])
