"""Laws of a sketchlet: splits, batches, folding and thinning lose nothing.

Counts, lowest and highest values are compared exactly, moments to 1e-12 of the size of what they
are made of; against exact fractions where the test groups the rows itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.errors import StateError
from geoflux.sketch import times
from geoflux.sketch.edges import bins_of
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.leaves import EXACT, MISSING, total
from geoflux.sketch.schema import SketchSchema
from geoflux.spatial import geohash
from sketches_by_hand import (
    check_against_rows,
    check_form,
    check_identical,
    check_same,
    random_rows,
)

START = 1_767_225_600
SCHEMA = SketchSchema(
    ("t", "p", "rain"), tree_bits=4, region_bits=6, max_bins=3, steady_rows=25, components=8
)
FINE = replace(SCHEMA, max_bins=100)
"""Room for as many bins as are wanted, so that it shows on what their number depends."""
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25)


def rows(seed: int, n: int, hours: int = 2, missing: float = 0.1) -> Observations:
    """Crowded in one part of the world, so that some trees are steady and others are not."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.8, rng.normal(30, 15, n), rng.uniform(-180, 180, n))
    y = np.where(rng.random(n) < 0.8, rng.normal(30, 10, n), rng.uniform(-90, 90, n))
    time = START + rng.integers(0, hours * 3600, n)
    return Observations(x.clip(-180, 180), y.clip(-90, 90), time, random_rows(rng, n, 3, missing))


def batches(all_rows: Observations, cuts: list[int]) -> list[Observations]:
    order = np.arange(len(all_rows))
    ends = sorted({0, len(all_rows), *(cut % (len(all_rows) + 1) for cut in cuts)})
    return [all_rows.take(order[a:b]) for a, b in pairwise(ends)]


def grown(parts: list[Observations], schema: SketchSchema = SCHEMA) -> Forest:
    forest = Forest.empty(schema)
    for part in parts:
        forest = forest.ingest(part)
    return forest


def keys_by_hand(forest: Forest, observed: Observations) -> list[tuple[Any, ...]]:
    """The key that every row must have, with the forest's own edges."""
    schema = forest.schema
    region = geohash.codes(observed.x, observed.y, schema.region_bits)
    tree = np.searchsorted(forest.trees, region >> (schema.region_bits - schema.tree_bits))
    key = times.keys_of(observed.time, schema.level)
    out = []
    for i in range(len(observed)):
        bins = []
        for f in range(observed.values.shape[1]):
            value = observed.values[i, f]
            if np.isnan(value):
                bins.append(MISSING)
            elif forest.edges.counts[tree[i], f] == 0:
                bins.append(EXACT)
            else:
                edges = forest.edges.of(int(tree[i]), f)
                bins.append(int(np.flatnonzero((edges[:-1] <= value) & (value < edges[1:]))[0]))
        out.append((int(region[i]), int(key[i]), 0, *bins))
    return out


def check_same_sets(some: Forest, others: Forest) -> None:
    """Sets depend on nothing but the rows of their tree."""
    for name, array in some.sets.to_arrays().items():
        np.testing.assert_array_equal(array, others.sets.to_arrays()[name], err_msg=name)


@few
@given(seeds, st.lists(st.integers(0, 10**6), max_size=12))
def test_ingest_in_any_batches_is_a_group_by(seed: int, cuts: list[int]) -> None:
    observed = rows(seed, 500)
    forest = grown(batches(observed, cuts))
    assert 0 < forest.edges.quantised.sum() < forest.trees.size
    check_against_rows(forest.leaves(), keys_by_hand(forest, observed), observed.values)
    assert forest.observations == len(observed)
    assert forest.latest == observed.time.max()
    tree = geohash.codes(observed.x, observed.y, SCHEMA.tree_bits)
    seen, counts = np.unique(tree, return_counts=True)
    assert forest.trees.tolist() == seen.tolist()
    assert forest.rows.tolist() == counts.tolist()
    assert (forest.edges.quantised == (counts >= SCHEMA.steady_rows)).all()


@few
@given(seeds, st.lists(st.integers(0, 10**6), max_size=6), st.integers(0, 4), st.data())
def test_any_split_and_merge_equals_the_unsplit_sketch(
    seed: int, cuts: list[int], bits: int, data: st.DataObject
) -> None:
    """Split before, amid or after: parts that each ingest their own rows, joined in any order."""
    schema = data.draw(st.sampled_from([SCHEMA, FINE]))
    parts = batches(rows(seed, 600), cuts)
    amid = data.draw(st.integers(0, len(parts)))
    whole = grown(parts, schema)
    pieces = []
    for code in range(2**bits):
        piece = grown(parts[:amid], schema).cut(code, bits)
        for part in parts[amid:]:
            piece = piece.ingest(part.take(geohash.codes(part.x, part.y, bits) == code))
        pieces.append(piece)
    joined = Forest.empty(schema)
    for piece in data.draw(st.permutations(pieces)):
        joined = joined.joined(piece)
    check_same(joined.leaves(), whole.leaves())
    assert joined.trees.tolist() == whole.trees.tolist()
    assert joined.rows.tolist() == whole.rows.tolist()
    np.testing.assert_array_equal(joined.edges.values, whole.edges.values)
    np.testing.assert_array_equal(joined.densities.mixtures, whole.densities.mixtures)
    check_same_sets(joined, whole)
    later = rows(seed + 1, 200)
    check_same(joined.ingest(later).leaves(), whole.ingest(later).leaves())


@few
@given(seeds, st.lists(st.integers(0, 10**6), max_size=8), st.integers(1, 4))
def test_cutting_and_joining_gives_the_same_bits(seed: int, cuts: list[int], bits: int) -> None:
    whole = grown(batches(rows(seed, 400), cuts))
    pieces = [whole.cut(code, bits) for code in range(2**bits)]
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = joined.joined(piece)
    check_identical(joined.leaves(), whole.leaves())
    assert joined.observations == whole.observations
    assert sum(piece.trees.size for piece in pieces) == whole.trees.size


@few
@given(seeds, st.lists(st.integers(0, 400), min_size=1, max_size=4))
def test_folding_and_thinning_preserve_totals(seed: int, days: list[int]) -> None:
    """Whatever ages, in whatever order: nothing that was observed is lost or moved elsewhere."""
    observed = rows(seed, 500, hours=24 * 60, missing=0.0)
    parts = batches(observed, [seed, seed // 7, seed // 11])
    forest, plain = Forest.empty(SCHEMA), Forest.empty(SCHEMA)
    for i, part in enumerate(parts):
        forest, plain = forest.ingest(part), plain.ingest(part)
        now = START + days[i % len(days)] * 86400
        forest = forest.folded(now, times.Ages(hour=3 * 86400, week=20 * 86400, month=90 * 86400))
        forest = forest.thinned(now, 10 * 86400)
    check_form(forest.leaves())
    for region in np.unique(plain.leaves().region):
        some, others = (total(f.leaves().within(region, region)) for f in (forest, plain))
        keys = {"region": some.region, "time": some.time, "grain": some.grain, "bins": some.bins}
        check_same(some, replace(others, **keys))
    hours = (np.arange(24) * 3600)[None, :]
    for f in (forest, plain):
        of_day = (times.starts(f.leaves().time) % 86400)[:, None] == hours
        counts = (f.leaves().count[:, None] * of_day).sum(axis=0)
        assert counts.tolist() == np.bincount(observed.time % 86400 // 3600, minlength=24).tolist()
    steps = forest.folded(START + 10**8).thinned(START + 10**8, 86400)
    check_same(forest.aged(START + 10**8, times.Ages(), 86400).leaves(), steps.leaves())
    end = forest.folded(START + 10**9).thinned(START + 10**9, 86400).leaves()
    assert len(end) == len(set(zip(end.region.tolist(), end.time.tolist(), strict=True)))
    assert (times.levels(end.time) == times.YEAR).all()


@few
@given(seeds, st.lists(st.integers(0, 10**6), max_size=8))
def test_arrays_round_trip(seed: int, cuts: list[int]) -> None:
    forest = grown(batches(rows(seed, 300), cuts)).thinned(START + 86400, 86400)
    arrays = forest.to_arrays()
    assert all(array.ndim == 1 for array in arrays.values())
    for array in arrays.values():
        array.flags.writeable = False  # as those of a mapped segment
    again = Forest.from_arrays(SCHEMA, arrays)
    assert again.to_arrays().keys() == arrays.keys()
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    later = rows(seed + 1, 100)
    check_identical(again.ingest(later).leaves(), forest.ingest(later).leaves())
    assert again.order == forest.order
    assert again.latest == forest.latest


def test_sets_fold_with_the_hours() -> None:
    """A week and four weeks and a year: bounds nest, and what was met is met again."""
    observed = rows(11, 300, hours=24 * 100)
    forest = grown([observed])
    ages = times.Ages(hour=20 * 86400, week=50 * 86400, month=80 * 86400)
    folded = forest.folded(START + 100 * 86400, ages)
    lengths = {(last - first) // 86400 for _, first, last in folded.sets.blocks}
    assert lengths == {1, 7, 28, 364}
    assert len(folded.sets.blocks) < len(forest.sets.blocks)
    for item in (forest.sets.shape.combination(observed.values[i]) for i in range(20)):
        assert folded.sets.frequency(item).value == forest.sets.frequency(item).value
    again = folded.folded(START + 100 * 86400, ages)
    assert again is folded, "nothing is left to fold"


def test_infinite_values_are_missing_and_no_rows_are_nothing() -> None:
    observed = rows(1, 50, missing=0.0)
    observed.values[::3, 1] = np.inf
    observed.values[1::3, 2] = -np.inf
    forest = grown([observed])
    leaves = forest.leaves()
    assert [int(leaves.count[leaves.bins[:, f] == MISSING].sum()) for f in range(3)] == [0, 17, 17]
    assert np.isfinite(forest.leaves().mean).all()
    assert forest.ingest(observed.take(np.zeros(50, np.bool_))) is forest
    assert len(Forest.empty(SCHEMA).leaves()) == 0
    assert Forest.empty(SCHEMA).vertices().vertices == 1


def test_a_feature_that_nobody_measures() -> None:
    observed = rows(2, 300, missing=0.0)
    observed.values[:, 1] = np.nan
    forest = grown([observed]).quantised()
    assert forest.edges.quantised.all()
    assert (forest.leaves().bins[:, 1] == MISSING).all()
    check_against_rows(forest.leaves(), keys_by_hand(forest, observed), observed.values)
    observed.values[:, 1] = 3.0
    forest.ingest(observed).leaves()


def test_bins_are_made_once() -> None:
    first, second = rows(3, 400), rows(4, 400)
    once = grown([first]).quantised()
    twice = once.ingest(second)
    kept = np.isin(twice.trees, once.trees)
    np.testing.assert_array_equal(twice.edges.values[kept], once.edges.values)
    found = bins_of(twice.edges, np.zeros(1, np.int64), np.full((1, 3), np.nan))
    assert (found == MISSING).all()


def test_halving_the_bins_of_a_tree() -> None:
    observed = rows(5, 600)
    forest = grown([observed]).quantised()
    tree = int(forest.trees[np.argmax(forest.rows)])
    half = forest.halved(tree)
    check_against_rows(half.leaves(), keys_by_hand(half, observed), observed.values)
    assert len(half.leaves()) < len(forest.leaves())
    with pytest.raises(ValueError, match="no tree 999"):
        forest.halved(999)


def test_full_resolution_has_more_vertices() -> None:
    observed = rows(6, 3000)
    full = grown([observed], replace(SCHEMA, steady_rows=10**6))
    few_bins = grown([observed]).quantised()
    assert full.vertices().leaves == 3000
    assert few_bins.vertices().vertices < 0.8 * full.vertices().vertices
    best = few_bins.vertices(few_bins.best_order()).vertices
    assert best <= few_bins.vertices((2, 1, 0)).vertices


def test_the_order_is_measured_as_the_sketch_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geoflux.sketch.ingesting.FIRST_ORDER", 50)
    observed = rows(7, 400, missing=0.0)
    observed.values[:, 2] = 1.0
    forest = grown(batches(observed, [100, 200]))
    assert forest.order[0] == 2, "a feature of one value is on top"
    assert forest.measured > 50


def test_what_cannot_be_joined_or_cut() -> None:
    forest = grown([rows(8, 100)])
    with pytest.raises(StateError, match="trees are in both sketches"):
        forest.joined(forest)
    with pytest.raises(StateError, match="different schemas"):
        forest.joined(Forest.empty(replace(SCHEMA, max_bins=7)))
    with pytest.raises(ValueError, match="0 to 4 bits, not 5"):
        forest.cut(0, 5)
    with pytest.raises(ValueError, match="rows have 2 values"):
        forest.ingest(replace(rows(8, 10), values=np.zeros((10, 2))))
    with pytest.raises(ValueError, match="as many places, times and values"):
        replace(rows(8, 10), time=np.zeros(3, np.int64))


def test_wide_spans_need_fewer_bins() -> None:
    observed = rows(9, 800)
    fine = grown([observed]).quantised()
    coarse = grown([observed], replace(SCHEMA, spans=(1e4, 1e6, 1e4))).quantised()
    assert coarse.edges.counts.max() == 2 < fine.edges.counts.max()


def test_bytes_are_those_of_its_arrays() -> None:
    forest = grown([rows(10, 500)])
    assert forest.leaves().nbytes < forest.bytes
    assert forest.compacted().bytes <= forest.bytes
    check_identical(forest.compacted().leaves(), forest.leaves())
