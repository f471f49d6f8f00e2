"""A plan as columns for a map: who owns which rectangle, what it did, and what was changed.

Plans of cells and of geohash prefixes have rectangles; partitions of keys have none, and are
counted by slot.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from geoflux.chronicle.decision_words import changes_of, reason_of, told_in_turn
from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.plan_history import asked_epoch, read_plan
from geoflux.chronicle.plan_view import slot_views
from geoflux.config import Config
from geoflux.errors import StateError
from geoflux.plan import GridPlan, PrefixPlan
from geoflux.serve.view_run import OperatorPlace
from geoflux.spatial import geohash
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

_DIGITS = 6


def plan_view(operator: OperatorPlace, epoch: int | None = None) -> dict[str, Any]:
    """The plan of an epoch (``None``: of the one that comes next) and what it did, or the last
    epoch did."""
    config = operator.config
    if config is None:
        raise StateError(f"{operator.name} has not started yet; ask again")
    log = operator.log
    number, following, version = asked_epoch(log, operator.name or "the run", epoch)
    plan = read_plan(log.store, version)
    if plan is None:
        raise StateError(f"there is no plan {version} yet; ask again when the run has started")
    ran = log.manifest(min(number, following - 1)) if following else None
    before = log.manifest(number - 1) if 0 < number <= following else None
    loads = _loads(ran)
    ids = [p.id for p in plan.partitions]
    return {
        "epoch": number, "is_next": number == following, "version": version,
        "kind": plan.to_dict()["kind"], "slots": plan.slots,
        "id": ids, "slot": [p.slot for p in plan.partitions],
        **_rectangles(plan, config),
        "events": [loads.get(i, (None, None))[0] for i in ids],
        "checks": [loads.get(i, (None, None))[1] for i in ids],
        "changed": _changed(plan, before),
        "slot_table": [asdict(s) for s in slot_views(plan, ran)],
        "decision": _decision(log.store, before),
    }  # fmt: skip


def _rectangles(plan: Any, config: Config) -> dict[str, list[float]]:
    """West, south, east and north of the partitions, or nothing."""
    if isinstance(plan, GridPlan):
        grid = Grid(Space.of(config.space), *config.space.grid)
        boxes = np.array([p.box for p in plan.partitions], np.float64)
        size = np.array([grid.cell_width, grid.cell_height] * 2)
        corner = np.array([grid.space.west, grid.space.south] * 2)
        sides = (corner + boxes * size).T
    elif isinstance(plan, PrefixPlan):
        found = [geohash.bounds(np.array([p.code]), p.bits) for p in plan.partitions]
        sides = np.array([[float(side[0]) for side in four] for four in found]).T
    else:
        return {}
    names = ("west", "south", "east", "north")
    return {n: np.round(s, _DIGITS).tolist() for n, s in zip(names, sides, strict=True)}


def _loads(ran: Manifest | None) -> dict[int, tuple[int, int]]:
    """Events and checks by partition."""
    if ran is None:
        return {}
    return {
        int(partition): (pair[0], pair[1])
        for report in ran["slots"]
        for partition, pair in report.get("per_partition", {}).items()
    }


def _changed(plan: Any, before: Manifest | None) -> list[int]:
    """Partitions that are new or have a new owner since the epoch before."""
    if before is None or not changes_of(before):
        return []
    moved = {c["partition"] for c in changes_of(before) if c["kind"] == "move"}
    retired = {c.get(k) for c in changes_of(before) for k in ("partition", "first", "second")}
    return [
        p.id
        for p in plan.partitions
        if p.id in moved or retired & set(getattr(p, "parents", ()))  # keys have no parents
    ]


def _decision(store: Store, before: Manifest | None) -> dict[str, Any] | None:
    if before is None:
        return None
    changes = changes_of(before)
    plan = read_plan(store, before["plan"]) if changes else None
    return {
        "epoch": before["epoch"], "reason": reason_of(before),
        "changes": told_in_turn(changes, plan),
    }  # fmt: skip
