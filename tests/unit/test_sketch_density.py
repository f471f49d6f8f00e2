"""How near the densities come to the truth, and how good bins are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from geoflux.errors import ConfigError, StateError
from geoflux.sketch.accuracy import bin_errors, profile, values_within_half_percent
from geoflux.sketch.density import (
    Densities,
    bins_wanted,
    cdf,
    equal_mass_edges,
    pdf,
    quantile,
    quantised,
    updated,
)
from geoflux.sketch.edges import Edges

Floats = npt.NDArray[np.float64]
SAMPLES = 20_000
TRUTHS = {
    "normal": lambda v: stats.norm.cdf(v),
    "bimodal": lambda v: 0.4 * stats.norm.cdf(v, -3, 0.7) + 0.6 * stats.norm.cdf(v, 2, 1.2),
    "skewed": lambda v: stats.expon.cdf(v),
    "heavy": lambda v: stats.t.cdf(v, 2),
}


def drawn(kind: str, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    if kind == "bimodal":
        left = rng.random(SAMPLES) < 0.4
        return np.where(left, rng.normal(-3, 0.7, SAMPLES), rng.normal(2, 1.2, SAMPLES))
    if kind == "skewed":
        return rng.exponential(size=SAMPLES)
    return rng.standard_t(2, SAMPLES) if kind == "heavy" else rng.normal(size=SAMPLES)


def learnt(values: Floats, batch: int, scale: float = 1.0) -> Densities:
    densities = Densities.empty(1, 1, scale=scale)
    for start in range(0, values.size, batch):
        part = values[start : start + batch, None]
        densities = updated(densities, np.zeros(len(part), np.int64), part)
    return densities


@pytest.mark.parametrize("batch", [100, 5000])
@pytest.mark.parametrize("kind", list(TRUTHS))
def test_the_share_below_is_near_the_truth_and_as_near_as_that_of_all_samples(
    kind: str, batch: int
) -> None:
    values = drawn(kind, seed=3)
    densities = learnt(values, batch)
    grid = np.quantile(values, np.linspace(0, 1, 300))
    truth = TRUTHS[kind](grid)
    ours = np.abs(cdf(densities, 0, 0, grid) - truth).max()
    assert ours <= 0.02
    everything = stats.gaussian_kde(values[::10], bw_method="silverman")  # a tenth, for its time
    theirs = max(
        abs(everything.integrate_box_1d(-np.inf, v) - t) for v, t in zip(grid, truth, strict=True)
    )
    assert ours <= theirs + 0.005


def test_the_density_is_the_slope_of_the_share_below_and_ends_with_the_observations() -> None:
    densities = learnt(drawn("skewed", 1), 1000)
    grid = np.linspace(densities.low[0, 0], densities.high[0, 0], 4001)
    slopes = np.diff(cdf(densities, 0, 0, grid)) / np.diff(grid)
    middles = (grid[1:] + grid[:-1]) / 2
    assert np.abs(pdf(densities, 0, 0, middles) - slopes).max() <= 0.01
    assert pdf(densities, 0, 0, [-0.01, 1e9]).tolist() == [0.0, 0.0]


def test_a_smaller_scale_shows_finer_detail() -> None:
    values = np.concatenate(
        [np.random.default_rng(0).normal(m, 0.05, 500) for m in (0.0, 1.0, 2.0, 3.0)]
    )
    valley = [pdf(learnt(values, 200, scale), 0, 0, [1.5])[0] for scale in (0.2, 1.0, 3.0)]
    assert valley[0] < valley[1] < valley[2]


def test_several_trees_count_by_observations_or_by_weights() -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.normal(0, 1, 3000), rng.normal(100, 1, 1000)])[:, None]
    trees = np.repeat([0, 1], [3000, 1000])
    densities = Densities.empty(3, 1).updated(trees, rows)
    assert cdf(densities, [0, 1, 2], 0, [50.0])[0] == pytest.approx(0.75)
    assert cdf(densities, [0, 1], 0, [50.0], weights=[1, 4])[0] == pytest.approx(0.2)
    assert quantile(densities, [0, 1], 0, [0.875])[0] == pytest.approx(100, abs=0.2)
    assert np.isnan(quantile(densities, 2, 0, [0.5])[0])
    assert cdf(densities, np.array([False, True, False]), 0, [50.0])[0] == 0.0


def test_a_value_met_again_and_again_is_a_step_and_has_a_bin_by_itself() -> None:
    rng = np.random.default_rng(4)
    rain = np.where(rng.random(SAMPLES) < 0.7, 0.0, rng.exponential(1e-3, SAMPLES))
    densities = learnt(rain, 1000)
    assert quantile(densities, 0, 0, [0.3, 0.69]).tolist() == [0.0, 0.0]
    assert cdf(densities, 0, 0, [0.0])[0] == pytest.approx((rain == 0).mean(), abs=0.002)
    edges = equal_mass_edges(densities, 0, 0, 16)
    counts = np.bincount(np.searchsorted(edges[1:-1], rain, side="right"))
    assert edges[1] == np.nextafter(0.0, 1.0)
    assert counts[0] == (rain == 0).sum()
    assert counts[1:].max() <= 1.2 * counts[1:].min()


def test_few_different_values_have_a_bin_each() -> None:
    values = np.random.default_rng(5).integers(0, 5, 1000).astype(float)
    edges = equal_mass_edges(learnt(values, 100), 0, 0, 16)
    assert edges[1:-1].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_trees_without_values_have_one_bin() -> None:
    densities = Densities.empty(2, 1)
    assert equal_mass_edges(densities, 0, 0, 8).tolist() == [-np.inf, np.inf]
    edges = quantised(Edges.empty(2, 1, 8), densities, np.array([1]), np.array([[8]]))
    assert edges.counts.ravel().tolist() == [0, 1]
    assert edges.quantised.tolist() == [False, True]
    with pytest.raises(ConfigError, match="1 to 8 bins, not 9"):
        quantised(edges, densities, np.array([0]), np.array([[9]]))


@pytest.mark.parametrize("kind", ["normal", "skewed", "bimodal"])
def test_the_bins_wanted_hold_the_share_of_values_that_was_asked_for(kind: str) -> None:
    values = drawn(kind, 6)
    densities = learnt(values, 1000)
    bins = int(bins_wanted(densities, np.array([0]), 128, share=0.8)[0, 0])
    edges = equal_mass_edges(densities, 0, 0, bins)
    assert 4 < bins < 128
    assert values_within_half_percent(values, edges) >= 0.8 - 1.0 / bins  # to within a bin
    coarse = equal_mass_edges(densities, 0, 0, bins // 2)
    assert values_within_half_percent(values, coarse) < 0.7
    wide = bins_wanted(densities, np.array([0]), 128, spans=np.array([1e9]))
    scarce = bins_wanted(densities, np.array([0]), 128, memory_share=0.05)
    assert (wide[0, 0], scarce[0, 0]) == (2, min(bins + 99, 6))


def test_errors_of_bins_are_those_of_their_values_against_their_mean() -> None:
    values = np.array([0.0, 0.02, 10.0, 20.0, np.nan])
    edges = np.array([-np.inf, 5.0, 15.0, 17.0, np.inf])
    errors, counts = bin_errors(values, edges)
    assert counts.tolist() == [2, 1, 0, 1]
    assert errors == pytest.approx([0.01 / 20, 0, 0, 0])
    assert values_within_half_percent(values, edges) == 1.0
    assert values_within_half_percent(values, edges, span=1.0) == 0.5
    assert values_within_half_percent(values, np.array([-np.inf, np.inf])) == 0.0


def test_a_profile_has_what_a_drawing_needs() -> None:
    values = drawn("normal", 7)
    densities = learnt(values, 1000)
    edges = equal_mass_edges(densities, 0, 0, 29)
    one = profile(densities, 0, 0, edges, values)
    assert one.grid[[0, -1]].tolist() == [values.min(), values.max()] == one.edges[[0, -1]].tolist()
    assert np.trapezoid(one.pdf, one.grid) == pytest.approx(1.0, abs=0.01)
    assert one.mass.sum() == pytest.approx(1.0)
    assert one.error.size == one.count.size == one.mass.size == 29
    assert one.count.sum() == SAMPLES
    assert one.error[0] > 5 * one.error[14]


def test_densities_of_another_version_are_refused() -> None:
    arrays = Densities.empty(1, 1).to_arrays()
    arrays["densities.version"] = np.array([99])
    with pytest.raises(StateError, match="version 99"):
        Densities.from_arrays(arrays)
