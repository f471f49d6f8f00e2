"""Count, sum, mean, ends, variance, covariance and correlation of a pool, with their errors.

Where everything is wholly covered they are exact. Otherwise the value is what the shares let
expect, and low and high are bounds that always hold (:mod:`geoflux.sketch.bounds`). Variances and
covariances are those of samples (n - 1), as in SQL; of fewer than two observations there are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geoflux.sketch.bounds import mean_bounds, product_bounds, square_bounds, sum_bounds
from geoflux.sketch.correlation_bounds import correlation_bounds
from geoflux.sketch.likely import likely_error
from geoflux.sketch.measures import EXACT, Measure, bounded, exact
from geoflux.sketch.partial import HIGH, HIGH_IN, LOW, LOW_IN, MEAN, MEAN_IN, VARIANCE_IN
from geoflux.sketch.pools import (
    CROSS,
    HIGH_X,
    LOW_X,
    M2_X,
    M2_Y,
    MEAN_X,
    MEAN_Y,
    N,
    Pool,
    Track,
)  # fmt: skip

Floats = npt.NDArray[np.float64]
Ends = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Moments:
    """Expected moments of a track by group, and their bounds where something is cut."""

    track: Track

    @cached_property
    def exact(self) -> npt.NDArray[np.bool_]:
        """The groups without anything covered in part."""
        return self.track.exact

    @cached_property
    def all_exact(self) -> bool:
        """Whether nothing at all is covered in part."""
        return len(self.track.part.cut.n) == 0

    def _sums(self, items: Floats) -> Floats:
        """Sums over the items by group."""
        first = self.track.part.cut.first
        total = np.append(0.0, np.cumsum(items))
        return np.asarray(total[first[1:]] - total[first[:-1]])

    @cached_property
    def n(self) -> Floats:
        """Expected observations."""
        whole = self.track.whole[N]
        return whole if self.all_exact else whole + self._sums(self.track.part.cut.expected)

    @cached_property
    def n_ends(self) -> Ends:
        """Fewest and most observations."""
        whole, part = self.track.whole[N], self.track.part
        return whole + self._sums(part.cut.fewest), whole + self._sums(part.cut.most)

    def _mean(self, row: int, items: Floats) -> Floats:
        whole = self.track.whole
        if self.all_exact:
            return np.where(whole[N] > 0, whole[row], np.nan)
        total = whole[N] * whole[row] + self._sums(self.track.part.cut.expected * items[MEAN_IN])
        return np.divide(total, self.n, np.full(len(total), np.nan), where=self.n > 0)

    @cached_property
    def mean(self) -> tuple[Floats, Floats]:
        """Expected means of x and y; NaN where there are no observations."""
        part = self.track.part
        return self._mean(MEAN_X, part.x), self._mean(MEAN_Y, part.y)

    @cached_property
    def mean_ends(self) -> tuple[Ends, Ends]:
        """Bounds of both means."""
        part, whole = self.track.part, self.track.whole
        x, y = (
            mean_bounds(whole[N], whole[row], part, items, np.nan_to_num(guess))
            for row, items, guess in zip((MEAN_X, MEAN_Y), (part.x, part.y), self.mean, strict=True)
        )
        return x, y

    def about(self, which: str) -> tuple[Floats, Floats]:
        """Mean of the squares ("xx", "yy") or products ("xy") of distances from the expected
        means: of what is wholly covered, and as expected of all."""
        whole, part = self.track.whole, self.track.part
        row = {"xx": M2_X, "yy": M2_Y, "xy": CROSS}[which]
        centre = [np.nan_to_num(m) for m in self.mean]
        a, b = (0 if letter == "x" else 1 for letter in which)
        off = (whole[MEAN_X] - centre[0], whole[MEAN_Y] - centre[1])
        n0 = np.maximum(whole[N], 1.0)
        certain = whole[row] / n0 + off[a] * off[b]
        certain = np.where(whole[N] > 0, certain, 0.0)
        if self.all_exact:
            return certain, certain
        size = np.diff(part.cut.first)
        items = (part.x, part.y)
        apart = [items[k][MEAN_IN] - np.repeat(centre[k], size) for k in (0, 1)]
        inner = part.cross if a != b else items[a][VARIANCE_IN]
        total = whole[N] * certain + self._sums(part.cut.expected * (inner + apart[a] * apart[b]))
        return certain, np.divide(total, self.n, np.zeros(len(total)), where=self.n > 0)

    def likely(self, which: str) -> Floats:
        """What the mean ("x") or the "xx", "yy", "xy" or correlation ("r") are likely off."""
        part = self.track.part
        size = np.diff(part.cut.first)
        n = np.repeat(np.maximum(self.n, 1e-300), size)
        u, v = (
            items[MEAN_IN] - np.repeat(np.nan_to_num(m), size)
            for items, m in zip((part.x, part.y), self.mean, strict=True)
        )
        var_u, var_v = part.x[VARIANCE_IN], part.y[VARIANCE_IN]
        if which == "x":
            return likely_error(part, u / n, np.sqrt(var_u) / n)
        if which == "xx":
            effect = u * u + var_u - np.repeat(self.about("xx")[1], size)
            spread = 2 * np.abs(u) * np.sqrt(var_u) + np.sqrt(2) * var_u
            return likely_error(part, effect / n, spread / n)
        xy = self.about("xy")[1]
        dev_u, dev_v = np.sqrt(var_u), np.sqrt(var_v)
        if which == "xy":
            effect = u * v + part.cross - np.repeat(xy, size)
            spread = np.abs(u) * dev_v + np.abs(v) * dev_u + dev_u * dev_v
            return likely_error(part, effect / n, spread / n)
        scale = np.sqrt(np.stack([self.about(w)[1] for w in ("xx", "yy")]))
        scale = np.where(scale > 0, scale, 1.0)
        r = np.repeat(xy / (scale[0] * scale[1]), size)
        a, b = (np.repeat(s, size) for s in scale)
        u, v, dev_u, dev_v = u / a, v / b, dev_u / a, dev_v / b
        effect = u * v + part.cross / (a * b) - 0.5 * r * (u * u + dev_u**2 + v * v + dev_v**2)
        spread = np.abs(v - r * u) * dev_u + np.abs(u - r * v) * dev_v + dev_u * dev_v
        return likely_error(part, effect / n, spread / n)

    def spread_ends(self, which: str) -> Ends:
        """Bounds of the variance of x ("xx") or y ("yy"), or of their covariance ("xy"), over n."""
        whole, part = self.track.whole, self.track.part
        certain, expected = self.about(which)
        centre = tuple(np.nan_to_num(m) for m in self.mean)
        off = [
            np.maximum(np.abs(low - c), np.abs(high - c))
            for (low, high), c in zip(self.mean_ends, centre, strict=True)
        ]
        if which == "xy":
            low, high = product_bounds(whole[N], certain, part, (centre[0], centre[1]), expected)
            slack = off[0] * off[1]
            return low - slack, high + slack
        k = 0 if which == "xx" else 1
        items = (part.x, part.y)[k]
        low, high = square_bounds(whole[N], certain, part, items, centre[k], expected)
        return np.maximum(low - off[k] ** 2, 0.0), high


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
    moments = Moments(pool.track(*features))
    if moments.all_exact:
        return exact(moments.n)
    part = moments.track.part
    likely = likely_error(part, np.ones(len(part.cut.n)), np.zeros(len(part.cut.n)))
    return bounded(moments.n, *moments.n_ends, moments.exact, likely)


def mean(pool: Pool, x: int) -> Measure:
    """The mean of a feature."""
    moments = Moments(pool.track(x))
    value = moments.mean[0]
    if moments.all_exact:
        return exact(value)
    return bounded(value, *moments.mean_ends[0], moments.exact, moments.likely("x"))


def total(pool: Pool, x: int) -> Measure:
    """The sum of a feature."""
    moments = Moments(pool.track(x))
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
    moments = Moments(pool.track(x))
    return _bounded_spread(moments, "xx")


def _bounded_spread(moments: Moments, which: str) -> Measure:
    value = moments.about(which)[1]
    if moments.all_exact:
        return exact(_sample(moments, value, (value, value))[0])
    ends = moments.spread_ends(which)
    return bounded(*_sample(moments, value, ends), moments.exact, moments.likely(which))


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
    return _bounded_spread(Moments(pool.track(x, y)), "xy")


def corr(pool: Pool, x: int, y: int) -> Measure:
    """The correlation of two features (none if one of them is constant)."""
    if x == y:
        got = variance(pool, x)
        return exact(np.where(got.value > 0, 1.0, np.nan))
    return correlation(Moments(pool.track(x, y)))


def correlation(moments: Moments) -> Measure:
    """The correlation from the moments of two features."""
    parts = [moments.about(which) for which in ("xx", "yy", "xy")]
    xx, yy, xy = (part[1] for part in parts)
    square = xx * yy
    some = (square > 0) & (moments.n_ends[1] >= 2)
    value = np.divide(xy, np.sqrt(square), np.full(len(xy), np.nan), where=some)
    value = np.clip(value, -1.0, 1.0)
    if moments.all_exact:
        return exact(value)
    scale = np.sqrt(np.where(some, [xx, yy], 1.0))
    centre = [np.nan_to_num(m) for m in moments.mean]
    off = np.stack(
        [
            np.maximum(np.abs(low - c), np.abs(high - c)) / s
            for (low, high), c, s in zip(moments.mean_ends, centre, scale, strict=True)
        ]
    )
    low_x, high_x = (v / scale[0] ** 2 for v in moments.spread_ends("xx"))
    low_y, high_y = (v / scale[1] ** 2 for v in moments.spread_ends("yy"))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([low_x / high_y, high_x / low_y])
        ratio = np.where(ends > 0, 0.5 * (np.sqrt(ends) + 1.0 / np.sqrt(ends)), np.inf).max(axis=0)
    certain = [part[0] for part in parts]
    about = np.stack(
        [certain[0] / scale[0] ** 2, certain[1] / scale[1] ** 2, certain[2] / (scale[0] * scale[1])]
    )
    low, high = correlation_bounds(
        moments.track.whole[N], about, moments.track.part,
        np.stack([centre[0], scale[0], centre[1], scale[1]]), off, ratio,
    )  # fmt: skip
    return bounded(value, low, high, moments.exact, moments.likely("r"))
