"""However many leaves there is room for: totals stay, and no more are kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from geoflux.bench.synopsis_truth import widest_grain
from geoflux.sketch.bounding import bounded
from geoflux.sketch.leaves import MISSING, Leaves, of_rows
from geoflux.sketch.leaves import merged as merged_leaves
from geoflux.sketch.spreads import quantiles

FEATURES, LAST = 3, 4


@st.composite
def observed(draw: st.DrawFn) -> tuple[Leaves, npt.NDArray[np.float64], Leaves]:
    """Leaves of some rows, the rows, and more leaves that come later."""
    count = draw(st.integers(0, 60))
    seed = draw(st.integers(0, 1 << 20))
    dice = np.random.default_rng(seed)
    region, time = np.sort(dice.integers(0, 3, count)), dice.integers(0, 2, count) * 8 + 1
    bins = dice.integers(0, 1 << LAST, (count, FEATURES)).astype(np.uint8)
    bins[dice.random((count, FEATURES)) < draw(st.sampled_from([0.0, 0.2]))] = MISSING
    values = np.where(bins == MISSING, np.nan, bins + dice.random((count, FEATURES)))
    cut = draw(st.integers(0, count))
    first = of_rows(region[:cut], time[:cut], bins[:cut], values[:cut])
    then = of_rows(region[cut:], time[cut:], bins[cut:], values[cut:])
    return first, values, then


def groups(leaves: Leaves) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for place, key in enumerate(zip(leaves.region.tolist(), leaves.time.tolist(), strict=True)):
        found.setdefault(key, []).append(place)
    return found


@given(observed(), st.integers(1, 9))
def test_totals_stay_and_no_region_has_too_many(
    given_rows: tuple[Leaves, npt.NDArray[np.float64], Leaves], most: int
) -> None:
    first, values, then = given_rows
    before = bounded(first, most, LAST)
    leaves = bounded(merged_leaves([before, then]), most, LAST)
    assert leaves.count.sum() == len(values)
    present = leaves.bins != MISSING
    for f in range(FEATURES):
        mine = values[:, f][~np.isnan(values[:, f])]
        assert (leaves.count * present[:, f]).sum() == len(mine)
        if len(mine):
            total = (leaves.count * leaves.mean[:, f])[present[:, f]].sum()
            np.testing.assert_allclose(total, mine.sum(), rtol=1e-12)
            assert leaves.lows[present[:, f], f].min() == mine.min()
            assert leaves.highs[present[:, f], f].max() == mine.max()
    for places in groups(leaves).values():
        grains = leaves.grain[places]
        if len(places) > most:
            assert (grains == LAST).all(), "nothing is left to merge"
            patterns = {tuple(row) for row in present[places].tolist()}
            assert len(patterns) == len(places)
    again = bounded(leaves, most, LAST)
    assert again is leaves


@given(observed(), st.integers(1, 9))
def test_what_has_room_is_as_it_was_and_values_lie_in_their_bins(
    given_rows: tuple[Leaves, npt.NDArray[np.float64], Leaves], most: int
) -> None:
    first, _, _ = given_rows
    leaves = bounded(first, most, LAST)
    kept = groups(leaves)
    for key, places in groups(first).items():
        if len(places) <= most:
            assert (leaves.grain[kept[key]] == 0).all()
            assert len(kept[key]) == len(places)
    for place in range(len(leaves)):
        for f in range(FEATURES):
            b, g = int(leaves.bins[place, f]), int(leaves.grain[place])
            if b != MISSING:
                assert b << g <= leaves.lows[place, f]
                assert leaves.highs[place, f] < (b + 1) << g


def test_no_limit_changes_nothing() -> None:
    rows = np.arange(6)
    leaves = of_rows(rows * 0, rows * 0 + 1, rows[:, None].astype(np.uint8), rows[:, None] + 0.5)
    assert bounded(leaves, 0, LAST) is leaves
    assert len(bounded(leaves, 3, LAST)) == 3


@given(observed(), st.integers(1, 9), st.integers(0, FEATURES - 1), st.floats(0.01, 0.99))
def test_a_quantile_is_within_one_bin_as_wide_as_leaves_there_have_it(
    given_rows: tuple[Leaves, npt.NDArray[np.float64], Leaves], most: int, f: int, share: float
) -> None:
    first, values, then = given_rows
    leaves = bounded(merged_leaves([first, then]), most, LAST)
    has = leaves.bins[:, f] != MISSING
    if not has.any():
        return
    n = leaves.count[has].astype(np.float64)
    ends = leaves.lows[has, f], leaves.mean[has, f], leaves.highs[has, f]
    found = quantiles(np.array([0, len(n)]), n, n, n, *ends, np.array([share]))[:, 0, 0]
    mine = values[:, f][~np.isnan(values[:, f])]
    truth = float(np.quantile(mine, share, method="inverted_cdf"))
    assert found[1] <= truth <= found[2]
    wide = widest_grain(leaves, int(truth), f)
    assert abs((int(found[0]) >> wide) - (int(truth) >> wide)) <= 1
