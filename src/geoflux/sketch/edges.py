"""The edges of bins, per tree and feature, and which bin a value lies in.

Bin ``b`` holds the values with ``values[t, f, b] <= v < values[t, f, b + 1]``; the first edge is
-inf and the last +inf, so that every number has a bin. Edges of a tree never change once they are
set, except that all its bins may be halved, together with its leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.leaf_moments import EXACT, MISSING

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]

_LINE = 32
"""So many edges are compared in one go: guessing a branch wrong costs more than comparing them."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of T trees (in ascending order of their codes) and F features.

    >>> edges = Edges.empty(trees=1, features=1, max_bins=4).set_tree(0, [np.array([1.0, 2.0])])
    >>> edges.of(0, 0)
    array([-inf,   1.,   2.,  inf])
    >>> bins_of(edges, np.zeros(4, np.int64), np.array([[0.5], [1.0], [7.0], [np.nan]])).ravel()
    array([  0,   1,   2, 255], dtype=uint8)
    """

    values: Floats
    """[T, F, B + 1], ascending; unused entries are +inf."""
    counts: npt.NDArray[np.int16]
    """[T, F], the number of bins; 0 where the tree is not quantised yet."""

    @classmethod
    def empty(cls, trees: int, features: int, max_bins: int) -> Edges:
        """Trees that are not quantised yet."""
        return cls(
            np.full((trees, features, max_bins + 1), np.inf),
            np.zeros((trees, features), np.int16),
        )

    @property
    def quantised(self) -> npt.NDArray[np.bool_]:
        """Of each tree, whether it has edges."""
        return np.asarray(self.counts[:, 0] > 0)

    @property
    def bytes_resident(self) -> int:
        return int(self.values.nbytes + self.counts.nbytes)

    def of(self, tree: int, feature: int) -> Floats:
        """The edges of one feature, from -inf to +inf; empty when not quantised yet."""
        count = int(self.counts[tree, feature])
        return self.values[tree, feature, : count + 1] if count else np.empty(0)

    def bounds(self, tree: int, feature: int, bins: Any, grain: Any = 0) -> tuple[Floats, Floats]:
        """Where bins that are coarser by 2**grain begin and end."""
        count = int(self.counts[tree, feature])
        first = np.asarray(bins, np.int64) << np.asarray(grain, np.int64)
        last = (np.asarray(bins, np.int64) + 1) << np.asarray(grain, np.int64)
        row = self.values[tree, feature]
        return row[np.minimum(first, count)], row[np.minimum(last, count)]

    def set_tree(self, tree: int, inner: list[Floats]) -> Edges:
        """With the inner edges (without the infinite ones) of all features of one tree."""
        values, counts = self.values.copy(), self.counts.copy()
        for feature, edges in enumerate(inner):
            values[tree, feature] = np.inf
            values[tree, feature, 0] = -np.inf
            values[tree, feature, 1 : edges.size + 1] = edges
            counts[tree, feature] = edges.size + 1
        return replace(self, values=values, counts=counts)

    def halved(self, trees: npt.NDArray[np.bool_]) -> Edges:
        """Two neighbouring bins of the trees that are marked become one: bin b becomes b >> 1."""
        values, counts = self.values.copy(), self.counts.copy()
        counts[trees] = (counts[trees] + 1) // 2
        values[trees] = np.inf
        kept = self.values[trees][:, :, ::2]
        values[np.flatnonzero(trees)[:, None], :, np.arange(kept.shape[2])] = kept.swapaxes(1, 2)
        return replace(self, values=values, counts=counts)

    def cut(self, which: npt.NDArray[Any]) -> Edges:
        """The trees of a mask or of a list of positions; position -1 is a new tree."""
        chosen = _positions(which)
        values, counts = self.values[chosen], self.counts[chosen]
        values[chosen < 0] = np.inf
        counts[chosen < 0] = 0
        return replace(self, values=values, counts=counts)

    def joined(self, other: Edges, order: Indexes | None = None) -> Edges:
        """These trees and then the other's; ``order`` puts them into another order."""
        edges = Edges(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.counts, other.counts]),
        )
        return edges if order is None else edges.cut(order)

    def to_arrays(self, prefix: str = "edges.") -> dict[str, npt.NDArray[Any]]:
        return {prefix + "values": self.values, prefix + "counts": self.counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "edges.") -> Edges:
        """What :meth:`to_arrays` gave."""
        return cls(arrays[prefix + "values"], arrays[prefix + "counts"])


def _positions(which: npt.NDArray[Any]) -> Indexes:
    return np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64)


def bins_of(edges: Edges, tree_index: Indexes, values: Floats) -> npt.NDArray[np.uint8]:
    """The bin of each value [n, F]; NaN is MISSING, what is not quantised yet is EXACT."""
    return np.asarray(
        _bins_of(edges.values, edges.counts, tree_index, np.ascontiguousarray(values)), np.uint8
    )


@numba.njit(cache=True)
def _bins_of(edges: Any, counts: Any, tree_index: Any, values: Any) -> Any:
    rows, features = values.shape
    out = np.empty((rows, features), np.uint8)
    for i in range(rows):
        tree = tree_index[i]
        for f in range(features):
            value = values[i, f]
            count = np.int64(counts[tree, f])
            if value != value:
                out[i, f] = MISSING
            elif count == 0:
                out[i, f] = EXACT
            else:
                row = edges[tree, f]
                first = np.int64(0)
                while count > _LINE:
                    half = count >> 1
                    if row[first + half] <= value:
                        first += half
                    count -= half
                low = first
                for k in range(first + 1, first + count):
                    low += row[k] <= value
                out[i, f] = low
    return out
