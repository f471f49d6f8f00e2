"""Sketches the slow way: group rows in Python, sum them exactly, and compare."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np

from geoflux.sketch.leaves import EXACT, MISSING, Leaves

Key = tuple[Any, ...]
TOLERANCE = 1e-12


def random_rows(
    rng: np.random.Generator, n: int, features: int, missing: float = 0.1
) -> np.ndarray:
    """Values like those of weather: some far from zero, some with a spike, some missing."""
    offset = np.resize([280.0, 101_000.0, 0.0, -5.0], features)
    scale = np.resize([10.0, 800.0, 1.0, 6.0], features)
    values = offset + scale * rng.standard_normal((n, features))
    values[:, ::3] = np.round(values[:, ::3], 1)
    values[rng.random((n, features)) < missing] = np.nan
    return values


def keys(leaves: Leaves) -> list[Key]:
    """The key of every leaf, as a tuple."""
    return [
        (int(r), int(t), int(g), *map(int, b))
        for r, t, g, b in zip(leaves.region, leaves.time, leaves.grain, leaves.bins, strict=True)
    ]


def check_form(leaves: Leaves) -> None:
    """What every list of leaves promises: sorted, unique, moments where there are several."""
    found = keys(leaves)
    assert found == sorted(found)
    binned = [key for key in found if EXACT not in key[3:]]
    assert len(set(binned)) == len(binned)
    many = leaves.count > 1
    assert leaves.heavy[many].tolist() == list(range(int(many.sum())))
    assert (leaves.heavy[~many] == -1).all()
    assert len(leaves.m2) == len(leaves.low) == len(leaves.high) == len(leaves.cross) == many.sum()
    assert (leaves.mean[leaves.bins == MISSING] == 0.0).all()
    assert (leaves.lows <= leaves.mean).all()
    assert (leaves.mean <= leaves.highs).all()
    assert (leaves.m2 >= 0.0).all()


def exact_moments(values: np.ndarray) -> dict[str, Any]:
    """Count, ends and moments of rows, without rounding until the end."""
    rows = [[Fraction(0) if np.isnan(v) else Fraction(float(v)) for v in row] for row in values]
    n, features = len(rows), len(rows[0])
    mean = [sum((row[f] for row in rows), Fraction(0)) / n for f in range(features)]
    apart = [[row[f] - mean[f] for f in range(features)] for row in rows]

    def product(a: int, b: int) -> float:
        return float(sum((d[a] * d[b] for d in apart), Fraction(0)))

    return {
        "count": n,
        "mean": [float(m) for m in mean],
        "low": [float(min(row[f] for row in rows)) for f in range(features)],
        "high": [float(max(row[f] for row in rows)) for f in range(features)],
        "m2": [product(f, f) for f in range(features)],
        "cross": [product(a, b) for a in range(features) for b in range(a + 1, features)],
    }


def check_against_rows(leaves: Leaves, row_keys: list[Key], values: np.ndarray) -> None:
    """Leaves equal a group-by over the rows: counts and ends exactly, moments to 1e-12.

    An observation without bins is a leaf by itself, so those are compared as a list.
    """
    check_form(leaves)
    groups: dict[Key, list[int]] = defaultdict(list)
    singles: list[Key] = []
    for i, key in enumerate(row_keys):
        if EXACT in key[3:]:
            singles.append((key, *np.nan_to_num(values[i]).tolist()))
        else:
            groups[key].append(i)
    found = keys(leaves)
    assert sorted(singles) == sorted(
        (key, *leaves.mean[i].tolist()) for i, key in enumerate(found) if EXACT in key[3:]
    )
    assert sorted(groups) == [key for key in found if EXACT not in key[3:]]
    for i, key in enumerate(found):
        if EXACT not in key[3:]:
            check_moments(leaves, i, exact_moments(values[groups[key]]))


def check_moments(leaves: Leaves, i: int, wanted: dict[str, Any]) -> None:
    """One leaf against exact moments."""
    assert leaves.count[i] == wanted["count"]
    assert leaves.lows[i].tolist() == wanted["low"]
    assert leaves.highs[i].tolist() == wanted["high"]
    size = np.maximum(np.abs(leaves.lows[i]), np.abs(leaves.highs[i]))
    np.testing.assert_array_less(np.abs(leaves.mean[i] - wanted["mean"]), TOLERANCE * size + 1e-300)
    if leaves.count[i] == 1:
        return
    h = leaves.heavy[i]
    # Relative to the moment about the mean, and to what rounding of the values themselves leaves.
    spread = leaves.highs[i] - leaves.lows[i] + 1e-3 * size
    a, b = np.triu_indices(size.size, 1)
    n = leaves.count[i]
    np.testing.assert_array_less(
        np.abs(leaves.m2[h] - wanted["m2"]), TOLERANCE * n * spread**2 + 1e-300
    )
    np.testing.assert_array_less(
        np.abs(leaves.cross[h] - wanted["cross"]), TOLERANCE * n * spread[a] * spread[b] + 1e-300
    )


def check_same(some: Leaves, others: Leaves) -> None:
    """Two lists of leaves of the same rows: keys, counts, ends exactly, moments to 1e-12."""
    assert keys(some) == keys(others)
    np.testing.assert_array_equal(some.count, others.count)
    np.testing.assert_array_equal(some.lows, others.lows)
    np.testing.assert_array_equal(some.highs, others.highs)
    size = np.maximum(np.abs(some.lows), np.abs(some.highs))
    assert (np.abs(some.mean - others.mean) <= TOLERANCE * size).all()
    many = some.count > 1
    spread = (some.highs - some.lows + 1e-3 * size)[many]
    n = some.count[many][:, None]
    a, b = np.triu_indices(some.features, 1)
    assert (np.abs(some.m2 - others.m2) <= TOLERANCE * n * spread**2).all()
    assert (np.abs(some.cross - others.cross) <= TOLERANCE * n * spread[:, a] * spread[:, b]).all()


def check_identical(some: Leaves, others: Leaves) -> None:
    """The same bits."""
    for name, column in some.to_arrays().items():
        np.testing.assert_array_equal(column, others.to_arrays()[name], err_msg=name)
