"""What a correlation can be at least and at most, when some leaves are covered in part.

With ``u`` and ``v`` the features less their centres and over their deviations, and ``V`` a
variance, ``r = (V(u + v) - V(u - v)) / (V(u + v) + V(u - v))`` is the correlation if ``u`` and
``v`` have the same variance, and smaller by the ratio of the two means (arithmetic over geometric)
of their variances if not. Whether ``r`` can reach a number is a question about a sum that has
largest and smallest values leaf by leaf; where it can no longer is found in a few steps. The ratio,
and what the centres may be off, change it in second order only, so the bounds are close.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.bounds import most_sum
from geoflux.sketch.partial import HIGH, HIGH_IN, LOW, LOW_IN, MEAN, VARIANCE, Partial

Floats = npt.NDArray[np.float64]
_STEPS = 40
_CLOSE = 1e-7


def correlation_bounds(
    n0: Floats, about: Floats, part: Partial, centres: Floats, off: Floats, ratio: Floats
) -> tuple[Floats, Floats]:
    """By group. ``about``: mean of u*u, v*v and u*v of what is wholly covered; ``centres``: centre
    and deviation of x and of y; ``off``: how far the means of u and v may be from 0; ``ratio``:
    how much larger than ``r`` the correlation may be (arithmetic over geometric mean)."""
    cut = part.cut
    numbers, u, v, means = _items(
        cut.first, cut.n, cut.fewest, cut.most, part.x, part.y, part.cross, centres
    )
    low, high = _bounds(n0, about, cut.first, numbers, means, u, v, off)
    low = np.where(low < 0, low * ratio, low)
    high = np.where(high > 0, high * ratio, high)
    return np.clip(low - 1e-9, -1.0, 1.0), np.clip(high + 1e-9, -1.0, 1.0)


@numba.njit(cache=True)
def standardised(
    some: Any, xx: Any, yy: Any, about_xx: Any, about_yy: Any, about_xy: Any, off_x: Any,
    off_y: Any, low_x: Any, high_x: Any, low_y: Any, high_y: Any, centre_x: Any, centre_y: Any,
) -> Any:  # fmt: skip
    """What :func:`correlation_bounds` takes, from the expected variances of x and y, the means of
    what is wholly covered, how far the means may be off, and the ends of both variances."""
    size = xx.size
    centres, about = np.empty((4, size)), np.empty((3, size))
    off, ratio = np.empty((2, size)), np.empty(size)
    for g in range(size):
        a, b = (np.sqrt(xx[g]), np.sqrt(yy[g])) if some[g] else (1.0, 1.0)
        centres[0, g], centres[1, g], centres[2, g], centres[3, g] = centre_x[g], a, centre_y[g], b
        about[0, g], about[1, g] = about_xx[g] / (a * a), about_yy[g] / (b * b)
        about[2, g] = about_xy[g] / (a * b)
        off[0, g], off[1, g] = off_x[g] / a, off_y[g] / b
        ratio[g] = np.inf
        if low_x[g] > 0.0 and low_y[g] > 0.0:
            least = np.sqrt(low_x[g] / high_y[g]) * b / a
            most = np.sqrt(high_x[g] / low_y[g]) * b / a
            ratio[g] = max(0.5 * (least + 1.0 / least), 0.5 * (most + 1.0 / most))
    return centres, about, off, ratio


@numba.njit(cache=True)
def _items(
    first: Any, n: Any, fewest: Any, most: Any, x: Any, y: Any, cross: Any, centres: Any
) -> Any:
    """Of each item: how many, fewest and most; low and high of u and v, of all and of those that
    match; mean of u*u, v*v and u*v."""
    size = n.size
    numbers, means = np.empty((3, size)), np.empty((3, size))
    u, v = np.empty((4, size)), np.empty((4, size))
    rows = (LOW, HIGH, LOW_IN, HIGH_IN)
    for g in range(first.size - 1):
        a, b, c, d = centres[0, g], 1.0 / centres[1, g], centres[2, g], 1.0 / centres[3, g]
        for i in range(first[g], first[g + 1]):
            numbers[0, i], numbers[1, i], numbers[2, i] = n[i], fewest[i], most[i]
            for k in range(4):
                u[k, i], v[k, i] = (x[rows[k], i] - a) * b, (y[rows[k], i] - c) * d
            p, q = (x[MEAN, i] - a) * b, (y[MEAN, i] - c) * d
            means[0, i] = x[VARIANCE, i] * b * b + p * p
            means[1, i] = y[VARIANCE, i] * d * d + q * q
            means[2, i] = cross[i] * b * d + p * q
    return numbers, u, v, means


@numba.njit(cache=True)
def _square(low: float, high: float) -> Any:
    """The least and largest square of numbers from low to high."""
    least = 0.0 if low <= 0.0 <= high else min(low * low, high * high)
    return least, max(low * low, high * high)


@numba.njit(cache=True)
def _excess(
    n0: Any, about: Any, part: Any, means: Any, spread: Any, off: Any, level: Any, sign: Any
) -> Any:
    """By how much ``sign * r`` can be beyond ``sign * level``: the largest sum of
    ``2uv - level (uu + vv)`` and of what the means may be off. It falls with the level."""
    # For the largest level, whatever the level: so that there is one place where it falls below 0.
    slack = (off[0] + off[1]) ** 2
    a, b = 0.5 * (1.0 - level), 0.5 * (1.0 + level)
    total = n0 * (sign * (2.0 * about[2] - level * (about[0] + about[1])) + slack)
    for i in range(part.shape[1]):
        mean = sign * (2.0 * means[2, i] - level * (means[0, i] + means[1, i])) + slack
        # 2uv - level (uu + vv) = a (u + v)^2 - b (u - v)^2, and a and b are not negative.
        if sign > 0:
            low = a * spread[0, i] - b * spread[3, i] + slack
            high_in = a * spread[5, i] - b * spread[6, i] + slack
        else:
            low = b * spread[2, i] - a * spread[1, i] + slack
            high_in = b * spread[7, i] - a * spread[4, i] + slack
        total += most_sum(part[0, i], part[1, i], part[2, i], mean, low, high_in, 0.0)[1]
    return total


@numba.njit(cache=True)
def _bounds(
    n0: Any, about: Any, first: Any, part: Any, means: Any, u: Any, v: Any, off: Any
) -> Any:
    groups = first.size - 1
    ends = np.empty((2, groups))
    spread = np.empty((8, u.shape[1]))
    for i in range(u.shape[1]):
        for k in range(2):  # of all observations, and of those that match
            lo_u, hi_u, lo_v, hi_v = u[2 * k, i], u[2 * k + 1, i], v[2 * k, i], v[2 * k + 1, i]
            spread[4 * k, i], spread[4 * k + 1, i] = _square(lo_u + lo_v, hi_u + hi_v)
            spread[4 * k + 2, i], spread[4 * k + 3, i] = _square(lo_u - hi_v, hi_u - lo_v)
    for g in range(groups):
        s = slice(first[g], first[g + 1])
        for k in range(2):
            sign = 1.0 if k else -1.0
            ends[k, g] = _end(
                n0[g], about[:, g], part[:, s], means[:, s], spread[:, s], off[:, g], sign
            )
    return ends[0], ends[1]


@numba.njit(cache=True)
def _end(n0: Any, about: Any, part: Any, means: Any, spread: Any, off: Any, sign: Any) -> Any:
    """Where the excess falls below 0, from the far side: by straight lines between the ends of
    where it does, with the end that stays weighed less and less (the Illinois rule)."""
    beyond, reached = sign, -sign
    over = _excess(n0, about, part, means, spread, off, beyond, sign)
    if over >= 0.0:
        return beyond
    under = _excess(n0, about, part, means, spread, off, reached, sign)
    if under <= 0.0:
        return reached
    last = 0
    for _ in range(_STEPS):
        if abs(beyond - reached) < _CLOSE:
            break
        at = beyond - over * (reached - beyond) / (under - over)
        # Not on top of an end: the next one is then on the other side of the root, and close.
        step = 0.5 * _CLOSE * (1.0 if beyond > reached else -1.0)
        if abs(at - reached) < abs(step):
            at = reached + step
        elif abs(at - beyond) < abs(step):
            at = beyond - step
        found = _excess(n0, about, part, means, spread, off, at, sign)
        if found < 0.0:
            beyond, over = at, found
            if last == 1:
                under *= 0.5
            last = 1
        else:
            reached, under = at, found
            if last == -1:
                over *= 0.5
            last = -1
    return beyond
