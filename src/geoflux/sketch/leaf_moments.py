"""The inner loops of leaves, compiled: order rows by their key, find groups, merge their moments.

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
def packed_bins(grain: Any, bins: Any) -> Any:
    """Grain and bins as words that compare as they do, and which leaves are observations."""
    n, features = bins.shape
    words = np.zeros((features // 8 + 1, n), np.uint64)
    exact = np.zeros(n, np.bool_)
    for i in range(n):
        word = np.uint64(grain[i])
        at = 0
        for f in range(features):
            if f % 8 == 7:
                words[at, i] = word
                word = np.uint64(0)
                at += 1
            word = (word << np.uint64(8)) | np.uint64(bins[i, f])
            exact[i] |= bins[i, f] == EXACT
        words[at, i] = word
    return words, exact


@numba.njit(cache=True)
def ordered_by(word: Any, order: Any) -> Any:
    """An order of some rows made one by ``word``, keeping that of equal ones (radix sort).

    Looks only at digits in which words differ at all: most of a key is the same for all rows.
    """
    n = order.size
    differ = np.uint64(0)
    for k in range(n):
        differ |= word[order[k]] ^ word[order[0]]
    spare = np.empty(n, order.dtype)
    places = np.empty(2048, np.int64)
    low = np.uint64(2047)
    shift = np.uint64(0)
    one = np.uint64(1)
    while shift < np.uint64(64) and differ >> shift != np.uint64(0):
        if (differ >> shift) & one == np.uint64(0):
            shift += one
            continue
        places[:] = 0
        for k in range(n):
            places[np.int64((word[order[k]] >> shift) & low)] += 1
        total = 0
        for value in range(2048):
            count = places[value]
            places[value] = total
            total += count
        for k in range(n):
            row = order[k]
            digit = np.int64((word[row] >> shift) & low)
            spare[places[digit]] = row
            places[digit] += 1
        order, spare = spare, order
        shift += np.uint64(11)
    return order


@numba.njit(cache=True)
def places_in_order(region: Any, time: Any) -> Any:
    """Numbers of the places in space and time, ascending, and how many; -1 if rows do not come in
    the order of region and time."""
    n = region.size
    places = np.zeros(n, np.uint64)
    place = np.uint64(0)
    for i in range(1, n):
        if region[i] != region[i - 1] or time[i] != time[i - 1]:
            if region[i] < region[i - 1] or (region[i] == region[i - 1] and time[i] < time[i - 1]):
                return places, -1
            place += np.uint64(1)
        places[i] = place
    return places, np.int64(place) + 1


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
def keys_at(rows: Any, region: Any, time: Any, grain: Any, bins: Any) -> Any:
    """The keys of some leaves."""
    n, features = rows.size, bins.shape[1]
    regions, times = np.empty(n, np.int64), np.empty(n, np.int64)
    grains, all_bins = np.empty(n, np.uint8), np.empty((n, features), np.uint8)
    for k in range(n):
        i = rows[k]
        regions[k], times[k], grains[k] = region[i], time[i], grain[i]
        for f in range(features):
            all_bins[k, f] = bins[i, f]
    return regions, times, grains, all_bins


@numba.njit(cache=True, inline="always")
def _comes_first(region: Any, time: Any, words: Any, i: int, j: int) -> bool:
    """Whether row i belongs before row j, or its key is the same."""
    if region[i] != region[j]:
        return region[i] < region[j]
    if time[i] != time[j]:
        return time[i] < time[j]
    for w in range(words.shape[0]):
        if words[w, i] != words[w, j]:
            return words[w, i] < words[w, j]
    return True


@numba.njit(cache=True)
def merged_order(region: Any, time: Any, words: Any, order: Any, ends: Any) -> Any:
    """The order of rows of which ``order`` has sorted runs; ``ends`` are the ends of the runs.

    Neighbouring runs are merged two and two; of equal keys the earlier run's come first.
    """
    order, spare, ends = order.copy(), np.empty(order.size, np.int64), ends.copy()
    while ends.size > 1:
        made = np.empty((ends.size + 1) // 2, np.int64)
        start = 0
        for m in range(made.size):
            middle = ends[2 * m]
            end = ends[min(2 * m + 1, ends.size - 1)]
            i, j = start, middle
            for k in range(start, end):
                if j >= end or (
                    i < middle and _comes_first(region, time, words, order[i], order[j])
                ):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
            made[m] = end
            start = end
        order, spare = spare, order
        ends = made
    return order


@numba.njit(cache=True)
def group_starts(region: Any, time: Any, words: Any, exact: Any, order: Any) -> Any:
    """Where groups of one key begin in an order, and its end; observations stay by themselves."""
    n = order.size
    starts = np.empty(n + 1, np.int64)
    groups = 0
    for k in range(n):
        i = order[k]
        same = k > 0 and not exact[i]
        if same:
            before = order[k - 1]
            same = region[i] == region[before] and time[i] == time[before]
            for w in range(words.shape[0]):
                same = same and words[w, i] == words[w, before]
        if not same:
            starts[groups] = k
            groups += 1
    starts[groups] = n
    return starts[: groups + 1]


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
