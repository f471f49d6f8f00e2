"""What one epoch asks of the workers, and what they report back: small picklable values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from geoflux.engine.intake import EventColumns, Intake
from geoflux.plan import GridPlan, ReplicatedPlan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import IntArray
from geoflux.state.refs import Ref
from geoflux.state.store import Store


@dataclass(frozen=True)
class EpochTask:
    """Everything that routing and matching need to know in one epoch."""

    epoch: int
    store: Store
    grid: Grid
    plan: GridPlan | ReplicatedPlan
    refs: Mapping[int, tuple[Ref, ...]]
    columns: EventColumns
    id_type: pa.DataType
    wanted: frozenset[str]
    """Event columns that some live query's ``where`` names."""
    needs_time: bool
    counting: bool
    compression: str
    record_input: bool

    @property
    def intake(self) -> Intake:
        """The judge of incoming rows."""
        return Intake(self.columns, self.grid.space, self.id_type, self.wanted)

    @cached_property
    def rank_of_place(self) -> IntArray:
        """Partitions in the order of their slots: the rank of each place."""
        slots = np.array([p.slot for p in self.plan.partitions])
        ranks = np.empty(slots.size, np.int32)
        ranks[np.argsort(slots, kind="stable")] = np.arange(slots.size)
        return ranks


@dataclass(frozen=True)
class RouteReport:
    """What one routing task saw: conservation is counted from it."""

    received: int
    quarantined: int
    reasons: Mapping[str, int]
    max_time: int | None
    slices: tuple[tuple[int, int, int], ...]
    quarantine_files: tuple[str, ...]
    received_files: tuple[str, ...]
    seconds: float

    def to_bytes(self) -> bytes:
        """For the trip through the exchange."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> RouteReport:
        """What :meth:`to_bytes` wrote."""
        values = json.loads(data)
        for name in ("quarantine_files", "received_files"):
            values[name] = tuple(values[name])
        values["slices"] = tuple(tuple(piece) for piece in values["slices"])
        return cls(**values)


@dataclass(frozen=True)
class SlotReport:
    """What one slot did: two numbers for a balancer, and the engine's own metrics."""

    slot: int
    processed: int
    matches: int
    checks: int
    refined: int
    queries: int
    busy_seconds: float
    load_seconds: float
    bytes_in: int
    match_files: tuple[str, ...]
    refs: Mapping[str, list[list[Any]]]
    """Partitions (as text) whose references this slot wrote anew."""
    per_partition: Mapping[str, list[int]] = field(default_factory=dict)
    """Events and checks of each partition (as text), for displays."""

    def to_bytes(self) -> bytes:
        """For the trip to the driver."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> SlotReport:
        """What :meth:`to_bytes` wrote."""
        values = json.loads(data)
        return cls(**{**values, "match_files": tuple(values["match_files"])})
