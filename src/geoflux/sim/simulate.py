"""A run of the simulated cluster: the compiled loop, and the controller whenever it is its turn.

Policies, durations of phases and the rules of the buffer are those of :mod:`geoflux.balance`; here
is only the cluster on which they act.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.flux_moves import moves
from geoflux.balance.flux_rounds import FluxRounds
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.plan.changes import Move
from geoflux.sim import columns as c
from geoflux.sim.cluster import Cluster, CpuLoad, Load
from geoflux.sim.loop import ENDED, REPORTED, advance, begin_phase
from geoflux.sim.moving import order
from geoflux.sim.results import Moved, Run, result_of
from geoflux.sim.state import Fixed, State, empty_state, fixed_of


def simulate(
    cluster: Cluster, seconds: int, seed: int = 0, loads: Sequence[Load] = (),
    tuning: FluxTuning | None = None,
) -> Run:  # fmt: skip
    """Run for whole seconds of simulated time. Without ``tuning`` nothing moves: static.

    >>> run = simulate(Cluster(sites=2, per_site=4, groups=8), seconds=1)
    >>> run.where.total == run.produced, round(run.rate() / (2 / 45.5e-6), 2)
    (True, 1.0)
    """
    draws = np.random.default_rng(seed)
    weights = partition_weights(cluster, draws)
    state = empty_state(cluster, seconds, weights, _changes(loads))
    fixed = fixed_of(cluster)
    end = seconds * c.SECOND
    if tuning is None:
        while advance(state, fixed, draws, end) != ENDED:
            pass
        return result_of(state, seconds, (), ())
    controller = _Controller(state, fixed, tuning)
    controller.begin()
    while (reason := advance(state, fixed, draws, end)) != ENDED:
        if reason == REPORTED:
            controller.decide()
        else:
            controller.moved()
    return result_of(state, seconds, controller.rounds, controller.phases)


def partition_weights(
    cluster: Cluster, draws: np.random.Generator
) -> npt.NDArray[np.float64]:  # fmt: skip
    """The share of each partition in the input: popular groups lie anywhere.

    >>> partition_weights(Cluster(sites=2, per_site=2, groups=8), np.random.default_rng(0)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    ranks = draws.permutation(cluster.groups) + 1
    popular = ranks ** -float(cluster.skew)
    dealt = np.arange(cluster.groups) % cluster.partitions
    weights = np.bincount(dealt, popular, cluster.partitions)
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


class _Controller:
    """Flux's controller: phases and rounds, by the policies of :mod:`geoflux.balance`."""

    def __init__(self, state: State, fixed: Fixed, tuning: FluxTuning) -> None:
        self._state, self._fixed, self._tuning = state, fixed, tuning
        self._flux = FluxRounds.first(tuning)
        self._pending: tuple[tuple[Move, ...], list[SiteReport], float] = ((), [], 0.0)
        self.rounds: list[Moved] = []
        self.phases: list[tuple[float, float]] = []

    def begin(self) -> None:
        """Begin to collect."""
        self.phases.append((self._now, self._flux.collect))
        begin_phase(self._state, self._fixed, max(1, round(self._flux.collect * c.SECOND)))

    def decide(self) -> None:
        """All reports are there: order moves, or go on collecting."""
        reports = self._reports()
        elapsed = self._flux.collect
        chosen = moves(reports, elapsed, self._tuning)
        if not chosen:
            self._flux = self._flux.after((), 0.0, reports, elapsed, self._tuning)
            self.begin()
            return
        self._pending = (chosen, reports, self._now)
        partitions = np.array([move.partition for move in chosen])
        order(self._state, self._fixed, partitions, np.array([move.to for move in chosen]))

    def moved(self) -> None:
        """All moves of the round are done."""
        chosen, reports, start = self._pending
        took = self._now - start
        self.rounds.append(Moved(start, self._now, chosen))
        self._flux = self._flux.after(chosen, took, reports, self._flux.collect, self._tuning)
        self.begin()

    @property
    def _now(self) -> float:
        return float(self._state.clock[c.NOW]) / c.SECOND

    def _reports(self) -> list[SiteReport]:
        """What the sites saw in the phase; of memory, what is so now."""
        site, part, size = self._state.site, self._state.part, self._fixed.partition_bytes
        by_site = np.argsort(part[:, c.OWNER], kind="stable")
        ends = np.cumsum(np.bincount(part[:, c.OWNER], minlength=self._fixed.sites))
        reports = []
        for s, held in enumerate(np.split(by_site, ends[:-1])):
            names = held.tolist()
            disk = held[part[held, c.ON_DISK] == 1]
            waiting = part[disk, c.SPOOL] * self._fixed.tuple_bytes
            reports.append(
                SiteReport(
                    s, float(site[s, c.IDLE_SEEN]) / c.SECOND,
                    dict(zip(names, part[held, c.COUNTED_SEEN].tolist(), strict=True)),
                    int(site[s, c.CAPACITY]), dict.fromkeys(names, size),
                    dict(zip(disk.tolist(), waiting.tolist(), strict=True)),
                )
            )  # fmt: skip
        return reports


def _changes(loads: Sequence[Load]) -> list[tuple[int, int, int, int]]:
    """When which load changes: time, site, kind, value; the last is never reached."""
    rows: list[tuple[int, int, int, int]] = []
    for load in loads:
        start = round(load.start * c.SECOND)
        if isinstance(load, CpuLoad):
            rows.append((start, load.site, c.CPU_ON, 0))
            if math.isfinite(load.end):
                rows.append((round(load.end * c.SECOND), load.site, c.CPU_OFF, 0))
        else:
            rows.append((start, load.site, c.MEMORY, load.memory_bytes))
    rows.sort()
    rows.append((int(c.NEVER), 0, c.CPU_OFF, 0))
    return rows
