"""Matches put in order by query, so that what is kept of a query is touched once for all of them.

Matching lists its pairs event by event. Aggregates want them query by query: a counting sort costs
a few nanoseconds a pair, and whatever is added up afterwards stays in registers for a whole run.

Indices are unsigned in these loops: a signed one could count from the end, and the test for it
costs as much as the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from geoflux.spatial.space import IntArray


@dataclass(frozen=True)
class Runs:
    """Run ``k`` are the rows ``event[start[k]:stop[k]]``, matched by the query of rank ``rank[k]``
    and counted for the group ``group[k]``."""

    event: IntArray
    rank: IntArray
    group: IntArray
    start: IntArray
    stop: IntArray

    @classmethod
    def of_groups(cls, group: IntArray, groups: int) -> Runs:
        """Rows whose groups are known, all of one query."""
        rows = np.arange(group.size, dtype=np.int32)
        event, present, offsets = by_rank(rows, group, groups)
        rank = np.zeros(present.size, np.int32)
        return cls(event, rank, present, offsets[:-1], offsets[1:])


@numba.njit(cache=True)
def by_rank(event: Any, rank: Any, ranks: int) -> Any:
    """The events of the pairs (event, rank) rank by rank, the ranks that occur, and where the
    events of each begin (one more than there are ranks). The order within a rank stays."""
    one = np.uint32(1)
    places = np.zeros(ranks + 1, np.uint32)
    for i in range(rank.size):
        places[np.uint32(rank[np.uint64(i)]) + one] += one
    present = np.empty(min(ranks, rank.size), np.int32)
    offsets = np.zeros(present.size + 1, np.int32)
    found = 0
    for r in range(ranks):
        if places[r + 1] > 0:
            present[found] = r
            found += 1
            offsets[found] = offsets[found - 1] + places[r + 1]
        places[r + 1] += places[r]
    ordered = np.empty(event.size, np.int32)
    for i in range(rank.size):
        which = np.uint32(rank[np.uint64(i)])
        ordered[places[which]] = event[np.uint64(i)]
        places[which] += one
    return ordered, present[:found], offsets[: found + 1]
