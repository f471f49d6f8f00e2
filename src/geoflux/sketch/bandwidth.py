"""Silverman's bandwidth of a mixture, compiled, and which components it is not meant for.

A value that was met again and again (no rain) is a step, not a sample of something smooth: the
bandwidth is that of the others, or it would smear what lies next to the step.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

STEP_ROWS = 8.0
"""Fewer alike are no sign of a value that comes again and again."""


@numba.njit(cache=True)
def is_step(weight: float, variance: float, total: float, parts: int) -> bool:
    """Whether a component is one value, met often enough to have its part of the mass."""
    return variance == 0.0 and weight >= max(total / parts, STEP_ROWS)


@numba.njit(cache=True)
def silverman(parts: Any, size: int, most: int) -> float:
    """0.9 min(sigma, IQR / 1.34) n^(-1/5) of the values that are no steps (if there are any).

    Where half of these are alike, sigma decides.
    """
    whole = parts[0, :size].sum()
    kept = np.empty((3, size))
    count = 0
    for k in range(size):
        if not is_step(parts[0, k], parts[2, k], whole, most):
            for row in range(3):
                kept[row, count] = parts[row, k]
            count += 1
    if count < 2:
        kept[:] = parts[:, :size]
        count = size
    weight, mean, variance = kept[0], kept[1], kept[2]
    total, centre = 0.0, 0.0
    for k in range(count):
        total += weight[k]
        centre += weight[k] * mean[k]
    if total <= 1.0:
        return 0.0
    centre /= total
    spread = 0.0
    for k in range(count):
        spread += weight[k] * (variance[k] + (mean[k] - centre) ** 2)
    sigma = math.sqrt(spread / total)
    middle = (
        _quartile(weight, mean, count, 0.75 * total) - _quartile(weight, mean, count, 0.25 * total)
    ) / 1.34
    scale = middle if 0.0 < middle < sigma else sigma
    return 0.9 * scale * total**-0.2


@numba.njit(cache=True)
def _quartile(weight: Any, mean: Any, size: int, wanted: float) -> float:
    """Where ``wanted`` observations lie below, in straight lines between the means."""
    before = 0.5 * weight[0]
    if wanted <= before:
        return mean[0]
    for k in range(1, size):
        after = before + 0.5 * (weight[k - 1] + weight[k])
        if wanted <= after:
            return mean[k - 1] + (mean[k] - mean[k - 1]) * (wanted - before) / (after - before)
        before = after
    return mean[size - 1]
