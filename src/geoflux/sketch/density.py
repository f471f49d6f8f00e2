"""What the densities say: the share below a value, quantiles, of one tree or several together.

The contract of the densities in one place: the mixtures, edges of equal mass and how many of them
there should be come from their own modules and are named here too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.sketch.density_shapes import mixed_cdf, mixed_pdf, mixed_quantiles, prepare_all
from geoflux.sketch.mixtures import Densities
from geoflux.sketch.quantising import bins_wanted, equal_mass_edges, quantised

__all__ = [
    "Densities", "bins_wanted", "cdf", "equal_mass_edges", "pdf", "quantile", "quantised",
    "updated",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]


def updated(densities: Densities, tree_index: Indexes, values: Floats) -> Densities:
    """With a batch: the position of each row's tree, and its values [n, F] (NaN is missing)."""
    return densities.updated(tree_index, values)


def pdf(densities: Densities, trees: Any, feature: int, values: Any, weights: Any = None) -> Floats:
    """The density at each value, of one tree or of several together.

    It is smooth everywhere: a value met again and again is a narrow bell here, a step in
    :func:`cdf`. Several trees count by their observations, or by ``weights`` (one for each tree).
    """
    parts = _chosen(densities, trees, feature, weights, steps=False)
    return np.asarray(mixed_pdf(*parts, np.atleast_1d(np.asarray(values, np.float64))))


def cdf(densities: Densities, trees: Any, feature: int, values: Any, weights: Any = None) -> Floats:
    """The share of the density at or below each value; weights as in :func:`pdf`."""
    parts = _chosen(densities, trees, feature, weights, steps=True)
    return np.asarray(mixed_cdf(*parts, np.atleast_1d(np.asarray(values, np.float64))))


def quantile(
    densities: Densities, trees: Any, feature: int, shares: Any, weights: Any = None
) -> Floats:
    """The least value with each share (0 to 1) at or below it; NaN where nothing was observed."""
    parts = _chosen(densities, trees, feature, weights, steps=True)
    return np.asarray(mixed_quantiles(*parts, np.atleast_1d(np.asarray(shares, np.float64))))


def _chosen(
    densities: Densities, trees: Any, feature: int, weights: Any, *, steps: bool
) -> tuple[Floats, Floats, Floats]:
    """Mixtures ready to be looked at, ends and shares of some trees (a mask or positions)."""
    which = np.atleast_1d(np.asarray(trees))
    chosen = np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64)
    total = densities.total[chosen, feature]
    asked = total if weights is None else np.atleast_1d(np.asarray(weights, np.float64))
    asked = np.where(total > 0.0, asked, 0.0)
    whole = asked.sum()
    ends = densities.totals[chosen, feature, 1:]
    wides = densities.bandwidth[chosen, feature] ** 2
    ready = prepare_all(densities.mixtures[chosen, feature], wides, ends, steps)
    return np.asarray(ready), ends, asked / whole if whole > 0.0 else asked
