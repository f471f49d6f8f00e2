"""The search for several receivers at once: partitions as a whole, then one cut into strips.

Donor and receivers are to end up at the same level. Partitions go, largest first, where there is
most room; what room is left is filled with strips of the largest partition that is left, each as
wide as its receiver has room for. With one receiver and nothing to cut this is Algorithm 3.

Beyond SWARM 4.4, which knows one receiver a round; a hotspot is spread in one or two rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from geoflux.balance.reduction import Holding, reduce_to_one
from geoflux.balance.requests import Answer, Ask, Receiver, Reduction, Strips
from geoflux.balance.subsets import by_cost
from geoflux.balance.tuning import Tuning
from geoflux.plan import Move
from geoflux.stats import Axis, CostModel, TrioStat

_Cost = Callable[[int, int], float]

_MOST_CUT = 3
"""Partitions that are cut in one go, at most."""


@dataclass
class _Draft:
    """A reduction in the making."""

    level: float
    donor: float
    costs: dict[int, float]
    """Of the receivers, by slot."""
    moves: list[Move] = field(default_factory=list)
    strips: list[Strips] = field(default_factory=list)

    def room(self, slot: int) -> float:
        """What a receiver may still get."""
        return self.level - self.costs[slot]

    def roomiest(self) -> list[int]:
        """Receivers, those with most room first."""
        return sorted(self.costs, key=lambda slot: (-self.room(slot), slot))

    def copy(self) -> _Draft:
        """One that can be tried out."""
        return replace(
            self, costs=dict(self.costs), moves=list(self.moves), strips=list(self.strips)
        )

    @property
    def worst(self) -> float:
        """The highest cost of all concerned."""
        return max(self.donor, *self.costs.values())


def search(holdings: Sequence[Holding], ask: Ask, tuning: Tuning) -> Answer:
    """What a slot gives to those it was told of, or that it cannot.

    Guarantee: as :func:`geoflux.balance.reduction.reduce_to_one`, which it falls back to.
    """
    if tuning.multiway:
        shared = _shared(holdings, ask, tuning)
        if shared is not None and shared.gain >= tuning.least_gain:
            return shared
    return reduce_to_one(holdings, ask, tuning)


def _shared(holdings: Sequence[Holding], ask: Ask, tuning: Tuning) -> Reduction | None:
    costs = {h.partition.id: h.cost(tuning.cost) for h in holdings}
    total = sum(costs.values())
    level, receivers = _level(total, ask.receivers)
    if not receivers:
        return None
    draft = _Draft(level, total, {r.slot: r.cost for r in receivers})
    left = []
    for p in by_cost(costs):
        slot = draft.roomiest()[0]
        if costs[p] <= draft.room(slot):
            draft.moves.append(Move(p, slot))
            draft.costs[slot] += costs[p]
            draft.donor -= costs[p]
        else:
            left.append(p)
    sliver = tuning.least_gain * level
    by_id = {h.partition.id: h.stat for h in holdings}
    for p in left[:_MOST_CUT]:
        if draft.donor <= level + sliver:
            break
        draft = _cut_up(draft, ask.donor, (p, by_id[p]), sliver, tuning.cost)
    given = {move.to for move in draft.moves} | {s for cut in draft.strips for s in cut.owners}
    after = tuple(Receiver(slot, cost) for slot, cost in draft.costs.items() if slot in given)
    if not after:
        return None
    moves, strips = tuple(draft.moves), tuple(draft.strips)
    return Reduction(ask.donor, moves, strips, total, draft.donor, after)


def _level(total: float, receivers: tuple[Receiver, ...]) -> tuple[float, list[Receiver]]:
    """Where donor and receivers meet; receivers that stand higher already are left out."""
    taking: list[Receiver] = []
    level = total
    for receiver in sorted(receivers, key=lambda r: (r.cost, r.slot)):
        if receiver.cost >= level:
            break
        taking.append(receiver)
        level = (total + sum(r.cost for r in taking)) / (len(taking) + 1)
    return level, taking


def _cut_up(
    draft: _Draft, donor: int, piece: tuple[int, TrioStat], sliver: float, model: CostModel
) -> _Draft:
    """The best of four ways to cut a partition: along either axis, from either end."""
    best = draft
    for axis in ("columns", "rows"):
        for upwards in (True, False):
            tried = _cut_along(draft, donor, piece, (axis, upwards, sliver, model))
            if tried.worst < best.worst:
                best = tried
    return best


def _cut_along(
    draft: _Draft, donor: int, piece: tuple[int, TrioStat],
    way: tuple[Axis, bool, float, CostModel],
) -> _Draft:  # fmt: skip
    """Give strips away from one end; what is left stays with the donor."""
    partition, stat = piece
    axis, upwards, sliver, model = way
    low, high = stat.bounds(axis)
    start = draft
    draft = start.copy()
    lines = high - low

    def cost(first: int, last: int) -> float:
        """Of the lines ``first`` to ``last`` (excluded), counted from the end that is cut."""
        if upwards:
            return stat.strip(axis, low + first, low + last).cost(model)
        return stat.strip(axis, high - last, high - first).cost(model)

    whole = cost(0, lines)
    done = 0
    pieces: list[tuple[int, int]] = []
    for slot in draft.roomiest():
        room = draft.room(slot)
        left = start.donor - whole + cost(done, lines) if done < lines else 0.0
        if room < sliver or done >= lines or left <= draft.level + sliver:
            break
        upto = _fitting(cost, done, lines, min(room, left - draft.level))
        given = cost(done, upto)
        if given <= 0 or draft.costs[slot] + given >= left:
            break
        draft.costs[slot] += given
        pieces.append((upto, slot))
        done = upto
    if not pieces:
        return start
    if done < lines:
        draft.donor = start.donor - whole + cost(done, lines)
        pieces.append((lines, donor))
    else:
        draft.donor = start.donor - whole
    ends, owners = [end for end, _ in pieces[:-1]], [slot for _, slot in pieces]
    if not upwards:
        ends, owners = [lines - end for end in reversed(ends)], owners[::-1]
    if ends:
        ats = tuple(low + end for end in ends)
        draft.strips.append(Strips(partition, axis, ats, tuple(owners)))
    else:
        draft.moves.append(Move(partition, owners[0]))
    return draft


def _fitting(cost: _Cost, first: int, lines: int, room: float) -> int:
    """Where a strip from ``first`` on ends whose cost comes nearest to ``room``."""
    low, high = first, lines
    while low < high:
        middle = (low + high + 1) // 2
        if cost(first, middle) <= room:
            low = middle
        else:
            high = middle - 1
    if low == lines:
        return low
    over = cost(first, low + 1) - room
    under = room - cost(first, low) if low > first else float("inf")
    return low + 1 if over < under else low
