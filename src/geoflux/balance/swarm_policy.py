"""SWARM as the policy of a run: rounds by the clock, questions in one epoch, changes in the next.

In the epoch that closes a round every slot sends two numbers. If the coordinator decides to
rebalance, some slots are asked; they search in their next task, and what they offer becomes the
plan of the epoch after. Nothing waits for anything, and whatever a crash interrupts is done again
from the manifest.

Source: SWARM 4.3. The forecast, and merging only in rounds that left the plan alone, are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from geoflux.balance.merging import mergeable
from geoflux.balance.policy import Decision, Observed, Orders, Policy, SlotLoad
from geoflux.balance.requests import Ask, Receiver, changes_of
from geoflux.balance.swarm import SlotRound, SwarmState, decide_round, settle
from geoflux.balance.tuning import Tuning
from geoflux.plan import GridPlan, Merge

_MOST_MERGES = 4
"""Merges of one round: each makes a slot write its queries anew."""
_MOST_GROWTH = 2.0


@dataclass(frozen=True)
class _Memory:
    """The coordinator's state and what is gathered for its next round."""

    swarm: SwarmState = field(default_factory=SwarmState)
    busy: Mapping[int, float] = field(default_factory=dict)
    """Busy seconds of the round under way, by slot."""
    marks: tuple[int, int] = (0, 0)
    costs: Mapping[int, float] = field(default_factory=dict)
    """Of the last round, by slot, while the plan has stayed the same since."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "swarm": self.swarm.to_dict(), "marks": list(self.marks),
            "busy": {str(slot): seconds for slot, seconds in self.busy.items()},
            "costs": {str(slot): cost for slot, cost in self.costs.items()},
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> _Memory:
        if "swarm" not in values:
            return cls()
        busy, costs = (
            {int(slot): float(value) for slot, value in values[name].items()}
            for name in ("busy", "costs")
        )
        marks = values["marks"][0], values["marks"][1]
        return cls(SwarmState.from_dict(values["swarm"]), busy, marks, costs)


class SwarmPolicy(Policy):
    """Keeps a plan balanced while the load moves.

    Guarantee: decisions are a pure function of what is observed and of the state, which holds all
    that is remembered; no change is decided while an earlier question is open.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning: Tuning = tuning

    def orders(self, now: float, state: Mapping[str, Any]) -> Orders:
        """Close the round when it is due, unless slots are still to answer."""
        known = _Memory.from_dict(state)
        close = not known.swarm.asks and known.swarm.is_due(now, self.tuning)
        return Orders(close, known.swarm.asks, known.marks)

    def resized(self, state: dict[str, Any]) -> dict[str, Any]:
        """The round begins anew, with nobody asked: who answered would offer what is not its own
        any more, or to slots that are gone."""
        known = _Memory.from_dict(state)
        swarm = replace(
            known.swarm, pointer=replace(known.swarm.pointer, rate=None), asks=(), stuck=(),
            settled=False,
        )  # fmt: skip
        return _Memory(swarm, marks=known.marks).to_dict()

    def decide(
        self, seen: Observed, plan: GridPlan, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        """Take answers, or look at the round that was closed."""
        known = _Memory.from_dict(state)
        busy = dict(known.busy)
        for load in seen.loads:
            busy[load.slot] = busy.get(load.slot, 0.0) + load.busy_seconds
        known = replace(known, busy=busy, swarm=known.swarm.started(seen.now))
        decision = Decision((), "")
        if known.swarm.asks:
            decision, known = _settled(known, seen.loads, plan)
        elif seen.closed:
            decision, known = self._closed(known, seen, plan)
        return decision, known.to_dict()

    def _closed(
        self, known: _Memory, seen: Observed, plan: GridPlan
    ) -> tuple[Decision, _Memory]:  # fmt: skip
        costs = {load.slot: load.cost or 0.0 for load in seen.loads}
        growth = _growth(known.costs, costs, self.tuning.forecast)
        reports = [
            SlotRound(load.slot, costs[load.slot] * growth[load.slot], load.received or 0.0,
                      known.busy[load.slot])
            for load in seen.loads
        ]  # fmt: skip
        chosen, swarm = decide_round(known.swarm, reports, seen.now, self.tuning)
        swarm = replace(swarm, asks=tuple(_in_terms_of(ask, growth) for ask in swarm.asks))
        merges = () if chosen.asks else _merges(plan)
        reason = chosen.reason
        if merges:
            reason += f"; neighbours merged: {len(merges)}"
        told = {
            "number": swarm.round, "stage": swarm.pointer.stage,
            "rebalancing": chosen.rebalance, "costs": [costs[load.slot] for load in seen.loads],
            "received": [load.received for load in seen.loads],
            "busy": [known.busy[load.slot] for load in seen.loads],
            "asked": [ask.donor for ask in chosen.asks],
        }  # fmt: skip
        after = _Memory(swarm, {}, (known.marks[1], seen.next_number), costs)
        return Decision(merges, reason, told), after


def _settled(
    known: _Memory, loads: Sequence[SlotLoad], plan: GridPlan
) -> tuple[Decision, _Memory]:  # fmt: skip
    """The changes that the answers add up to."""
    answers = [load.answer for load in loads if load.answer is not None]
    reductions, reason, swarm = settle(known.swarm, answers)
    changes = changes_of(plan, reductions)
    costs = {} if changes else known.costs
    return Decision(changes, reason), replace(known, swarm=swarm, costs=costs)


def _growth(
    before: Mapping[int, float], now: Mapping[int, float], weight: float
) -> dict[int, float]:  # fmt: skip
    """By what each slot's cost is expected to grow until the next round; 1 where it does not."""
    growth = {}
    for slot, cost in now.items():
        earlier = before.get(slot, 0.0)
        ratio = min(cost / earlier, _MOST_GROWTH) if earlier > 0 else 1.0
        growth[slot] = max(ratio, 1.0) ** weight
    return growth


def _in_terms_of(ask: Ask, growth: Mapping[int, float]) -> Ask:
    """A slot searches by what it measured: what it is told of others is scaled accordingly."""
    by = growth[ask.donor]
    return replace(ask, receivers=tuple(Receiver(r.slot, r.cost / by) for r in ask.receivers))


def _merges(plan: GridPlan) -> tuple[Merge, ...]:
    found: list[Merge] = []
    for slot in range(plan.slots):
        found += mergeable(plan, slot, limit=1)
    return tuple(found[:_MOST_MERGES])
