"""A forest made ready for queries: which regions and times it has, and summaries of its leaves.

``Rows`` are leaves, or groups of leaves, with their moments. A view holds the leaves themselves,
one summary row per region, time bin and set of features that are there, and one per region and set
of features; the latter two are made when they are first needed. Queries that ask nothing of the
features touch summaries only. Within a row all observations have the same features, so that sums
over the rows that have two features are sums over the observations that have both.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.leaves import MISSING, Leaves
from geoflux.sketch.region_cover import Cells, cells_of
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.time_cover import Combs, combs_of

if TYPE_CHECKING:
    from geoflux.sketch.forest import Forest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Moments by row; rows ascend by region, then by time. ``region`` and ``time`` are numbers of
    the view's regions and times, ``first[r]`` to ``first[r + 1]`` the rows of region ``r``.
    ``present`` has bit ``f`` set where feature ``f`` is there. ``m2``, ``low``, ``high`` and
    ``cross`` have entry ``heavy[i]`` for row ``i``; -1: it is one observation, its mean."""

    region: npt.NDArray[np.int32]
    time: npt.NDArray[np.int32]
    first: Ints
    present: npt.NDArray[np.uint32]
    count: Ints
    mean: Floats
    heavy: Ints
    m2: Floats
    low: Floats
    high: Floats
    cross: Floats


class View:
    """What queries read of a forest. Nothing in it changes; make another for another forest."""

    def __init__(self, forest: Forest) -> None:
        # Not the forest itself, so that a view can be kept as long as its forest lives.
        self.schema: SketchSchema = forest.schema
        self.trees, self.edges = forest.trees, forest.edges
        self.densities, self.sets = forest.densities, forest.sets
        self.order = forest.order
        self.leaves: Leaves = forest.leaves()
        self.regions, region = np.unique(self.leaves.region, return_inverse=True)
        self.times, time = np.unique(self.leaves.time, return_inverse=True)
        self._region = region.astype(np.int32)
        self._time = time.astype(np.int32)

    @cached_property
    def cells(self) -> Cells:
        """The regions as boxes in degrees."""
        return cells_of(self.regions, self.schema.region_bits)

    @cached_property
    def combs(self) -> Combs:
        """The time bins as stretches of days."""
        return combs_of(self.times)

    @cached_property
    def tree(self) -> Ints:
        """The number of the tree of each leaf, in the forest's order."""
        prefix = self.regions >> (self.schema.region_bits - self.schema.tree_bits)
        return np.searchsorted(self.trees, prefix)[self._region]

    @cached_property
    def rows(self) -> Rows:
        """The leaves as rows."""
        leaves = self.leaves
        bits = (1 << np.arange(len(self.schema.features))).astype(np.uint32)
        present = (leaves.bins != MISSING) @ bits
        first = np.searchsorted(self._region, np.arange(len(self.regions) + 1))
        return Rows(
            self._region, self._time, first, present.astype(np.uint32), leaves.count, leaves.mean,
            leaves.heavy, leaves.m2, leaves.low, leaves.high, leaves.cross,
        )  # fmt: skip

    @cached_property
    def summary(self) -> Rows:
        """One row per region, time bin and set of features."""
        return summarised(self.rows, len(self.regions), by_time=True)

    @cached_property
    def totals(self) -> Rows:
        """One row per region and set of features, over all times; their ``time`` is 0."""
        return summarised(self.summary, len(self.regions), by_time=False)


_VIEWS: weakref.WeakKeyDictionary[Forest, View] = weakref.WeakKeyDictionary()


def view_of(forest: Forest) -> View:
    """The view of a forest, made once and kept as long as the forest lives."""
    held = _VIEWS.get(forest)
    if held is None:
        held = _VIEWS[forest] = View(forest)
    return held


def summarised(rows: Rows, regions: int, by_time: bool) -> Rows:
    """Rows merged by region (and time) and set of features; counts, lows and highs exactly."""
    time = rows.time if by_time else np.zeros_like(rows.time)
    order = np.arange(len(rows.count))
    if len(order) and (rows.present != rows.present[0]).any():
        order = np.lexsort((rows.present, time, rows.region))
    keys = (rows.region[order], time[order], rows.present[order])
    new = np.ones(len(order), bool)
    new[1:] = False
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    starts = np.append(np.flatnonzero(new), len(order))
    count = np.add.reduceat(rows.count[order], starts[:-1]) if len(order) else rows.count
    heavy = np.where(count > 1, np.cumsum(count > 1) - 1, -1)
    features, pairs = rows.mean.shape[1], rows.cross.shape[1]
    sizes = (len(count), int((count > 1).sum()))
    # One feature's numbers lie side by side: most queries read one or two of them.
    mean = np.zeros((features, sizes[0])).T
    m2, low, high = (np.zeros((features, sizes[1])).T for _ in range(3))
    cross = np.zeros((pairs, sizes[1])).T
    _merge_rows(
        order, starts, rows.count, rows.mean, rows.heavy, rows.m2, rows.low, rows.high, rows.cross,
        count, heavy, mean, m2, low, high, cross,
    )  # fmt: skip
    region, when, present = (key[starts[:-1]] for key in keys)
    first = np.searchsorted(region, np.arange(regions + 1))
    return Rows(region, when, first, present, count, mean, heavy, m2, low, high, cross)


@numba.njit(cache=True)
def _merge_rows(
    order: Any, starts: Any, count: Any, mean: Any, heavy: Any, m2: Any, low: Any, high: Any,
    cross: Any, counts: Any, heavies: Any, means: Any, m2s: Any, lows: Any, highs: Any,
    crosses: Any,
) -> None:  # fmt: skip
    """Rows ``order[starts[g]]`` to ``order[starts[g + 1]]`` into group ``g``, in two passes."""
    features = mean.shape[1]
    for g in range(counts.size):
        for f in range(features):
            at = mean[order[starts[g]], f]
            shift = 0.0
            for k in range(starts[g], starts[g + 1]):
                i = order[k]
                shift += count[i] * (mean[i, f] - at)
            means[g, f] = at + shift / counts[g]
        to = heavies[g]
        if to < 0:
            continue
        for f in range(features):
            lows[to, f], highs[to, f] = np.inf, -np.inf
        for k in range(starts[g], starts[g + 1]):
            i = order[k]
            at = heavy[i]
            pair = 0
            for f in range(features):
                off = mean[i, f] - means[g, f]
                m2s[to, f] += count[i] * off * off + (m2[at, f] if at >= 0 else 0.0)
                lows[to, f] = min(lows[to, f], low[at, f] if at >= 0 else mean[i, f])
                highs[to, f] = max(highs[to, f], high[at, f] if at >= 0 else mean[i, f])
                for other in range(f + 1, features):
                    away = mean[i, other] - means[g, other]
                    crosses[to, pair] += count[i] * off * away
                    crosses[to, pair] += cross[at, pair] if at >= 0 else 0.0
                    pair += 1
