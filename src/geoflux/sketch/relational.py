"""The matching part of the sketch itself, as tables: its leaves, or its vertices and edges.

Leaves come with readable columns: the region as text and its bounds, the time bin with its level,
and for each feature the edges of its bin, mean, min, max and deviation. A graph has one vertex for
each value of each level (tree, region, time, then the features in the forest's order) below its
parent, and an edge to each vertex from its parent. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.sketch import times
from geoflux.sketch.cover import Covered
from geoflux.sketch.leaves import EXACT, MISSING
from geoflux.sketch.view import View
from geoflux.spatial import geohash

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def region_text(code: int, bits: int) -> str:
    """A cell as geohash letters; bits beyond the last whole letter follow a colon.

    >>> region_text(0b0110110, 7)
    'e:10'
    """
    rest = bits % 5
    text = geohash.to_text(code >> rest, bits - rest)
    return text if not rest else f"{text}:{code & ((1 << rest) - 1):0{rest}b}"


def _chosen(numbers: npt.NDArray[Any], texts: Any) -> pa.Array:
    """Texts by number, without a Python string for each row."""
    return pa.array(texts, pa.string()).take(pa.array(numbers))


def leaf_table(covers: Sequence[Covered]) -> pa.Table:
    """The covered leaves; ``share`` is how much of each is expected to match."""
    return pa.concat_tables([_leaf_table(cover) for cover in covers])


def _leaf_table(cover: Covered) -> pa.Table:
    view, items = cover.view, cover.items
    row, leaves, rows = items.row, view.leaves, view.rows
    region, time = rows.region[row], rows.time[row]
    cells = view.cells
    used, place = np.unique(region, return_inverse=True)
    texts = [region_text(int(code), view.schema.region_bits) for code in view.regions[used]]
    key = view.times[time]
    seconds = (times.starts(key), view.combs.end[time])
    columns: dict[str, pa.Array] = {
        "region": _chosen(place, texts),
        "west": pa.array(cells.west[region]),
        "south": pa.array(cells.south[region]),
        "east": pa.array(cells.east[region]),
        "north": pa.array(cells.north[region]),
        "time": pa.array(seconds[0].astype("datetime64[s]"), pa.timestamp("s", "UTC")),
        "time_end": pa.array(seconds[1].astype("datetime64[s]"), pa.timestamp("s", "UTC")),
        "time_level": _chosen(times.levels(key), list(times.LEVELS)),
        "count": pa.array(leaves.count[row]),
        "share": pa.array(items.share),
    }
    heavy = rows.heavy[row]
    many = heavy >= 0
    at = heavy[many]
    n = leaves.count[row]
    tree = view.tree[row]
    for f, name in enumerate(view.schema.features):
        gone = leaves.bins[row, f] == MISSING
        mean = leaves.mean[row, f]
        low, high, deviation = mean.copy(), mean.copy(), np.zeros(len(row))
        low[many], high[many] = leaves.low[at, f], leaves.high[at, f]
        deviation[many] = np.sqrt(leaves.m2[at, f] / n[many])
        ends = _bin_ends(view, tree, row, f, mean)
        parts = {
            "bin_low": ends[0], "bin_high": ends[1], "mean": mean, "min": low, "max": high,
            "std": deviation,
        }  # fmt: skip
        mask = gone if gone.any() else None
        for part, values in parts.items():
            columns[f"{name}_{part}"] = pa.array(values, mask=mask)
    return pa.table(columns)


def _bin_ends(view: View, tree: Ints, row: Ints, f: int, mean: Floats) -> tuple[Floats, Floats]:
    """Edges of the bins of leaves; a value without bins is its own."""
    bins = view.leaves.bins[row, f].astype(np.int64)
    grain = view.leaves.grain[row].astype(np.int64)
    counts = view.edges.counts[:, f].astype(np.int64)[tree]
    bare = (bins == EXACT) | (bins == MISSING)
    bins = np.where(bare, 0, bins)
    edges = view.edges.values[:, f]
    low = edges[tree, np.minimum(bins << grain, counts)]
    high = edges[tree, np.minimum((bins + 1) << grain, counts)]
    return np.where(bare, mean, low), np.where(bare, mean, high)


def graph_tables(covers: Sequence[Covered]) -> tuple[pa.Table, pa.Table]:
    """Vertices (number, level, values from and to, observations, leaves) and edges (pairs of
    numbers) of the covered leaves."""
    vertices, edges, base = [], [], 0
    for cover in covers:
        one, pairs, base = _graph(cover, base)
        vertices.append(one)
        edges.append(pairs)
    return pa.concat_tables(vertices), pa.concat_tables(edges)


def _graph(cover: Covered, base: int) -> tuple[pa.Table, pa.Table, int]:
    view = cover.view
    names, keys, lows, highs = _levels(cover)
    order = np.lexsort(tuple(reversed(keys)))
    counts = view.leaves.count[cover.items.row][order]
    new = np.zeros(len(order), bool)
    parent = np.full(len(order), -1)
    columns: dict[str, list[Any]] = {k: [] for k in ("level", "from", "to", "count", "leaves")}
    numbers, pairs = [], []
    for level, (key, low, high) in enumerate(zip(keys, lows, highs, strict=True)):
        value = key[order]
        new[:1] = True
        new[1:] |= value[1:] != value[:-1]
        first = np.flatnonzero(new)
        vertex = base + np.cumsum(new) - 1
        ends = np.append(first, len(order))
        columns["level"].append(np.full(len(first), level))
        columns["from"].append(low[order][first])
        columns["to"].append(high[order][first])
        columns["count"].append(np.add.reduceat(counts, first) if len(first) else first)
        columns["leaves"].append(np.diff(ends))
        numbers.append(base + np.arange(len(first)))
        if level:
            pairs.append(np.stack([parent[first], vertex[first]]))
        parent = vertex
        base += len(first)
    flat = {k: np.concatenate(v) for k, v in columns.items()}
    both = np.concatenate(pairs, axis=1)
    table = pa.table(
        {
            "vertex": np.concatenate(numbers),
            "level": _chosen(flat["level"], names),
            "place": _places(view, flat["level"], flat["from"]),
            "from": _ends(flat["from"], flat["level"]),
            "to": _ends(flat["to"], flat["level"]),
            "count": flat["count"],
            "leaves": flat["leaves"],
        }
    )
    return table, pa.table({"parent": both[0], "child": both[1]}), base


def _ends(values: Floats, level: Ints) -> pa.Array:
    """Ends of values and times; places and missing features have none."""
    return pa.array(values, mask=(level < 2) | np.isnan(values))


def _places(view: View, level: Ints, number: Floats) -> pa.Array:
    """Trees and regions as text."""
    schema = view.schema
    texts = [region_text(int(code), schema.tree_bits) for code in view.trees]
    regions = number[level == 1].astype(np.int64)
    used, place = np.unique(regions, return_inverse=True)
    texts += [region_text(int(view.regions[r]), schema.region_bits) for r in used]
    which = np.zeros(len(level), np.int64)
    which[level == 0] = number[level == 0].astype(np.int64)
    which[level == 1] = len(view.trees) + place
    return pa.array(texts, pa.string()).take(pa.array(which, mask=level > 1))


def _levels(cover: Covered) -> tuple[list[str], list[Any], list[Any], list[Any]]:
    """By level: its name, a key that tells its values apart, and the ends of those (of trees and
    regions their number)."""
    view, row = cover.view, cover.items.row
    leaves, rows = view.leaves, view.rows
    tree = view.tree[row]
    region = rows.region[row]
    time = rows.time[row]
    names = ["tree", "region", "time"]
    keys: list[Any] = [tree, region, time]
    lows: list[Any] = [tree.astype(float), region.astype(float)]
    highs: list[Any] = [lows[0], lows[1]]
    lows.append(view.combs.start[time].astype(float))
    highs.append(view.combs.end[time].astype(float))
    grain = leaves.grain[row].astype(np.int64)
    for f in view.order:
        mean = leaves.mean[row, f]
        bins = leaves.bins[row, f].astype(np.int64)
        low, high = _bin_ends(view, tree, row, f, mean)
        # Values without bins are told apart by themselves, bins of other grain by their grain.
        keys.append(np.where(bins == EXACT, mean, (bins + 256 * grain).astype(float) * 1e300))
        gone = bins == MISSING
        names.append(view.schema.features[f])
        lows.append(np.where(gone, np.nan, low))
        highs.append(np.where(gone, np.nan, high))
    return names, keys, lows, highs
