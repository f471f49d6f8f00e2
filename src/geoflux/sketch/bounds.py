"""What a mean can be at least and at most, when some leaves are covered in part.

A leaf of ``n`` observations with a known mean, low and high is covered by an unknown number ``k``
of them, ``fewest`` to ``most``. Their sum is at most ``k * high`` and at most what is left of the
leaf's sum when the others are at their low. The largest mean over all leaves then is the root of a
convex function of it (Dinkelbach's method), found in a few steps. These bounds always hold; a
standard error would not (it says nothing about which part of a leaf is covered).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.partial import HIGH, HIGH_IN, LOW, LOW_IN, MEAN, VARIANCE, Partial

Floats = npt.NDArray[np.float64]
_STEPS = 200
_SLACK = 1e-12


@numba.njit(cache=True)
def most_sum(n: Any, fewest: Any, most: Any, mean: Any, low: Any, high_in: Any, level: Any) -> Any:
    """Number and sum of the observations that make ``sum - level * number`` largest."""
    if high_in <= level:
        k = fewest
    elif low >= level:
        k = most
    elif high_in > low:
        k = min(max(n * (mean - low) / (high_in - low), fewest), most)
    else:
        k = most
    return k, min(k * high_in, n * mean - (n - k) * low)


@numba.njit(cache=True)
def _largest(
    n0: Any, s0: Any, n: Any, fewest: Any, most: Any, mean: Any, low: Any, high_in: Any, guess: Any
) -> Any:  # fmt: skip
    """The largest possible mean of ``n0`` observations of sum ``s0`` and what the leaves add."""
    top = -np.inf
    for i in range(n.size):
        if most[i] > 0.0:
            top = max(top, high_in[i])
    if n0 > 0.0:
        top = max(top, s0 / n0)
    level = guess
    for _ in range(_STEPS):
        number, total = n0, s0
        for i in range(n.size):
            k, s = most_sum(n[i], fewest[i], most[i], mean[i], low[i], high_in[i], level)
            number += k
            total += s
        if number <= 0.0:
            return top
        found = total / number
        # From above, the first step lands below the root; from there it only climbs.
        if abs(found - level) <= 1e-14 * abs(level):
            return min(found, top)
        level = found
    return top


@numba.njit(cache=True)
def _mean_bounds(
    n0: Any, s0: Any, counts: Any, mean: Any, low: Any, high: Any, low_in: Any, high_in: Any,
    guess: Any,
) -> Any:  # fmt: skip
    first, n, fewest, most = counts
    groups = first.size - 1
    bottom, top = np.empty(groups), np.empty(groups)
    for g in range(groups):
        s = slice(first[g], first[g + 1])
        top[g] = _largest(
            n0[g], s0[g], n[s], fewest[s], most[s], mean[s], low[s], high_in[s], guess[g]
        )
        bottom[g] = -_largest(
            n0[g], -s0[g], n[s], fewest[s], most[s], -mean[s], -high[s], -low_in[s], -guess[g]
        )
    return bottom, top


@numba.njit(cache=True)
def sum_bounds(first: Any, part: Any, mean: Any, low: Any, high: Any, inner: Any) -> Any:
    """Least and largest sum of what the leaves add; ``part``: n, fewest, most; ``inner``: low and
    high of those that match."""
    groups = first.size - 1
    bottom, top = np.zeros(groups), np.zeros(groups)
    for g in range(groups):
        for i in range(first[g], first[g + 1]):
            n, fewest, most = part[0, i], part[1, i], part[2, i]
            top[g] += most_sum(n, fewest, most, mean[i], low[i], inner[1, i], 0.0)[1]
            bottom[g] -= most_sum(n, fewest, most, -mean[i], -high[i], -inner[0, i], 0.0)[1]
    return bottom, top


def widened(low: Floats, high: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Both ends further apart by what rounding may have cost."""
    slack = _SLACK * scale
    return low - slack, high + slack


def _counts(part: Partial) -> Any:
    cut = part.cut
    return cut.first, cut.n, cut.fewest, cut.most


def mean_bounds(
    n0: Floats, mean0: Floats, part: Partial, x: Floats, guess: Floats
) -> tuple[Floats, Floats]:
    """Least and largest mean of a feature by group: ``n0`` observations of mean ``mean0`` are
    wholly covered, ``x`` are the numbers of the feature in ``part``."""
    low, high = _mean_bounds(
        n0, n0 * mean0, _counts(part), x[MEAN], x[LOW], x[HIGH],
        x[LOW_IN], x[HIGH_IN], guess,
    )  # fmt: skip
    return widened(low, high, np.maximum(np.abs(low), np.abs(high)))


def square_bounds(
    n0: Floats, square0: Floats, part: Partial, x: Floats, centre: Floats, guess: Floats
) -> tuple[Floats, Floats]:
    """The same for the mean of the squared distance from ``centre``; ``square0`` is its mean of
    what is wholly covered."""
    at = np.repeat(centre, np.diff(part.cut.first))
    mean = x[VARIANCE] + (x[MEAN] - at) ** 2
    low, high = _squares(x[LOW] - at, x[HIGH] - at)
    low_in, high_in = _squares(x[LOW_IN] - at, x[HIGH_IN] - at)
    bottom, top = _mean_bounds(
        n0, n0 * square0, _counts(part), mean, low, high,
        low_in, high_in, guess,
    )  # fmt: skip
    return widened(bottom, top, np.abs(top))


def product_bounds(
    n0: Floats, product0: Floats, part: Partial, centres: tuple[Floats, Floats], guess: Floats
) -> tuple[Floats, Floats]:
    """The same for the mean of the product of both features' distances from their centres."""
    size = np.diff(part.cut.first)
    at_x, at_y = (np.repeat(c, size) for c in centres)
    x, y = part.x - at_x, part.y - at_y
    mean = part.cross + x[MEAN] * y[MEAN]
    low, high = _products(x[LOW], x[HIGH], y[LOW], y[HIGH])
    low_in, high_in = _products(x[LOW_IN], x[HIGH_IN], y[LOW_IN], y[HIGH_IN])
    bottom, top = _mean_bounds(
        n0, n0 * product0, _counts(part), mean, low, high,
        low_in, high_in, guess,
    )  # fmt: skip
    return widened(bottom, top, np.maximum(np.abs(bottom), np.abs(top)))


def _squares(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    ends = low**2, high**2
    inside = (low <= 0) & (high >= 0)
    return np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends)


def _products(a: Floats, b: Floats, c: Floats, d: Floats) -> tuple[Floats, Floats]:
    corners = np.stack([a * c, a * d, b * c, b * d])
    return corners.min(axis=0), corners.max(axis=0)
