"""Count, sum, mean, ends, variance, covariance and correlation of a pool, with their errors.

Where everything is wholly covered they are exact. Otherwise the value is what the shares let
expect, and low and high are bounds that always hold (:mod:`geoflux.sketch.bounds`). Variances and
covariances are those of samples (n - 1), as in SQL; of fewer than two observations there are none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoflux.sketch.bounds import sum_bounds
from geoflux.sketch.correlation_bounds import correlation_bounds, standardised
from geoflux.sketch.likely import likely_error
from geoflux.sketch.measures import EXACT, Measure, bounded, exact
from geoflux.sketch.partial import HIGH, HIGH_IN, LOW, LOW_IN, MEAN, MEAN_IN, VARIANCE_IN
from geoflux.sketch.pool_moments import Moments, Which, moments_of
from geoflux.sketch.pools import HIGH_X, LOW_X, MEAN_X, N, Pool

Floats = npt.NDArray[np.float64]
Ends = tuple[Floats, Floats]


def _sample(moments: Moments, value: Floats, ends: Ends) -> tuple[Floats, Floats, Floats]:
    """From "over n" to "over n - 1"; the fewer observations, the larger the step."""
    fewest, most = (np.maximum(end, 2.0) for end in moments.n_ends)
    n = np.maximum(moments.n, 2.0)
    small, large = most / (most - 1.0), fewest / (fewest - 1.0)
    low = ends[0] * np.where(ends[0] >= 0, small, large)
    high = ends[1] * np.where(ends[1] >= 0, large, small)
    return np.where(moments.n_ends[1] >= 2, value * n / (n - 1.0), np.nan), low, high


def count(pool: Pool, *features: int) -> Measure:
    """Observations, or those that have a feature."""
    moments = moments_of(pool, *features)
    if moments.all_exact:
        return exact(moments.n)
    part = moments.track.part
    likely = likely_error(part, np.ones(len(part.cut.n)), np.zeros(len(part.cut.n)))
    return bounded(moments.n, *moments.n_ends, moments.exact, likely)


def mean(pool: Pool, x: int) -> Measure:
    """The mean of a feature."""
    moments = moments_of(pool, x)
    value = moments.mean[0]
    if moments.all_exact:
        return exact(value)
    return bounded(value, *moments.mean_ends[0], moments.exact, moments.likely("x"))


def total(pool: Pool, x: int) -> Measure:
    """The sum of a feature."""
    moments = moments_of(pool, x)
    whole, part = moments.track.whole, moments.track.part
    certain = whole[N] * whole[MEAN_X]
    value = np.where(moments.n > 0, moments.n * np.nan_to_num(moments.mean[0]), np.nan)
    if moments.all_exact:
        return exact(value)
    x_items = part.x
    low, high = sum_bounds(
        part.cut.first, np.stack([part.cut.n, part.cut.fewest, part.cut.most]), x_items[MEAN],
        x_items[LOW], x_items[HIGH], x_items[LOW_IN : HIGH_IN + 1],
    )  # fmt: skip
    slack = 1e-12 * (np.abs(certain) + np.abs(low) + np.abs(high))
    likely = likely_error(part, x_items[MEAN_IN], np.sqrt(x_items[VARIANCE_IN]))
    return bounded(value, certain + low - slack, certain + high + slack, moments.exact, likely)


def end(pool: Pool, x: int, largest: bool) -> Measure:
    """The least or the largest value of a feature. A leaf that is cut may have it or not, unless
    some of its observations certainly match."""
    track = pool.track(x)
    part, sign = track.part, -1.0 if largest else 1.0
    whole = sign * track.whole[HIGH_X if largest else LOW_X]
    outer = sign * part.x[HIGH_IN if largest else LOW_IN]
    inner = sign * part.x[LOW_IN if largest else HIGH_IN]
    groups = np.repeat(np.arange(len(whole)), np.diff(part.cut.first))
    best, worst = whole.copy(), whole.copy()
    np.minimum.at(best, groups, outer)
    sure = part.cut.fewest > 0
    np.minimum.at(worst, groups[sure], inner[sure])
    last = np.full(len(whole), -np.inf)
    np.maximum.at(last, groups, inner)
    worst = np.where(np.isinf(worst), np.maximum(last, best), worst)
    value = np.where(
        np.isinf(best), np.nan, np.where(np.isinf(whole), best, np.minimum(whole, worst))
    )
    ends = sign * np.stack([best, worst])
    return bounded(sign * value, ends.min(axis=0), ends.max(axis=0), track.exact)


def variance(pool: Pool, x: int) -> Measure:
    """The variance of a feature."""
    moments = moments_of(pool, x)
    return _bounded_spread(moments, "xx")


def _bounded_spread(moments: Moments, which: Which) -> Measure:
    value = moments.about(which)[1]
    if moments.all_exact:
        return exact(_sample(moments, value, (value, value))[0])
    ends = moments.spread_ends(which)
    return bounded(
        *_sample(moments, value, ends),
        moments.exact,
        moments.likely("xx" if which == "xx" else "xy"),
    )


def stddev(pool: Pool, x: int) -> Measure:
    """The standard deviation of a feature."""
    got = variance(pool, x)
    value, low, high = (np.sqrt(np.maximum(v, 0.0)) for v in (got.value, got.low, got.high))
    # The error of the root, on its wider side.
    likely = value - np.sqrt(np.maximum(got.value - got.error, 0.0))
    return bounded(value, low, high, got.kind == EXACT, likely)


def covar(pool: Pool, x: int, y: int) -> Measure:
    """The covariance of two features, of the observations that have both."""
    if x == y:
        return variance(pool, x)
    return _bounded_spread(moments_of(pool, x, y), "xy")


def corr(pool: Pool, x: int, y: int) -> Measure:
    """The correlation of two features (none if one of them is constant)."""
    if x == y:
        got = variance(pool, x)
        return exact(np.where(got.value > 0, 1.0, np.nan))
    return correlation(moments_of(pool, x, y))


def correlation(moments: Moments) -> Measure:
    """The correlation from the moments of two features."""
    parts = [moments.about("xx"), moments.about("yy"), moments.about("xy")]
    xx, yy, xy = (part[1] for part in parts)
    square = xx * yy
    some = (square > 0) & (moments.n_ends[1] >= 2)
    value = np.divide(xy, np.sqrt(square), np.full(len(xy), np.nan), where=some)
    value = np.clip(value, -1.0, 1.0)
    if moments.all_exact:
        return exact(value)
    ends = (*moments.spread_ends("xx"), *moments.spread_ends("yy"))
    numbers = (*(part[0] for part in parts), *moments.off, *ends, *moments.centre)
    centres, about, off, ratio = standardised(some, xx, yy, *numbers)
    track = moments.track
    low, high = correlation_bounds(track.whole[N], about, track.part, centres, off, ratio)
    return bounded(value, low, high, moments.exact, moments.likely("r"))
