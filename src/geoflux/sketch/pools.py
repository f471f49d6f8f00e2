"""Covered rows of all forests brought together: groups, and the moments of one or two features.

A ``Pool`` is what statistics are made from. What is wholly covered is added up at once, in two
passes (means first, then squares about them), so that how the sketch is split over forests shows
in the last digits only. What is covered in part is kept item by item, since its bounds need that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.cover import Covered
from geoflux.sketch.groups import Groups
from geoflux.sketch.partial import (
    VARIANCE,
    Cut,
    Partial,
    covariances,
    cut_items,
    feature_numbers,
)
from geoflux.sketch.schema import SketchSchema

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


N, MEAN_X, M2_X, LOW_X, HIGH_X, MEAN_Y, M2_Y, CROSS = range(8)
"""Rows of ``Track.whole``."""


@dataclass(frozen=True, eq=False, slots=True)
class Track:
    """Moments of the observations that have feature ``x`` (and ``y``) by group: ``whole`` for what
    is wholly covered, ``part`` for the rest."""

    whole: Floats
    part: Partial

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """The groups of which nothing is covered in part."""
        return np.asarray(np.diff(self.part.cut.first) == 0)


@dataclass(frozen=True, eq=False)
class Pool:
    """Covers of several forests and the groups of their items. What was asked once is kept."""

    schema: SketchSchema
    covers: tuple[Covered, ...]
    groups: Groups
    _tracks: dict[tuple[int, ...], Track] = field(default_factory=dict)
    _numbers: dict[int, Floats] = field(default_factory=dict)
    moments: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def track(self, *features: int) -> Track:
        """Moments of no, one or two features, over the rows that have all of them."""
        held = self._tracks.get(features)
        if held is None:
            held = self._tracks[features] = self._track(features)
        return held

    @cached_property
    def cut(self) -> Cut:
        """What is covered in part."""
        return cut_items(self.covers, self.groups.of_items, len(self.groups))

    def numbers(self, feature: int) -> Floats:
        """What is known of a feature in what is covered in part."""
        if feature not in self._numbers:
            self._numbers[feature] = feature_numbers(self.covers, self.cut, feature)
        return self._numbers[feature]

    def _track(self, features: tuple[int, ...]) -> Track:
        x, y = (features[0], features[-1]) if features else (-1, -1)
        pair = -1 if x == y else self.schema.pairs.index((min(x, y), max(x, y)))
        size = len(self.groups)
        whole = np.zeros((8, size))
        whole[LOW_X], whole[HIGH_X] = np.inf, -np.inf
        centre = np.zeros((2, size))
        self._scan(_add_means, x, y, pair, whole, centre)
        if x >= 0:
            some = whole[N] > 0
            np.divide(whole[MEAN_X], whole[N], centre[0], where=some)
            np.divide(whole[MEAN_Y], whole[N], centre[1], where=some)
            whole[MEAN_X] = whole[MEAN_Y] = 0.0
            self._scan(_add_squares, x, y, pair, whole, centre)
            _finish(whole, centre)
        return Track(whole, self._partial(x, y, pair))

    def _scan(self, add: Any, x: int, y: int, pair: int, whole: Floats, centre: Floats) -> None:
        for cover, group in zip(self.covers, self.groups.of_items, strict=True):
            rows, items = cover.rows, cover.items
            add(
                items.row, items.whole, group, rows.present, rows.count, rows.heavy,
                *_columns(rows, x), *_columns(rows, y), _cross(rows, pair), x, y, whole, centre,
            )  # fmt: skip

    def _partial(self, x: int, y: int, pair: int) -> Partial:
        cut = self.cut
        if x < 0 or not len(cut.n):
            nothing = np.zeros((8, len(cut.n)))
            return Partial(cut, nothing, nothing, nothing[0])
        numbers = self.numbers(x), self.numbers(y)
        cross = covariances(self.covers, cut, pair) if pair >= 0 else numbers[0][VARIANCE]
        need = np.uint32((1 << x) | (1 << y))
        has = (cut.present & need) == need
        if has.all():
            return Partial(cut, *numbers, cross)
        return Partial(cut.having(has), numbers[0][:, has], numbers[1][:, has], cross[has])


_NONE = np.zeros(0)


def _columns(rows: Any, feature: int) -> tuple[Floats, Floats, Floats, Floats]:
    if feature < 0:
        return _NONE, _NONE, _NONE, _NONE
    return rows.mean[:, feature], rows.m2[:, feature], rows.low[:, feature], rows.high[:, feature]


def _cross(rows: Any, pair: int) -> Floats:
    return _NONE if pair < 0 else rows.cross[:, pair]


@numba.njit(cache=True)
def _add_means(
    row: Any, wholly: Any, group: Any, present: Any, count: Any, heavy: Any, mean_x: Any, m2_x: Any,
    low_x: Any, high_x: Any, mean_y: Any, m2_y: Any, low_y: Any, high_y: Any, cross: Any,
    x: int, y: int, whole: Any, centre: Any,
) -> None:  # fmt: skip
    """First pass: counts, sums, ends of the wholly covered rows that have the features."""
    need = np.uint32(0)
    if x >= 0:
        need = np.uint32((1 << x) | (1 << y))
    for k in range(row.size):
        i = row[k]
        if not wholly[k] or (present[i] & need) != need:
            continue
        g = group[k]
        whole[0, g] += count[i]
        if x < 0:
            continue
        h = heavy[i]
        whole[1, g] += count[i] * mean_x[i]
        whole[3, g] = min(whole[3, g], low_x[h] if h >= 0 else mean_x[i])
        whole[4, g] = max(whole[4, g], high_x[h] if h >= 0 else mean_x[i])
        if y != x:
            whole[5, g] += count[i] * mean_y[i]


@numba.njit(cache=True)
def _add_squares(
    row: Any, wholly: Any, group: Any, present: Any, count: Any, heavy: Any, mean_x: Any, m2_x: Any,
    low_x: Any, high_x: Any, mean_y: Any, m2_y: Any, low_y: Any, high_y: Any, cross: Any,
    x: int, y: int, whole: Any, centre: Any,
) -> None:  # fmt: skip
    """Second pass: squares and products about the means of the first."""
    if x < 0:
        return
    need = np.uint32((1 << x) | (1 << y))
    for k in range(row.size):
        i = row[k]
        if not wholly[k] or (present[i] & need) != need:
            continue
        g, h, n = group[k], heavy[i], count[i]
        off = mean_x[i] - centre[0, g]
        whole[1, g] += n * off
        whole[2, g] += n * off * off + (m2_x[h] if h >= 0 else 0.0)
        if y != x:
            away = mean_y[i] - centre[1, g]
            whole[5, g] += n * away
            whole[6, g] += n * away * away + (m2_y[h] if h >= 0 else 0.0)
            whole[7, g] += n * off * away + (cross[h] if h >= 0 else 0.0)


@numba.njit(cache=True)
def _finish(whole: Any, centre: Any) -> None:
    """Moments about the centre into moments about the mean."""
    for g in range(whole.shape[1]):
        n = whole[0, g]
        if n == 0:
            continue
        off, away = whole[1, g] / n, whole[5, g] / n
        whole[1, g] = centre[0, g] + off
        whole[5, g] = centre[1, g] + away
        whole[2, g] = max(whole[2, g] - n * off * off, 0.0)
        whole[6, g] = max(whole[6, g] - n * away * away, 0.0)
        whole[7, g] -= n * off * away
