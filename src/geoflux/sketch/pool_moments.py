"""Moments of a pool by group: expected from the shares, with bounds and likely errors.

What is cut is brought in item by item; where nothing is, these are the moments of the track.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.bounds import mean_bounds, product_bounds, square_bounds
from geoflux.sketch.likely import likely_error
from geoflux.sketch.partial import MEAN_IN, VARIANCE_IN
from geoflux.sketch.pools import CROSS, M2_X, M2_Y, MEAN_X, MEAN_Y, N, Pool, Track

Floats = npt.NDArray[np.float64]
Ends = tuple[Floats, Floats]
Which = Literal["xx", "yy", "xy"]
_LIKELY = ("x", "xx", "xy", "r")
_ROWS = {"xx": M2_X, "yy": M2_Y, "xy": CROSS}


def moments_of(pool: Pool, *features: int) -> Moments:
    """The moments of no, one or two features, made once for a pool."""
    held = pool.moments.get(features)
    if held is None:
        held = pool.moments[features] = Moments(pool.track(*features), len(set(features)) < 2)
    return held


@numba.njit(cache=True)
def _group_sums(first: Any, items: Any) -> Any:
    out = np.zeros(first.size - 1)
    for g in range(out.size):
        for i in range(first[g], first[g + 1]):
            out[g] += items[i]
    return out


@numba.njit(cache=True)
def _expected_mean(first: Any, expected: Any, items: Any, n: Any, n0: Any, mean0: Any) -> Any:
    out = np.full(n.size, np.nan)
    for g in range(n.size):
        total = n0[g] * mean0[g]
        for i in range(first[g], first[g + 1]):
            total += expected[i] * items[i]
        if n[g] > 0:
            out[g] = total / n[g]
    return out


@numba.njit(cache=True)
def _about_centres(
    first: Any, expected: Any, n: Any, whole: Any, row: int, a: int, b: int, inner: Any,
    mean_a: Any, mean_b: Any, centre_a: Any, centre_b: Any,
) -> Any:  # fmt: skip
    """Mean of the products of the distances from two centres: certain, and expected of all."""
    certain, every = np.zeros(n.size), np.zeros(n.size)
    for g in range(n.size):
        n0 = whole[N, g]
        if n0 > 0:
            off_a = whole[MEAN_Y if a else MEAN_X, g] - centre_a[g]
            off_b = whole[MEAN_Y if b else MEAN_X, g] - centre_b[g]
            certain[g] = whole[row, g] / max(n0, 1.0) + off_a * off_b
        total = n0 * certain[g]
        for i in range(first[g], first[g + 1]):
            apart = (mean_a[i] - centre_a[g]) * (mean_b[i] - centre_b[g])
            total += expected[i] * (inner[i] + apart)
        if n[g] > 0:
            every[g] = total / n[g]
    return certain, every


@numba.njit(cache=True)
def _effects(
    which: int, first: Any, x: Any, y: Any, cross: Any, centre_x: Any, centre_y: Any, n: Any,
    xx: Any, yy: Any, xy: Any,
) -> Any:  # fmt: skip
    """What one observation of each item adds, on average, to the mean of x (0), its variance (1),
    the covariance (2) or the correlation (3), and the deviation of that."""
    effect, spread = np.empty(cross.size), np.empty(cross.size)
    for g in range(n.size):
        size = max(n[g], 1e-300)
        a, b = 1.0, 1.0
        if which == 3:
            a = np.sqrt(xx[g]) if xx[g] > 0 else 1.0
            b = np.sqrt(yy[g]) if yy[g] > 0 else 1.0
        r = xy[g] / (a * b)
        for i in range(first[g], first[g + 1]):
            u, v = (x[MEAN_IN, i] - centre_x[g]) / a, (y[MEAN_IN, i] - centre_y[g]) / b
            var_u, var_v = x[VARIANCE_IN, i] / (a * a), y[VARIANCE_IN, i] / (b * b)
            dev_u, dev_v = np.sqrt(var_u), np.sqrt(var_v)
            if which == 0:
                effect[i], spread[i] = u, dev_u
            elif which == 1:
                effect[i] = u * u + var_u - xx[g]
                spread[i] = 2 * abs(u) * dev_u + np.sqrt(2.0) * var_u
            elif which == 2:
                effect[i] = u * v + cross[i] - xy[g]
                spread[i] = abs(u) * dev_v + abs(v) * dev_u + dev_u * dev_v
            else:
                half = 0.5 * r * (u * u + var_u + v * v + var_v)
                effect[i] = u * v + cross[i] / (a * b) - half
                spread[i] = abs(v - r * u) * dev_u + abs(u - r * v) * dev_v + dev_u * dev_v
            effect[i] /= size
            spread[i] /= size
    return effect, spread


@dataclass(frozen=True, eq=False)
class Moments:
    """Expected moments of a track by group, and their bounds where something is cut. ``alone``:
    y is x."""

    track: Track
    alone: bool
    _about: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)

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
        return np.asarray(_group_sums(self.track.part.cut.first, items))

    @cached_property
    def n(self) -> Floats:
        """Expected observations."""
        whole = self.track.whole[N]
        return whole if self.all_exact else whole + self._sums(self.track.part.cut.expected)

    @cached_property
    def n_ends(self) -> Ends:
        """Fewest and most observations."""
        whole, cut = self.track.whole[N], self.track.part.cut
        if self.all_exact:
            return whole, whole
        return whole + self._sums(cut.fewest), whole + self._sums(cut.most)

    def _mean(self, row: int, items: Floats) -> Floats:
        whole = self.track.whole
        if self.all_exact:
            return np.where(whole[N] > 0, whole[row], np.nan)
        cut = self.track.part.cut
        means: Floats = _expected_mean(
            cut.first, cut.expected, items[MEAN_IN], self.n, whole[N], whole[row]
        )
        return means

    @cached_property
    def mean(self) -> tuple[Floats, Floats]:
        """Expected means of x and y; NaN where there are no observations."""
        part = self.track.part
        x = self._mean(MEAN_X, part.x)
        return x, x if self.alone else self._mean(MEAN_Y, part.y)

    @cached_property
    def centre(self) -> tuple[Floats, Floats]:
        """The expected means, 0 where there are none."""
        x = np.where(self.n > 0, self.mean[0], 0.0)
        return x, x if self.alone else np.where(self.n > 0, self.mean[1], 0.0)

    @cached_property
    def mean_ends(self) -> tuple[Ends, Ends]:
        """Bounds of both means."""
        part, whole = self.track.part, self.track.whole
        x = mean_bounds(whole[N], whole[MEAN_X], part, part.x, self.centre[0])
        if self.alone:
            return x, x
        return x, mean_bounds(whole[N], whole[MEAN_Y], part, part.y, self.centre[1])

    @cached_property
    def off(self) -> tuple[Floats, Floats]:
        """How far the means may be from the expected ones."""
        x, y = (
            np.maximum(np.abs(low - c), np.abs(high - c))
            for (low, high), c in zip(self.mean_ends, self.centre, strict=True)
        )
        return x, y

    def about(self, which: Which) -> tuple[Floats, Floats]:
        """Mean of the squares ("xx", "yy") or products ("xy") of distances from the expected
        means: of what is wholly covered, and as expected of all."""
        held = self._about.get(which)
        if held is None:
            held = self._about[which] = self._made_about(which)
        return held

    def _made_about(self, which: Which) -> tuple[Floats, Floats]:
        part = self.track.part
        a, b = (0 if letter == "x" else 1 for letter in which)
        inner = part.cross if a != b else (part.x, part.y)[a][VARIANCE_IN]
        items = (part.x[MEAN_IN], part.y[MEAN_IN])
        found: tuple[Floats, Floats] = _about_centres(
            part.cut.first, part.cut.expected, self.n, self.track.whole, _ROWS[which], a, b,
            inner, items[a], items[b], self.centre[a], self.centre[b],
        )  # fmt: skip
        return found

    def spread_ends(self, which: Which) -> Ends:
        """Bounds of the variance of x ("xx") or y ("yy"), or of their covariance ("xy"), over n."""
        whole, part = self.track.whole, self.track.part
        certain, expected = self.about(which)
        if which == "xy":
            low, high = product_bounds(whole[N], certain, part, self.centre, expected)
            slack = self.off[0] * self.off[1]
            return low - slack, high + slack
        k = 0 if which == "xx" else 1
        items = (part.x, part.y)[k]
        low, high = square_bounds(whole[N], certain, part, items, self.centre[k], expected)
        return np.maximum(low - self.off[k] ** 2, 0.0), high

    def likely(self, which: Literal["x", "xx", "xy", "r"]) -> Floats:
        """What the mean of x, its variance, the covariance or the correlation are likely off."""
        part = self.track.part
        nothing = np.ones(len(self.n))
        xx, yy, xy = nothing, nothing, nothing
        if which != "x":
            xx = self.about("xx")[1]
        if which in ("xy", "r"):
            xy = self.about("xy")[1]
        if which == "r":
            yy = self.about("yy")[1]
        effect, spread = _effects(
            _LIKELY.index(which), part.cut.first, part.x, part.y, part.cross,
            self.centre[0], self.centre[1], self.n, xx, yy, xy,
        )  # fmt: skip
        return likely_error(part, effect, spread)
