"""Flux as the policy of a run: epochs add up to a collection phase, then partitions move.

A slot that is done before the slowest one waits for it: that is its idle time, and the epoch's
longest busy time is what elapsed. Moves take effect with the next epoch, and what opening the moved
states took there is the time that the moves took.

Source: Flux 5.3, 6.1, 6.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.flux_moves import moves
from geoflux.balance.flux_rounds import FluxRounds
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.balance.policy import Decision, Observed, Policy, SlotLoad
from geoflux.plan import HashPlan, Move


@dataclass(frozen=True)
class _Memory:
    """The rounds, the phase under way by slot, and moves whose time is not known yet."""

    rounds: FluxRounds
    elapsed: float = 0.0
    idle: Mapping[int, float] = field(default_factory=dict)
    tuples: Mapping[int, int] = field(default_factory=dict)
    """Per partition, whoever owned it."""
    moved: tuple[Move, ...] = ()
    """By the last decision."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "rounds": self.rounds.to_dict(), "elapsed": self.elapsed,
            "idle": {str(slot): seconds for slot, seconds in self.idle.items()},
            "tuples": {str(partition): count for partition, count in self.tuples.items()},
            "moved": [[move.partition, move.to] for move in self.moved],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], tuning: FluxTuning) -> _Memory:
        if "rounds" not in values:
            return cls(FluxRounds.first(tuning))
        return cls(
            FluxRounds.from_dict(values["rounds"]), values["elapsed"],
            {int(slot): seconds for slot, seconds in values["idle"].items()},
            {int(partition): count for partition, count in values["tuples"].items()},
            tuple(Move(*move) for move in values["moved"]),
        )  # fmt: skip

    def with_epoch(self, loads: Sequence[SlotLoad]) -> _Memory:
        """With one more epoch in the phase."""
        elapsed = max((load.busy_seconds for load in loads), default=0.0)
        idle, tuples = dict(self.idle), Counter(self.tuples)
        for load in loads:
            idle[load.slot] = idle.get(load.slot, 0.0) + elapsed - load.busy_seconds
            tuples.update(load.site.tuples if load.site is not None else {})
        return replace(self, elapsed=self.elapsed + elapsed, idle=idle, tuples=tuples)

    def reports(self, loads: Sequence[SlotLoad]) -> list[SiteReport]:
        """What the sites would say of the whole phase."""
        return [
            replace(
                load.site, idle=self.idle[load.slot],
                tuples={p: self.tuples.get(p, 0) for p in load.site.tuples},
            )
            for load in loads
            if load.site is not None
        ]  # fmt: skip


class FluxPolicy(Policy):
    """Evens out load, memory, or whichever is short, by moving mini-partitions.

    Guarantee: decisions are a pure function of what is observed and of the state.
    """

    def __init__(self, flux: FluxTuning) -> None:
        self._tuning = flux

    def resized(self, state: dict[str, Any]) -> dict[str, Any]:
        """A collection phase begins, as long as the one that was under way; what the last moves
        had promised was promised of other slots."""
        known = _Memory.from_dict(state, self._tuning)
        return _Memory(replace(known.rounds, promise=None)).to_dict()

    def decide(
        self, seen: Observed, plan: HashPlan, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        """Go on collecting, or end the phase and move."""
        known = _Memory.from_dict(state, self._tuning).with_epoch(seen.loads)
        if known.elapsed < known.rounds.collect:
            return Decision((), ""), known.to_dict()
        reports = known.reports(seen.loads)
        moved = moves(reports, known.elapsed, self._tuning)
        took = max((load.load_seconds for load in seen.loads), default=0.0) if known.moved else 0.0
        rounds = known.rounds.after(moved, took, reports, known.elapsed, self._tuning)
        used = {r.slot: r.utilisation(known.elapsed) for r in reports}
        told = {
            "number": seen.epoch, "stage": self._tuning.kind, "rebalancing": bool(moved),
            "costs": [used[load.slot] for load in seen.loads],
            "received": [sum(r.tuples.values()) for r in reports],
            "busy": [known.elapsed - known.idle[load.slot] for load in seen.loads],
            "asked": [],
        }  # fmt: skip
        after = _Memory(rounds, moved=moved)
        return Decision(moved, _reason(moved, reports, used, plan), told), after.to_dict()


def _reason(
    moved: Sequence[Move], reports: Sequence[SiteReport], used: Mapping[int, float], plan: HashPlan
) -> str:
    busiest, idlest = max(used.values(), default=0.0), min(used.values(), default=0.0)
    state = f"busiest slot {busiest:.0%}, idlest {idlest:.0%}"
    spilled = sum(len(r.spilled) for r in reports)
    if spilled:
        state += f", partitions on disk: {spilled}"
    if not moved:
        return f"do nothing: {state}"
    told = ", ".join(
        f"{m.partition} from {plan.partition(m.partition).slot} to {m.to}" for m in moved[:4]
    )
    more = f" and {len(moved) - 4} more" if len(moved) > 4 else ""
    return f"move: {state}; {told}{more}"
