"""How the values of each tree and feature are spread, learnt as they come.

The univariate form of Kristan et al., "Multivariate online kernel density estimation with Gaussian
kernels" (Pattern Recognition 44, 2011): a sample is a component without variance; where there are
more than K, neighbours are merged where that changes the density least. What is asked for is the
mixture, each component widened by Silverman's bandwidth of the whole, within the observed range.
Everything observed counts alike, however old. The mixture without bandwidth has exactly the count,
the mean and the variance of the finite samples; the same batches give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.errors import StateError
from geoflux.sketch.bandwidth import silverman
from geoflux.sketch.density_kernels import absorb

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]

VERSION = 1
"""Changes whenever the meaning of the numbers does."""


@dataclass(frozen=True, eq=False)
class Densities:
    """Mixtures of T trees (in ascending order of their codes) and F features.

    ``scale`` multiplies Silverman's bandwidth: below 1 shows finer detail, above 1 smooths more.

    >>> tree = np.zeros(3, np.int64)
    >>> some = Densities.empty(1, 1).updated(tree, np.array([[1.0], [2.0], [6.0]]))
    >>> some.total[0, 0], some.moments[0][0, 0], some.low[0, 0], some.high[0, 0]
    (np.float64(3.0), np.float64(3.0), np.float64(1.0), np.float64(6.0))
    """

    mixtures: Floats
    """[T, F, 3, K]: weight (observations; 0 where unused), mean, variance, by ascending mean."""
    totals: Floats
    """[T, F, 3]: finite observations, the lowest and the highest of them."""
    scale: float = 1.0

    @classmethod
    def empty(
        cls, trees: int, features: int, components: int = 24, scale: float = 1.0
    ) -> Densities:
        """Trees of which nothing was observed yet."""
        totals = np.zeros((trees, features, 3))
        totals[:, :, 1], totals[:, :, 2] = np.inf, -np.inf
        return cls(np.zeros((trees, features, 3, components)), totals, scale)

    @property
    def weight(self) -> Floats:
        return self.mixtures[:, :, 0]

    @property
    def mean(self) -> Floats:
        return self.mixtures[:, :, 1]

    @property
    def variance(self) -> Floats:
        """Within the components, without bandwidth."""
        return self.mixtures[:, :, 2]

    @property
    def total(self) -> Floats:
        """Finite observations [T, F]."""
        return self.totals[:, :, 0]

    @property
    def low(self) -> Floats:
        """The lowest observation [T, F]; +inf where there is none."""
        return self.totals[:, :, 1]

    @property
    def high(self) -> Floats:
        return self.totals[:, :, 2]

    @property
    def bytes_resident(self) -> int:
        return int(self.mixtures.nbytes + self.totals.nbytes)

    @cached_property
    def bandwidth(self) -> Floats:
        """Silverman's, times ``scale`` [T, F]."""
        return self.scale * np.asarray(_bandwidths(self.mixtures), np.float64)

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of the samples [T, F] (0 where there are none)."""
        total = np.maximum(self.total, 1.0)
        mean = (self.weight * self.mean).sum(axis=2) / total
        apart = self.mean - mean[:, :, None]
        return mean, (self.weight * (self.variance + apart**2)).sum(axis=2) / total

    def updated(self, tree_index: Indexes, values: Floats) -> Densities:
        """With a batch: the tree of each row, and its values [n, F]; what is not finite is left."""
        mixtures, totals = self.mixtures.copy(), self.totals.copy()
        absorb(mixtures, totals, tree_index, np.ascontiguousarray(values), self.scale)
        return replace(self, mixtures=mixtures, totals=totals)

    def cut(self, which: npt.NDArray[Any]) -> Densities:
        """The trees of a mask or of a list of positions; position -1 is a new tree."""
        chosen = np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64)
        mixtures, totals = self.mixtures[chosen], self.totals[chosen]
        mixtures[chosen < 0] = 0.0
        totals[chosen < 0] = (0.0, np.inf, -np.inf)
        return replace(self, mixtures=mixtures, totals=totals)

    def joined(self, other: Densities, order: Indexes | None = None) -> Densities:
        """These trees and then the other's; ``order`` puts them into another order."""
        both = replace(
            self,
            mixtures=np.concatenate([self.mixtures, other.mixtures]),
            totals=np.concatenate([self.totals, other.totals]),
        )
        return both if order is None else both.cut(order)

    def to_arrays(self, prefix: str = "densities.") -> dict[str, npt.NDArray[Any]]:
        return {
            prefix + "version": np.array([VERSION], np.int32),
            prefix + "mixtures": self.mixtures,
            prefix + "totals": self.totals,
            prefix + "scale": np.array([self.scale]),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "densities."
    ) -> Densities:
        """What :meth:`to_arrays` gave."""
        version = int(arrays[prefix + "version"][0])
        if version != VERSION:
            raise StateError(
                f"the densities are of version {version}, this is geoflux with version {VERSION}: "
                "use a new directory, or the geoflux that wrote this one"
            )
        scale = float(arrays[prefix + "scale"][0])
        return cls(arrays[prefix + "mixtures"], arrays[prefix + "totals"], scale)


@numba.njit(cache=True)
def _bandwidths(mixtures: Any) -> Any:
    trees, features, _, most = mixtures.shape
    out = np.zeros((trees, features))
    for t in range(trees):
        for f in range(features):
            size = 0
            while size < most and mixtures[t, f, 0, size] > 0.0:
                size += 1
            if size > 0:
                out[t, f] = silverman(mixtures[t, f], size, most)
    return out
