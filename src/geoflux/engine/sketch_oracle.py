"""What a sketch should hold, the slow way: all rows, sorted by region and time bin, and added up.

Shares neither bins nor merging with the sketch; only what a region and a time bin is. Time bins
fold when they are old, and rows that come late lie beside what was folded: so rows and leaves are
compared by the coarsest bin of their region that the sketch has for their time.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.sketch import times
from geoflux.sketch.leaves import MISSING, Leaves
from geoflux.sketch.observations import Observations
from geoflux.sketch.schema import SketchSchema
from geoflux.spatial import geohash

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Places:
    """Region and time bin of every group, and the group of every row and of every leaf."""

    region: Ints
    time: Ints
    of_rows: Ints
    of_leaves: Ints

    @classmethod
    def of(cls, schema: SketchSchema, rows: Observations, leaves: Leaves) -> Places:
        """Groups by the coarsest bins that the leaves have."""
        region = geohash.codes(rows.x, rows.y, schema.region_bits)
        regions = np.unique(leaves.region)
        bins = np.unique(leaves.time)
        held = np.unique(_pairs(regions, bins, leaves.region, leaves.time))
        row_bin, leaf_bin = times.keys_of(rows.time, schema.level), leaves.time.copy()
        row_done, leaf_done = (np.zeros(keys.size, np.bool_) for keys in (row_bin, leaf_bin))
        for level in sorted(set(times.levels(bins).tolist()), reverse=True):
            for keys, where, done in (
                (row_bin, region, row_done), (leaf_bin, leaves.region, leaf_done)
            ):  # fmt: skip
                coarser = times.folded(keys, level)
                found = np.isin(_pairs(regions, bins, where, coarser), held) & ~done
                keys[found], done[found] = coarser[found], True
        both = np.stack(
            [np.concatenate([region, leaves.region]), np.concatenate([row_bin, leaf_bin])]
        )
        order = np.lexsort(both[::-1])
        new = np.r_[True, (np.diff(both[:, order], axis=1) != 0).any(axis=0)][: order.size]
        group = np.empty(order.size, np.int64)
        group[order] = np.cumsum(new) - 1
        first = order[new]
        return cls(both[0, first], both[1, first], group[: len(rows)], group[len(rows) :])

    def __len__(self) -> int:
        return int(self.region.size)


def _pairs(regions: Ints, bins: Ints, region: Ints, time: Ints) -> Ints:
    """Region and bin as one number; -1 where there is no such region or bin."""
    if not regions.size:
        return np.full(region.size, -1)
    r = np.minimum(np.searchsorted(regions, region), regions.size - 1)
    t = np.minimum(np.searchsorted(bins, time), bins.size - 1)
    there = (regions[r] == region) & (bins[t] == time)
    return np.where(there, r * bins.size + t, -1)


@dataclass(frozen=True, eq=False)
class Parts:
    """What is added up: rows, or leaves, each with the group that it belongs to."""

    group: Ints
    groups: int
    count: Ints
    here: Flags
    mean: Floats
    low: Floats
    high: Floats
    m2: Floats
    cross: Floats

    @classmethod
    def of_rows(cls, rows: Observations, places: Places) -> Parts:
        """Every row is one observation."""
        values = rows.finite_values
        here = ~np.isnan(values)
        plain = np.where(here, values, 0.0)
        ones, none = np.ones(len(rows), np.int64), np.zeros((1, 1))
        pairs = values.shape[1] * (values.shape[1] - 1) // 2
        return cls(
            places.of_rows, len(places), ones, here, plain, plain, plain,
            np.broadcast_to(none, plain.shape), np.broadcast_to(none, (len(rows), pairs)),
        )  # fmt: skip

    @classmethod
    def of_leaves(cls, leaves: Leaves, places: Places) -> Parts:
        """Leaves have several; those of one have no moments of their own."""
        many = leaves.heavy >= 0
        m2 = np.zeros_like(leaves.mean)
        m2[many] = leaves.m2
        cross = np.zeros((len(leaves), leaves.cross.shape[1]))
        cross[many] = leaves.cross
        return cls(
            places.of_leaves, len(places), leaves.count, leaves.bins != MISSING, leaves.mean,
            leaves.lows, leaves.highs, m2, cross,
        )  # fmt: skip

    def counts(self, feature: int | None = None) -> Ints:
        """Observations of each group; those that have a feature."""
        which = self.count if feature is None else np.where(self.here[:, feature], self.count, 0)
        return _sums(self.group, which, self.groups).astype(np.int64)

    def ends(self, feature: int) -> tuple[Floats, Floats]:
        """The least and the greatest value of each group."""
        some = self.here[:, feature]
        low, high = np.full(self.groups, np.inf), np.full(self.groups, -np.inf)
        np.minimum.at(low, self.group[some], self.low[some, feature])
        np.maximum.at(high, self.group[some], self.high[some, feature])
        return low, high

    def means(self, feature: int, some: Flags) -> tuple[Floats, Floats]:
        """Mean of a feature by group over some of the parts, and how far each part is from it."""
        group, value = self.group[some], self.mean[some, feature]
        n = self.count[some]
        total = np.maximum(_sums(group, n, self.groups), 1)
        mean = _sums(group, n * value, self.groups) / total
        mean += _sums(group, n * (value - mean[group]), self.groups) / total  # what rounding lost
        return mean, value - mean[group]

    def product(self, first: int, second: int, own: Floats) -> Floats:
        """The sum over each group of the products of two features' distances from their means, over
        what has both; ``own`` is what the parts bring along."""
        some = self.here[:, first] & self.here[:, second]
        group = self.group[some]
        _, one = self.means(first, some)
        other = one if first == second else self.means(second, some)[1]
        return _sums(group, self.count[some] * one * other + own[some], self.groups)


def _sums(group: Ints, values: npt.NDArray[np.generic], groups: int) -> Floats:
    return np.bincount(group, values, minlength=groups).astype(np.float64)


def differing(should: Parts, there: Parts) -> dict[str, Flags]:
    """By what is wrong (``ends``, ``mean``, ``spread``, ``products``), the groups in which it is;
    only of groups that have as many observations as they should."""
    features = range(should.mean.shape[1])
    wrong = {name: np.zeros(should.groups, np.bool_) for name in ("ends", "mean", "spread",
                                                                 "products")}  # fmt: skip
    size, wide = np.zeros((2, len(features), should.groups))
    n = should.counts()
    same = n == there.counts()
    for f in features:
        wrong["ends"] |= should.counts(f) != there.counts(f)
        (low, high), (least, most) = should.ends(f), there.ends(f)
        wrong["ends"] |= (low != least) | (high != most)
        known = low <= high
        size[f] = np.where(known, np.maximum(np.abs(low), np.abs(high)), 0.0)
        wide[f] = np.where(known, high - np.where(known, low, 0.0), 0.0)
        mine, theirs = (parts.means(f, parts.here[:, f])[0] for parts in (should, there))
        wrong["mean"] |= np.abs(mine - theirs) > TOLERANCE * size[f]
        limit = TOLERANCE * n * (2 * size[f] * wide[f] + TOLERANCE * size[f] ** 2)
        squares = should.product(f, f, should.m2[:, f]) - there.product(f, f, there.m2[:, f])
        wrong["spread"] |= ~(np.abs(squares) <= limit)
    for number, (a, b) in enumerate(itertools.combinations(features, 2)):
        limit = TOLERANCE * n * (
            size[a] * wide[b] + size[b] * wide[a] + TOLERANCE * size[a] * size[b]
        )  # fmt: skip
        products = should.product(a, b, should.cross[:, number])
        wrong["products"] |= ~(np.abs(products - there.product(a, b, there.cross[:, number]))
                               <= limit)  # fmt: skip
    return {name: which & same for name, which in wrong.items()}
