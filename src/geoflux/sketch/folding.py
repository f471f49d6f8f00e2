"""Leaves that age: time bins that fold into coarser ones, and bins of features that merge.

Both only change keys of leaves and merge those that then have the same one: totals stay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geoflux.sketch import times
from geoflux.sketch.leaf_moments import EXACT, MISSING
from geoflux.sketch.leaves import Bytes, Leaves, grouped, merged
from geoflux.sketch.sets import Sets


def folded(leaves: Leaves, now: int, ages: times.Ages) -> Leaves:
    """Leaves whose bin ended longer ago than the age of its level, in bins of the next level.

    One that is old enough goes several levels at once. Leaves that stay are those that were given.
    """
    time = leaves.time
    for level, age in enumerate(ages.of_levels):
        # Nothing that begins later can have ended: most leaves need no look at their end.
        maybe = np.flatnonzero((time & 7 == level) & (time >> 3 < now - age))
        if maybe.size == 0:
            continue
        old = maybe[times.spans(time[maybe])[1] <= now - age]
        if old.size:
            time = time.copy() if time is leaves.time else time
            time[old] = times.folded(time[old], level + 1)
    return _regrouped(leaves, time != leaves.time, time, leaves.grain, leaves.bins)


def thinned(leaves: Leaves, now: int, length_of_study: int, last_grain: int) -> Leaves:
    """Leaves that are older than the length of study with coarser bins: the accuracy gradient.

    A leaf whose bin ended at least once the length of study ago has grain 1, twice as long ago
    grain 2, and so on. At ``last_grain`` all values of a feature are one bin: one leaf is left of
    each region and time bin (one for each set of features that were observed). Observations of
    trees that have no bins yet stay as they are until then.
    """
    if length_of_study <= 0:
        raise ValueError(f"the length of study is a number of seconds above 0: {length_of_study}")
    old = np.flatnonzero(leaves.time >> 3 < now - length_of_study)
    age = now - times.spans(leaves.time[old])[1]
    wanted = np.clip(age // length_of_study, 0, last_grain).astype(np.uint8)
    bins = leaves.bins[old]
    exact = (bins == EXACT).any(axis=1)
    coarser = (wanted > leaves.grain[old]) & (~exact | (wanted == last_grain))
    old, wanted, bins, exact = old[coarser], wanted[coarser], bins[coarser], exact[coarser]
    grain, all_bins = leaves.grain.copy(), leaves.bins.copy()
    all_bins[old] = _coarser(bins, wanted - grain[old], exact)
    grain[old] = wanted
    moved = np.zeros(len(leaves), np.bool_)
    moved[old] = True
    return _regrouped(leaves, moved, leaves.time, grain, all_bins)


def folded_sets(sets: Sets, now: int, ages: times.Ages) -> Sets:
    """Sets of bounds that ended longer ago than an age, in wider bounds that nest in each other."""
    wide = sets.shape.seconds * max(1, round(7 * times.DAY_SECONDS / sets.shape.seconds))
    for age, width in ((ages.hour, wide), (ages.week, 4 * wide), (ages.month, 52 * wide)):
        bounds = ((last - first, last) for _, first, last in sets.blocks)
        if any(length < width and last <= now - age for length, last in bounds):
            sets = sets.folded(now - age, width)
    return sets


def halved(leaves: Leaves, first_region: int, last_region: int) -> Leaves:
    """Leaves of a range of regions (a tree) for edges of which only every second one is left.

    A leaf of a coarser grain already spans such pairs: its bins stay and its grain is one less.
    """
    mine = (leaves.region >= first_region) & (leaves.region <= last_region)
    fine = mine & (leaves.grain == 0) & ~(leaves.bins == EXACT).any(axis=1)
    grain, bins = leaves.grain.copy(), leaves.bins.copy()
    grain[mine & (leaves.grain > 0)] -= 1
    bins[fine] = _coarser(bins[fine], np.uint8(1), np.zeros(int(fine.sum()), np.bool_))
    return _regrouped(leaves, mine, leaves.time, grain, bins)


def _coarser(bins: Bytes, steps: Bytes | np.uint8, exact: np.ndarray) -> Bytes:
    """Bins that span ``2**steps`` as many values; what is missing stays missing."""
    shifted = np.where(exact[:, None], 0, bins) >> np.atleast_1d(steps)[:, None]
    return np.where(bins == MISSING, MISSING, shifted).astype(np.uint8)


def _regrouped(
    leaves: Leaves, moved: np.ndarray, time: np.ndarray, grain: Bytes, bins: Bytes
) -> Leaves:
    """With the new keys of the leaves that are marked."""
    if not moved.any():
        return leaves
    changed = replace(leaves.take(moved), time=time[moved], grain=grain[moved], bins=bins[moved])
    if moved.all():
        return grouped(changed)
    return merged([grouped(changed), leaves.take(~moved)])
