"""A run that never was, for looking at: 22 slots, 500 partitions, epochs as fast as wanted.

Its directory has what a real one has as far as anybody looks: settings, plans, manifests. Load
follows the populated places, and a hotspot wanders; partitions are moved to follow it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from geoflux.config import Config
from geoflux.plan import GridPlan, Move, Split, change_to_dict
from geoflux.plan.changes import Change
from geoflux.run_notes import note_run
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.workload import Scenario, Simulator
from geoflux.workload.cities import cities

BOUNDS = (-180.0, -60.0, 180.0, 75.0)
_SIDE = 1000
_EVENTS = 40_000


@dataclass
class MadeUpRun:
    """A directory with a run in it that is made up; :meth:`epoch` commits another one."""

    directory: Path
    slots: int = 22
    partitions: int = 500
    next: int = 0
    plan: GridPlan = field(init=False)

    def __post_init__(self) -> None:
        self.config = Config.from_dict(
            {
                "space": {"bounds": list(BOUNDS), "grid": [_SIDE, _SIDE]},
                "engine": {"slots": self.slots, "balance": "swarm"},
                "simulate": {"region": "world", "rate": 100_000, "queries": 0},
            }
        )
        self.store = Store(str(self.directory))
        self.log = EpochLog(self.store)
        scenario = Scenario(self.config.simulate, self.config.space, None)
        schema = Simulator(scenario, 0.0).schema()
        note_run(self.config, self.store, "", schema, {"started": 0.0, "lane": "fast"})
        found = cities("world", BOUNDS)
        west, south, east, north = BOUNDS
        self._columns = ((found.lon - west) / (east - west) * _SIDE).astype(int)
        self._rows = ((found.lat - south) / (north - south) * _SIDE).astype(int)
        self._weights = found.population / found.population.sum()
        self.plan = self._cut()
        self._write_plan()

    def epoch(self) -> None:
        """Commit an epoch; after every fourth one a partition of the busiest slot is given away."""
        number, now = self.next, time.time()
        loads = self._loads(number)
        busy = np.bincount(
            [p.slot for p in self.plan.partitions], weights=loads, minlength=self.slots
        )
        changes: list[Change] = []
        if number % 4 == 3:
            changes = [self._relief(loads, busy)]
        before = self.plan
        for change in changes:
            self.plan = self.plan.apply(change)
        if changes:
            self._write_plan()
        self.log.commit(number, self._manifest(now, before, loads, busy, changes))
        self.next += 1

    def _cut(self) -> GridPlan:
        """The plan to begin with: the partition with the most people is halved, again and again."""
        plan = GridPlan.initial(_SIDE, _SIDE, self.slots)
        owner = 0
        while len(plan.partitions) < self.partitions:
            held = [float(self._weights[self._inside(p)].sum()) for p in plan.partitions]
            some = [h if max(p.columns, p.rows) > 1 else -1.0
                    for h, p in zip(held, plan.partitions, strict=True)]  # fmt: skip
            p = plan.partitions[int(np.argmax(some))]
            wide = p.columns >= p.rows
            at = (p.col0 + p.col1) // 2 if wide else (p.row0 + p.row1) // 2
            owner = (owner + 1) % self.slots
            plan = plan.apply(Split(p.id, "columns" if wide else "rows", at, p.slot, owner))
        return plan

    def _inside(self, p: Any) -> Any:
        return (
            (self._columns >= p.col0) & (self._columns < p.col1)
            & (self._rows >= p.row0) & (self._rows < p.row1)
        )  # fmt: skip

    def _loads(self, epoch: int) -> Any:
        """Events of every partition: by the people in it, more where the hotspot is."""
        at = _SIDE * (0.5 + 0.4 * np.sin(epoch / 15)), _SIDE * (0.55 + 0.25 * np.cos(epoch / 15))
        held = []
        for p in self.plan.partitions:
            x, y = (p.col0 + p.col1) / 2 - at[0], (p.row0 + p.row1) / 2 - at[1]
            held.append(
                float(self._weights[self._inside(p)].sum())
                + 0.02 * np.exp(-(x * x + y * y) / 2 / 80.0**2)
            )
        share = np.array(held)
        return np.round(_EVENTS * share / share.sum())

    def _relief(self, loads: Any, busy: Any) -> Change:
        donor, receiver = int(np.argmax(busy)), int(np.argmin(busy))
        own = [i for i, p in enumerate(self.plan.partitions) if p.slot == donor]
        heaviest = max(own, key=lambda i: float(loads[i]))
        return Move(self.plan.partitions[heaviest].id, receiver)

    def _manifest(
        self, now: float, before: GridPlan, loads: Any, busy: Any, changes: list[Change]
    ) -> dict[str, Any]:
        number, events = self.next, int(loads.sum())
        slots = []
        for slot in range(self.slots):
            mine = [i for i, p in enumerate(before.partitions) if p.slot == slot]
            slots.append(
                {
                    "slot": slot, "processed": int(busy[slot]), "checks": int(busy[slot]) * 11,
                    "queries": 900, "busy_seconds": float(busy[slot]) / 2e4, "load_seconds": 0.0,
                    "matches": int(busy[slot]) * 3,
                    "per_partition": {
                        str(before.partitions[i].id): [int(loads[i]), int(loads[i]) * 11]
                        for i in mine
                    },
                }
            )  # fmt: skip
        worst = busy.max() / busy.mean()
        reason = f"slot {int(busy.argmax())} cost {worst:.2f}x the mean" if changes else ""
        return {
            "epoch": number, "opened": now - 0.2, "committed": now, "plan": before.version,
            "next_plan": self.plan.version, "received": events, "processed": events,
            "quarantined": 0, "matches": 3 * events, "aggregates": 0, "live_queries": 20_000,
            "slices": [[0, number * _EVENTS, (number + 1) * _EVENTS]], "slots": slots,
            "guard": None,
            "decision": {
                "reason": reason,
                "changes": [change_to_dict(change) for change in changes],
            },
        }  # fmt: skip

    def _write_plan(self) -> None:
        self.store.write_json(f"plans/{self.plan.version:08d}.json", self.plan.to_dict())
