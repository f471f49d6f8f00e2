"""What Guard remembers in a run's directory: a state now and then, and a journal since.

The state is written when a detection round is closed. In between, an epoch adds to the journal only
what Guard was handed in it: the segment of the control changes, orders of operators, what sensors
found. Whoever hands it over again has the same Guard, so manifests stay small and an epoch costs
what came in it, however many users are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from geoflux.engine.guard_orders import Order
from geoflux.guard import Guard, GuardTuning, Summary
from geoflux.guard.receiver import REGISTER, TERMINATE
from geoflux.operators import queries
from geoflux.operators.deltas import read_owners
from geoflux.sections import GuardConfig
from geoflux.settings import seconds
from geoflux.spatial.grid import Grid
from geoflux.state.segments import read_segment, unique_name, write_segment
from geoflux.state.store import Store

_IN_FORCE = "guard/blocked"
_REST, _SENSED = "@rest", "summaries"


@dataclass(frozen=True)
class Entry:
    """What Guard was handed in one epoch: when, from which query number on, and where it is."""

    now: float
    next_number: int
    delta: str | None = None
    orders: Sequence[Mapping[str, Any]] = ()
    sensed: str | None = None

    def begin(self, guard: Guard) -> None:
        """The orders, as the epoch is opened."""
        for order in self.orders:
            Order.from_dict(order).give(guard, self.now)

    def receive(self, guard: Guard, store: Store, grid: Grid) -> None:
        """The control changes: what came, and what ended by whatever way. Requests that changed
        nothing are not counted, or they could make a user's share in a hotspot look small."""
        op: Any = ()
        users: Any = []
        at: Any = None
        if self.delta is not None:
            came, ended = read_owners(store, self.delta)
            both = [*came.column("user").chunks, *ended.column("user").chunks]
            if any(part.null_count < len(part) for part in both):
                op = np.repeat(np.array([REGISTER, TERMINATE], np.uint8), (len(came), len(ended)))
                users = pa.chunked_array(both, pa.string())
                # Where queries were placed is told by the sensors.
                at = [np.append(np.zeros(len(came)), v) for v in queries.middles(ended, grid)]
        guard.receive(op, users, self.now, self.next_number, at)

    def sense(self, guard: Guard, store: Store) -> None:
        """What the sensors found."""
        if self.sensed is not None:
            sense_all(guard, read_segment(store, self.sensed).columns[_SENSED].to_pylist())

    def files(self) -> set[str]:
        """The files that it refers to."""
        return {name for name in (self.delta, self.sensed) if name is not None}


@dataclass(frozen=True)
class GuardState:
    """The references: to a state (``None``: the beginning), to all that came since, and to the
    names of those whose requests were refused in the last epoch (``None``: nobody)."""

    state: str | None = None
    journal: tuple[Mapping[str, Any], ...] = ()
    """Entries as plain values: a manifest has them all, and only the last is new."""
    in_force: str | None = None

    def files(self) -> frozenset[str]:
        """The files under ``state/`` that are referred to."""
        own = set() if self.state is None else {self.state}
        return frozenset(own.union(*(Entry(**entry).files() for entry in self.journal)))

    def guard(self, store: Store, grid: Grid, tuning: GuardTuning) -> Guard:
        """Guard as it was."""
        guard = Guard.from_dict(tuning, _read(store, self.state) if self.state else {})
        for entry in (Entry(**plain) for plain in self.journal):
            entry.begin(guard)
            entry.receive(guard, store, grid)
            entry.sense(guard, store)
        return guard

    def to_dict(self) -> dict[str, Any]:
        """Fields of the manifest."""
        return {"state": self.state, "journal": self.journal, "in_force": self.in_force}

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> GuardState | None:
        """As a manifest has it; ``None`` where Guard never was."""
        known = manifest.get("guard")
        if known is None:
            return None
        return cls(known["state"], tuple(known["journal"]), known["in_force"])


def written(store: Store, guard: Guard) -> str:
    """Write a state down, users in columns; returns its name."""
    values = guard.to_dict()
    table, name = values.pop("table"), unique_name("state", "guard")
    arrays = {
        key: pa.array(column, pa.string()) if key == "users" else np.array(column, float).ravel()
        for key, column in table.items()
    }
    arrays[_REST] = np.frombuffer(json.dumps(values).encode(), np.uint8)
    write_segment(store, name, arrays, {"kind": "guard"})
    return name


def sense_all(guard: Guard, summaries: Sequence[str]) -> None:
    """Hand over what sensors told, as JSON."""
    for summary in summaries:
        guard.sense(Summary.from_dict(json.loads(summary)))


def sensed_written(store: Store, summaries: Sequence[str]) -> str:
    """Write down what sensors told; returns its name."""
    name = unique_name("state", "guard-sensed")
    texts = pa.array(summaries, pa.large_string())
    write_segment(store, name, {_SENSED: texts}, {"kind": "guard-sensed"})
    return name


def _read(store: Store, name: str) -> dict[str, Any]:
    segment = read_segment(store, name)
    table: dict[str, Any] = {
        key: segment.columns[key].to_pylist() if key == "users" else segment.array(key)
        for key in segment.columns
        if key != _REST
    }
    return {**json.loads(segment.array(_REST).tobytes()), "table": table}


def names_kept(store: Store, names: frozenset[str]) -> str | None:
    """The file that lists names: called by what is in it, written once, never deleted."""
    if not names:
        return None
    listed = json.dumps(sorted(names)).encode()
    name = f"{_IN_FORCE}/{blake2b(listed, digest_size=12).hexdigest()}.json"
    if not store.exists(name):
        store.write_bytes(name, listed)
    return name


def names_in(store: Store, name: str | None) -> frozenset[str]:
    """The names that a file lists."""
    return frozenset(store.read_json(name)) if name else frozenset()


def tuning_of(config: GuardConfig, grid: Grid) -> GuardTuning:
    """What Guard judges by; a place is at least a hundredth of the grid's side."""
    low, high = config.removal_rounds
    return GuardTuning(
        "published" if config.mode == "published" else "robust",
        config.observe_only, seconds(config.round), config.factor, config.spread, (low, high),
        seed=config.seed, block_seconds=seconds(config.block) if config.block else None,
        evidence_floor=config.evidence_floor, least_rate=config.least_rate,
        least_share=config.least_share, relocated_rate=config.relocated_rate,
        crowd_share=config.crowd_share,
        crowd_users=config.crowd_users, least_users=config.least_users,
        warm_up_rounds=config.warm_up_rounds, least_place=max(grid.columns, grid.rows) / 100,
    )  # fmt: skip
