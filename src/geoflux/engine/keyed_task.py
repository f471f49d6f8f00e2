"""What one epoch asks of the workers of a keyed operator, and what they report back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.rooted import Sampling
from geoflux.errors import OperatorError
from geoflux.operators.keyed import ID, Operator
from geoflux.plan import HashPlan, PrefixPlan
from geoflux.plan.hashing import stable_hash
from geoflux.spatial.space import IntArray
from geoflux.state.refs import Ref
from geoflux.state.store import Store


@dataclass(frozen=True)
class Budget:
    """What a slot may use up in an epoch."""

    seconds: float | None = None
    """After so long it hands the rest of its input back; ``None``: it finishes what it has."""
    buffer_bytes: int = 64 << 20
    """As much may be handed back at most; beyond it the slot goes on, whatever the time."""
    memory_bytes: int | None = None
    """For the states of its partitions; ``None``: no limit."""


@dataclass(frozen=True)
class Emulated:
    """Slots that are made slow, by sleeping, or short of memory: for benchmarks, where machines are
    to be emulated."""

    seconds_per_row: Mapping[int, float] = field(default_factory=dict)
    disk_bytes_per_second: float | None = None
    memory_bytes: Mapping[int, int] = field(default_factory=dict)
    """Of slots with another memory budget than the settings give to all."""
    seconds_elsewhere: float = 0.0
    """Seconds per row of slots that :attr:`seconds_per_row` does not name; those that come later,
    for example."""
    services: Literal["constant", "exponential"] = "constant"
    """Whether every row takes as long, or times that vary like exponential ones."""
    seed: int = 0
    """Of times that vary: two operators with another one have other times for the same ids."""

    def seconds_of(self, slot: int) -> float:
        """What a row takes in a slot, on average."""
        return self.seconds_per_row.get(slot, self.seconds_elsewhere)

    def times(self, slot: int, rows: pa.Table) -> npt.NDArray[np.float64] | None:
        """What each row takes, by its id alone, so that a replay takes as long; ``None``:
        nothing."""
        mean = self.seconds_of(slot)
        if mean <= 0:
            return None
        if self.services == "constant":
            return np.full(len(rows), mean)
        hashed = stable_hash(rows.column(ID)) ^ stable_hash(np.array([self.seed]))
        mixed = stable_hash((hashed >> np.uint64(1)).view(np.int64)) >> np.uint64(11)
        times: npt.NDArray[np.float64] = -mean * np.log((mixed + 0.5) / 2.0**53)
        return times


@dataclass(frozen=True)
class KeyedTask:
    """Everything that routing and processing need to know in one epoch."""

    epoch: int
    store: Store
    plan: HashPlan | PrefixPlan
    operator: Operator[Any]
    intake: KeyedIntake
    states: Mapping[int, tuple[Ref, ...]]
    carried: Mapping[int, tuple[Ref, ...]]
    """Rows that were handed back, per partition, oldest first."""
    sizes: Mapping[int, int]
    """Bytes of the states, as of the last epoch."""
    spilled: frozenset[int]
    """Partitions without room in memory, as of the last epoch."""
    turns: Mapping[int, int]
    """The last epoch in which each partition was worked on; those that waited longest come
    first."""
    budgets: Mapping[int, Budget]
    budget: Budget = field(default_factory=Budget)
    """Of slots that :attr:`budgets` does not name."""
    compression: str = "zstd"
    record_input: bool = False
    emulated: Emulated = field(default_factory=Emulated)
    sampling: Sampling | None = None
    """Which rows are followed; ``None``: none."""
    measure: bool = False
    """Whether slots tell of the parts of their partitions, which are prefixes."""

    @property
    def read_columns(self) -> frozenset[str]:
        """What to read of the events."""
        return self.intake.needed

    def located(self, rows: pa.Table) -> IntArray:
        """The place of each row's partition in the plan."""
        places = self.operator.place(rows)
        try:
            return self.plan.locate(places)
        except ValueError as error:
            raise OperatorError(f"{type(self.operator).__name__}.place: {error}") from error


@dataclass(frozen=True)
class KeyedReport:
    """What one slot did with a keyed operator."""

    slot: int
    processed: int
    results: int
    busy_seconds: float
    load_seconds: float
    bytes_in: int
    result_files: tuple[str, ...]
    states: Mapping[str, list[list[Any]]]
    """Partitions (as text) whose state is another now."""
    carried: Mapping[str, list[list[Any]]]
    """Partitions (as text) with rows that were handed back; for all others there are none."""
    sizes: Mapping[str, int]
    tuples: Mapping[str, int]
    """Rows processed, per partition."""
    spilled: Mapping[str, int]
    """Partitions that have no room in memory, with the bytes of their rows that wait."""
    streams: Mapping[str, list[list[Any]]] = field(default_factory=dict)
    """By stream the staged files of its rows, each with how many it has."""
    carried_rows: int = 0
    carried_bytes: int = 0
    spilled_bytes: int = 0
    """Of the states that have no room in memory."""
    spooled_rows: int = 0
    """Those of the rows that were handed back that wait for such a state."""
    out_of_time: bool = False
    arrivals: int = 0
    """Rows that came in this epoch; the others had been handed back."""
    services: list[float] = field(default_factory=list)
    """What its services took: ``scale.services.ServiceSums``."""
    derived: Mapping[str, list[int]] = field(default_factory=dict)
    """By stream the number of results; where rows are followed and results say where they come
    from, also how many come from followed rows, and the sum over these of squared numbers."""
    acks: str = ""
    """Followed rows that it processed: roots and acknowledgements (``rooted.as_text``)."""
    follow_seconds: float = 0.0
    """Of its busy seconds those that following took."""
    parts: Mapping[str, list[list[Any]]] = field(default_factory=dict)
    """By partition (as text) its parts: ``balance.parts.Part``."""

    def to_bytes(self) -> bytes:
        """For the trip to the driver."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> KeyedReport:
        """What :meth:`to_bytes` wrote."""
        values = json.loads(data)
        values["result_files"] = tuple(values["result_files"])
        return cls(**values)
