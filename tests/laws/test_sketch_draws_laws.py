"""The curve that bends normal draws into a leaf's ends keeps mean and variance, whatever the ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from geoflux.sketch.leaf_draws import _bent, curve

_NORMALS = norm.ppf((np.arange(4000) + 0.5) / 4000)


def _draws(low: float, mean: float, high: float, deviation: float) -> np.ndarray:
    shape = np.zeros(6)
    curve(low, mean, high, deviation, shape)
    return np.array([mean + deviation * _bent(z, shape) for z in _NORMALS])


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12, unique=True))
def test_mean_and_variance_and_ends_are_those_of_the_leaf(values: list[float]) -> None:
    seen = np.round(np.array(values), 3)
    deviation = float(seen.std())
    got = _draws(seen.min(), seen.mean(), seen.max(), deviation)
    span = max(float(np.ptp(seen)), 1e-9)
    assert abs(got.mean() - seen.mean()) <= 0.01 * span
    assert abs(got.std() - deviation) <= 0.02 * span
    assert got.min() >= seen.min() - 1e-6 * span
    assert got.max() <= seen.max() + 1e-6 * span


@given(st.integers(1, 9), st.floats(0.5, 20.0))
def test_an_end_that_is_met_often_is_drawn_as_it_is(zeros: int, rest: float) -> None:
    seen = np.array([0.0] * (10 + zeros) + [rest, rest * 1.5])
    got = _draws(0.0, seen.mean(), seen.max(), float(seen.std()))
    assert (np.abs(got) < 1e-9).mean() > 0.5
