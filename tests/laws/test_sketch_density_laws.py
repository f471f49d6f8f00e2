"""Laws of the sketch's densities, bins and sets: nothing is lost by merging, splitting, batching."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from geoflux.sketch.density import Densities, cdf, equal_mass_edges, quantile, quantised
from geoflux.sketch.edges import EXACT, MISSING, Edges, bins_of
from geoflux.sketch.hashing import words_of
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.sets import Scope, Sets

Floats = npt.NDArray[np.float64]

plain = st.floats(-1e6, 1e6, allow_subnormal=False)
some = plain | st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf])
seeds = st.integers(0, 2**32 - 1)
SCHEMA = SketchSchema(
    ("a", "b"), bloom_items=40, bloom_error=0.1, frequency_error=0.1, hll_lg_k=4, set_seconds=60
)


@st.composite
def samples(draw: st.DrawFn) -> Floats:
    """Values with repeats, gaps and far outliers, more than a mixture has components."""
    rng = np.random.default_rng(draw(seeds))
    size = draw(st.integers(1, 400))
    values = rng.standard_t(draw(st.sampled_from([1.5, 5.0, 50.0])), size)
    values *= draw(st.sampled_from([1e-11, 1e-3, 1.0, 1e4]))  # the first: neighbouring numbers
    values += draw(st.sampled_from([0.0, 300.0, 1e5]))
    alike = rng.random(size) < draw(st.sampled_from([0.0, 0.3, 0.9]))
    return np.where(alike, values[0], values)


def learnt(values: Floats, batch: int, components: int = 8) -> Densities:
    densities = Densities.empty(1, 1, components)
    for start in range(0, values.size, batch):
        part = values[start : start + batch, None]
        densities = densities.updated(np.zeros(len(part), np.int64), part)
    return densities


@given(samples(), st.integers(1, 500), st.sampled_from([4, 8, 24]))
def test_a_mixture_keeps_count_mean_variance_and_range_of_its_samples(
    values: Floats, batch: int, components: int
) -> None:
    densities = learnt(values, batch, components)
    mean, variance = densities.moments
    assert densities.total[0, 0] == densities.weight.sum() == values.size
    assert (densities.low[0, 0], densities.high[0, 0]) == (values.min(), values.max())
    spread, last_digit = values.std(), 1e-14 * np.abs(values).max()
    assert abs(mean[0, 0] - values.mean()) <= 1e-9 * spread + last_digit
    assert (
        abs(variance[0, 0] - values.var()) <= (1e-9 * spread + last_digit) * spread + last_digit**2
    )
    used = densities.weight[0, 0] > 0
    assert (np.diff(densities.mean[0, 0][used]) >= 0).all()


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 60), st.just(2)), elements=some), seeds)
def test_trees_and_features_do_not_touch_each_other(rows: Floats, seed: int) -> None:
    trees = np.random.default_rng(seed).integers(0, 3, len(rows))
    together = Densities.empty(3, 2, 4).updated(trees, rows)
    for tree in range(3):
        mine = rows[trees == tree]
        for feature in range(2):
            column = mine[:, feature : feature + 1]
            alone = Densities.empty(1, 1, 4).updated(np.zeros(len(mine), np.int64), column)
            assert together.total[tree, feature] == np.isfinite(column).sum()
            assert np.array_equal(alone.mixtures[0, 0], together.mixtures[tree, feature])
    odd, even = together.cut(np.array([1])), together.cut(np.array([True, False, True]))
    back = odd.joined(even, np.array([1, 0, 2]))
    assert np.array_equal(back.mixtures, together.mixtures)
    assert np.array_equal(back.totals, together.totals)
    restored = Densities.from_arrays(back.to_arrays())
    assert np.array_equal(restored.mixtures, together.mixtures)


@given(samples(), st.integers(1, 500))
def test_the_share_below_rises_from_zero_to_one_and_quantiles_are_its_inverse(
    values: Floats, batch: int
) -> None:
    densities = learnt(values, batch)
    low, high = values.min(), values.max()
    grid = np.linspace(low, high, 200)
    below = cdf(densities, 0, 0, grid)
    assert (np.diff(below) >= -1e-9).all()
    assert (below >= -1e-9).all()
    assert below[-1] == 1.0
    assert cdf(densities, 0, 0, [np.nextafter(low, -np.inf), high]).tolist() == [0.0, 1.0]
    shares = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    found = quantile(densities, 0, 0, shares)
    assert (np.diff(found) >= 0).all()
    assert found[0] >= low
    assert found[-1] == high
    if high - low <= 1e-6 * np.abs(values).max():
        return  # too few numbers lie between them to look to both sides of one
    step = 1e-8 * (high - low)
    assert (cdf(densities, 0, 0, found + step) >= shares - 1e-6).all()
    assert (cdf(densities, 0, 0, found - step)[1:] <= shares[1:] + 1e-6).all()


@given(samples(), st.integers(2, 40))
def test_edges_ascend_within_what_was_observed(values: Floats, bins: int) -> None:
    densities = learnt(values, 100)
    edges = equal_mass_edges(densities, 0, 0, bins)
    assert 2 <= edges.size <= bins + 1
    assert (edges[0], edges[-1]) == (-np.inf, np.inf)
    assert (np.diff(edges) > 0).all()
    assert (edges[1:-1] > values.min()).all()
    assert (edges[1:-1] <= values.max()).all()
    many = quantised(Edges.empty(1, 1, 40), densities, np.array([0]), np.array([[bins]]))
    assert np.array_equal(many.of(0, 0), edges)


@given(seeds, st.integers(2, 32), st.sampled_from(["normal", "exponential", "uniform"]))
@settings(max_examples=20)
def test_bins_have_equal_mass(seed: int, bins: int, kind: str) -> None:
    values = getattr(np.random.default_rng(seed), kind)(size=3000)
    densities = learnt(values, 500, components=24)
    edges = equal_mass_edges(densities, 0, 0, bins)
    assert edges.size == bins + 1
    mass = np.diff(np.concatenate([[0.0], cdf(densities, 0, 0, edges[1:-1]), [1.0]]))
    assert np.abs(mass - 1.0 / bins).max() <= 0.1 / bins  # straight lines between points
    counts = np.bincount(np.searchsorted(edges[1:-1], values, side="right"), minlength=bins)
    assert np.abs(counts / values.size - 1.0 / bins).max() <= 0.05


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 50), st.just(2)), elements=some),
    st.lists(st.lists(plain, max_size=100, unique=True), min_size=2, max_size=2),
    st.integers(0, 1),
)
@example(np.array([[1.0, np.nan], [-np.inf, np.inf]]), [[1.0], []], 0)
def test_bins_are_those_of_searchsorted_and_halving_halves_them(
    rows: Floats, inner: list[list[float]], tree: int
) -> None:
    sorted_edges = [np.sort(np.array(one, np.float64)) for one in inner]
    edges = Edges.empty(2, 2, 128).set_tree(tree, sorted_edges)
    index = np.full(len(rows), tree)
    found = bins_of(edges, index, rows)
    halves = bins_of(edges.halved(np.arange(2) == tree), index, rows)
    for feature, one in enumerate(sorted_edges):
        column = rows[:, feature]
        there = ~np.isnan(column)
        wanted = np.searchsorted(one, column[there], side="right")
        assert np.array_equal(found[there, feature], wanted)
        assert np.array_equal(halves[there, feature], wanted >> 1)
        assert (found[~there, feature] == MISSING).all()
        low, high = edges.bounds(tree, feature, wanted >> 1, 1)
        assert ((low <= column[there]) & ((column[there] < high) | (high == np.inf))).all()
    other = bins_of(edges, 1 - index, rows)
    assert np.array_equal(other == MISSING, np.isnan(rows))
    assert (other[~np.isnan(rows)] == EXACT).all()


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.just(2)), elements=some),
    st.integers(1, 15),
)
def test_rounding_is_near_and_final(rows: Floats, digits: int) -> None:
    rows = np.where(np.abs(rows) < 1e-30, 0.0, rows)  # what single precision can hold
    words = words_of(rows, digits)
    again = words.view(np.float32 if digits <= 6 else np.float64).astype(np.float64)
    assert np.array_equal(words_of(again, digits), words)
    finite = np.isfinite(rows) & (rows != 0.0)
    unit = 10.0 ** (np.floor(np.log10(np.abs(rows[finite]))) - digits + 1)
    slack = 1e-7 if digits <= 6 else 1e-15
    near = 0.5 * unit * (1 + 1e-9) + slack * np.abs(rows[finite])
    assert (np.abs(again[finite] - rows[finite]) <= near).all()


@st.composite
def streams(draw: st.DrawFn) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    rng = np.random.default_rng(draw(seeds))
    size = draw(st.integers(1, 400))
    values = rng.integers(0, draw(st.sampled_from([2, 30, 10**6])), (size, 2)) / 7.0
    values[rng.random((size, 2)) < 0.1] = np.nan
    return rng.integers(0, draw(st.integers(1, 3)), size), rng.integers(-90, 90, size), values


@given(streams(), st.integers(1, 300), seeds)
@settings(max_examples=60)
def test_sets_of_a_split_stream_merge_to_the_sets_of_the_whole(
    stream: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats], batch: int, seed: int
) -> None:
    trees, times, values = stream
    whole = Sets.empty(SCHEMA).updated(trees, times, values)
    parts = [Sets.empty(SCHEMA), Sets.empty(SCHEMA)]
    rng = np.random.default_rng(seed)
    order = rng.permutation(trees.size)
    for start in range(0, trees.size, batch):
        rows = order[start : start + batch]
        mine = rng.integers(0, 2)
        parts[mine] = parts[mine].updated(trees[rows], times[rows], values[rows])
    merged = parts[0].joined(parts[1])
    assert merged.to_bytes() == whole.to_bytes()
    assert merged.cardinality() == whole.cardinality()
    scope = Scope(np.array([0]), 0, 60)
    for row in values[:5]:
        item = whole.shape.combination(row)
        assert merged.frequency(item, scope) == whole.frequency(item, scope)
        assert merged.member(item) == whole.member(item)
    apart = whole.cut(np.array([0])).joined(whole.cut(np.array([1, 2])))
    assert apart.to_bytes() == whole.to_bytes()
    folded = [part.folded(120, 120) for part in (merged, whole)]
    assert folded[0].to_bytes() == folded[1].to_bytes()
    restored = Sets.from_bytes(whole.to_bytes())
    assert restored.to_bytes() == whole.to_bytes()
    assert restored.cardinality() == whole.cardinality()
    assert Sets.from_arrays(SCHEMA, whole.to_arrays()).to_bytes() == whole.to_bytes()


@given(streams())
@settings(max_examples=40)
def test_what_came_is_found_and_never_counted_too_low(
    stream: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats],
) -> None:
    trees, times, values = stream
    sets = Sets.empty(SCHEMA).updated(trees, times, values)
    words = words_of(values, SCHEMA.set_decimals)
    for i in range(0, len(values), 29):
        item = sets.shape.combination(values[i])
        assert sets.member(item).found
        truth = (words == words[i]).all(axis=1).sum()
        answer = sets.frequency(item)
        assert answer.low <= truth <= answer.high or answer.confidence < 1.0
        assert truth <= answer.value
        if not np.isnan(values[i, 1]):
            item = sets.shape.value(1, values[i, 1])
            assert sets.member(item).found
            assert (words[:, 1] == words[i, 1]).sum() <= sets.frequency(item).value


@pytest.mark.parametrize("pieces", [1, 7])
def test_replayed_batches_give_the_same_bits(pieces: int) -> None:
    values = np.random.default_rng(5).normal(size=(500, 2))
    trees = np.arange(500) % 3
    runs = []
    for _ in range(2):
        densities = Densities.empty(3, 2)
        for rows in np.array_split(np.arange(500), pieces):
            densities = densities.updated(trees[rows], values[rows])
        runs.append(densities)
    assert runs[0].mixtures.tobytes() == runs[1].mixtures.tobytes()
