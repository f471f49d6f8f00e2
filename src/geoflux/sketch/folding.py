"""Leaves that age: time bins that fold into coarser ones, and bins of features that merge.

Both only change keys of leaves and merge those that then have the same one: totals stay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geoflux.sketch import times
from geoflux.sketch.leaf_moments import EXACT, MISSING
from geoflux.sketch.leaves import Bytes, Ints, Leaves, regrouped
from geoflux.sketch.sets import Sets


def folded(leaves: Leaves, now: int, ages: times.Ages) -> Leaves:
    """Leaves whose bin ended longer ago than the age of its level, in bins of the next level.

    One that is old enough goes several levels at once. Without any, the same leaves.
    """
    time = _folded_times(leaves.time, now, ages)
    return _regrouped(leaves, time, leaves.grain, leaves.bins)


def thinned(leaves: Leaves, now: int, length_of_study: int, last_grain: int) -> Leaves:
    """Leaves that are older than the length of study with coarser bins: the accuracy gradient.

    A leaf whose bin ended at least once the length of study ago has grain 1, twice as long ago
    grain 2, and so on. At ``last_grain`` all values of a feature are one bin: one leaf is left of
    each region and time bin (one for each set of features that were observed). Observations of
    trees that have no bins yet stay as they are until then.
    """
    grain, bins = _thinned_bins(leaves.time, leaves.grain, leaves.bins, now,
                                length_of_study, last_grain)  # fmt: skip
    return _regrouped(leaves, leaves.time, grain, bins)


def aged(
    leaves: Leaves, now: int, ages: times.Ages, length_of_study: int, last_grain: int
) -> Leaves:
    """Folded and then thinned, copied once."""
    time = _folded_times(leaves.time, now, ages)
    grain, bins = _thinned_bins(time, leaves.grain, leaves.bins, now, length_of_study, last_grain)
    return _regrouped(leaves, time, grain, bins)


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
    fine = np.flatnonzero(mine & (leaves.grain == 0) & ~(leaves.bins == EXACT).any(axis=1))
    grain, bins = leaves.grain.copy(), leaves.bins.copy()
    grain[mine & (leaves.grain > 0)] -= 1
    bins[fine] = _coarser(bins[fine], np.ones(fine.size, np.uint8))
    return _regrouped(leaves, leaves.time, grain, bins)


def _folded_times(time: Ints, now: int, ages: times.Ages) -> Ints:
    """The time bins after folding; the same array if none folds."""
    given = time
    for level, age in enumerate(ages.of_levels):
        # Nothing that begins later can have ended: most leaves need no look at their end.
        maybe = np.flatnonzero((time & 7 == level) & (time >> 3 < now - age))
        old = maybe[times.spans(time[maybe])[1] <= now - age]
        if old.size:
            time = time.copy() if time is given else time
            time[old] = times.folded(time[old], level + 1)
    return time


def _thinned_bins(
    time: Ints, grain: Bytes, bins: Bytes, now: int, length_of_study: int, last_grain: int
) -> tuple[Bytes, Bytes]:
    """Grain and bins after thinning; the same arrays if there is nothing to do."""
    if length_of_study <= 0:
        raise ValueError(f"the length of study is a number of seconds above 0: {length_of_study}")
    old = np.flatnonzero((time >> 3 < now - length_of_study) & (grain < last_grain))
    age = now - times.spans(time[old])[1]
    wanted = np.clip(age // length_of_study, 0, last_grain).astype(np.uint8)
    later = wanted > grain[old]
    old, wanted = old[later], wanted[later]
    exact = (bins[old] == EXACT).any(axis=1)
    ready = ~exact | (wanted == last_grain)
    old, wanted = old[ready], wanted[ready]
    if old.size == 0:
        return grain, bins
    coarser, grains = bins.copy(), grain.copy()
    coarser[old] = _coarser(bins[old], wanted - grain[old])
    grains[old] = wanted
    return grains, coarser


def _coarser(bins: Bytes, steps: Bytes) -> Bytes:
    """Bins that span ``2**steps`` as many; what is missing stays so, what had no bin has one."""
    shifted = np.where(bins == EXACT, 0, bins) >> steps[:, None]
    return np.where(bins == MISSING, MISSING, shifted).astype(np.uint8)


def _regrouped(leaves: Leaves, time: Ints, grain: Bytes, bins: Bytes) -> Leaves:
    """With new keys; the same leaves if no key is new."""
    moved = np.zeros(len(leaves), np.bool_)
    if time is not leaves.time:
        moved |= time != leaves.time
    if grain is not leaves.grain:
        moved |= grain != leaves.grain
    if bins is not leaves.bins:
        moved |= (bins != leaves.bins).any(axis=1)
    if not moved.any():
        return leaves
    return regrouped(replace(leaves, time=time, grain=grain, bins=bins), moved)
