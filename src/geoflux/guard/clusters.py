"""Algorithm 4's clusters: two by two, the one that aims at hotspots is split again.

Ends also where the document's loop would not: at one user, and at users whose features are all the
same (trap 10).

Source: Guard 5.4, Algorithm 4, lines 1 to 12.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from geoflux.guard.features import X11, X14, Features
from geoflux.guard.tuning import GuardTuning

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Divided:
    """Rows of the suspicious cluster and of all others, with the average rate of each (ALQR, of raw
    rates), the spread that was left, and how often was split."""

    suspicious: Rows
    normal: Rows
    suspicious_rate: float
    normal_rate: float
    spread: float
    splits: int


def alqr(rates: Floats) -> float:
    """The average of the users' average rates; 0 of nobody."""
    return float(rates.mean()) if len(rates) else 0.0


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[Any]:
    """Threads would wait for each other in a loop while Spark has the cores: five times as long."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="openmp")
    return limit


def two_means(points: Floats, seed: int, sample: int) -> npt.NDArray[np.bool_] | None:
    """Which points belong to the second of two clusters; ``None`` if they cannot be told apart.

    >>> two_means(np.array([[0.0], [0.1], [0.9], [1.0]]), seed=1, sample=100).sum()
    np.int64(2)
    >>> two_means(np.zeros((3, 2)), seed=1, sample=100) is None
    True
    """
    if len(points) < 2 or not np.ptp(points, axis=0).any():
        return None
    chosen = points
    if len(points) > sample:
        picked = np.random.default_rng(seed).choice(len(points), sample, replace=False)
        chosen = points[picked]
    with warnings.catch_warnings(), _one_thread(), sklearn.config_context(
        assume_finite=True, skip_parameter_validation=True
    ):  # fmt: skip
        # Points that differ by less than rounding make fewer clusters than asked for: seen below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(2, init="k-means++", n_init=1, random_state=seed % 2**32).fit(chosen)
    first, second = np.asarray(model.cluster_centers_, np.float64)
    # Nearer to the second: the sign of a projection, which also serves what was not in the sample.
    beyond = points @ (second - first) > (second @ second - first @ first) / 2
    return beyond if beyond.any() and not beyond.all() else None


def divide(
    features: Features, tuning: GuardTuning, seed: int, most: int | None = None
) -> Divided:  # fmt: skip
    """Split until the suspicious cluster's users have been in the same hotspots, or ``most``
    times."""
    points = features.normalised()
    rates = features.values[:, X14]
    rows = np.arange(len(points))
    spread, splits = _spread(points), 0
    while splits < (tuning.most_splits if most is None else most):
        second = two_means(points[rows], seed + splits, tuning.sample)
        if second is None:
            break
        splits += 1
        ours = ~second if alqr(rates[rows[~second]]) > alqr(rates[rows[second]]) else second
        rows = rows[ours]
        spread = _spread(points[rows])
        if spread <= tuning.spread:
            break
    others = np.ones(len(points), np.bool_)
    others[rows] = False
    normal = np.flatnonzero(others)
    return Divided(rows, normal, alqr(rates[rows]), alqr(rates[normal]), spread, splits)


def _spread(points: Floats) -> float:
    """Standard deviation of the normalised ``Hotspot_Seq_New``."""
    return float(points[:, X11].std()) if len(points) else 0.0
