"""A look at an application: the manifests of all its operators since the last look, as numbers.

Pure: manifests in, a :class:`Look` and what is to be remembered out. Rates are over the time
between two looks, so that an operator without epochs counts as one without input. The numbers are
smoothed (``smoothing.py``) and put into the topology (``observing.py``); epochs are measured as
well (``rhythm.py``), and trees give the total sojourn time.

Source: DRS IV-A (measurement), IV-B (what the optimiser is given).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from geoflux.scale.acks import Trees
from geoflux.scale.decisions import Look
from geoflux.scale.measuring import aggregated
from geoflux.scale.network import Network
from geoflux.scale.observing import NotReady, measured_network
from geoflux.scale.smoothing import Smoothed, Smoothing
from geoflux.scale.sojourns import Sojourns, grown
from geoflux.scale.stations import (
    Manifest,
    Station,
    StationState,
    input_window,
    remembered,
    slot_windows,
)
from geoflux.state.epoch_log import EpochLog


@dataclass(frozen=True)
class LookState:
    """All that is remembered between two looks; at first, nothing."""

    at: float | None = None
    stations: Mapping[str, StationState] = field(default_factory=dict)
    smoothed: Smoothed = field(default_factory=lambda: Smoothed(Smoothing()))
    trees: Trees = field(default_factory=Trees)
    sojourns: Sojourns = field(default_factory=Sojourns)

    def next_epoch(self, operator: str) -> int:
        """The first epoch of an operator that no look has seen."""
        return self.stations.get(operator, StationState()).next_epoch

    def to_dict(self) -> dict[str, Any]:
        """Plain values: whoever starts the application again goes on with them."""
        return {
            "at": self.at, "stations": {n: s.to_dict() for n, s in self.stations.items()},
            "smoothed": self.smoothed.to_dict(),
            "trees": {name: column.tolist() for name, column in self.trees.to_columns().items()},
            "sojourns": [list(look) for look in self.sojourns.looks],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], how: Smoothing) -> LookState:
        """What :meth:`to_dict` gave, also by way of JSON; of nothing, the state at first."""
        if not values:
            return cls(smoothed=Smoothed(how))
        empty = Trees().to_columns()
        trees = {name: np.array(c, empty[name].dtype) for name, c in values["trees"].items()}
        looks = tuple((int(n), float(s), float(q)) for n, s, q in values["sojourns"])
        return cls(
            values["at"],
            {n: StationState.from_dict(s) for n, s in values["stations"].items()},
            Smoothed.from_dict(values["smoothed"], how), Trees.from_columns(trees), Sojourns(looks),
        )  # fmt: skip


@dataclass(frozen=True)
class Looking:
    """Looks at an application of some operators; ``topology`` says what is not measured. Trees that
    are not complete after ``longest_tree`` seconds are given up."""

    topology: Network
    stations: tuple[Station, ...]
    smoothing: Smoothing = field(default_factory=Smoothing)
    least_timed: float = 0.0
    """Timed services a second of every operator, at least."""
    longest_tree: float = 3600.0

    def first(self) -> LookState:
        """Before the first look."""
        return LookState(smoothed=Smoothed(self.smoothing))

    def look(
        self, now: float, manifests: Mapping[str, Sequence[Manifest]], state: LookState,
        waiting: Mapping[str, int] | None = None,
    ) -> tuple[Look | NotReady, LookState]:  # fmt: skip
        """What is seen as of ``now``, and what to remember. ``manifests`` are those of each
        operator from :meth:`LookState.next_epoch` on; ``waiting`` are rows from outside that nobody
        has read."""
        known = {s.name: state.stations.get(s.name, StationState()) for s in self.stations}
        news = {s.name: list(manifests.get(s.name, ())) for s in self.stations}
        trees, ended = grown(state.trees, known, news)
        trees, _ = trees.without(now - self.longest_tree)
        after = {s.name: remembered(s, known[s.name], news[s.name]) for s in self.stations}
        state = replace(
            state, stations=after, trees=trees,
            sojourns=state.sojourns.after(ended, self.smoothing.window),
        )  # fmt: skip
        begun = state.at
        if begun is None or now <= begun:
            return NotReady("this is the first look"), replace(state, at=now)
        windows, inputs = [], []
        for s in self.stations:
            windows += slot_windows(s, after[s.name], news[s.name], now - begun)
            if s.outside:
                inputs.append(input_window(s, after[s.name], news[s.name], now - begun))
        smoothed = state.smoothed.after(aggregated(windows, inputs))
        state = replace(state, at=now, smoothed=smoothed)
        network = measured_network(self.topology, smoothed.now, self.least_timed)
        if isinstance(network, NotReady):
            return network, state
        missing = [s.name for s in self.stations if not after[s.name].slots]
        if missing:
            return NotReady(f"{missing[0]} has had no epoch"), state
        mean, error = state.sojourns.mean_and_error()
        allocation = {s.name: after[s.name].slots for s in self.stations}
        backlog = self._backlog(after, waiting or {})
        return Look(now, self._timed(network, after), allocation, mean, error, backlog), state

    def _timed(self, network: Network, states: Mapping[str, StationState]) -> Network:
        """With the epochs that were measured."""
        triggers = {s.name: s.trigger for s in self.stations}
        operators = tuple(
            replace(o, epochs=states[o.name].rhythm.epochs(triggers[o.name]) or o.epochs)
            for o in network.operators
        )
        return replace(network, operators=operators)

    def _backlog(
        self, states: Mapping[str, StationState], waiting: Mapping[str, int]
    ) -> dict[str, float]:
        """Rows that wait for each operator: read and not processed, or not read yet."""
        sent: Counter[str] = Counter()
        for state in states.values():
            sent.update(state.sent)
        out = {}
        for s in self.stations:
            known = states[s.name]
            unread = waiting.get(s.name, 0)
            if not s.outside:
                unread += max(sent[s.name] - known.received, 0)
            out[s.name] = float(known.waiting + unread)
        return out


def unseen(logs: Mapping[str, EpochLog], state: LookState) -> dict[str, list[Manifest]]:
    """The manifests of every operator that no look has seen. Those who read come first: what they
    have read was written by then, so that nothing seems to be read before it was written."""
    found: dict[str, list[Manifest]] = {}
    for name in reversed(list(logs)):
        epoch, found[name] = state.next_epoch(name), []
        while logs[name].is_committed(epoch):
            found[name].append(logs[name].manifest(epoch))
            epoch += 1
    return found
