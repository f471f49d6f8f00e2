"""The order of leaves, compiled: sort them by their keys, merge sorted runs, find equal keys."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from geoflux.sketch.leaf_moments import EXACT


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
