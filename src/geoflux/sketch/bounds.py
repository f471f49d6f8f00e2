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
Ints = npt.NDArray[np.int64]
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
    n0: Any, s0: Any, first: Any, n: Any, fewest: Any, most: Any, mean: Any, low: Any, high: Any,
    low_in: Any, high_in: Any, guess: Any,
) -> Any:  # fmt: skip
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


def _counts(part: Partial) -> tuple[Ints, Floats, Floats, Floats]:
    cut = part.cut
    return cut.first, cut.n, cut.fewest, cut.most


def mean_bounds(
    n0: Floats, mean0: Floats, part: Partial, x: Floats, guess: Floats
) -> tuple[Floats, Floats]:
    """Least and largest mean of a feature by group: ``n0`` observations of mean ``mean0`` are
    wholly covered, ``x`` are the numbers of the feature in ``part``."""
    low, high = _mean_bounds(
        n0, n0 * mean0, *_counts(part), x[MEAN], x[LOW], x[HIGH],
        x[LOW_IN], x[HIGH_IN], guess,
    )  # fmt: skip
    return widened(low, high, np.maximum(np.abs(low), np.abs(high)))


def square_bounds(
    n0: Floats, square0: Floats, part: Partial, x: Floats, centre: Floats, guess: Floats
) -> tuple[Floats, Floats]:
    """The same for the mean of the squared distance from ``centre``; ``square0`` is its mean of
    what is wholly covered."""
    squares = _square_items(part.cut.first, x, centre)
    numbers = (*_counts(part), *squares, guess)
    bottom, top = _mean_bounds(n0, n0 * square0, *numbers)
    return widened(bottom, top, np.abs(top))


def product_bounds(
    n0: Floats, product0: Floats, part: Partial, centres: tuple[Floats, Floats], guess: Floats
) -> tuple[Floats, Floats]:
    """The same for the mean of the product of both features' distances from their centres."""
    products = _product_items(part.cut.first, part.x, part.y, part.cross, *centres)
    numbers = (*_counts(part), *products, guess)
    bottom, top = _mean_bounds(n0, n0 * product0, *numbers)
    return widened(bottom, top, np.maximum(np.abs(bottom), np.abs(top)))


@numba.njit(cache=True)
def _square_items(first: Any, x: Any, centre: Any) -> Any:
    """Mean, low and high of the squared distances of each item, low and high of those inside."""
    out = np.empty((5, x.shape[1]))
    for g in range(first.size - 1):
        at = centre[g]
        for i in range(first[g], first[g + 1]):
            out[0, i] = x[MEAN, i] - at
            out[0, i] = x[VARIANCE, i] + out[0, i] * out[0, i]
            out[1, i], out[2, i] = _square(x[LOW, i] - at, x[HIGH, i] - at)
            out[3, i], out[4, i] = _square(x[LOW_IN, i] - at, x[HIGH_IN, i] - at)
    return out


@numba.njit(cache=True)
def _product_items(first: Any, x: Any, y: Any, cross: Any, centre_x: Any, centre_y: Any) -> Any:
    """The same of the products of both distances."""
    out = np.empty((5, x.shape[1]))
    for g in range(first.size - 1):
        a, b = centre_x[g], centre_y[g]
        for i in range(first[g], first[g + 1]):
            out[0, i] = cross[i] + (x[MEAN, i] - a) * (y[MEAN, i] - b)
            for k in range(2):
                low, high = (LOW_IN, HIGH_IN) if k else (LOW, HIGH)
                out[2 * k + 1, i], out[2 * k + 2, i] = _product(
                    x[low, i] - a, x[high, i] - a, y[low, i] - b, y[high, i] - b
                )
    return out


@numba.njit(cache=True)
def _square(low: float, high: float) -> tuple[float, float]:
    """The least and largest square of numbers from low to high."""
    a, b = low * low, high * high
    return (0.0 if low <= 0.0 <= high else min(a, b)), max(a, b)


@numba.njit(cache=True)
def _product(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The least and largest product of a number from a to b and one from c to d."""
    p, q, r, s = a * c, a * d, b * c, b * d
    return min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
