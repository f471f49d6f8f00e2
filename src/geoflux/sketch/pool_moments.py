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

    def _spread_out(self, values: Floats) -> Any:
        """Values of groups for their items."""
        if len(values) == 1:
            return values[0]
        return np.repeat(values, np.diff(self.track.part.cut.first))

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
        total = whole[N] * whole[row] + self._sums(self.track.part.cut.expected * items[MEAN_IN])
        return np.divide(total, self.n, np.full(len(total), np.nan), where=self.n > 0)

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

    @cached_property
    def _apart(self) -> tuple[Floats, Floats]:
        """How far the items' means are from the expected ones."""
        part = self.track.part
        x = part.x[MEAN_IN] - self._spread_out(self.centre[0])
        return x, x if self.alone else part.y[MEAN_IN] - self._spread_out(self.centre[1])

    def about(self, which: Which) -> tuple[Floats, Floats]:
        """Mean of the squares ("xx", "yy") or products ("xy") of distances from the expected
        means: of what is wholly covered, and as expected of all."""
        held = self._about.get(which)
        if held is None:
            held = self._about[which] = self._made_about(which)
        return held

    def _made_about(self, which: Which) -> tuple[Floats, Floats]:
        whole, part = self.track.whole, self.track.part
        a, b = (0 if letter == "x" else 1 for letter in which)
        off = (whole[MEAN_X] - self.centre[0], whole[MEAN_Y] - self.centre[1])
        certain = whole[_ROWS[which]] / np.maximum(whole[N], 1.0) + off[a] * off[b]
        certain = np.where(whole[N] > 0, certain, 0.0)
        if self.all_exact:
            return certain, certain
        inner = part.cross if a != b else (part.x, part.y)[a][VARIANCE_IN]
        parts = part.cut.expected * (inner + self._apart[a] * self._apart[b])
        total = whole[N] * certain + self._sums(parts)
        return certain, np.divide(total, self.n, np.zeros(len(total)), where=self.n > 0)

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
        n = self._spread_out(np.maximum(self.n, 1e-300))
        u, v = self._apart
        var_u, var_v = part.x[VARIANCE_IN], part.y[VARIANCE_IN]
        dev_u = np.sqrt(var_u)
        if which == "x":
            return likely_error(part, u / n, dev_u / n)
        if which == "xx":
            effect = u * u + var_u - self._spread_out(self.about("xx")[1])
            spread = 2 * np.abs(u) * dev_u + np.sqrt(2) * var_u
            return likely_error(part, effect / n, spread / n)
        xy, dev_v = self.about("xy")[1], np.sqrt(var_v)
        if which == "xy":
            effect = u * v + part.cross - self._spread_out(xy)
            spread = np.abs(u) * dev_v + np.abs(v) * dev_u + dev_u * dev_v
            return likely_error(part, effect / n, spread / n)
        xx, yy = (np.where(s > 0, s, 1.0) for s in (self.about("xx")[1], self.about("yy")[1]))
        r = self._spread_out(xy / np.sqrt(xx * yy))
        a, b = self._spread_out(np.sqrt(xx)), self._spread_out(np.sqrt(yy))
        u, v, dev_u, dev_v = u / a, v / b, dev_u / a, dev_v / b
        effect = u * v + part.cross / (a * b) - 0.5 * r * (u * u + dev_u**2 + v * v + dev_v**2)
        spread = np.abs(v - r * u) * dev_u + np.abs(u - r * v) * dev_v + dev_u * dev_v
        return likely_error(part, effect / n, spread / n)
