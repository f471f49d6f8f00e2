"""Outliers by Chebyshev's inequality: whatever the distribution, at most ``1 / k**2`` of all
observations are further from their mean than ``k`` deviations."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from geoflux.sketch.measures import Measure, bounded, exact
from geoflux.sketch.pools import Pool
from geoflux.sketch.range_cover import counts_above
from geoflux.sketch.spreads import spreads_of
from geoflux.sketch.statistics import count, mean, variance


def outliers(pool: Pool, feature: int, k: float) -> dict[str, Measure]:
    """How many observations lie beyond k deviations: ``count``, and at most ``at_most`` by the
    inequality; ``below`` and ``above`` are where they begin. Needs a pool of leaves."""
    middle, square = mean(pool, feature), variance(pool, feature)
    n = count(pool, feature)
    with np.errstate(invalid="ignore", divide="ignore"):
        over_n = square.value * (n.value - 1) / n.value
    deviation = np.sqrt(np.where(n.value > 1, over_n, 0.0))
    below, above = middle.value - k * deviation, middle.value + k * deviation
    s = spreads_of(pool, feature)
    found = _beyond(s.first, s.expected, s.fewest, s.most, s.low, s.mean, s.high, below, above)
    return {
        "count": bounded(found[0], found[1], found[2]),
        "at_most": bounded(n.value / k**2, n.low / k**2, n.high / k**2),
        "below": exact(below),
        "above": exact(above),
    }


@numba.njit(cache=True)
def _beyond(
    first: Any, expected: Any, fewest: Any, most: Any, low: Any, mean: Any, high: Any,
    below: Any, above: Any,
) -> Any:  # fmt: skip
    out = np.zeros((3, first.size - 1))
    for g in range(first.size - 1):
        for i in range(first[g], first[g + 1]):
            n = most[i]
            if low[i] >= below[g] and high[i] <= above[g]:
                continue
            if high[i] < below[g] or low[i] > above[g]:
                few, many, share = fewest[i], n, 1.0
            elif fewest[i] < n:
                # Which of the leaf's observations match is not known, so neither how many do.
                few, many, share = 0.0, n, 0.5
            else:
                over = counts_above(above[g], n, mean[i], low[i], high[i], False)
                inside = counts_above(below[g], n, mean[i], low[i], high[i], True)
                few = over[0] + n - inside[1]
                many = min(over[1] + n - inside[0], n)
                share = 0.5 * (few + many) / n
            out[0, g] += expected[i] * share
            out[1, g] += few
            out[2, g] += many
    return out
