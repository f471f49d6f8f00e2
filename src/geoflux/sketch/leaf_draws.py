"""Values drawn from leaves, compiled: a normal vector, bent into the ends of each leaf.

With ``a`` the nearer end's distance from the mean in deviations, ``a * (2 * Phi(c * z) - 1)`` of a
standard normal ``z`` has mean 0 and, for ``c**2 = s / (1 - s)`` and ``s = sin(pi / (2 * a**2))``,
variance 1, and never leaves the ends; the correlation of two such is an arc sine of that of their
normals, which is turned round. Where the nearer end is closer than one deviation no even curve
will do: then a share of the draws is that end (rain is often none at all, and models tell none from
little), and the rest lies evenly around a value beyond the mean, as widely as the ends allow.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.cover import Covered

Floats = npt.NDArray[np.float64]
_TRIES = 30
_HALVINGS = 40


def drawn(cover: Covered, row: npt.NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """One draw for each of ``row`` (leaves, ascending), within the ranges of the scope."""
    rows, ranges = cover.rows, cover.ranges
    if ranges is None:
        none, flags = np.zeros(0), np.zeros(0, bool)
        limits = (np.zeros(0, np.int64), np.zeros(1, np.int64), none, none, flags, flags)
    else:
        limits = (
            ranges.feature, ranges.first, ranges.low, ranges.high, ranges.low_closed,
            ranges.high_closed,
        )  # fmt: skip
    return np.asarray(
        _drawn(
            row, rows.present, rows.count, rows.mean, rows.heavy, rows.m2, rows.low, rows.high,
            rows.cross, limits, rng,
        )
    )  # fmt: skip


@numba.njit(cache=True)
def _below(z: float) -> float:
    """The share of a standard normal below z."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@numba.njit(cache=True)
def curve(low: float, mean: float, high: float, deviation: float, out: Any) -> None:
    """Numbers of the curve of one feature: scale ``a`` and ``c`` of the even one; or, with ``c``
    negative, share of the low part, low and high value, and how far draws lie around each."""
    if deviation <= 0.0:
        out[0], out[1] = 0.0, 0.0
        return
    under, over = (mean - low) / deviation, (high - mean) / deviation
    near = min(under, over)
    if near >= 1.0:
        s = math.sin(math.pi / (2.0 * near * near))
        out[0], out[1] = near, math.sqrt(s / max(1.0 - s, 1e-18))
        return
    near = max(near, 1e-12)
    far = max(max(under, over), 1.0 / near)
    # The share at the end: with the largest one there is no width left, with less there is more.
    most = 1.0 / (1.0 + near * near)
    least = 0.0
    for _ in range(_HALVINGS):
        share = 0.5 * (least + most)
        centre, width = _rest(share, near)
        if centre + width > far or centre - width < -near:
            least = share
        else:
            most = share
    centre, width = _rest(most, near)
    out[1] = -1.0
    if under <= over:
        out[0], out[2], out[3], out[4], out[5] = most, -near, centre, 0.0, width
    else:
        out[0], out[2], out[3], out[4], out[5] = 1.0 - most, -centre, near, width, 0.0


@numba.njit(cache=True)
def _rest(share: float, near: float) -> tuple[float, float]:
    """Centre and half the width of an even stretch, so that with a share of ``-near`` the mean is
    0 and the variance 1."""
    centre = share * near / (1.0 - share)
    square = (1.0 - share * near * near) / (1.0 - share) - centre * centre
    return centre, math.sqrt(max(3.0 * square, 0.0))


@numba.njit(cache=True)
def _bent(z: float, shape: Any) -> float:
    """A standard normal on the curve, in deviations from the mean."""
    if shape[1] >= 0.0:
        return shape[0] * (2.0 * _below(shape[1] * z) - 1.0)
    share, u = shape[0], _below(z)
    if u < share:
        return shape[2] + shape[4] * (2.0 * u / share - 1.0)
    return shape[3] + shape[5] * (2.0 * (u - share) / max(1.0 - share, 1e-18) - 1.0)


@numba.njit(cache=True)
def _slope(shape: Any) -> float:
    """The covariance of a normal and its bent one."""
    if shape[1] >= 0.0:
        return shape[0] * shape[1] * math.sqrt(2.0 / (math.pi * (1.0 + shape[1] ** 2)))
    total = 0.0
    for step in range(41):
        z = -4.0 + 0.2 * step
        total += 0.2 * z * _bent(z, shape) * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return total


@numba.njit(cache=True)
def _before(target: float, a: Any, b: Any) -> float:
    """The correlation of two normals whose bent ones have the target."""
    if a[1] == 0.0 or b[1] == 0.0:
        return 0.0
    if a[1] < 0.0 or b[1] < 0.0:
        # To first order a bent one follows its normal in a straight line.
        return min(max(target / max(_slope(a) * _slope(b), 1e-3), -1.0), 1.0)
    grown = math.sqrt((1.0 + a[1] ** 2) * (1.0 + b[1] ** 2)) / (a[1] * b[1])
    turn = min(max(math.pi * target / (2.0 * a[0] * b[0]), -0.5 * math.pi), 0.5 * math.pi)
    return min(max(math.sin(turn) * grown, -1.0), 1.0)


@numba.njit(cache=True)
def _triangle(corr: Any, out: Any) -> bool:
    """Cholesky's factor, and whether the matrix is one of correlations. Where it is not quite, rows
    keep length 1 all the same."""
    size = corr.shape[0]
    fits = True
    for i in range(size):
        left = 1.0
        for j in range(i):
            total = corr[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            value = total / out[j, j] if out[j, j] > 1e-9 else 0.0
            bound = math.sqrt(max(left, 0.0))
            fits = fits and abs(value) <= bound + 1e-9
            out[i, j] = min(max(value, -bound), bound)
            left -= out[i, j] ** 2
        out[i, i] = math.sqrt(max(left, 0.0))
    return fits


@numba.njit(cache=True)
def _allowed(value: float, c: int, limits: Any) -> bool:
    _, first, low, high, low_closed, high_closed = limits
    for r in range(first[c], first[c + 1]):
        above = value > low[r] or (low_closed[r] and value == low[r])
        if above and (value < high[r] or (high_closed[r] and value == high[r])):
            return True
    return False


@numba.njit(cache=True)
def _drawn(
    row: Any, present: Any, count: Any, mean: Any, heavy: Any, m2: Any, low: Any, high: Any,
    cross: Any, limits: Any, rng: Any,
) -> Any:  # fmt: skip
    features = mean.shape[1]
    out = np.empty((row.size, features))
    shapes, corr = np.zeros((features, 6)), np.eye(features)
    factor, mixed = np.zeros((features, features)), np.eye(features)
    deviation = np.zeros(features)
    z = np.empty(features)
    last = -1
    for k in range(row.size):
        i = row[k]
        h = heavy[i]
        if h < 0:
            for f in range(features):
                out[k, f] = mean[i, f]
            continue
        if i != last:  # rows come in order, so draws of a leaf follow each other
            last = i
            for f in range(features):
                deviation[f] = math.sqrt(max(m2[h, f], 0.0) / count[i])
                curve(low[h, f], mean[i, f], high[h, f], deviation[f], shapes[f])
            pair = 0
            for f in range(features):
                for g in range(f + 1, features):
                    both = deviation[f] * deviation[g]
                    target = cross[h, pair] / (count[i] * both) if both > 0.0 else 0.0
                    corr[f, g] = min(max(target, -1.0), 1.0)
                    corr[g, f] = _before(corr[f, g], shapes[f], shapes[g])
                    pair += 1
            # Turned round pair by pair they may not go together: then less of it, step by step.
            for step in range(5):
                for f in range(features):
                    for g in range(f):
                        mixed[f, g] = corr[f, g] + 0.25 * step * (corr[g, f] - corr[f, g])
                if _triangle(mixed, factor):
                    break
        for attempt in range(_TRIES):
            for f in range(features):
                z[f] = rng.standard_normal()
            for f in range(features):
                total = 0.0
                for g in range(f + 1):
                    total += factor[f, g] * z[g]
                bent = mean[i, f] + deviation[f] * _bent(total, shapes[f])
                # An end is that end, to the last digit.
                hair = 1e-12 * deviation[f]
                if bent <= low[h, f] + hair:
                    bent = low[h, f]
                out[k, f] = high[h, f] if bent >= high[h, f] - hair else bent
            fits = True
            for c in range(limits[0].size):
                f = limits[0][c]
                if (present[i] >> f) & 1 and not _allowed(out[k, f], c, limits):
                    fits = False
                    if attempt == _TRIES - 1:
                        first, last_one = limits[1][c], limits[1][c + 1] - 1
                        out[k, f] = min(max(out[k, f], limits[2][first]), limits[3][last_one])
            if fits:
                break
    return out
