"""Leaves as sorted columns: what was observed, by region, time bin and bin of every feature.

Moments beyond the mean are kept only for leaves of more than one observation; a leaf of one *is*
its observation. Counts and ends survive any merging exactly, moments to 1e-12 (relative to the
size of the values that they are made of).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.sketch import leaf_moments, leaf_order
from geoflux.sketch.leaf_moments import EXACT, MISSING

__all__ = ["EXACT", "MISSING", "Leaves", "grouped", "merged", "of_rows", "regrouped", "total"]

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

_HEAVY = ("m2", "low", "high", "cross")
"""Columns that have rows only for leaves of more than one observation."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """One leaf per row, ascending by (region, time, grain, bins); keys are unique, except those of
    observations that have no bins yet (``EXACT``).

    ``m2``, ``low``, ``high`` and ``cross`` have rows only for leaves with ``count > 1``, in the
    same order; ``heavy`` gives the row. ``cross`` are the co-moments of the pairs of features, in
    the order of ``SketchSchema.pairs``. At grain ``g`` bin ``b`` stands for the bins ``b << g``
    up to ``(b + 1) << g``. Features that are ``MISSING`` have moments of 0.
    """

    region: Ints
    time: Ints
    grain: Bytes
    bins: Bytes
    count: Ints
    mean: Floats
    m2: Floats
    low: Floats
    high: Floats
    cross: Floats

    @classmethod
    def empty(cls, features: int) -> Leaves:
        """No leaves."""
        ints, rows = np.empty(0, np.int64), np.empty((0, features))
        pairs = np.empty((0, features * (features - 1) // 2))
        small = np.empty((0, features), np.uint8)
        return cls(ints, ints, small[:, 0], small, ints, rows, rows, rows, rows, pairs)

    def __len__(self) -> int:
        return int(self.region.size)

    @cached_property
    def heavy(self) -> Ints:
        """The row of each leaf in ``m2``, ``low``, ``high`` and ``cross``; -1 where count is 1."""
        return leaf_moments.heavy_rows(self.count)

    @property
    def features(self) -> int:
        """How many features there are."""
        return int(self.mean.shape[1])

    @property
    def rows(self) -> int:
        """How many observations the leaves stand for."""
        return int(self.count.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def between(self, first: int, last: int) -> Leaves:
        """Leaves ``first`` up to ``last``, as views of these."""
        before, within = (int(np.count_nonzero(self.count[a:b] > 1)) for a, b in
                          ((0, first), (first, last)))  # fmt: skip
        heavy = slice(before, before + within)
        return Leaves(**{
            field.name: getattr(self, field.name)[
                heavy if field.name in _HEAVY else slice(first, last)
            ]
            for field in fields(self)
        })  # fmt: skip

    def within(self, first_region: int, last_region: int) -> Leaves:
        """Leaves of a range of regions, both ends included, as views of these."""
        first = int(np.searchsorted(self.region, first_region, "left"))
        last = int(np.searchsorted(self.region, last_region, "right"))
        return self.between(first, last)

    def take(self, rows: npt.NDArray[Any]) -> Leaves:
        """Some of the leaves: a mask, or numbers in ascending order."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if chosen.size == len(self):
            return self
        heavy = self.heavy[chosen]
        heavy = heavy[heavy >= 0]
        columns = {
            field.name: np.take(getattr(self, field.name), chosen, axis=0) for field in fields(self)
            if field.name not in _HEAVY
        }  # fmt: skip
        return Leaves(
            **columns, **{name: np.take(getattr(self, name), heavy, axis=0) for name in _HEAVY}
        )

    @cached_property
    def lows(self) -> Floats:
        """The least value of every feature in every leaf, also of those of one observation."""
        return _spread(self.low, self.mean, self.count)

    @cached_property
    def highs(self) -> Floats:
        """The greatest value of every feature in every leaf."""
        return _spread(self.high, self.mean, self.count)

    def to_arrays(self, name: str = "") -> dict[str, npt.NDArray[Any]]:
        """All columns as flat arrays, each under ``name`` and its own."""
        return {f"{name}{field.name}": getattr(self, field.name).ravel() for field in fields(self)}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], features: int, name: str = ""
    ) -> Leaves:
        """What :meth:`to_arrays` gave, without copying."""
        pairs = features * (features - 1) // 2
        columns = {}
        for field in fields(cls):
            flat = arrays[f"{name}{field.name}"]
            if field.name in ("region", "time", "grain", "count"):
                columns[field.name] = flat
            elif field.name == "cross":
                many = arrays[f"{name}m2"].size // features
                columns[field.name] = flat.reshape(many, pairs)
            else:
                columns[field.name] = flat.reshape(-1, features)
        return cls(**columns)


def of_rows(region: Ints, time: Ints, bins: Bytes, values: Floats) -> Leaves:
    """Observations as leaves; a missing value is NaN, with the bin ``MISSING``."""
    n, features = values.shape
    no_rows = np.empty((0, features))
    rows = Leaves(
        region, time, np.zeros(n, np.uint8), bins, np.ones(n, np.int64),
        np.where(bins == MISSING, 0.0, values), no_rows, no_rows, no_rows,
        np.empty((0, features * (features - 1) // 2)),
    )  # fmt: skip
    return grouped(rows)


def grouped(leaves: Leaves) -> Leaves:
    """Leaves in whichever order, keys in any number, as leaves: sorted, equal keys merged."""
    words, exact = leaf_order.packed_bins(leaves.grain, leaves.bins)
    order = np.arange(len(leaves))
    places, count = leaf_order.places_in_order(leaves.region, leaves.time)
    if count < 0:
        order = _sorted(leaves, words, order)
    elif count < len(leaves):
        for word in words[::-1]:
            order = leaf_order.ordered_by(word, order)
        order = leaf_order.ordered_by(places, order)
    return _combined(leaves, words, exact, order)


def regrouped(leaves: Leaves, moved: npt.NDArray[np.bool_]) -> Leaves:
    """Leaves of which those that are marked have new keys, the others are in order still."""
    words, exact = leaf_order.packed_bins(leaves.grain, leaves.bins)
    some = _sorted(leaves, words, np.flatnonzero(moved))
    order = np.concatenate([some, np.flatnonzero(~moved)])
    ends = np.array([some.size, order.size])
    order = leaf_order.merged_order(leaves.region, leaves.time, words, order, ends)
    return _combined(leaves, words, exact, order)


def merged(parts: Sequence[Leaves]) -> Leaves:
    """Sorted leaves, oldest first, as one; equal keys are merged in that order."""
    parts = [part for part in parts if len(part)] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate([getattr(part, field.name) for part in parts])
               for field in fields(Leaves)]  # fmt: skip
    leaves = Leaves(*columns)
    words, exact = leaf_order.packed_bins(leaves.grain, leaves.bins)
    ends = np.cumsum([len(part) for part in parts])
    order = leaf_order.merged_order(leaves.region, leaves.time, words, np.arange(len(leaves)), ends)
    return _combined(leaves, words, exact, order)


def total(leaves: Leaves) -> Leaves:
    """All leaves as one (of the first one's key); none if there are none.

    Features that only some of the leaves have would be mixed up: give leaves of the same features.
    """
    n = len(leaves)
    if n == 0:
        return leaves
    return _gathered(leaves, np.arange(n), np.array([0, n]))


def _sorted(leaves: Leaves, words: Any, order: Ints) -> Ints:
    """Some rows in the order of their keys."""
    for word in words[::-1]:
        order = leaf_order.ordered_by(word, order)
    for column in (leaves.time, leaves.region):
        # With the sign turned round, whole numbers compare as unsigned ones do.
        order = leaf_order.ordered_by(column.view(np.uint64) ^ np.uint64(1 << 63), order)
    return order


def _combined(leaves: Leaves, words: Any, exact: Any, order: Ints) -> Leaves:
    starts = leaf_order.group_starts(leaves.region, leaves.time, words, exact, order)
    return _gathered(leaves, order, starts)


def _gathered(leaves: Leaves, order: Ints, starts: Ints) -> Leaves:
    count, mean, m2, low, high, cross = leaf_moments.combine(
        order, starts, leaves.count, leaves.heavy, leaves.mean,
        leaves.m2, leaves.low, leaves.high, leaves.cross,
    )  # fmt: skip
    region, time, grain, bins = leaf_order.keys_at(
        order[starts[:-1]], leaves.region, leaves.time, leaves.grain, leaves.bins
    )
    return Leaves(region, time, grain, bins, count, mean, m2, low, high, cross)


def _spread(some: Floats, others: Floats, count: Ints) -> Floats:
    out = others.copy()
    out[count > 1] = some
    return out
