"""The part of `geoflux bench drs` that runs on Spark: predicted and measured times of allocations.

Numbers for the model are measured in one run, with processors to spare; what the model makes of
them for other allocations is held against runs with these. The same inputs and services in all.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from geoflux.bench.drs_allocations import rank_correlation
from geoflux.bench.drs_apps import Allocation, App, config_of, write_inputs
from geoflux.engine.epochs import Manifest
from geoflux.scale.allocation import assign
from geoflux.scale.decisions import Look, shown
from geoflux.scale.looking import Looking
from geoflux.scale.network import Network
from geoflux.scale.smoothing import Smoothing
from geoflux.scale.sojourn import predict
from geoflux.topology.scaling import network_of, stations_of
from geoflux.topology.settings import configs_of
from geoflux.topology_api import run_topology, verify_topology

_SEED = 11
_SPREAD = 8
"""Allocations whose order is asked for."""
_RIVAL = 1.15
"""What takes longer than the best by more than this is worse, whatever the noise."""


@dataclass(frozen=True)
class SparkSizes:
    """How long the runs are, and what they have."""

    seconds: float = 36.0
    warm: float = 10.0
    """Seconds of each that are not counted."""
    processors: int = 12
    most: int = 32
    """Allocations that are run at most."""
    rounds: int = 2
    """How often the recommended allocation and those neighbours are run that may be as good: they
    differ by little, and machines are noisy."""
    share: float = 1.0
    """Of an application's inputs a second."""
    measured_rows: int = 3_200_000
    """Of the application that measuring is measured with."""


FULL = SparkSizes()
QUICK = SparkSizes(5.0, 1.0, most=2, rounds=1, share=0.25, measured_rows=800_000)


@dataclass
class Measured:
    """A run with one allocation."""

    allocation: Allocation
    sojourn: float
    error: float
    network: Network
    clean: bool
    runs: int = 1


@dataclass
class SparkBench:
    """Runs of one application."""

    console: Console
    session: SparkSession
    folder: Path
    sizes: SparkSizes
    app: App
    runs: int = 0

    def measured(self, allocation: Allocation) -> Measured:
        """One run."""
        inputs, out = self.folder / f"{self.app.name}-in", self.folder / f"{self.app.name}-out"
        if not inputs.exists():
            rate = self.app.rate * self.sizes.share
            write_inputs(inputs, [(self.sizes.seconds, rate)], _SEED)
        self.runs += 1
        out = out / f"{self.runs}-{shown(allocation).replace(':', '-')}"
        config, topology = config_of(self.app, inputs), self.app.topology(allocation)
        heard: dict[str, list[Manifest]] = {name: [] for name in allocation}
        run_topology(
            topology, config, out, self.session, lambda name, m: heard[name].append(m),
            emulated=self.app.emulated,
        )  # fmt: skip
        look = self._look(topology, config, heard)
        assert look.sojourn is not None, "inputs were followed to their end"
        clean = verify_topology(out, self.app.operators).is_clean
        self.console.print(
            f"[dim]{self.app.name} {shown(allocation)}: {look.sojourn:.2f} s an input"
        )
        return Measured(allocation, look.sojourn, look.error, look.network, clean)

    @cached_property
    def base(self) -> Measured:
        """The run that the model's numbers come from."""
        return self.measured(evenly(self.app, self.sizes.processors))

    @property
    def recommended(self) -> dict[str, int]:
        """The best allocation, by these numbers."""
        return dict(assign(self.base.network, self.sizes.processors).counts)

    def _look(self, topology: Any, config: Any, heard: Mapping[str, list[Manifest]]) -> Look:
        """What is seen between the warm-up and the last input."""
        looking = Looking(
            network_of(topology), stations_of(topology, configs_of(topology, config)), Smoothing(1)
        )
        arrivals = [m["arrivals"] for some in heard.values() for m in some if m["arrivals"]]
        first, end = min(a[0] for a in arrivals), max(a[1] for a in arrivals)
        begun = first + self.sizes.warm
        before = {n: [m for m in some if m["committed"] < begun] for n, some in heard.items()}
        after = {n: [m for m in some if begun <= m["committed"] < end] for n, some in heard.items()}
        _, state = looking.look(begun, before, looking.first())
        seen, _ = looking.look(end, after, state)
        assert isinstance(seen, Look), seen
        return seen


def joined(one: Measured, other: Measured) -> Measured:
    """Two runs with one allocation, the first perhaps of several itself."""
    count = one.runs + 1
    return replace(
        one,
        sojourn=(one.sojourn * one.runs + other.sojourn) / count,
        error=float(np.hypot(one.error * one.runs, other.error)) / count,
        clean=one.clean and other.clean,
        runs=count,
    )


def evenly(app: App, processors: int) -> dict[str, int]:
    """As many for every operator."""
    return {part.name: processors // len(app.parts) for part in app.parts}


def neighbours(best: Allocation) -> list[dict[str, int]]:
    """One processor moved from an operator to another."""
    return [
        {**best, one: best[one] - 1, other: best[other] + 1}
        for one in best
        for other in best
        if one != other and best[one] > 1
    ]


def rivals(runs: Sequence[Measured]) -> list[str]:
    """The first of these allocations, and those that may be as good as the best of them."""
    least = min(run.sojourn for run in runs)
    return [
        shown(run.allocation)
        for place, run in enumerate(runs)
        if place == 0 or run.sojourn <= _RIVAL * least
    ]


def spread(network: Network, processors: int) -> list[dict[str, int]]:
    """Allocations of so many processors from the best to one that takes four times as long, each
    about a quarter longer than the one before, by the model."""
    names = [operator.name for operator in network.operators]
    cuts = itertools.combinations(range(1, processors), len(names) - 1)
    counts = [np.diff([0, *some, processors]).tolist() for some in cuts]
    ways = [dict(zip(names, some, strict=True)) for some in counts]
    known = sorted((predict(network, way).total, shown(way), way) for way in ways)
    best, chosen = known[0][0], list[dict[str, int]]()
    for wanted in best * 4.0 ** (np.arange(_SPREAD) / (_SPREAD - 1)):
        _, _, way = min(known, key=lambda one: abs(np.log(one[0] / wanted)))
        if way not in chosen:
            chosen.append(way)
    return chosen


def measure_app(bench: SparkBench) -> tuple[dict[str, Any], list[tuple[Measured, float]]]:
    """Figures of one application, and all runs with what was predicted for them. Ranks are those of
    allocations that lie apart; among neighbours only the best is asked for."""
    network, best = bench.base.network, bench.recommended
    near, apart = [best, *neighbours(best)], spread(network, bench.sizes.processors)
    runs: dict[str, tuple[Measured, float]] = {}
    for allocation in [*near, *(a for a in apart if a not in near)][: bench.sizes.most]:
        total = predict(network, allocation).total
        if np.isfinite(total):
            runs[shown(allocation)] = bench.measured(allocation), total
    for _ in range(1, bench.sizes.rounds):
        for name in rivals([runs[shown(a)][0] for a in near if shown(a) in runs]):
            before, total = runs[name]
            runs[name] = joined(before, bench.measured(before.allocation)), total
    close = [runs[shown(a)] for a in near if shown(a) in runs]
    ranked = [runs[shown(a)] for a in apart if shown(a) in runs]
    times = [run.sojourn for run, _ in ranked]
    figures = {
        "recommended": shown(best),
        "recommended_is_best": min(r.sojourn for r, _ in close) / runs[shown(best)][0].sojourn,
        "rank_correlation": (
            rank_correlation([p for _, p in ranked], times) if len(ranked) > 2 else None
        ),
        "predicted_within": float(np.median([abs(p / r.sojourn - 1) for r, p in runs.values()])),
        "span": max(times) / min(times),
        "allocations": len(ranked),
        "wrong_runs": sum(not run.clean for run, _ in runs.values()),
    }
    return figures, list(runs.values())
