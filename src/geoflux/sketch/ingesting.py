"""A batch into a sketchlet: trees that appear, densities, bins, leaves, sets, and bins for trees
that have become steady.

Nothing here depends on which other trees the sketchlet holds: whether its trees are in one
sketchlet or in many, the same batches make the same bins and leaves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geoflux.sketch import quantising, times, vertices
from geoflux.sketch.edges import Edges, bins_of
from geoflux.sketch.layers import appended
from geoflux.sketch.leaves import EXACT, Ints, Leaves, grouped, merged, of_rows
from geoflux.sketch.mixtures import Densities
from geoflux.sketch.observations import Observations
from geoflux.sketch.schema import SketchSchema
from geoflux.spatial import geohash

if TYPE_CHECKING:
    from geoflux.sketch.forest import Forest

FIRST_ORDER = 1 << 14
"""Leaves before the order of features is measured; then again whenever they have doubled."""


def ingested(forest: Forest, batch: Observations) -> Forest:
    """The forest with a batch."""
    if len(batch) == 0:
        return forest
    schema = forest.schema
    if batch.values.shape[1] != len(schema.features):
        raise ValueError(
            f"rows have {batch.values.shape[1]} values, but the sketch has "
            f"{len(schema.features)} features: {', '.join(schema.features)}"
        )
    values = batch.finite_values
    region = geohash.codes(batch.x, batch.y, schema.region_bits)
    tree = region >> (schema.region_bits - schema.tree_bits)
    forest = _with_trees(forest, tree)
    index = np.searchsorted(forest.trees, tree)
    bins = bins_of(forest.edges, index, values)
    key = times.keys_of(batch.time, schema.level)
    layers, fresh = forest.layers, forest.fresh
    steady = forest.edges.quantised[index]
    if steady.all():
        layers = appended(layers, of_rows(region, key, bins, values), *schema.room)
    else:
        some = _some_rows(steady, region, key, bins, values)
        layers = appended(layers, some, *schema.room)
        fresh = appended(fresh, _some_rows(~steady, region, key, bins, values))
    forest = replace(
        forest, layers=layers, fresh=fresh,
        densities=forest.densities.updated(index, values),
        sets=forest.sets.updated(tree, batch.time, values),
        rows=forest.rows + np.bincount(index, minlength=forest.trees.size),
        latest=max(forest.latest, int(batch.time.max())),
    )  # fmt: skip
    due = np.flatnonzero(~forest.edges.quantised & (forest.rows >= schema.steady_rows))
    return _in_order(quantised(forest, due) if due.size else forest)


def quantised(forest: Forest, which: Ints) -> Forest:
    """With bins of equal mass for some trees (by position), their leaves put into these bins."""
    schema = forest.schema
    edges = quantising.quantised(
        forest.edges, forest.densities, which, bins_for(schema, forest.densities, which)
    )
    leaves = merged([*forest.fresh, Leaves.empty(len(schema.features))])
    index = np.searchsorted(forest.trees, leaves.region >> (schema.region_bits - schema.tree_bits))
    mine = np.isin(index, which)
    now = leaves.take(mine)
    exact = now.bins == EXACT
    found = bins_of(edges, index[mine], np.where(exact, now.mean, np.nan))
    made = grouped(replace(now, bins=np.where(exact, found, now.bins)))
    rest = leaves.take(~mine)
    return replace(
        forest, edges=edges, layers=appended(forest.layers, made, *schema.room),
        fresh=(rest,) if len(rest) else (),
    )  # fmt: skip


def bins_for(schema: SketchSchema, densities: Densities, which: Ints) -> npt.NDArray[np.int64]:
    """How many bins each feature of some trees gets, by what is known of that tree alone."""
    spans = densities.high[which] - densities.low[which]
    if schema.spans is not None:
        spans = np.array(schema.spans)
    return quantising.bins_wanted(densities, which, schema.max_bins, spans=spans)


def _some_rows(chosen: Any, region: Ints, key: Ints, bins: Any, values: Any) -> Leaves:
    return of_rows(region[chosen], key[chosen], bins[chosen], values[chosen])


def _with_trees(forest: Forest, tree: Ints) -> Forest:
    """With the trees that appear in a batch."""
    seen = _distinct(tree)
    new = seen[~np.isin(seen, forest.trees)]
    if new.size == 0:
        return forest
    schema = forest.schema
    trees = np.concatenate([forest.trees, new])
    order = np.argsort(trees, kind="stable")
    features = len(schema.features)
    return replace(
        forest, trees=trees[order],
        rows=np.concatenate([forest.rows, np.zeros(new.size, np.int64)])[order],
        edges=forest.edges.joined(Edges.empty(new.size, features, schema.max_bins), order),
        densities=forest.densities.joined(
            Densities.empty(new.size, features, schema.components, forest.densities.scale), order
        ),
    )  # fmt: skip


def _distinct(tree: Ints) -> Ints:
    """Trees of a batch, ascending. Rows of a tree often follow each other, so look at changes."""
    changes = tree[np.flatnonzero(np.diff(tree, prepend=tree[0] - 1))]
    return np.unique(changes)


def _in_order(forest: Forest) -> Forest:
    """Measure the order of features again when there are twice as many leaves as last time."""
    count = sum(len(layer) for layer in (*forest.layers, *forest.fresh))
    if count < FIRST_ORDER or count < 2 * forest.measured:
        return forest
    largest = max((*forest.layers, *forest.fresh), key=len)
    return replace(forest, order=vertices.best_order(largest), measured=count)
