"""The best subset of partitions to move: greedy, largest first.

Source: SWARM 4.4.1, Algorithm 3 (subset sum; at least half of the optimum). As printed it also
takes partitions that cost nothing, "succeeds" with nothing else, and puts a needed split off. Here
such partitions stay where they are, so a subset is never empty of cost.
"""

from __future__ import annotations

from collections.abc import Mapping


def by_cost(costs: Mapping[int, float]) -> list[int]:
    """Partitions that cost something, the largest first; equal ones by id.

    >>> by_cost({1: 2.0, 2: 0.0, 3: 5.0})
    [3, 1]
    """
    return sorted((p for p, cost in costs.items() if cost > 0), key=lambda p: (-costs[p], p))


def best_subset(costs: Mapping[int, float], limit: float) -> tuple[int, ...]:
    """Partitions whose costs add up to ``limit`` at most, as near to it as greed comes.

    ``limit`` is C_max = (C(m_H) - C(m_L)) / 2: with a subset that costs just that, donor and
    receiver end up equal.

    >>> best_subset({1: 40.0, 2: 25.0, 3: 30.0}, limit=50.0)
    (1,)
    >>> best_subset({1: 100.0, 2: 0.0, 3: 0.0}, limit=50.0)
    ()
    """
    total = 0.0
    chosen: list[int] = []
    for partition in by_cost(costs):
        if total + costs[partition] <= limit:
            total += costs[partition]
            chosen.append(partition)
            if total == limit:
                break
    return tuple(chosen)
