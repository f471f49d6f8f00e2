"""Raw rows, a sketch of them, and what queries must answer: brute force over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from geoflux.sketch import times
from geoflux.sketch.edges import Edges, bins_of
from geoflux.sketch.leaves import of_rows
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.scope import Box, Circle, Prefix, Scope
from geoflux.spatial import geohash


@dataclass(frozen=True)
class Raw:
    """Observations as they came."""

    x: np.ndarray
    y: np.ndarray
    time: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Any) -> Raw:
        return Raw(self.x[rows], self.y[rows], self.time[rows], self.values[rows])


def some_rows(seed: int, n: int, features: int, missing: float = 0.0, hours: int = 72) -> Raw:
    """Rows around a few places, with features that hang together and change with the place."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-20, 20, n)
    y = rng.uniform(30, 60, n)
    time = rng.integers(1_774_483_200, 1_774_483_200 + hours * 3600, n)
    base = rng.normal(size=(n, features)) + 0.1 * y[:, None] + np.sin(time / 20000)[:, None]
    values = base @ (np.eye(features) + 0.4) + 280
    values[rng.random(values.shape) < missing] = np.nan
    return Raw(x, y, time, values)


def sketch_of(raw: Raw, schema: SketchSchema, bins: int = 6, keys: Any = None) -> Any:
    """A forest with edges of equal mass by tree; what queries read of one. ``keys``: other time
    bins than those of the schema."""
    region = geohash.codes(raw.x, raw.y, schema.region_bits)
    prefix = region >> (schema.region_bits - schema.tree_bits)
    trees, tree = np.unique(prefix, return_inverse=True)
    edges = Edges.empty(len(trees), len(schema.features), schema.max_bins)
    for t in range(len(trees)):
        inner = []
        for f in range(len(schema.features)):
            values = raw.values[tree == t, f]
            values = values[~np.isnan(values)]
            asked = np.arange(1, bins) / bins
            inner.append(np.unique(np.quantile(values, asked)) if len(values) else np.zeros(1))
        edges = edges.set_tree(t, inner)
    keys = times.keys_of(raw.time, schema.level) if keys is None else keys
    leaves = of_rows(region, keys, bins_of(edges, tree.astype(np.int64), raw.values), raw.values)
    return Sketch(
        schema=schema,
        trees=trees,
        edges=edges,
        densities=None,
        sets=None,
        order=tuple(range(len(schema.features))),
        leaves=lambda: leaves,
    )


class Sketch(SimpleNamespace):
    """A forest's attributes; the same object is the same sketch."""

    __hash__ = object.__hash__


def matching(raw: Raw, scope: Scope, schema: SketchSchema) -> np.ndarray:
    """Which rows a scope means, row by row."""
    found = np.ones(len(raw), bool)
    if scope.regions is not None:
        found &= np.any([_inside(raw, region) for region in scope.regions], axis=0)
    if scope.times is not None:
        found &= np.any([(raw.time >= a) & (raw.time < b) for a, b in scope.times], axis=0)
    if scope.hours is not None:
        found &= np.isin(raw.time // 3600 % 24, list(scope.hours))
    for condition in scope.conditions:
        value = raw.values[:, schema.features.index(condition.feature)]
        hit = np.isnan(value) & condition.missing
        for r in condition.ranges:
            above = (value > r.low) | (r.low_closed & (value == r.low))
            hit |= above & ((value < r.high) | (r.high_closed & (value == r.high)))
        found &= hit
    return found


def _inside(raw: Raw, region: Any) -> np.ndarray:
    if isinstance(region, Prefix):
        return geohash.codes(raw.x, raw.y, region.bits) == region.code
    if isinstance(region, Circle):
        a, b, c, d = np.radians(
            [raw.x, raw.y, np.full(len(raw), region.lon), np.full(len(raw), region.lat)]
        )
        square = np.sin((b - d) / 2) ** 2 + np.cos(b) * np.cos(d) * np.sin((a - c) / 2) ** 2
        return 2 * 6371.0088 * np.arcsin(np.sqrt(square)) <= region.km
    assert isinstance(region, Box)
    tall = (raw.y >= region.south) & (raw.y <= region.north)
    if region.west <= region.east:
        return tall & (raw.x >= region.west) & (raw.x <= region.east)
    return tall & ((raw.x >= region.west) | (raw.x <= region.east))
