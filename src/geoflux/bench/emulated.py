"""The slots of a cluster, one after another in this process: what a cluster would wait for.

Every slot does its real work on the real engine and is timed by itself; an epoch costs what its
busiest slot took, since a cluster waits for that one. The clock of the run is the benchmark's, so
that rounds, hotspots and days take the same epochs on any machine. Not in the figures: the network,
and what routing costs, which is the same for all strategies.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from geoflux import api
from geoflux.config import Config
from geoflux.engine.engine import Engine, Manifest
from geoflux.engine.inline import run_epoch
from geoflux.engine.setting import Setting
from geoflux.engine.source import ControlSource, EventSource
from geoflux.state.store import Store
from geoflux.workload import Scenario, SimulatedControl, Simulator

EPOCH_SECONDS = 5.0
"""Of the run's clock; a round of 15 seconds is three epochs."""
_FULL = 0.9


@dataclass(frozen=True)
class Seen:
    """One epoch. ``busy`` are the seconds of each slot, ``work`` what they did by their statistics
    (0 where none are kept)."""

    events: int
    queries: int
    busy: tuple[float, ...]
    work: tuple[float, ...]
    stats: float
    """Seconds spent on statistics, searches and decisions."""
    changes: int
    partitions: int
    reason: str

    @property
    def cost(self) -> float:
        """Seconds of the busiest slot, per event."""
        return max(self.busy) / max(self.events, 1)

    @property
    def rate(self) -> float:
        """Events per second."""
        return 1.0 / self.cost

    @property
    def imbalance(self) -> float:
        """The busiest slot over the mean."""
        return max(self.busy) / fmean(self.busy)

    @property
    def work_imbalance(self) -> float:
        """The same of the work that was done, which no noise disturbs."""
        return max(self.work) / max(fmean(self.work), 1e-9)


class Emulation:
    """A run whose slots are emulated; :meth:`step` is one epoch."""

    def __init__(self, folder: Path, config: Config) -> None:
        self._now = 0.0
        self._config = config
        self.store = Store(str(folder))
        self._source, control = self._inputs(config)
        policy = api.policy_of(config)
        setting = Setting(
            config, self.store, self._source.schema(), control, policy, lambda: self._now
        )
        self.engine = Engine.recovered(setting, lambda: api.first_plan(setting, self._source))
        self._position = self._epoch = 0
        self.last: Manifest = {}

    def _inputs(self, config: Config) -> tuple[EventSource, ControlSource]:
        if config.source.kind == "files":
            inputs = api.configured_inputs(config, self.store, 0.0)
            assert inputs.events is not None, "files are an event source"
            return inputs.events, inputs.control
        scenario = Scenario.of(config)
        return (
            Simulator(scenario, 0.0, lambda: self._now),
            SimulatedControl(scenario, 0.0, lambda: self._now),
        )

    def step(self) -> Seen:
        """One epoch, with the events of its time."""
        self._now = (self._epoch + 1) * EPOCH_SECONDS
        end = self._source.latest(self._position, self._config.engine.epoch_events)
        gc.collect()
        gc.disable()  # a collection would be charged to one slot
        try:
            self.last = run_epoch(self.engine, self._source, self._epoch, (self._position, end), 1)
        finally:
            gc.enable()
        self._position, self._epoch = end, self._epoch + 1
        return _seen(self.last, len(self.engine.plan.partitions))

    def run(self, epochs: int) -> list[Seen]:
        """Several epochs."""
        return [self.step() for _ in range(epochs)]

    def bytes_per_slot(self) -> int:
        """Of the queries of the slot that has most, as their segments are mapped."""
        sizes: dict[int, int] = dict.fromkeys(range(self.engine.plan.slots), 0)
        refs = self.last["refs"]
        for partition in self.engine.plan.partitions:
            for _, segment, _ in refs.get(str(partition.id), []):
                if self.store.exists(segment):
                    sizes[partition.slot] += self.store.size(segment)
        return max(sizes.values())


def _seen(manifest: Manifest, partitions: int) -> Seen:
    slots: list[dict[str, Any]] = manifest["slots"]
    return Seen(
        manifest["processed"], manifest["live_queries"],
        tuple(s["busy_seconds"] for s in slots),
        tuple(s["work"] for s in slots),
        sum(s["stat_seconds"] for s in slots) + manifest["decide_seconds"],
        len(manifest["decision"]["changes"]), partitions, manifest["decision"]["reason"],
    )  # fmt: skip


def capability(epochs: list[Seen]) -> float:
    """Events per second: all events over the seconds of the busiest slots."""
    return sum(e.events for e in epochs) / sum(max(e.busy) for e in epochs)


def latencies(costs: list[float], rate: float) -> float:
    """The mean time from an event's arrival to its commit, in units of an epoch's fixed cost, when
    events come at ``rate``: an epoch of T seconds holds ``rate`` x T events and takes a fixed time
    plus the busiest slot's; in balance T = fixed / (1 - rate x cost), and an event waits half an
    epoch and then its own.

    >>> round(latencies([0.5], 1.0), 3), round(latencies([0.25], 1.0), 3)
    (3.0, 2.0)
    """
    return fmean(1.5 / max(1.0 - rate * cost, 1e-3) for cost in costs)


def latency_ratio(slow: list[Seen], fast: list[Seen]) -> float:
    """How much shorter ``fast`` makes the wait, at the rate that fills ``slow`` to 90 % in its
    worst moment."""
    rate = _FULL / max(e.cost for e in slow)
    return latencies([e.cost for e in slow], rate) / latencies([e.cost for e in fast], rate)
