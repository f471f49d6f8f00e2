"""How good the bins of a feature are, measured with the values themselves.

The error of a bin is the root of the mean squared difference between its mean and its values, over
the feature's range (NRMSE; Synopsis, 3.4.2 and figure 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.sketch.density import Densities, cdf, pdf

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]

HALF_PERCENT = 0.005


def bin_errors(values: Floats, edges: Floats, span: float | None = None) -> tuple[Floats, Indexes]:
    """The NRMSE of each bin's mean against its values, and how many these are.

    >>> bin_errors(np.array([0.0, 1.0, 10.0]), np.array([-np.inf, 5.0, np.inf]))
    (array([0.05, 0.  ]), array([2, 1]))
    """
    values = values[np.isfinite(values)]
    bins = edges.size - 1
    if not values.size:
        return np.zeros(bins), np.zeros(bins, np.int64)
    span = float(values.max() - values.min()) if span is None else span
    where = np.searchsorted(edges[1:-1], values, side="right")
    counts = np.bincount(where, minlength=bins)
    heads = np.maximum(counts, 1)
    means = np.bincount(where, values, minlength=bins) / heads
    squares = np.bincount(where, (values - means[where]) ** 2, minlength=bins) / heads
    return np.sqrt(squares) / (span if span > 0.0 else 1.0), counts


def values_within_half_percent(values: Floats, edges: Floats, span: float | None = None) -> float:
    """The share of the values that lie in bins whose NRMSE is at most 0.5 %; 1 without values."""
    errors, counts = bin_errors(values, edges, span)
    whole = int(counts.sum())
    return float(counts[errors <= HALF_PERCENT].sum() / whole) if whole else 1.0


@dataclass(frozen=True, eq=False)
class Profile:
    """What a drawing of one feature's bins needs (figure 4)."""

    grid: Floats
    pdf: Floats
    edges: Floats
    """The ends of the bins, the infinite ones replaced by the observed range."""
    mass: Floats
    """The share of the density in each bin."""
    error: Floats
    """NRMSE of each bin."""
    count: Indexes
    """The values in each bin that the errors were taken from."""


def profile(
    densities: Densities, tree: Any, feature: int, edges: Floats, values: Floats
) -> Profile:
    """The density of one tree (or several), its bins, and their errors with the given values."""
    which = np.atleast_1d(np.asarray(tree))
    low = float(densities.low[which, feature].min())
    high = float(densities.high[which, feature].max())
    grid = np.linspace(low, high, 512)
    ends = np.clip(edges, low, high)
    errors, counts = bin_errors(values, edges)
    below = cdf(densities, which, feature, edges[1:-1])
    mass = np.diff(np.concatenate([[0.0], below, [1.0]]))
    return Profile(grid, pdf(densities, which, feature, grid), ends, mass, errors, counts)
