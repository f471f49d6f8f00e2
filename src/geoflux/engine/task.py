"""What one epoch asks of the workers, and what they report back: small picklable values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from geoflux.balance.policy import Orders
from geoflux.balance.tuning import Tuning
from geoflux.engine.addressing import Addresses
from geoflux.engine.intake import EventColumns, Intake
from geoflux.engine.rooted import Sampling
from geoflux.engine.snapshots import View
from geoflux.guard.rounds import Rounds
from geoflux.operators.clock import Clock
from geoflux.plan import GridPlan, ReplicatedPlan
from geoflux.spatial.grid import Grid
from geoflux.state.refs import Ref
from geoflux.state.store import Store


@dataclass(frozen=True)
class EpochTask:
    """Everything that routing and matching need to know in one epoch."""

    epoch: int
    clock: Clock
    store: Store
    grid: Grid
    plan: GridPlan | ReplicatedPlan
    refs: Mapping[int, tuple[Ref, ...]]
    windows: Mapping[int, tuple[Ref, ...]]
    """Per home what matches came to in earlier epochs."""
    delta: str | None
    """The segment of this epoch's control changes."""
    columns: EventColumns
    id_type: pa.DataType
    wanted: frozenset[str]
    """Event columns that some query's ``where`` or ``aggregate`` names."""
    needs_time: bool
    has_windows: bool
    counting: bool
    compression: str
    record_input: bool
    view: View | None
    """The events that are retained as the epoch opens; ``None``: nothing is retained."""
    snapshots: tuple[Mapping[str, Any], ...]
    """Questions about them, as plain values."""
    tuning: Tuning | None = None
    """What slots measure their load by; ``None``: they keep no statistics."""
    orders: Orders = field(default_factory=Orders)
    stats: Mapping[int, tuple[Ref, ...]] = field(default_factory=dict)
    """Per partition the statistics as of the last epoch."""
    expired: tuple[tuple[str, int, int, int, int], ...] = ()
    """Segments of retained events that expired with the last epoch, and their cells."""
    rounds: Rounds | None = None
    """By which a slot that is asked dates its queries for Guard; ``None``: there is none."""
    sampling: Sampling | None = None
    """Which rows are followed; ``None``: none."""

    @property
    def read_columns(self) -> frozenset[str]:
        """What to read of the events."""
        return self.columns.needed | self.wanted

    @property
    def needs_id(self) -> bool:
        """Whether ids travel with the events: counts alone do without them."""
        return self.has_windows or self.view is not None or not self.counting

    @property
    def intake(self) -> Intake:
        """The judge of incoming rows."""
        return Intake(self.columns, self.grid.space, self.id_type, self.wanted)

    @cached_property
    def addresses(self) -> Addresses:
        """Where events of each partition go."""
        return Addresses.of(self.plan.partitions)


@dataclass(frozen=True)
class RouteReport:
    """What one routing task saw: conservation is counted from it."""

    received: int
    quarantined: int
    reasons: Mapping[str, int]
    late: int
    """Valid events that lie before what was closed when the epoch was opened."""
    times: tuple[int, int] | None
    """Smallest and largest event time."""
    slices: tuple[tuple[int, int, int], ...]
    quarantine_files: tuple[str, ...]
    received_files: tuple[str, ...]
    seconds: float
    roots: str = ""
    """Inputs that are followed: root, id of its first record, position (``rooted.as_text``)."""
    acks: str = ""
    """Followed rows that are done with: root and acknowledgement."""
    follow_seconds: float = 0.0
    """Of its seconds those that following took."""

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
        values["times"] = values["times"] and tuple(values["times"])
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
    window_files: tuple[str, ...] = ()
    window_rows: int = 0
    late_matches: int = 0
    """Matches of queries that aggregate that came when all their windows were closed."""
    closed_until: int | None = None
    window_refs: Mapping[str, list[list[Any]]] = field(default_factory=dict)
    """Partitions (as text) whose references to windows changed."""
    window_sent: tuple[list[Any], ...] = ()
    """References to what was collected for homes."""
    kept: tuple[list[Any], ...] = ()
    """Segments of retained events that were written, and which they replace."""
    snapshot_files: tuple[str, ...] = ()
    cost: float | None = None
    """With ``round_received`` the two numbers of a round that was closed."""
    round_received: float | None = None
    answer: Mapping[str, Any] | None = None
    """What it would give away, if it was asked."""
    stat_refs: Mapping[str, list[list[Any]]] = field(default_factory=dict)
    """Partitions (as text) whose statistics were saved anew."""
    work: float = 0.0
    """What its events cost, in comparisons with boxes."""
    stat_seconds: float = 0.0
    sensed: str | None = None
    """Who is behind its costliest partition, if it was asked and Guard wants to know, as JSON: it
    may be long, and only Guard reads it."""
    sense_seconds: float = 0.0
    """Of those for statistics, what the sensor took."""
    services: list[float] = field(default_factory=list)
    """What its services took: ``scale.services.ServiceSums``, a partition's events as a batch."""

    @property
    def files(self) -> tuple[str, ...]:
        """All staged files that are to be published."""
        return (*self.match_files, *self.window_files, *self.snapshot_files)

    def to_bytes(self) -> bytes:
        """For the trip to the driver."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> SlotReport:
        """What :meth:`to_bytes` wrote."""
        values = json.loads(data)
        for name in ("match_files", "window_files", "window_sent", "kept", "snapshot_files"):
            values[name] = tuple(values[name])
        return cls(**values)
