"""The sketchlet: the trees of one partition, with their leaves, bins, densities and sets.

A value: every change gives a new forest, which shares with the old one what did not change. Bins,
densities and sets belong to a tree and move with it, and no tree is ever cut: so whatever is split
and joined again is the same, counts and ends exactly, moments to 1e-12 (Synopsis, 3.2 to 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.errors import StateError
from geoflux.sketch import folding, vertices
from geoflux.sketch.bounding import bounded
from geoflux.sketch.edges import Edges
from geoflux.sketch.forest_arrays import forest_from_arrays, forest_to_arrays
from geoflux.sketch.ingesting import ingested, quantised
from geoflux.sketch.layers import Layers, paired
from geoflux.sketch.leaves import Ints, Leaves, merged
from geoflux.sketch.mixtures import Densities
from geoflux.sketch.observations import Observations
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.sets import Sets
from geoflux.sketch.times import Ages

__all__ = ["Forest", "Observations"]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees in ascending order of their codes, and all that was observed in them.

    ``layers`` are leaves of trees that have bins, ``fresh`` those of trees that have not yet
    (observations at full resolution); newest last. ``rows`` counts the observations of each tree.
    ``order`` is the order of the features in the graph, measured when the sketch had ``measured``
    leaves.
    """

    schema: SketchSchema
    trees: Ints
    edges: Edges
    densities: Densities
    sets: Sets
    layers: Layers
    fresh: Layers
    rows: Ints
    latest: int
    order: tuple[int, ...]
    measured: int = 0

    @classmethod
    def empty(cls, schema: SketchSchema) -> Forest:
        """Nothing observed yet."""
        features = len(schema.features)
        none = np.empty(0, np.int64)
        return cls(
            schema, none, Edges.empty(0, features, schema.max_bins),
            Densities.empty(0, features, schema.components), Sets.empty(schema),
            (), (), none, -(1 << 60), tuple(range(features)),
        )  # fmt: skip

    def ingest(self, batch: Observations) -> Forest:
        """With a batch of observations."""
        return ingested(self, batch)

    def leaves(self) -> Leaves:
        """All layers as one; made once."""
        return self._leaves

    @cached_property
    def _leaves(self) -> Leaves:
        return merged([*self.layers, *self.fresh, Leaves.empty(len(self.schema.features))])

    @property
    def leaf_count(self) -> int:
        """Leaves of all layers; some of them may have the same key."""
        return sum(len(layer) for layer in (*self.layers, *self.fresh))

    @property
    def observations(self) -> int:
        """How many observations there were."""
        return int(self.rows.sum())

    @property
    def bytes(self) -> int:
        """Bytes of all that is kept."""
        layers = sum(layer.nbytes for layer in (*self.layers, *self.fresh))
        return int(
            layers + self.trees.nbytes + self.rows.nbytes + self.edges.bytes_resident
            + self.densities.bytes_resident + self.sets.bytes_resident
        )  # fmt: skip

    def cut(self, code: int, bits: int) -> Forest:
        """The trees within a geohash prefix of at most ``tree_bits`` bits."""
        schema = self.schema
        if not 0 <= bits <= schema.tree_bits:
            raise ValueError(
                f"trees are not cut: a prefix has 0 to {schema.tree_bits} bits, not {bits}"
            )
        within = self.trees >> (schema.tree_bits - bits) == code
        wide = schema.region_bits - bits
        first, last = code << wide, ((code + 1) << wide) - 1
        return replace(
            self, trees=self.trees[within], rows=self.rows[within],
            edges=self.edges.cut(within), densities=self.densities.cut(within),
            sets=self.sets.cut(self.trees[within]),
            layers=tuple(layer.within(first, last) for layer in self.layers),
            fresh=tuple(layer.within(first, last) for layer in self.fresh),
        )  # fmt: skip

    def joined(self, other: Forest) -> Forest:
        """With the trees of another sketchlet, none of which may be here already."""
        if self.schema != other.schema:
            raise StateError("two sketches of different schemas cannot be joined; make one anew")
        trees = np.concatenate([self.trees, other.trees])
        order = np.argsort(trees, kind="stable")
        trees = trees[order]
        if (trees[1:] == trees[:-1]).any():
            twice = trees[1:][trees[1:] == trees[:-1]]
            raise StateError(
                f"{twice.size} trees are in both sketches, which would be counted twice (the first "
                f"is {twice[0]}); join sketches of different prefixes"
            )
        larger = self if self.leaf_count >= other.leaf_count else other
        return replace(
            self, trees=trees, rows=np.concatenate([self.rows, other.rows])[order],
            edges=self.edges.joined(other.edges, order),
            densities=self.densities.joined(other.densities, order),
            sets=self.sets.joined(other.sets),
            layers=paired(self.layers, other.layers), fresh=paired(self.fresh, other.fresh),
            latest=max(self.latest, other.latest),
            order=larger.order, measured=larger.measured,
        )  # fmt: skip

    def folded(self, now: int, ages: Ages | None = None) -> Forest:
        """Time bins that are older than the age of their level become ones of the next level.

        Sets fold with them, into about a week, four weeks and a year, as hours, weeks and months
        do: what they say of a time is then said of the whole stretch.
        """
        every = ages or Ages()
        forest = self._aged(lambda leaves: folding.folded(leaves, now, every))
        sets = folding.folded_sets(forest.sets, now, every)
        return forest if sets is forest.sets else replace(forest, sets=sets)

    def thinned(self, now: int, length_of_study: int) -> Forest:
        """Bins older than the length of study (in seconds) merge further and further."""
        last = self.schema.last_grain
        return self._aged(lambda leaves: folding.thinned(leaves, now, length_of_study, last))

    def aged(self, now: int, ages: Ages, length_of_study: int) -> Forest:
        """Folded and then thinned, at the cost of one of them.

        All leaves are looked at and copied: do it when the sketch has grown by a quarter, say, and
        not after every batch.
        """
        last = self.schema.last_grain
        forest = self._aged(lambda leaves: folding.aged(leaves, now, ages, length_of_study, last))
        return replace(forest, sets=folding.folded_sets(forest.sets, now, ages))

    def _aged(self, change: Callable[[Leaves], Leaves]) -> Forest:
        """A change of old keys; layers become one, since leaves of all of them then meet."""
        layers, fresh = (
            tuple(change(layer) for layer in part) for part in (self.layers, self.fresh)
        )
        if all(a is b for a, b in zip((*layers, *fresh), (*self.layers, *self.fresh), strict=True)):
            return self
        return replace(self, layers=self._bounded(layers), fresh=_one(fresh))

    def compacted(self) -> Forest:
        """All layers as one, for a sketch that is read and not written for a while."""
        return replace(self, layers=self._bounded(self.layers), fresh=_one(self.fresh))

    def in_one_layer(self) -> Forest:
        """The very same leaves, sorted once and for all."""
        return replace(self, layers=_one(self.layers), fresh=_one(self.fresh))

    def _bounded(self, layers: Layers) -> Layers:
        return tuple(bounded(layer, *self.schema.room) for layer in _one(layers))

    def quantised(self) -> Forest:
        """With bins for all trees, also those that are not steady yet."""
        which = np.flatnonzero(~self.edges.quantised)
        return quantised(self, which) if which.size else self

    def halved(self, tree: int) -> Forest:
        """With half as many bins for one tree, to save memory; its leaves merge with them."""
        place = int(np.searchsorted(self.trees, tree))
        if place == self.trees.size or self.trees[place] != tree:
            raise ValueError(f"there is no tree {tree} here; there are {self.trees.size} others")
        if not self.edges.quantised[place]:
            return self
        wide = self.schema.region_bits - self.schema.tree_bits
        first, last = tree << wide, ((tree + 1) << wide) - 1
        chosen = np.arange(self.trees.size) == place
        layers = tuple(folding.halved(layer, first, last) for layer in self.layers)
        return replace(self, edges=self.edges.halved(chosen), layers=layers)

    def vertices(self, order: Sequence[int] | None = None) -> vertices.GraphSize:
        """Vertices, edges and leaves of the graph with the features in an order.

        Trees without bins count their distinct values, so the sketch at full resolution is one
        that was made with ``steady_rows`` out of reach.
        """
        shift = self.schema.region_bits - self.schema.tree_bits
        return vertices.graph_size(self.leaves(), shift, self.order if order is None else order)

    def best_order(self) -> tuple[int, ...]:
        """The order of features with the fewest vertices, as measured now."""
        return vertices.best_order(self.leaves())

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As flat arrays by name, for a segment; the schema is not among them."""
        return forest_to_arrays(self)

    @classmethod
    def from_arrays(cls, schema: SketchSchema, arrays: Mapping[str, npt.NDArray[Any]]) -> Forest:
        """What :meth:`to_arrays` gave; leaves are views of the arrays."""
        return cls(schema, **forest_from_arrays(schema, arrays))


def _one(layers: Layers) -> Layers:
    return (merged(layers),) if layers else ()
