"""As many leaves as there is room for: where a region has too many in a time bin, bins get coarser.

Features that vary independently make nearly every observation a leaf of its own, however few bins
each has: so many as the product of their numbers. What is bounded is therefore the number of leaves
of a region and time bin. Where there are more, all of its bins are merged two by two, again and
again, until they are few enough: places and times with little variety keep fine bins, and what is
kept no longer grows with what is observed. Totals stay; ends of bins become wider and are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numba
import numpy as np

from geoflux.sketch.leaf_moments import EXACT, MISSING
from geoflux.sketch.leaves import Leaves, grouped, merged

_SMALLEST_TABLE = 16


def bounded(leaves: Leaves, most: int, last_grain: int) -> Leaves:
    """With at most so many leaves of each region and time bin (0: as many as there are); where only
    one bin is left of every feature, one for each set of features that were observed.

    Leaves must be sorted; those of regions and times that have few enough are as they were.
    """
    if most == 0 or len(leaves) <= most:
        return leaves
    wanted = grains_for(leaves.region, leaves.time, leaves.grain, leaves.bins, most, last_grain)
    moved = wanted > leaves.grain
    if not moved.any():
        return leaves
    some = leaves.take(moved)
    grain = wanted[moved]
    shifted = some.bins >> (grain - some.grain)[:, None]
    bins = np.where(some.bins >= EXACT, some.bins, shifted).astype(np.uint8)
    changed = grouped(replace(some, grain=grain, bins=bins))
    return changed if moved.all() else merged([changed, leaves.take(~moved)])


@numba.njit(cache=True)
def grains_for(region: Any, time: Any, grain: Any, bins: Any, most: int, last: int) -> Any:
    """The grain that each leaf is to have: the least with which its region has at most so many
    leaves in its time bin."""
    n, features = bins.shape
    wanted = grain.copy()
    size = _SMALLEST_TABLE
    while size < 4 * (most + 1):
        size *= 2
    table = np.empty(size, np.uint64)
    first = 0
    while first < n:
        end = first + 1
        while end < n and region[end] == region[first] and time[end] == time[first]:
            end += 1
        if end - first > most:
            exact = False
            for f in range(features):
                exact |= bins[first, f] == EXACT
            least = last
            for i in range(first, end):
                least = min(least, grain[i])
            if not exact:
                to = least
                while to < last and _count(grain, bins, first, end, to, most, table) > most:
                    to += 1
                for i in range(first, end):
                    wanted[i] = max(grain[i], to)
        first = end
    return wanted


@numba.njit(cache=True)
def _count(grain: Any, bins: Any, first: int, end: int, to: int, most: int, table: Any) -> int:
    """Different leaves with that grain at least; counting stops when there are too many."""
    table[:] = np.uint64(0)
    mask = np.uint64(table.size - 1)
    found = 0
    for i in range(first, end):
        steps = max(to - grain[i], 0)
        # Multiplied: grains must differ in high bits, or a coarse leaf is taken for a fine one.
        word = (np.uint64(max(grain[i], to)) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for f in range(bins.shape[1]):
            b = bins[i, f]
            value = np.uint64(b) if b == MISSING else np.uint64(b >> steps)
            word = (word ^ value) * np.uint64(0xBF58476D1CE4E5B9)
            word ^= word >> np.uint64(29)
        if word == np.uint64(0):
            word = np.uint64(1)
        at = word & mask
        while table[at] != np.uint64(0) and table[at] != word:
            at = (at + np.uint64(1)) & mask
        if table[at] == np.uint64(0):
            table[at] = word
            found += 1
            if found > most:
                return found
    return found
