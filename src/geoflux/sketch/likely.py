"""How far an answer is likely to be off, when some leaves are covered in part.

The bounds of :mod:`geoflux.sketch.bounds` always hold, so they are wide. This is the error that 95
of 100 queries stay within. Observations often come from fixed places (even from a grid) at fixed
times. So all regions of a column that the side of a box cuts are taken to be in or out together, at
all times alike, and a time bin in all regions alike. How likely "in" is depends on where in a cell
places lie, not only on the share that is covered (readings on the hour are never in the last half
of it), so the variance is the largest that there can be, a fair coin's. What is in differs from the
rest of its leaf by its deviation.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch.partial import Partial

Floats = npt.NDArray[np.float64]
DEVIATIONS = 2.0
"""So many deviations are the likely error: 95 of 100."""
_COIN = 0.25
_MISFIT = 0.1
"""Of the counts that a cut range allows: how far the normal distribution is off, as a deviation."""


def likely_error(part: Partial, effect: Floats, spread: Floats) -> Floats:
    """By group: what a sum over the matching observations is likely to be off. ``effect``: what
    one observation of each item adds to it on average, ``spread``: the deviation of that."""
    cut = part.cut
    return DEVIATIONS * np.sqrt(
        _variance(cut.first, cut.clusters, cut.shares, cut.n, cut.fewest, cut.most, effect, spread)
    )


@numba.njit(cache=True)
def _variance(
    first: Any, clusters: Any, shares: Any, n: Any, fewest: Any, most: Any, effect: Any,
    spread: Any,
) -> Any:  # fmt: skip
    found = np.zeros(first.size - 1)
    for kind in range(3):
        size = 0
        for i in range(n.size):
            size = max(size, clusters[kind, i] + 1)
        # Of each cluster: what it adds, how much its matching part may differ, its group.
        table = np.zeros((size, 3))
        for g in range(found.size):
            for i in range(first[g], first[g + 1]):
                c = clusters[kind, i]
                if c < 0:
                    continue
                rest = n[i]
                for other in range(4):
                    if other != kind:
                        rest *= shares[other, i]
                share = shares[kind, i]
                table[c, 0] += rest * effect[i]
                table[c, 1] += rest * share * (1.0 - share) * spread[i]
                table[c, 2] = g
        for c in range(size):
            found[int(table[c, 2])] += _COIN * table[c, 0] ** 2 + table[c, 1] ** 2
    for g in range(found.size):
        misfit = 0.0
        for i in range(first[g], first[g + 1]):
            rest = shares[0, i] * shares[1, i] * shares[2, i]
            share = rest * shares[3, i]
            # Scattered observations: each one in or out by itself.
            found[g] += n[i] * share * (1.0 - share) * (effect[i] ** 2 + spread[i] ** 2)
            if shares[3, i] < 1.0:
                misfit += _MISFIT * rest * (most[i] - fewest[i]) * effect[i]
        found[g] += misfit**2
    return found
