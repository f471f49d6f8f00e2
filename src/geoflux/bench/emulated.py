"""The slots of a cluster, one after another in this process: what a cluster would wait for.

Every slot does its real work on the real engine and is timed by itself; an epoch costs what its
busiest slot took, since a cluster waits for that one. The clock of the run is the benchmark's, so
that rounds, hotspots and days take the same epochs on any machine. Not in the figures: the network,
and what routing costs, which is the same for all strategies.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from geoflux import run_inputs, run_plan
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.inline import run_epoch
from geoflux.engine.setting import Setting
from geoflux.engine.source import ControlSource, EventSource
from geoflux.state.keys import store_for
from geoflux.state.refs import Ref
from geoflux.workload import Scenario, SimulatedControl, Simulator

EPOCH_SECONDS = 5.0
"""Of the run's clock; a round of 15 seconds is three epochs."""
_FULL = 0.9
_FIXED = 0.15
"""Seconds that an epoch takes besides its slots' work, as measured with Spark; ratios of latencies
depend little on it."""


@dataclass(frozen=True)
class Seen:
    """One epoch. ``busy`` are the seconds of each slot, ``work`` what they did by their statistics
    (0 where none are kept)."""

    events: int
    queries: int
    busy: tuple[float, ...]
    work: tuple[float, ...]
    bytes_in: tuple[int, ...]
    """Of events, into each slot."""
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
        self.store = store_for(folder, config.security)
        self._source, control = self._inputs(config)
        policy = run_plan.policy_of(config)
        setting = Setting(
            config, self.store, self._source.schema(), control, policy, lambda: self._now
        )
        self.engine = Engine.recovered(setting, lambda: run_plan.first_plan(setting, self._source))
        self._position = self._epoch = 0
        self.last: Manifest = {}

    def _inputs(self, config: Config) -> tuple[EventSource, ControlSource]:
        if config.source.kind == "files":
            inputs = run_inputs.configured_inputs(config, self.store, 0.0)
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
            for segment in {Ref.of(ref).segment for ref in refs.get(str(partition.id), [])}:
                if self.store.exists(segment):
                    sizes[partition.slot] += self.store.size(segment)
        return max(sizes.values())


def _seen(manifest: Manifest, partitions: int) -> Seen:
    slots: list[dict[str, Any]] = manifest["slots"]
    return Seen(
        manifest["processed"], manifest["live_queries"],
        tuple(s["busy_seconds"] for s in slots),
        tuple(s["work"] for s in slots),
        tuple(s["bytes_in"] for s in slots),
        sum(s["stat_seconds"] for s in slots) + manifest["decide_seconds"],
        len(manifest["decision"]["changes"]), partitions, manifest["decision"]["reason"],
    )  # fmt: skip


def capability(epochs: list[Seen]) -> float:
    """Events per second: all events over the seconds of the busiest slots."""
    return sum(e.events for e in epochs) / sum(max(e.busy) for e in epochs)


def attainable(epochs: list[Seen]) -> list[Seen]:
    """The same work, shared out evenly among the slots: no plan can do better."""
    return [replace(e, busy=(fmean(e.busy),) * len(e.busy)) for e in epochs]


def mean_latency(costs: Sequence[float], rate: float) -> float:
    """The mean seconds from an event's arrival to its commit when events come at ``rate``. Epochs
    follow each other: each takes all that has come, and needs a fixed time and what its events
    cost, ``costs[k]`` each while the k-th :data:`EPOCH_SECONDS` last. Where that is more than time
    allows, a backlog grows, and later events wait for it.

    >>> idle, full = mean_latency([0.0], 1.0), mean_latency([0.5] * 200, 1.0)
    >>> round(idle / _FIXED, 3), round(full / _FIXED, 3)
    (1.5, 3.0)
    """
    horizon, waited = EPOCH_SECONDS * len(costs), 0.0
    taken, now = 0.0, _FIXED
    while taken < horizon:
        cost = costs[min(int(now / EPOCH_SECONDS), len(costs) - 1)]
        lasts = _FIXED + rate * (now - taken) * cost
        waited += (min(now, horizon) - taken) * ((now - taken) / 2 + lasts)
        taken, now = now, now + lasts
    return waited / horizon


def latency_ratio(slow: list[Seen], fast: list[Seen]) -> float:
    """How much shorter ``fast`` makes the wait, at nine tenths of the rate that ``slow`` can carry
    over the same time."""
    rate = _FULL * capability(slow)
    of_slow, of_fast = (mean_latency([e.cost for e in run], rate) for run in (slow, fast))
    return of_slow / of_fast
