"""Leaves, folding, thinning and vertices against Python that does the same row by row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geoflux.sketch import folding, times, vertices
from geoflux.sketch.leaves import EXACT, MISSING, Leaves, grouped, merged, of_rows, total
from geoflux.sketch.schema import SketchSchema
from sketches_by_hand import (
    check_against_rows,
    check_form,
    check_identical,
    check_same,
    keys,
    random_rows,
)

NOW = 1_700_000_000


def some_rows(seed: int, n: int = 400, features: int = 3, exact: bool = False):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    values = random_rows(rng, n, features)
    region = rng.integers(0, 8, n)
    time = times.keys_of(NOW - rng.integers(0, 30, n) * 3600 * 7, times.HOUR)
    bins = rng.integers(0, 4, (n, features)).astype(np.uint8)
    if exact:
        bins[:] = EXACT
    bins[np.isnan(values)] = MISSING
    return region, time, bins, values


def row_keys(region, time, bins, grain=None):  # type: ignore[no-untyped-def]
    grain = np.zeros(region.size, int) if grain is None else grain
    return [
        (int(r), int(t), int(g), *map(int, b))
        for r, t, g, b in zip(region, time, grain, bins, strict=True)
    ]


@pytest.mark.parametrize("features", [1, 3, 8, 9, 17])
@pytest.mark.parametrize("exact", [False, True])
def test_rows_become_leaves(features: int, exact: bool) -> None:
    rows = some_rows(features, 300, features, exact)
    check_against_rows(of_rows(*rows), row_keys(*rows[:3]), rows[3])


def test_signed_and_large_keys_sort() -> None:
    region = np.array([2**59, 0, 2**59, 5])
    time = times.packed(np.array([-7200, 0, -3600, 2**40 * 3600]), times.HOUR)
    leaves = of_rows(region, time, np.zeros((4, 1), np.uint8), np.ones((4, 1)))
    check_form(leaves)
    assert leaves.time[-2:].tolist() == [-7200 * 8 + 1, -3600 * 8 + 1]


def test_merging_parts_equals_grouping_all() -> None:
    rows = some_rows(1, 900)
    parts = [of_rows(*(column[i::7] for column in rows)) for i in range(7)]
    check_against_rows(merged(parts), row_keys(*rows[:3]), rows[3])
    check_against_rows(merged(parts[::-1]), row_keys(*rows[:3]), rows[3])
    check_same(merged([merged(parts[:3]), merged(parts[3:])]), of_rows(*rows))


def test_a_part_that_is_empty_changes_nothing() -> None:
    leaves = of_rows(*some_rows(2))
    check_identical(merged([Leaves.empty(3), leaves, Leaves.empty(3)]), leaves)
    assert len(merged([Leaves.empty(3)])) == 0
    assert len(grouped(Leaves.empty(3))) == 0


def test_total_is_all_of_it() -> None:
    rng = np.random.default_rng(3)
    values = random_rows(rng, 500, 3, missing=0.0)
    leaves = of_rows(
        np.zeros(500, np.int64),
        np.ones(500, np.int64),
        rng.integers(0, 9, (500, 3)).astype(np.uint8),
        values,
    )
    one = total(leaves)
    assert one.count.tolist() == [500]
    np.testing.assert_allclose(one.mean[0], values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        one.m2[0], ((values - values.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-11
    )
    assert one.low[0].tolist() == values.min(axis=0).tolist()
    assert len(total(Leaves.empty(3))) == 0


def test_slices_and_masks_keep_the_moments() -> None:
    leaves = of_rows(*some_rows(4))
    check_identical(merged([leaves.within(0, 3), leaves.within(4, 7)]), leaves)
    mask = leaves.region % 2 == 0
    check_form(leaves.take(mask))
    check_same(merged([leaves.take(mask), leaves.take(~mask)]), leaves)
    back = Leaves.from_arrays(leaves.to_arrays("x."), 3, "x.")
    check_identical(back, leaves)


@pytest.mark.parametrize("exact", [False, True])
def test_folding_is_grouping_by_the_coarser_bin(exact: bool) -> None:
    region, time, bins, values = some_rows(5, exact=exact)
    ages = times.Ages(hour=4 * 86400, week=0)
    wanted = time.copy()
    old = times.spans(time)[1] <= NOW - ages.hour
    weeks = times.folded(time, times.WEEK)
    done = times.spans(weeks)[1] <= NOW
    wanted[old] = weeks[old]
    wanted[old & done] = times.folded(time, times.MONTH)[old & done]
    assert 0 < (old & done).sum() < old.sum() < old.size
    leaves = folding.folded(of_rows(region, time, bins, values), NOW, ages)
    check_against_rows(leaves, row_keys(region, wanted, bins), values)


def test_folding_nothing_is_the_same_object() -> None:
    leaves = of_rows(*some_rows(6))
    assert folding.folded(leaves, NOW, times.Ages()) is leaves
    assert folding.thinned(leaves, NOW, 10**9, 5) is leaves


def test_thinning_by_age() -> None:
    region, time, bins, values = some_rows(7)
    bins = np.where(bins == MISSING, MISSING, bins * 8 + 3).astype(np.uint8)
    study = 2 * 86400
    grain = np.clip((NOW - times.spans(time)[1]) // study, 0, 5)
    coarse = np.where(bins == MISSING, MISSING, bins >> grain[:, None].astype(np.uint8))
    assert set(grain.tolist()) >= {0, 1, 2, 3, 4}
    once = folding.thinned(of_rows(region, time, bins, values), NOW, study, 5)
    check_against_rows(once, row_keys(region, time, coarse, grain), values)
    step = of_rows(region, time, bins, values)
    for ago in (3, 2, 1, 0):
        step = folding.thinned(step, NOW - ago * study, study, 5)
    check_same(step, once)
    end = folding.thinned(step, NOW + 99 * study, study, 5)
    assert len(end) == len(
        {(r, t, *(b == MISSING)) for r, t, b in zip(region, time, bins, strict=True)}
    )
    check_against_rows(
        end,
        row_keys(region, time, np.where(bins == MISSING, MISSING, 0), np.full(region.size, 5)),
        values,
    )


def test_observations_stay_until_the_last_grain() -> None:
    region, time, bins, values = some_rows(8, exact=True)
    leaves = of_rows(region, time, bins, values)
    some = folding.thinned(leaves, NOW + 40 * 86400, 20 * 86400, 5)
    assert some is leaves
    end = folding.thinned(leaves, NOW + 400 * 86400, 20 * 86400, 5)
    check_against_rows(
        end,
        row_keys(region, time, np.where(bins == MISSING, MISSING, 0), np.full(region.size, 5)),
        values,
    )


def test_halving_one_tree() -> None:
    region, time, bins, values = some_rows(9)
    leaves = folding.thinned(of_rows(region, time, bins, values), NOW, 5 * 86400, 5)
    grain = np.clip((NOW - times.spans(time)[1]) // (5 * 86400), 0, 5)
    coarse = np.where(bins == MISSING, MISSING, bins >> grain[:, None].astype(np.uint8))
    mine = (region >= 2) & (region <= 4)
    fine = mine & (grain == 0)
    coarse[fine] = np.where(coarse[fine] == MISSING, MISSING, coarse[fine] >> 1)
    grain[mine & (grain > 0)] -= 1
    check_against_rows(folding.halved(leaves, 2, 4), row_keys(region, time, coarse, grain), values)


def trie_size(paths: list[tuple]) -> int:  # type: ignore[type-arg]
    """Vertices of a trie, by building it."""
    return len({path[:depth] for path in paths for depth in range(len(path) + 1)})


@pytest.mark.parametrize("exact", [False, True])
def test_vertices_are_those_of_the_trie(exact: bool) -> None:
    region, time, bins, values = some_rows(10, 200, exact=exact)
    leaves = of_rows(region, time, bins, values)
    shown = np.where(bins == EXACT, values, bins) if exact else bins
    for order in itertools.permutations(range(3)):
        paths = [(r >> 1, r, t, *(("missing" if np.isnan(v[f]) else s[f]) for f in order))
                 for r, t, s, v in zip(region, time, shown, values, strict=True)]  # fmt: skip
        size = vertices.graph_size(leaves, 1, order)
        assert size.vertices == trie_size(paths)
        assert size.leaves == len(leaves)
        assert size.edges == size.vertices + size.leaves - 1


def test_few_values_go_on_top() -> None:
    """2 and 1000 values: 2002 vertices with the small one on top, 3000 the other way round."""
    small, large = np.divmod(np.arange(2000), 1000)
    values = np.stack([large, small], axis=1).astype(float)
    leaves = of_rows(
        np.zeros(2000, np.int64),
        np.zeros(2000, np.int64),
        np.full((2000, 2), EXACT, np.uint8),
        values,
    )
    assert vertices.best_order(leaves) == (1, 0)
    top, bottom = (vertices.graph_size(leaves, 0, order).vertices for order in ((1, 0), (0, 1)))
    assert (top - 4, bottom - 4) == (2002, 3000), "besides root, tree, region and time bin"


def test_best_order_is_the_best_of_all() -> None:
    rng = np.random.default_rng(11)
    for _ in range(5):
        n = 300
        bins = np.stack([rng.integers(0, rng.integers(1, 12), n) for _ in range(4)], axis=1)
        bins[:, 3] = bins[:, 0] // 2
        leaves = of_rows(
            rng.integers(0, 4, n), np.zeros(n, np.int64), bins.astype(np.uint8), bins.astype(float)
        )
        sizes = {
            order: vertices.graph_size(leaves, 0, order).vertices
            for order in itertools.permutations(range(4))
        }
        assert sizes[vertices.best_order(leaves)] == min(sizes.values())


def test_many_features_are_ordered_one_by_one() -> None:
    rng = np.random.default_rng(12)
    bins = (rng.integers(0, 128, (500, 12)) >> np.arange(12)[::-1].clip(0, 6)).astype(np.uint8)
    leaves = of_rows(np.zeros(500, np.int64), np.zeros(500, np.int64), bins, bins.astype(float))
    order = vertices.best_order(leaves)
    assert sorted(order) == list(range(12))
    assert (
        vertices.graph_size(leaves, 0, order).vertices
        <= vertices.graph_size(leaves, 0, order[::-1]).vertices
    )


def test_sample_takes_whole_regions() -> None:
    leaves = of_rows(*some_rows(13, 2000))
    some = vertices._some_regions(leaves, 300)
    assert 0 < len(some) < len(leaves)
    for region in set(some.region.tolist()):
        assert (some.region == region).sum() == (leaves.region == region).sum()
    assert sorted(vertices.best_order(leaves, 300)) == [0, 1, 2]


def test_schema_says_what_is_wrong() -> None:
    with pytest.raises(
        ValueError, match=r"(?s)3 settings.*t came twice.*max_bins.*from 2 to 128.*bloom_error"
    ):
        SketchSchema(("t", "t"), max_bins=1, bloom_error=2.0)
    with pytest.raises(ValueError, match="1 to 20 features"):
        SketchSchema(())
    with pytest.raises(ValueError, match="regions lie within trees"):
        SketchSchema(("t",), tree_bits=12, region_bits=10)
    schema = SketchSchema(("t", "p"), finest="minute", max_bins=33)
    assert SketchSchema.from_json(schema.to_json()) == schema
    assert (schema.level, schema.last_grain) == (times.MINUTE, 6)


def test_keys_are_read_as_they_stand() -> None:
    """The check of the checks: a leaf's key is its columns."""
    leaves = of_rows(*some_rows(14, 3, 1))
    assert keys(leaves)[0][:2] == (int(leaves.region[0]), int(leaves.time[0]))
