"""How users are put into clusters: 2-means again and again, rates, company by hotspots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoflux.balance.tuning import Tuning
from geoflux.guard import Summary
from geoflux.guard.clusters import alqr, divide, two_means
from geoflux.guard.features import X3, X11, X14
from guard_by_hand import (
    PUBLISHED,
    ROBUST,
    table,
    warm,
)


def test_guards_factor_is_not_swarms_beta() -> None:
    """Trap 9."""
    assert (ROBUST.factor, Tuning().beta) == (3.0, 20)


def test_the_cluster_that_aims_at_hotspots_is_found() -> None:
    rows = {f"n{i}": {X14: 0.05 + i / 1000} for i in range(20)}
    rows |= {f"m{i}": {X14: 0.9, X11: 7.0, X3: 1.0} for i in range(4)}
    found = divide(table(rows), PUBLISHED, seed=1)
    assert sorted(found.suspicious.tolist()) == [20, 21, 22, 23]
    assert found.spread == 0.0
    assert found.suspicious_rate == pytest.approx(0.9)


@pytest.mark.parametrize("rows", [{}, {"a": {X14: 1.0}}, {n: {X14: 0.5, X11: 3.0} for n in "abcd"}])
def test_a_cluster_that_cannot_be_split_ends_the_loop(rows: dict[str, dict[int, float]]) -> None:
    """Trap 10: nobody, one user, identical rows."""
    found = divide(table(rows), PUBLISHED, seed=1)
    assert found.splits == 0
    assert len(found.suspicious) == len(rows)


def test_rows_that_differ_by_less_than_rounding_end_the_loop() -> None:
    points = np.full((5, 3), 0.1)
    points[0, 0] = np.nextafter(0.1, 1.0)
    assert two_means(points, seed=1, sample=100) is None or two_means(points, 1, 100).sum() in (
        1,
        4,
    )


def test_large_clusters_are_split_by_a_sample() -> None:
    points = np.vstack((np.zeros((3000, 2)), np.ones((50, 2))))
    second = two_means(points, seed=3, sample=500)
    assert second is not None
    assert sorted([int(second.sum()), int((~second).sum())]) == [50, 3000]


def test_the_rate_of_nobody_is_zero() -> None:
    assert alqr(np.empty(0)) == 0.0


def test_colliding_sums_look_like_company_as_published_only() -> None:
    """Trap 12: {1, 4} and {2, 3} were never together, and have the same sum."""
    spreads = {}
    for tuning in (PUBLISHED, ROBUST):
        stage = warm(replace(tuning, spread=0.0))
        table = stage.guard._table
        table.rows_of(["a", "b"])
        for hotspot, user in ((1, "a"), (2, "b"), (3, "b"), (4, "a")):
            counts = np.array([[9, 0, 0, 0, 0, 0]], np.int64)
            table.involve(hotspot, Summary("plan", 0, hotspot, 5, (user,), counts, 9), 5)
        features = table.close()
        pair = [features.users.index(user) for user in "ab"]
        spreads[tuning.mode] = float(features.normalised()[pair, X11].std())
    assert spreads["published"] == 0.0
    assert spreads["robust"] > 0.0
