"""What a mixture says, compiled: density, share below a value, and the value of a share.

Each component is a normal density, widened by the bandwidth. Nothing lies beyond the lowest and the
highest value that was observed: what the widening puts there is folded back (reflection), so that
no rain below zero is ever told of, and no mass is lost at a hard end. A value that was met again
and again is a step of the share below, not a slope. Normal densities come from a table, right to
1e-6: the mixture itself is not that near to the truth.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from geoflux.sketch.bandwidth import is_step

_FAR = 6.0
"""Standard deviations beyond which a normal density holds nothing (1e-9)."""
_PER_SIGMA = 256
_GRID = np.arange(-_FAR, _FAR + 2.5 / _PER_SIGMA, 1.0 / _PER_SIGMA)
_BELOW = np.array([0.5 * math.erfc(-z / math.sqrt(2.0)) for z in _GRID.tolist()])
_BELL = np.exp(-0.5 * _GRID**2) / math.sqrt(2.0 * math.pi)
_OFFSETS = np.array([-3.0, -2.0, -1.25, -0.6, 0.0, 0.6, 1.25, 2.0, 3.0])
"""Where a component is looked at, in its standard deviations."""
_STEP = 4.0
"""Marks a component that is one value; 1 and 2 mark those near the low and the high end."""


@numba.njit(cache=True)
def _below(z: float) -> float:
    if z <= -_FAR:
        return 0.0
    if z >= _FAR:
        return 1.0
    place = (z + _FAR) * _PER_SIGMA
    i = int(place)
    return _BELOW[i] + (place - i) * (_BELOW[i + 1] - _BELOW[i])


@numba.njit(cache=True)
def _bell(z: float) -> float:
    if not -_FAR < z < _FAR:
        return 0.0
    place = (z + _FAR) * _PER_SIGMA
    i = int(place)
    return _BELL[i] + (place - i) * (_BELL[i + 1] - _BELL[i])


@numba.njit(cache=True)
def prepare(mixture: Any, wide: float, ends: Any, steps: bool, out: Any) -> None:
    """Shares, means, 1 / deviations and marks of one mixture [3, K] into ``out`` [4, K]."""
    out[:] = 0.0
    low, high = ends[0], ends[1]
    most = mixture.shape[1]
    total = mixture[0].sum()
    whole = 0.0
    for k in range(most):
        weight, mean, variance = mixture[0, k], mixture[1, k], mixture[2, k]
        if weight <= 0.0:
            break
        out[0, k], out[1, k] = weight, mean
        if variance + wide <= 0.0 or (steps and is_step(weight, variance, total, most)):
            out[3, k] = _STEP
            whole += weight
            continue
        inverse = 1.0 / math.sqrt(variance + wide)
        out[2, k] = inverse
        reach = _FAR / inverse
        out[3, k] = 1.0 * (mean - reach < low) + 2.0 * (mean + reach > high)
        whole += weight * (
            _below((2.0 * high - low - mean) * inverse)
            - _below((2.0 * low - high - mean) * inverse)
        )
    if whole > 0.0:
        out[0] /= whole


@numba.njit(cache=True)
def prepare_all(mixtures: Any, wides: Any, ends: Any, steps: bool) -> Any:
    """Mixtures [T, 3, K], ready to be looked at [T, 4, K]."""
    out = np.empty((mixtures.shape[0], 4, mixtures.shape[2]))
    for t in range(mixtures.shape[0]):
        prepare(mixtures[t], wides[t], ends[t], steps, out[t])
    return out


@numba.njit(cache=True)
def share_below(ready: Any, low: float, high: float, value: float) -> float:
    """The share of the density at or below a value."""
    if value < low:
        return 0.0
    if value >= high:
        return 1.0
    share = 0.0
    for k in range(ready.shape[1]):
        weight = ready[0, k]
        if weight <= 0.0:
            break
        mean, inverse, mark = ready[1, k], ready[2, k], ready[3, k]
        if mark == _STEP:
            share += weight * (mean <= value)
            continue
        part = _below((value - mean) * inverse)
        if mark == 1.0 or mark == 3.0:
            part -= _below((2.0 * low - value - mean) * inverse)
        if mark >= 2.0:
            part += _below((2.0 * high - low - mean) * inverse)
            part -= _below((2.0 * high - value - mean) * inverse)
        share += weight * part
    return min(1.0, share)


@numba.njit(cache=True)
def density_at(ready: Any, low: float, high: float, value: float) -> float:
    """The density at a value; infinite where all mass is in that value."""
    if value < low or value > high:
        return 0.0
    if low == high:
        return np.inf
    density = 0.0
    for k in range(ready.shape[1]):
        weight = ready[0, k]
        if weight <= 0.0:
            break
        mean, inverse, mark = ready[1, k], ready[2, k], ready[3, k]
        part = _bell((value - mean) * inverse)
        if mark == 1.0 or mark == 3.0:
            part += _bell((2.0 * low - value - mean) * inverse)
        if mark >= 2.0:
            part += _bell((2.0 * high - value - mean) * inverse)
        density += weight * part * inverse
    return density


@numba.njit(cache=True)
def mixed_pdf(ready: Any, ends: Any, shares: Any, values: Any) -> Any:
    """The density at each value, of mixtures taken with their shares."""
    out = np.zeros(values.size)
    for t in range(ready.shape[0]):
        if shares[t] > 0.0:
            for i in range(values.size):
                out[i] += shares[t] * density_at(ready[t], ends[t, 0], ends[t, 1], values[i])
    return out


@numba.njit(cache=True)
def mixed_cdf(ready: Any, ends: Any, shares: Any, values: Any) -> Any:
    """The share at or below each value, of mixtures taken with their shares."""
    out = np.zeros(values.size)
    for t in range(ready.shape[0]):
        if shares[t] > 0.0:
            for i in range(values.size):
                out[i] += shares[t] * share_below(ready[t], ends[t, 0], ends[t, 1], values[i])
    return np.minimum(out, 1.0)


@numba.njit(cache=True)
def mixed_quantiles(ready: Any, ends: Any, shares: Any, wanted: Any) -> Any:
    """The least value with the wanted share at or below it, by halving the range."""
    low, high = np.inf, -np.inf
    for t in range(ready.shape[0]):
        if shares[t] > 0.0:
            low = min(low, ends[t, 0])
            high = max(high, ends[t, 1])
    out = np.full(wanted.size, np.nan)
    if not low <= high:
        return out
    one = np.full(1, low)
    at_low = mixed_cdf(ready, ends, shares, one)[0]
    for i in range(wanted.size):
        a, b = low, high
        if wanted[i] <= at_low:
            b = low
        elif wanted[i] >= 1.0:
            a = high
        while b - a > 1e-9 * (high - low):
            one[0] = a + 0.5 * (b - a)
            if one[0] <= a or one[0] >= b:
                break
            if mixed_cdf(ready, ends, shares, one)[0] >= wanted[i] - 1e-12:
                b = one[0]
            else:
                a = one[0]
        out[i] = b
    return out


@numba.njit(cache=True)
def quick_quantiles(ready: Any, low: float, high: float, wanted: Any) -> Any:
    """Quantiles of one mixture in straight lines between points that lie close where mass does.

    ``wanted`` ascends. Much faster than halving, and near enough for edges of bins.
    """
    size = 0
    points = np.empty(_OFFSETS.size * ready.shape[1] + 2)
    for k in range(ready.shape[1]):
        if ready[0, k] <= 0.0:
            break
        if ready[3, k] == _STEP:
            continue
        for offset in _OFFSETS:
            point = ready[1, k] + offset / ready[2, k]
            if low < point < high:
                points[size] = point
                size += 1
    points[size] = low
    points[size + 1] = high
    size += 2
    points[:size].sort()
    out = np.empty(wanted.size)
    at, before, here = 0, 0.0, share_below(ready, low, high, points[0])
    for i in range(wanted.size):
        while at < size - 1 and here < wanted[i]:
            at += 1
            before = here
            here = max(here, share_below(ready, low, high, points[at]))
        if at == 0 or here <= before:
            out[i] = points[at]
        else:
            part = min(1.0, max(0.0, (wanted[i] - before) / (here - before)))
            out[i] = points[at - 1] + part * (points[at] - points[at - 1])
    return out
