"""What ``geoflux plan`` shows: the plan of an epoch, who owns what, and what it cost.

Nothing here changes the run; it may be going on in another process.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from geoflux import run_notes
from geoflux.chronicle.decision_words import changes_of, reason_of
from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.plan_history import asked_epoch, busiest_over_mean, plan_of
from geoflux.errors import StateError
from geoflux.plan import GridPlan, Partition, ReplicatedPlan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of
from geoflux.state.store import Store

AnyPlan = GridPlan | ReplicatedPlan


@dataclass(frozen=True)
class SlotView:
    """A slot: what it owns, and what it did in the epoch (``None``: it has not run)."""

    slot: int
    partitions: int
    cells: int
    events: int | None = None
    checks: int | None = None
    queries: int | None = None
    busy_seconds: float | None = None


@dataclass(frozen=True)
class PlanView:
    """A plan, the epoch that runs under it and, if that has run, its manifest; the manifest of the
    epoch after which the plan was decided on, if it is not the first one."""

    name: str
    grid: Grid
    plan: AnyPlan
    epoch: int
    ran: Manifest | None
    decided: Manifest | None

    @classmethod
    def of(cls, out: str | Path, epoch: int | None) -> PlanView:
        """The plan of an epoch of a run, or of the one that comes next."""
        config = run_notes.config_of(out)
        store = store_of(out)
        log = EpochLog(store)
        number, following, version = asked_epoch(log, out, epoch)
        plan = plan_of(store, version)
        if plan is None:
            raise StateError(f"{out} has no plan {version} yet; ask again when the run has started")
        ran = _ran(store, number, following, plan)
        grid = Grid(Space.of(config.space), *config.space.grid)
        return cls(str(out), grid, plan, number, ran, _decided(log, version, number))

    @property
    def is_next(self) -> bool:
        """Whether the epoch has not run yet."""
        return self.ran is None or self.ran["epoch"] != self.epoch

    @property
    def slots(self) -> list[SlotView]:
        """Every slot, also those that own nothing."""
        return slot_views(self.plan, self.ran)

    @property
    def partition_loads(self) -> dict[int, tuple[int, int]]:
        """Events and checks of each partition in the epoch, as far as it had any."""
        if self.ran is None:
            return {}
        return {
            int(partition): (events, checks)
            for report in self.ran["slots"]
            for partition, (events, checks) in report.get("per_partition", {}).items()
        }

    @property
    def busiest_over_mean(self) -> float | None:
        """How uneven the epoch was."""
        return None if self.ran is None else busiest_over_mean([self.ran], self.plan.slots)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        loads = self.partition_loads
        return {
            "epoch": self.epoch, "plan": self.plan.version,
            "kind": "grid" if isinstance(self.plan, GridPlan) else "replicated",
            "columns": self.plan.columns, "rows": self.plan.rows,
            "measured_in_epoch": None if self.ran is None else self.ran["epoch"],
            "busiest_over_mean": self.busiest_over_mean,
            "decision": self.decided and {
                "epoch": self.decided["epoch"], "reason": reason_of(self.decided),
                "changes": changes_of(self.decided),
            },
            "slots": [asdict(slot) for slot in self.slots],
            "partitions": [_partition(p, loads.get(p.id)) for p in self.plan.partitions],
        }  # fmt: skip


def slot_views(plan: Any, ran: Manifest | None) -> list[SlotView]:
    """Every slot of a plan of any kind, also those that own nothing."""
    reports = {s["slot"]: s for s in ran["slots"]} if ran else {}
    found = []
    for slot in range(plan.slots):
        mine = [p for p in plan.partitions if p.slot == slot]
        report = reports.get(slot, {})
        found.append(
            SlotView(
                slot, len(mine), sum(getattr(p, "cells", 1) for p in mine),
                report.get("processed"), report.get("checks"), report.get("queries"),
                report.get("busy_seconds"),
            )
        )  # fmt: skip
    return found


def _partition(p: Partition, load: tuple[int, int] | None) -> dict[str, Any]:
    events, checks = load or (None, None)
    return {
        "id": p.id, "slot": p.slot, "columns": [p.col0, p.col1], "rows": [p.row0, p.row1],
        "events": events, "checks": checks,
    }  # fmt: skip


def _ran(store: Store, number: int, following: int, plan: AnyPlan) -> Manifest | None:
    """The epoch itself, or before it has run the last one, if partitions and owners are the same
    (versions may differ: lineage is cut when data expires)."""
    if following == 0:
        return None
    manifest = EpochLog(store).manifest(min(number, following - 1))
    if manifest["plan"] == plan.version:
        return manifest
    before = plan_of(store, manifest["plan"])
    same = before is not None and before.partitions == plan.partitions
    return manifest if same else None


def _decided(log: EpochLog, version: int, before: int) -> Manifest | None:
    """The epoch after which the parts of a plan were decided on; versions only grow with epochs,
    so it can be searched for."""
    while True:
        found = bisect_left(range(before), version, key=lambda e: int(log.manifest(e)["next_plan"]))
        if found == before:
            return None
        manifest = log.manifest(found)
        if changes_of(manifest) or manifest["plan"] == version:
            return manifest if changes_of(manifest) else None
        version = manifest["plan"]
