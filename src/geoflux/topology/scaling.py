"""The scaling of an application while it runs: manifests in, wanted slots and processors out.

Whoever watches the application calls :meth:`Scaling.step` now and then; what operators did is read
from their epoch logs. What is decided is on disk before an engine hears of it, and engines ask when
they commit: nothing is ever stopped for a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from geoflux.config import Config
from geoflux.engine.wanted import Wanted, WantedSlots
from geoflux.scale.decisions import ScaleDecision
from geoflux.scale.executors import Answer
from geoflux.scale.looking import Looking, LookState, unseen
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.policy import ScalePolicy
from geoflux.scale.scaler import Scaler, ScaleRecord
from geoflux.scale.smoothing import Smoothing
from geoflux.scale.stations import Station
from geoflux.scale.tuning import ScaleTuning
from geoflux.settings import seconds
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.topology.nodes import Stream
from geoflux.topology.topology import Topology

OnDecision = Callable[[ScaleDecision, Answer | None], None]


class Processors(Protocol):
    """Whoever gets processors, and releases them."""

    def most(self) -> int | None:
        """As many as there can ever be; ``None``: nobody knows."""
        ...

    def want(self, processors: int) -> Answer:
        """Have at least so many from now on."""
        ...


def network_of(topology: Topology) -> Network:
    """The application as queues; all numbers are to be measured."""
    operators = tuple(
        Operator(
            node.name, 1.0, 1.0 if node.is_outer else 0.0, form="keyed",
            everything=bool(topology.feeds[node.name]),
        )
        for node in topology.nodes
    )  # fmt: skip
    edges = tuple(
        Edge(node.name, reader, 0.0)
        for node in topology.nodes
        for reader in topology.by_name
        if reader in topology.feeds[node.name]
    )
    return Network(operators, edges)


def stations_of(topology: Topology, configs: Mapping[str, Config]) -> tuple[Station, ...]:
    """Who reads what, as far as measuring goes."""
    stations = []
    for node in topology.nodes:
        readers = {
            stream: topology.readers(Stream(node.name, stream)) for stream in node.work.streams
        }
        trigger = configs[node.name].engine.epoch_seconds
        stations.append(Station(node.name, readers, node.is_outer, trigger))
    return tuple(stations)


class Scaling:
    """Looks at an application every ``scale.look`` and says how many slots its operators get.

    Guarantee: :meth:`step` never waits, and what it decides follows from manifests and the clock.
    """

    def __init__(
        self, topology: Topology, configs: Mapping[str, Config], store: Store,
        logs: Mapping[str, EpochLog], processors: Processors,
        on_decision: OnDecision | None = None,
    ) -> None:  # fmt: skip
        scale = next(iter(configs.values())).scale
        tuning = ScaleTuning.of(scale)
        most = processors.most()
        if most is not None:
            tuning = replace(tuning, most=min(tuning.most, most))
        self._every = seconds(scale.look)
        self._looking = Looking(
            network_of(topology), stations_of(topology, configs), Smoothing.of(scale)
        )
        self.scaler = Scaler(ScaleRecord(store), ScalePolicy(tuning))
        known = LookState.from_dict(self.scaler.seen, self._looking.smoothing)
        self._state = replace(known, at=None)  # whatever time has gone by since, nobody looked
        self._logs = logs
        self._processors = processors
        self._on_decision = on_decision
        self._next = 0.0
        self._reason = ""

    def wanted(self, operator: str) -> WantedSlots:
        """What an operator's engine asks when it commits."""

        def ask() -> Wanted | None:
            slots = self.scaler.wanted(operator)
            return None if slots is None else Wanted(slots, self._reason or "as decided before")

        return ask

    def step(self, now: float, waiting: Callable[[str], int]) -> ScaleDecision | None:
        """Look, if it is time to, and decide; ``waiting`` tells the rows that an operator has yet
        to read."""
        if now < self._next:
            return None
        self._next = now + self._every
        news = unseen(self._logs, self._state)
        outside = {s.name: waiting(s.name) for s in self._looking.stations if s.outside}
        seen, self._state = self._looking.look(now, news, self._state, outside)
        decision = self.scaler.look(seen, self._state.to_dict())
        if decision is None:
            return None
        if decision.carried_out:
            self._reason = decision.reason
        # Those that come are wanted before their slots are there, those that go until theirs have.
        slots = {n: max(k, self.scaler.wanted(n) or k) for n, k in decision.before.items()}
        answer = self._processors.want(sum(slots.values()))
        if self._on_decision is not None:
            self._on_decision(decision, answer)
        return decision
