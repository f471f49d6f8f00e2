"""The part of `geoflux bench drs` that runs on Spark: predicted and measured times of allocations.

Numbers for the model are measured in one run, with processors to spare; what the model makes of
them for other allocations is held against runs with these. The same inputs and services in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class SparkSizes:
    """How long the runs are, and what they have."""

    seconds: float = 60.0
    warm: float = 15.0
    """Seconds of each that are not counted."""
    processors: int = 12
    most: int = 8
    """Allocations that are run at most."""
    share: float = 1.0
    """Of an application's inputs a second."""
    measured_rows: int = 3_200_000
    """Of the application that measuring is measured with."""


FULL = SparkSizes()
QUICK = SparkSizes(5.0, 1.0, most=2, share=0.25, measured_rows=800_000)


@dataclass
class Measured:
    """A run with one allocation."""

    allocation: Allocation
    sojourn: float
    error: float
    network: Network
    clean: bool
    manifests: Mapping[str, Sequence[Manifest]] = field(repr=False, default_factory=dict)


@dataclass
class SparkBench:
    """Runs of one application."""

    console: Console
    session: SparkSession
    folder: Path
    sizes: SparkSizes
    app: App

    def measured(self, allocation: Allocation) -> Measured:
        """One run."""
        inputs, out = self.folder / f"{self.app.name}-in", self.folder / f"{self.app.name}-out"
        if not inputs.exists():
            rate = self.app.rate * self.sizes.share
            write_inputs(inputs, [(self.sizes.seconds, rate)], _SEED)
        out = out / shown(allocation).replace(":", "-")
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
        return Measured(allocation, look.sojourn, look.error, look.network, clean, heard)

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


def measure_app(bench: SparkBench) -> tuple[dict[str, Any], list[tuple[Measured, float]]]:
    """Figures of one application, and all runs with what was predicted for them."""
    sizes, app = bench.sizes, bench.app
    spare = evenly(app, sizes.processors)
    base = bench.measured(spare)
    best = dict(assign(base.network, sizes.processors).counts)
    told = {shown(a): a for a in (best, *neighbours(best), spare)}
    ranked = sorted(told.values(), key=lambda a: predict(base.network, a).total)
    stable = [a for a in ranked if np.isfinite(predict(base.network, a).total)]
    runs = {shown(spare): base}
    for allocation in stable[: sizes.most]:
        if shown(allocation) not in runs:
            runs[shown(allocation)] = bench.measured(allocation)
    totals = [predict(base.network, run.allocation).total for run in runs.values()]
    pairs = [pair for pair in zip(runs.values(), totals, strict=True) if np.isfinite(pair[1])]
    near = {shown(a) for a in (best, *neighbours(best))}
    fastest = min(run.sojourn for run, _ in pairs if shown(run.allocation) in near)
    recommended = runs[shown(best)].sojourn
    figures = {
        "recommended": shown(best),
        "recommended_is_best": fastest / recommended,
        "rank_correlation": rank_correlation([p for _, p in pairs], [r.sojourn for r, _ in pairs]),
        "predicted_within": float(np.median([abs(p / r.sojourn - 1) for r, p in pairs])),
        "span": max(r.sojourn for r, _ in pairs) / min(r.sojourn for r, _ in pairs),
        "allocations": len(pairs),
        "wrong_runs": sum(not run.clean for run, _ in pairs),
    }
    return figures, pairs
