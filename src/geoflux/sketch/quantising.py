"""Edges of equal mass from the densities, and how many there should be.

A feature's bins hold about the same number of observations each, so that they are narrow where
values are many (Synopsis, 3.4.2). A single value that fills a bin (no rain, no wind) gets one by
itself.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.errors import ConfigError
from geoflux.sketch.bandwidth import is_step
from geoflux.sketch.density_shapes import prepare, quick_quantiles
from geoflux.sketch.edges import Edges
from geoflux.sketch.mixtures import Densities

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]

HALF_PERCENT = 0.005
_STEPS = 128
"""Pieces of equal mass in which the spread of a density is looked at."""


def equal_mass_edges(densities: Densities, tree: int, feature: int, bins: int) -> Floats:
    """At most ``bins`` bins of about equal mass, from -inf to +inf, strictly ascending.

    Fewer where fewer values were met than there are bins. A value that has the mass of a bin gets
    one by itself; the others share the rest equally.
    """
    inner = np.empty(bins)
    count = _inner_edges(
        densities.mixtures[tree, feature],
        densities.bandwidth[tree, feature] ** 2,
        densities.low[tree, feature],
        densities.high[tree, feature],
        bins,
        inner,
    )
    return np.concatenate([[-np.inf], inner[:count], [np.inf]])


def quantised(edges: Edges, densities: Densities, trees: Indexes, bins: Indexes) -> Edges:
    """With edges of equal mass for the trees named (by position): ``bins`` [len(trees), F] each."""
    values, counts = edges.values.copy(), edges.counts.copy()
    most = values.shape[2] - 1
    if bins.size and not (int(bins.min()) >= 1 and int(bins.max()) <= most):
        raise ConfigError(f"a feature has 1 to {most} bins, not {bins.min()} to {bins.max()}")
    wides = densities.bandwidth**2
    _quantise(densities.mixtures, wides, densities.totals, trees, bins, values, counts)
    return Edges(values, counts)


def bins_wanted(
    densities: Densities,
    trees: Indexes,
    max_bins: int,
    *,
    memory_share: float = 1.0,
    spans: Floats | None = None,
    share: float = 0.85,
) -> Indexes:
    """How many bins of equal mass each of the trees and its features should have [len(trees), F].

    The least number for which ``share`` of the values is in bins within half a percent of the
    feature's range (``spans`` [F] or [len(trees), F]; over all trees unless given), and at most
    ``max_bins`` times the share of the memory that is there to be used, but never below 2.
    """
    if spans is None:
        with np.errstate(invalid="ignore"):
            spans = densities.high.max(axis=0) - densities.low.min(axis=0)
    most = max(2, int(max_bins * min(1.0, memory_share)))
    wides = densities.bandwidth**2
    spans = np.broadcast_to(spans, (trees.size, densities.total.shape[1])).copy()
    return np.asarray(
        _wanted(densities.mixtures, wides, densities.totals, trees, spans, share, most), np.int64
    )


@numba.njit(cache=True)
def _atoms(mixture: Any, size: int, bins: int, total: float) -> Any:
    """Which components are one value that fills a bin; the heaviest of them, if too many."""
    atoms = np.empty(size, np.int64)
    count = 0
    for k in range(size):
        if is_step(mixture[0, k], mixture[2, k], total, bins):
            atoms[count] = k
            count += 1
    if count < size:  # each needs two edges where other values lie around it
        while 2 * count > bins - 1:
            lightest = 0
            for a in range(1, count):
                if mixture[0, atoms[a]] < mixture[0, atoms[lightest]]:
                    lightest = a
            for a in range(lightest, count - 1):
                atoms[a] = atoms[a + 1]
            count -= 1
    return atoms[:count]


@numba.njit(cache=True)
def _inner_edges(mixture: Any, wide: float, low: float, high: float, bins: int, out: Any) -> int:
    """The finite edges, ascending; returns how many there are (at most bins - 1)."""
    size, total = 0, 0.0
    while size < mixture.shape[1] and mixture[0, size] > 0.0:
        total += mixture[0, size]
        size += 1
    if size == 0 or bins < 2 or low >= high:
        return 0
    atoms = _atoms(mixture, size, bins, total)
    found = np.empty(bins + 2 * atoms.size)
    count = 0
    for a in atoms:
        found[count] = mixture[1, a]
        count += 1
        if atoms.size < size:
            found[count] = np.nextafter(mixture[1, a], np.inf)
            count += 1
    rest = bins - 2 * atoms.size
    if atoms.size < size and rest > 1:
        others = np.zeros((3, size))
        n, next_atom = 0, 0
        for k in range(size):
            if next_atom < atoms.size and atoms[next_atom] == k:
                next_atom += 1
                continue
            for row in range(3):
                others[row, n] = mixture[row, k]
            n += 1
        wanted = np.arange(1, rest) / rest
        ready = np.empty((4, size))
        prepare(others, wide, np.array([low, high]), False, ready)
        cuts = quick_quantiles(ready, low, high, wanted)
        found[count : count + rest - 1] = cuts
        count += rest - 1
    found[:count].sort()
    kept = 0
    for i in range(count):
        edge = found[i]
        if low < edge <= high and (kept == 0 or edge > out[kept - 1]):
            out[kept] = edge
            kept += 1
    return kept


@numba.njit(cache=True)
def _quantise(
    mixtures: Any, wides: Any, totals: Any, trees: Any, bins: Any, values: Any, counts: Any
) -> None:  # fmt: skip
    inner = np.empty(values.shape[2])
    for i in range(trees.size):
        t = trees[i]
        for f in range(mixtures.shape[1]):
            low, high = totals[t, f, 1], totals[t, f, 2]
            count = _inner_edges(mixtures[t, f], wides[t, f], low, high, bins[i, f], inner)
            values[t, f] = np.inf
            values[t, f, 0] = -np.inf
            values[t, f, 1 : count + 1] = inner[:count]
            counts[t, f] = count + 1


@numba.njit(cache=True)
def _wanted(
    mixtures: Any, wides: Any, totals: Any, trees: Any, spans: Any, share: float, most: int
) -> Any:
    """A bin errs by its width over sqrt(12), if its values are spread evenly."""
    out = np.full((trees.size, mixtures.shape[1]), 2, np.int64)
    wanted = np.arange(_STEPS + 1) / _STEPS
    ready = np.empty((4, mixtures.shape[3]))
    for i in range(trees.size):
        t = trees[i]
        for f in range(mixtures.shape[1]):
            low, high = totals[t, f, 1], totals[t, f, 2]
            if not low < high or not spans[i, f] > 0.0:
                continue
            prepare(mixtures[t, f], wides[t, f], totals[t, f, 1:], True, ready)
            cuts = quick_quantiles(ready, low, high, wanted)
            widest = np.sqrt(12.0) * HALF_PERCENT * spans[i, f]
            bins = 2
            while bins < most and _narrow(cuts, bins, widest) < share * bins:
                bins += 1 + bins // 16
            out[i, f] = min(bins, most)
    return out


@numba.njit(cache=True)
def _narrow(cuts: Any, bins: int, widest: float) -> int:
    """How many of some bins of equal mass are narrow enough; each cut has the same mass."""
    count = 0
    begin = cuts[0]
    for b in range(1, bins + 1):
        place = b * (cuts.size - 1) / bins
        k = min(int(place), cuts.size - 2)
        end = cuts[k] + (place - k) * (cuts[k + 1] - cuts[k])
        count += end - begin <= widest
        begin = end
    return count
