"""A stage of slots over places, as a model: rows come by code, each slot does so many an epoch, and
what it does not get to waits. Driven by a policy, through plans that it changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.parts import DEEPER, Part
from geoflux.balance.policy import Decision, Observed, SlotLoad
from geoflux.balance.synopsis_policy import SynopsisPolicy
from geoflux.plan import PrefixPlan

BITS = 8


@dataclass
class Plant:
    """Slots that do ``speed`` rows in an epoch of one second; regions hold ``held`` bytes."""

    policy: SynopsisPolicy
    plan: PrefixPlan
    speed: float = 1000.0
    capacity: int | None = None
    held: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1 << BITS, np.int64))
    tells_bytes: bool = True
    waiting: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(1 << BITS))
    state: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    decisions: list[Decision] = field(default_factory=list)

    def run(self, rates: npt.NDArray[np.float64], epochs: int) -> list[Decision]:
        """So many epochs with these rows per code; what was decided."""
        decided = []
        for _ in range(epochs):
            loads = tuple(self._worked(slot, rates) for slot in range(self.plan.slots))
            seen = Observed(self.epoch, float(self.epoch), loads)
            decision, state = self.policy.decide(seen, self.plan, self.state)
            self.state = json.loads(json.dumps(state))  # a manifest lies in between
            for change in decision.changes:
                self.plan = self.plan.apply(change)
            self.epoch += 1
            if decision.changes:
                decided.append(decision)
                self.decisions.append(decision)
        return decided

    def _worked(self, slot: int, rates: npt.NDArray[np.float64]) -> SlotLoad:
        places = self.plan.locate(np.arange(1 << BITS))
        mine = self.plan.owners[places] == slot
        work = np.where(mine, self.waiting + rates, 0.0)
        done = min(work.sum(), self.speed)
        share = 1 - done / work.sum() if work.sum() else 0.0
        self.waiting[mine] = work[mine] * share
        partitions = [p for p in self.plan.partitions if p.slot == slot]
        parts = {p.id: self._parts(p, rates) for p in partitions}
        sizes = {p.id: int(self._of(p.area, self.held).sum()) for p in partitions}
        site = SiteReport(slot, 0.0, dict.fromkeys(sizes, 0), self.capacity, sizes)
        return SlotLoad(
            slot, round(done), 0, 0, done / self.speed, site=site,
            arrivals=round(rates[mine].sum()), waiting=round(self.waiting[mine].sum()), parts=parts,
        )  # fmt: skip

    def _of(self, area: tuple[int, int], numbers: Any) -> Any:
        code, bits = area
        return numbers[code << (BITS - bits) : (code + 1) << (BITS - bits)]

    def _parts(self, p: Any, rates: npt.NDArray[np.float64]) -> tuple[Part, ...]:
        bits = min(p.bits + DEEPER, BITS)
        first = p.code << (bits - p.bits)
        rows, held = (
            self._of(p.area, numbers).reshape(-1, 1 << (BITS - bits)).sum(axis=1)
            for numbers in (rates, self.held)
        )
        return tuple(
            Part(first + n, bits, round(came), size if self.tells_bytes else None)
            for n, (came, size) in enumerate(zip(rows.tolist(), held.tolist(), strict=True))
            if round(came) or (size and self.tells_bytes)
        )

    def layout(self) -> list[tuple[int, int, int]]:
        """Prefixes and their owners."""
        return [(p.code, p.bits, p.slot) for p in self.plan.partitions]
