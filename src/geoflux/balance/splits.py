"""The best split of a partition: four binary searches over its statistics.

The further a split point lies from the half that is moved, the more is moved and the less is kept,
so the difference of donor and receiver falls all the way: the point where it changes its sign, or
the one before, is the best. Two axes, and either half may be the one that is moved.

Source: SWARM 4.4.2. A split point is at most k-1, so that both halves have a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from geoflux.stats import Axis, CostModel, TrioStat

Half = Literal["first", "second"]


@dataclass(frozen=True)
class Cut:
    """A split before row or column ``at`` of the grid, one half of which is moved."""

    axis: Axis
    at: int
    moved: Half
    moved_cost: float
    kept_cost: float
    difference: float
    """What the donor would cost more than the receiver: C_diff."""


def best_split(stat: TrioStat, kept: float, receiver: float, model: CostModel) -> Cut | None:
    """The split with the smallest absolute C_diff, or ``None`` for a single cell.

    ``kept`` is what the donor's other partitions cost, C(m_H) - C(p), ``receiver`` is C(m_L).

    >>> import numpy as np
    >>> from geoflux.plan import Partition
    >>> stat = TrioStat.empty(Partition(1, 0, 0, 4, 1, slot=0))
    >>> stat.receive(np.arange(4, dtype=np.int32), np.zeros(4, np.int32), np.array([1., 1, 5, 1]))
    >>> stat.close_round()
    >>> cut = best_split(stat, 0.0, 0.0, "work")
    >>> cut.axis, cut.at, cut.moved, cut.moved_cost, cut.kept_cost
    ('columns', 2, 'first', 2.0, 6.0)
    """
    best: Cut | None = None
    for axis in ("columns", "rows"):
        for moved in ("first", "second"):
            for cut in _candidates(stat, axis, moved, (kept, receiver, model)):
                if best is None or abs(cut.difference) < abs(best.difference):
                    best = cut
    return best


def _candidates(
    stat: TrioStat, axis: Axis, moved: Half, costs: tuple[float, float, CostModel]
) -> Iterator[Cut]:
    """The two splits around the change of sign."""
    low, high = stat.bounds(axis)
    if high - low < 2:
        return

    def at(moved_lines: int) -> Cut:
        point = low + moved_lines if moved == "first" else high - moved_lines
        return _cut(stat, axis, point, moved, costs)

    point = _first(1, high - low - 1, lambda lines: at(lines).difference <= 0)
    yield at(point)
    if point > 1:
        yield at(point - 1)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number from which on a condition holds; ``high`` if it holds for none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _cut(
    stat: TrioStat, axis: Axis, at: int, moved: Half, costs: tuple[float, float, CostModel]
) -> Cut:
    kept, receiver, model = costs
    first, second = (half.cost(model) for half in stat.halves(axis, at))
    given, left = (first, second) if moved == "first" else (second, first)
    return Cut(axis, at, moved, given, left, kept + left - receiver - given)
