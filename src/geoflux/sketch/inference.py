"""Regression of one feature on another from pooled moments, with forecasts and their intervals.

Ordinary least squares of ``y`` on ``x`` over the observations that have both. Standard errors and
intervals are the usual ones (Student's t, n - 2); where leaves are covered in part, what that is
likely to be off is added to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from geoflux.sketch.likely import DEVIATIONS, likely_error
from geoflux.sketch.measures import Measure, bounded, uncertain
from geoflux.sketch.partial import MEAN_IN, VARIANCE_IN
from geoflux.sketch.pool_moments import Moments, moments_of
from geoflux.sketch.pools import Pool
from geoflux.sketch.statistics import correlation

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Line:
    """``y = intercept + slope * x`` by group, with what its errors are made of; NaN where there are
    fewer than three observations or ``x`` is constant."""

    n: Floats
    mean_x: Floats
    slope: Floats
    intercept: Floats
    sxx: Floats
    residual: Floats
    slope_off: Floats
    mean_off: Floats


def line_of(moments: Moments) -> Line:
    """The line of y on x, from the moments of a track (x, y)."""
    n = np.where(moments.n >= 3, moments.n, np.nan)
    mean_x, mean_y = moments.mean
    xx, yy, xy = moments.about("xx")[1], moments.about("yy")[1], moments.about("xy")[1]
    xx = np.where(xx > 0, xx, np.nan)
    slope = xy / xx
    residual = np.maximum(yy - slope * xy, 0.0) * n / (n - 2)
    nothing = np.zeros(len(n))
    slope_off = mean_off = nothing
    if not moments.all_exact:
        slope_off, mean_off = _coverage_errors(moments, slope, xx)
    return Line(n, mean_x, slope, mean_y - slope * mean_x, xx * n, residual, slope_off, mean_off)


def _coverage_errors(moments: Moments, slope: Floats, xx: Floats) -> tuple[Floats, Floats]:
    """Deviations of the slope and of the height of the line at the mean of x, by what is cut."""
    part = moments.track.part
    size = np.diff(part.cut.first)
    n = np.repeat(np.maximum(moments.n, 1e-300), size)
    b, s = np.repeat(np.nan_to_num(slope), size), np.repeat(np.nan_to_num(xx, nan=1.0), size)
    u, v = (
        items[MEAN_IN] - np.repeat(np.nan_to_num(m), size)
        for items, m in zip((part.x, part.y), moments.mean, strict=True)
    )
    var_u, var_v = part.x[VARIANCE_IN], part.y[VARIANCE_IN]
    dev_u, dev_v = np.sqrt(var_u), np.sqrt(var_v)
    effect = u * (v - b * u) + part.cross - b * var_u
    spread = np.abs(v - 2 * b * u) * dev_u + np.abs(u) * dev_v + dev_u * dev_v
    slope_off = likely_error(part, effect / (n * s), spread / (n * s)) / DEVIATIONS
    height = (v - b * u) / n
    mean_off = likely_error(part, height, (dev_v + np.abs(b) * dev_u) / n) / DEVIATIONS
    return slope_off, mean_off


def _interval(value: Floats, error: Floats, n: Floats, confidence: float) -> Measure:
    far = stdtrit(np.maximum(n - 2, 1e-9), 0.5 + confidence / 2) * error
    return uncertain(value, error, value - far, value + far)


def regress(pool: Pool, y: int, x: int, confidence: float = 0.95) -> dict[str, Measure]:
    """Slope, intercept, r2, the deviation of the residuals, and how many observations there are."""
    moments = moments_of(pool, x, y)
    line = line_of(moments)
    n = line.n
    slope_error = np.hypot(np.sqrt(line.residual / line.sxx), line.slope_off)
    at_zero = np.sqrt(line.residual * (1 / n + line.mean_x**2 / line.sxx))
    intercept_error = np.hypot(at_zero, np.hypot(line.slope_off * line.mean_x, line.mean_off))
    r = correlation(moments)
    low = np.where((r.low <= 0) & (r.high >= 0), 0.0, np.minimum(r.low**2, r.high**2))
    far = np.maximum(r.low**2, r.high**2)
    likely = r.error * (2 * np.abs(r.value) + r.error)
    residual = np.sqrt(line.residual)
    few = np.maximum(n - 2, 1e-9)
    return {
        "slope": _interval(line.slope, slope_error, n, confidence),
        "intercept": _interval(line.intercept, intercept_error, n, confidence),
        "r2": bounded(r.value**2, low, far, False, likely),
        "residual": _interval(residual, residual / np.sqrt(2 * few), n, confidence),
        "n": bounded(moments.n, *moments.n_ends, moments.exact),
    }


def forecast(pool: Pool, y: int, x: int, at: float, confidence: float) -> Measure:
    """What a new observation of y is expected to be at ``x = at``, with its prediction interval."""
    line = line_of(moments_of(pool, x, y))
    off = at - line.mean_x
    spread = line.residual * (1 + 1 / line.n + off**2 / line.sxx)
    error = np.sqrt(spread + (line.slope_off * off) ** 2 + line.mean_off**2)
    return _interval(line.intercept + line.slope * at, error, line.n, confidence)
