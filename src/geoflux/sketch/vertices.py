"""The graph that leaves stand for, counted: sketchlet, trees, regions, time bins, features.

Leaves are paths from the root through one plane per feature. How many vertices there are depends on
the order of the planes alone: the vertices of a plane are the distinct combinations of region, time
and the features down to it. So a count needs no graph, only distinct values of a hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.leaf_moments import EXACT
from geoflux.sketch.leaves import Leaves

Hashes = npt.NDArray[np.uint64]

SAMPLE = 20_000
"""Leaves that an order of features is measured on; whole regions, spread over all of them."""
EXHAUSTIVE = 10
"""Up to as many features every order is weighed; beyond, the best next plane is taken."""


@dataclass(frozen=True)
class GraphSize:
    """Vertices, edges and leaves of the graph (table 1 of the paper).

    Every vertex but the root hangs on one edge, and so does every leaf's record below the last
    plane: edges are vertices + leaves - 1, as they are in the paper's own table.
    """

    vertices: int
    edges: int
    leaves: int
    planes: tuple[int, ...]
    """Vertices of each plane: trees, regions, time bins, then the features in their order."""


def graph_size(leaves: Leaves, tree_shift: int, order: Sequence[int]) -> GraphSize:
    """The graph of leaves with the features in an order, which may leave some out.

    Values of trees without bins count as they are, each distinct one a vertex. ``tree_shift`` is
    how many bits a region has beyond its tree.
    """
    if len(leaves) == 0:
        return GraphSize(1, 0, 0, (0,) * (3 + len(order)))
    path = place_hashes(leaves)
    planes = [
        np.unique(leaves.region >> tree_shift).size,
        np.unique(leaves.region).size,
        distinct(path),
    ]
    values = value_hashes(leaves)
    for feature in order:
        path = path ^ values[feature]
        planes.append(distinct(path))
    vertices = 1 + sum(planes)
    return GraphSize(vertices, vertices - 1 + len(leaves), len(leaves), tuple(planes))


def best_order(leaves: Leaves, sample: int = SAMPLE) -> tuple[int, ...]:
    """The order of features with the fewest vertices, measured on a sample of the regions.

    The vertices of a plane depend on which features lie above it, not on their order, so the best
    order is a shortest path through the sets of features: all of them are weighed. With more than
    ``EXHAUSTIVE`` features the plane that adds fewest vertices comes next. Not, as the paper says,
    what varies most on top: a feature of 2 values above one of 1000 makes 2002 vertices, the other
    way round 3000. One order for the whole sketch, since queries look at many trees at once.
    """
    features = leaves.features
    chosen = _some_regions(leaves, sample)
    if len(chosen) == 0:
        return tuple(range(features))
    path, values = place_hashes(chosen), value_hashes(chosen)
    if features > EXHAUSTIVE:
        return _greedy(path, values)
    size = 1 << features
    cost = np.full(size, np.iinfo(np.int64).max)
    last = np.zeros(size, np.int64)
    cost[0] = 0
    hashes = {0: path}
    for above in range(size):  # every set comes after all of its parts
        if above:
            lowest = above & -above
            hashes[above] = hashes[above ^ lowest] ^ values[lowest.bit_length() - 1]
            cost[above] += distinct(hashes[above])
            if above & 1:  # nothing larger is made of this one
                del hashes[above]
        for feature in range(features):
            below = above | 1 << feature
            if below != above and cost[above] < cost[below]:
                cost[below], last[below] = cost[above], feature
    order: list[int] = []
    rest = size - 1
    while rest:
        order.append(int(last[rest]))
        rest ^= 1 << order[-1]
    return tuple(reversed(order))


def _greedy(path: Hashes, values: Hashes) -> tuple[int, ...]:
    order: list[int] = []
    rest = list(range(len(values)))
    while rest:
        feature = min(rest, key=lambda each: (distinct(path ^ values[each]), each))
        path = path ^ values[feature]
        order.append(feature)
        rest.remove(feature)
    return tuple(order)


def _some_regions(leaves: Leaves, sample: int) -> Leaves:
    if len(leaves) <= sample:
        return leaves
    starts = np.flatnonzero(np.diff(leaves.region, prepend=leaves.region[0] - 1))
    every = -(-len(leaves) // sample)
    chosen = np.zeros(starts.size, np.bool_)
    chosen[::every] = True
    return leaves.take(np.repeat(chosen, np.diff(starts, append=len(leaves))))


def place_hashes(leaves: Leaves) -> Hashes:
    """A hash of region and time bin of every leaf."""
    return _mixed(_mixed(leaves.region.view(np.uint64), 1) ^ leaves.time.view(np.uint64), 2)


def value_hashes(leaves: Leaves) -> Hashes:
    """[F, n]: a hash of every feature's bin, or of its value where there are no bins yet."""
    out = np.empty((leaves.features, len(leaves)), np.uint64)
    for feature in range(leaves.features):
        bins = leaves.bins[:, feature]
        exact = bins == EXACT
        value = (leaves.mean[:, feature] + 0.0).view(np.uint64)  # -0.0 is 0.0
        key = (leaves.grain.astype(np.uint64) << np.uint64(8)) | bins
        out[feature] = _mixed(np.where(exact, _mixed(value, 3), key), 4 + feature)
    return out


def _mixed(words: Hashes, salt: int) -> Hashes:
    """SplitMix64's last step over words and a salt: the same in every process."""
    z = words + np.uint64((salt * 0x9E3779B97F4A7C15) & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@numba.njit(cache=True)
def distinct(hashes: Any) -> int:
    """How many different hashes there are."""
    bits = 4
    while (1 << bits) < 2 * hashes.size:
        bits += 1
    table = np.zeros(1 << bits, np.uint64)
    mask = (1 << bits) - 1
    count = 0
    zero = False
    for word in hashes:
        if word == 0:  # an empty place in the table
            zero = True
            continue
        at = np.int64(word & np.uint64(mask))
        while table[at] != 0 and table[at] != word:
            at = (at + 1) & mask
        if table[at] == 0:
            table[at] = word
            count += 1
    return count + zero
