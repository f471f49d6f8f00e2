"""The search that a slot does for itself: what to give to another slot.

First a subset of its partitions, since moving is cheap; else a split; else it cannot. What gains
too little counts as cannot, whichever way it was found: with constant throughput the coordinator
asks again and again, and this is what keeps a settled system still.

Source: SWARM 4.4; the threshold is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from geoflux.balance.requests import Answer, Ask, Cannot, Receiver, Reduction, Strips
from geoflux.balance.splits import Cut, best_split
from geoflux.balance.subsets import best_subset, by_cost
from geoflux.balance.tuning import Tuning
from geoflux.plan import Move, Partition
from geoflux.stats import CostModel, TrioStat


@dataclass(frozen=True)
class Holding:
    """A partition that the slot owns, and what it knows of it."""

    partition: Partition
    stat: TrioStat

    def cost(self, model: CostModel) -> float:
        """What the partition costs."""
        return self.stat.total.cost(model)


def slot_cost(holdings: Sequence[Holding], model: CostModel) -> float:
    """The first of a slot's two numbers, C(m): the sum over its partitions."""
    return sum(holding.cost(model) for holding in holdings)


def slot_received(holdings: Sequence[Holding]) -> float:
    """The second, R(m): points and queries received in the last round."""
    return sum(holding.stat.total.received for holding in holdings)


def reduce_to_one(holdings: Sequence[Holding], ask: Ask, tuning: Tuning) -> Answer:
    """What to give to the first receiver, or why nothing.

    Guarantee: the predicted gain is at least ``tuning.least_gain``, and whatever is moved costs
    something. When the best split of a partition gains too little, or it is a single cell, the next
    largest is tried.

    >>> import numpy as np
    >>> part = Partition(5, 0, 0, 2, 1, slot=0)
    >>> stat = TrioStat.empty(part)
    >>> stat.receive(np.array([0, 1], np.int32), np.zeros(2, np.int32), np.array([4.0]))
    >>> stat.close_round()
    >>> ask = Ask(0, (Receiver(3, 1.0),))
    >>> answer = reduce_to_one([Holding(part, stat)], ask, Tuning())
    >>> answer.strips, answer.after, answer.gain
    ((Strips(partition=5, axis='columns', ats=(1,), owners=(3, 0)),), 4.0, 0.375)
    """
    receiver = ask.receivers[0]
    costs = {h.partition.id: h.cost(tuning.cost) for h in holdings}
    total = sum(costs.values())
    chosen = best_subset(costs, (total - receiver.cost) / 2)
    if chosen:
        moved = sum(costs[p] for p in chosen)
        moves = tuple(Move(p, receiver.slot) for p in chosen)
        after = (Receiver(receiver.slot, receiver.cost + moved),)
        answer = Reduction(ask.donor, moves, (), total, total - moved, after)
        if answer.gain >= tuning.least_gain:
            return answer
    by_id = {h.partition.id: h for h in holdings}
    for p in by_cost(costs):
        if costs[p] < tuning.least_gain * total:
            break  # even to be rid of it altogether would gain too little
        kept = total - costs[p]
        cut = best_split(by_id[p].stat, kept, receiver.cost, tuning.cost)
        if cut is None or cut.moved_cost <= 0:
            continue
        answer = _split(ask, p, cut, total, kept)
        if answer.gain >= tuning.least_gain:
            return answer
    return Cannot(ask.donor, total, _why(by_id, costs, tuning))


def _split(ask: Ask, partition: int, cut: Cut, total: float, kept: float) -> Reduction:
    receiver = ask.receivers[0]
    first = cut.moved == "first"
    owners = (receiver.slot, ask.donor) if first else (ask.donor, receiver.slot)
    strips = Strips(partition, cut.axis, (cut.at,), owners)
    after = (Receiver(receiver.slot, receiver.cost + cut.moved_cost),)
    return Reduction(ask.donor, (), (strips,), total, kept + cut.kept_cost, after)


def _why(by_id: dict[int, Holding], costs: dict[int, float], tuning: Tuning) -> str:
    order = by_cost(costs)
    if not order:
        return "none of its partitions costs anything"
    if by_id[order[0]].partition.cells == 1:
        share = costs[order[0]] / sum(costs.values())
        return f"{share:.0%} of its cost lies in a single cell"
    return f"nothing that it could give away would gain {tuning.least_gain:.0%}"
