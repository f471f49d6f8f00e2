"""Several tuples derived from one at once: how many, and how long they keep one another waiting.

Of ``n`` tuples that reach a shared queue together the first waits like any tuple of the stream. If
all processors are busy then, the j-th starts ``(j - 1) / (k mu)`` later; if not, the first ones
find free processors, ``k (1 - rho) / (1 - C)`` on average. With one processor that is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.scale.network import Edge

Floats = npt.NDArray[np.float64]
_MOST = 512
"""Larger numbers of derived tuples count as so many."""


def chances_of(edge: Edge) -> Floats:
    """The chance of 0, 1, 2, … derived tuples, by their mean and variance: as even as can be, up to
    Poisson, or negative binomial beyond.

    >>> chances_of(Edge("a", "b", 1.25)).tolist()
    [0.0, 0.75, 0.25]
    """
    mean, variance = edge.mean, edge.spread
    least = Edge("", "", mean).spread
    low = math.floor(mean)
    even = np.zeros(low + 2)
    even[low], even[low + 1] = 1 - mean % 1.0, mean % 1.0
    even = np.trim_zeros(even, "b")
    if variance <= least + 1e-12 or mean == 0:
        return even
    size = min(_MOST, int(mean + 12 * math.sqrt(variance) + 12))
    if variance > mean * (1 + 1e-9):
        return _negative_binomial(mean, variance, size)
    share = (variance - least) / (mean - least)
    out = share * _poisson(mean, size)
    out[: len(even)] += (1 - share) * even
    return out


def _poisson(mean: float, size: int) -> Floats:
    n = np.arange(size + 1)
    logs = n * math.log(mean) - mean - np.concatenate([[0.0], np.cumsum(np.log(n[1:]))])
    return _whole(np.exp(logs))


def _negative_binomial(mean: float, variance: float, size: int) -> Floats:
    times, kept = mean**2 / (variance - mean), mean / variance
    n = np.arange(1, size + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((n - 1 + times) / n * (1 - kept)))])
    return _whole(np.exp(logs + times * math.log(kept)))


def _whole(chances: Floats) -> Floats:
    return chances / chances.sum()


@dataclass(frozen=True)
class Batch:
    """Tuples that reach ``k`` processors together: ``chances`` of their number, whether all
    processors are busy then (``delayed``), how busy they are."""

    chances: Floats
    k: int
    delayed: float
    utilisation: float
    service: float

    @property
    def seen(self) -> float:
        """How many a tuple of such a batch belongs to, on average: large ones have more tuples."""
        sizes = np.arange(len(self.chances))
        mean = float(self.chances @ sizes)
        return float(self.chances @ sizes**2) / mean if mean > 0 else 1.0

    def starts(self) -> Floats:
        """How much later than the first the 1st, 2nd, 3rd … can start, in seconds.

        >>> Batch(np.array([0, 0, 0, 1.0]), 1, 0.5, 0.5, 2.0).starts().tolist()
        [0.0, 2.0, 4.0]
        """
        later = np.arange(max(len(self.chances) - 1, 1), dtype=np.float64)
        free = self.k * (1 - self.utilisation) / max(1 - self.delayed, 1e-12)
        found = np.maximum(later + 1 - free, 0.0)
        return (self.delayed * later + (1 - self.delayed) * found) * self.service / self.k

    def mean_start(self) -> float:
        """The same for any of them, on average."""
        sizes = np.arange(len(self.chances))
        mean = float(self.chances @ sizes)
        if mean == 0:
            return 0.0
        until = np.concatenate([[0.0], np.cumsum(self.starts())])[: len(sizes)]
        return float(self.chances @ until) / mean
