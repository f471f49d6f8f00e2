"""Density, probability and quantiles of a feature, from leaves or from the trees' own densities.

Quantiles and probabilities come from leaves: their bounds always hold, and a quantile is known to
within one bin. Densities come from the trees' mixtures where whole trees are asked for without any
other condition (what a mixture knows has no time); otherwise from the leaves as a histogram that is
smoothed with Silverman's bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geoflux.sketch.cover import ScopePlan
from geoflux.sketch.density import pdf
from geoflux.sketch.leaves import EXACT
from geoflux.sketch.measures import Measure, bounded, exact, uncertain
from geoflux.sketch.pools import Pool
from geoflux.sketch.region_cover import NONE, PART, cells_of
from geoflux.sketch.spreads import Spreads, histogram, quantiles, smoothed, spreads_of
from geoflux.sketch.statistics import count
from geoflux.sketch.view import View

Floats = npt.NDArray[np.float64]
_CELLS = 2048
_NORMAL_95 = 1.959963984540054


def quantile(pool: Pool, feature: int, shares: Sequence[float]) -> list[Measure]:
    """The least value with at least each share of the observations up to it."""
    spreads = spreads_of(pool, feature)
    found = quantiles(
        spreads.first, spreads.expected, spreads.fewest, spreads.most, spreads.low, spreads.mean,
        spreads.high, np.array(shares, float),
    )  # fmt: skip
    return [bounded(found[0, :, j], found[1, :, j], found[2, :, j]) for j in range(len(shares))]


def share_of(part: Measure, whole: Measure) -> Measure:
    """The share of the observations of ``whole`` that are in ``part`` of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(whole.value > 0, part.value / whole.value, np.nan)
        low = np.where(whole.high > 0, part.low / whole.high, 0.0)
        high = np.minimum(part.high / np.maximum(whole.low, part.high), 1.0)
        likely = (part.error + whole.error * np.nan_to_num(value)) / whole.value
    return bounded(
        value, low, np.nan_to_num(high, nan=1.0), False, np.nan_to_num(likely, nan=np.inf)
    )


def probability_of_bin(pool: Pool, feature: int, value: float) -> Measure:
    """The share of observations in the bin (of their tree) that holds the value; of trees without
    bins yet, of those equal to it to as many digits as sets keep."""
    inside = []
    for cover in pool.covers:
        view, row = cover.view, cover.items.row
        leaves, tree = view.leaves, view.tree[row]
        grain = leaves.grain[row].astype(np.int64)
        bins = leaves.bins[row, feature].astype(np.int64)
        edges, counts = view.edges.values[:, feature], view.edges.counts[:, feature]
        first = np.minimum(bins << grain, counts[tree])
        last = np.minimum((bins + 1) << grain, counts[tree])
        hit = (edges[tree, first] <= value) & (value < edges[tree, last])
        digits = view.schema.set_decimals
        alike = _rounded(leaves.mean[row, feature], digits) == _rounded(np.array([value]), digits)
        here = (cover.rows.present[row] >> np.uint32(feature)) & np.uint32(1) == 1
        inside.append(here & np.where(bins == EXACT, alike, hit))
    spreads, all_of = spreads_of(pool, feature), count(pool, feature)
    flags = _flags(pool, feature, inside)
    ends = [
        np.add.reduceat(np.append(v * flags, 0.0), spreads.first[:-1])
        * (np.diff(spreads.first) > 0)
        for v in (spreads.expected, spreads.fewest, spreads.most)
    ]
    return share_of(bounded(*ends), all_of)


def _flags(pool: Pool, feature: int, inside: list[npt.NDArray[np.bool_]]) -> Floats:
    """Marks of all items in the order of ``spreads_of``."""
    groups, marks = [], []
    for cover, group, mark in zip(pool.covers, pool.groups.of_items, inside, strict=True):
        has = (cover.rows.present[cover.items.row] >> np.uint32(feature)) & np.uint32(1) == 1
        groups.append(group[has])
        marks.append(mark[has])
    order = np.argsort(np.concatenate(groups), kind="stable")
    return np.concatenate(marks)[order].astype(float)


def _rounded(values: Floats, digits: int) -> Floats:
    """To so many significant digits."""
    size = np.floor(np.log10(np.where(values == 0, 1.0, np.abs(values))))
    unit = 10.0 ** (size - digits + 1)
    return np.asarray(np.round(values / unit))


def density(pool: Pool, feature: int, points: int) -> dict[str, Measure]:
    """The density at evenly spaced values from the least to the largest, by group."""
    spreads = spreads_of(pool, feature)
    groups = len(spreads.first) - 1
    at, value, error = (np.full((groups, points), np.nan) for _ in range(3))
    for g in range(groups):
        s = slice(spreads.first[g], spreads.first[g + 1])
        if spreads.expected[s].sum() <= 0:
            continue
        low, high = float(spreads.low[s].min()), float(spreads.high[s].max())
        at[g] = np.linspace(low, high, points)
        value[g], error[g] = _smoothed(spreads, s, at[g])
    return _curve(at, value, error)


def _curve(at: Floats, value: Floats, error: Floats) -> dict[str, Measure]:
    far = _NORMAL_95 * error
    return {"at": exact(at), "": uncertain(value, error, np.maximum(value - far, 0.0), value + far)}


def _smoothed(spreads: Spreads, s: slice, at: Floats) -> tuple[Floats, Floats]:
    low, high, weight = spreads.low[s], spreads.high[s], spreads.expected[s]
    start, end = float(low.min()), float(high.max())
    n = float(weight.sum())
    if end <= start:
        return np.full(len(at), np.nan), np.full(len(at), np.nan)
    width = (end - start) / _CELLS
    mass = histogram(low, spreads.mean[s], high, weight, start, width, _CELLS)
    centre = start + (np.arange(_CELLS) + 0.5) * width
    share = mass / mass.sum()
    middle = share @ centre
    deviation = np.sqrt(share @ (centre - middle) ** 2)
    below = np.cumsum(share)
    quartiles = centre[np.searchsorted(below, [0.25, 0.75]).clip(0, _CELLS - 1)]
    spread = (quartiles[1] - quartiles[0]) / 1.349
    bandwidth = 0.9 * (min(deviation, spread) if spread > 0 else deviation) * n**-0.2
    bandwidth = max(bandwidth, width)
    # What would lie beyond the ends is put back inside them.
    mirrored = np.concatenate([share[::-1], share, share[::-1]])
    value = smoothed(mirrored, start - (end - start), width, bandwidth, at)
    return value, np.sqrt(value / (2 * np.sqrt(np.pi) * n * bandwidth))


def whole_trees(plan: ScopePlan, views: Sequence[View]) -> list[npt.NDArray[np.bool_]] | None:
    """Which trees a scope is about, if it is about whole trees and asks nothing else."""
    if not plan.always or plan.ranges is not None:
        return None
    chosen = []
    for view in views:
        state = plan.shares(cells_of(view.trees, view.schema.tree_bits)).state
        if (state == PART).any():
            return None
        chosen.append(state != NONE)
    return chosen


def tree_density(
    views: Sequence[View], chosen: Sequence[npt.NDArray[np.bool_]], feature: int, points: int
) -> dict[str, Measure]:
    """The density of whole trees: their mixtures together, by their observations."""
    used = [(v, np.flatnonzero(c)) for v, c in zip(views, chosen, strict=True) if c.any()]
    totals = [v.densities.total[c, feature].sum() for v, c in used]
    n = float(sum(totals))
    if n <= 0:
        nothing = np.full((1, points), np.nan)
        return _curve(nothing, nothing, nothing)
    low = min(float(v.densities.low[c, feature].min()) for v, c in used)
    high = max(float(v.densities.high[c, feature].max()) for v, c in used)
    at = np.linspace(low, high, points)
    value = np.zeros(points)
    width = 0.0
    for (view, trees), total in zip(used, totals, strict=True):
        if total > 0:
            value += total / n * pdf(view.densities, trees, feature, at)
            weights = view.densities.total[trees, feature]
            width += float(weights @ view.densities.bandwidth[trees, feature]) / n
    error = np.sqrt(value / (2 * np.sqrt(np.pi) * n * max(width, 1e-300)))
    return _curve(at[None], value[None], error[None])
