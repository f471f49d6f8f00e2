"""`geoflux bench swarm`: the plan follows the load, against plans that do not.

Two ways, said in the table: figures of 22 slots take an epoch's cost as its busiest slot's measured
time (:mod:`geoflux.bench.emulated`); figures of the wall clock are Spark runs with as many slots as
cores. Capability is events per second; the dissertation's *units of work* are that times the
number of queries, so that ratios are the same. Latency is that of
:func:`geoflux.bench.emulated.latency_ratio`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from geoflux.bench import swarm_scenarios as scenes
from geoflux.bench.emulated import Emulation, Seen, capability, latency_ratio
from geoflux.bench.figures import FOLDER, Curve, Words, draw_curves
from geoflux.bench.table import Bars
from geoflux.config import Config

BARS: Bars = {
    "capability_vs_history_mean": (">=", 3.0), "latency_vs_history_mean": (">=", 4.0),
    "hotspot_units_of_work_vs_history": (">=", 3.0), "hotspot_latency_vs_history": (">=", 4.0),
    "wall_clock_vs_history": (">=", 1.3), "rounds_to_recover_step": ("<=", 10),
    "imbalance_steady": ("<=", 1.25), "moves_on_constant_load": ("<=", 0),
    "swarm_share_of_epoch": ("<=", 0.03),
}  # fmt: skip
_SLOT_MEMORY = 1 << 30
"""What the queries of a slot may take; `replicated` holds all of them in every slot."""
_STEP = "uniform_step"
_ROUND = 3
"""Epochs of a round."""
_COLOURS: Mapping[str, Any] = {
    "replicated": "grey", "uniform": "orange", "history": "purple", "published": "green",
    "swarm": "blue",
}  # fmt: skip
_PUBLISHED_FIGURES = {
    "uniform_normal": "6.6", "normal_normal": "6.7", "uniform_step": "6.8",
    "two_overlapping": "6.9", "two_in_sequence": "6.10",
}  # fmt: skip


@dataclass
class _Bench:
    console: Console
    sizes: scenes.Sizes
    folder: Path
    figures: Path
    result: dict[str, Any] = field(default_factory=dict)

    def run(self, name: str, config: Config, epochs: int) -> tuple[list[Seen], int]:
        """The epochs of a run, and the bytes of its largest slot."""
        self.console.print(f"[dim]{name}")
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        emulation = Emulation(out, config)
        seen = emulation.run(epochs)
        return seen, emulation.bytes_per_slot()


def run_benchmark(
    console: Console, quick: bool = False, data: Path | None = None, figures: Path = FOLDER,
    sizes: scenes.Sizes | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Everything, one after the other; returns the figures by name. ``data`` is a Parquet file of
    real positions (``ts``, ``lon``, ``lat``)."""
    folder = Path(tempfile.mkdtemp(prefix="geoflux-bench-"))
    chosen = sizes or (scenes.QUICK if quick else scenes.FULL)
    bench = _Bench(console, chosen, folder, figures, {"quick": quick})
    try:
        _sweep(bench)
        _hotspots(bench)
        _constant(bench)
        if data is not None:
            _taxis(bench, data)
        if bench.sizes.wall_events:
            from geoflux.bench.swarm_wall import wall_clock

            bench.result |= wall_clock(console, bench.sizes, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return bench.result


def _sweep(bench: _Bench) -> None:
    """Capability and latency against the number of queries (figure 6.5)."""
    sizes = bench.sizes
    measured: dict[str, dict[int, list[Seen]]] = {name: {} for name in scenes.STRATEGIES}
    table = Table(
        title="22 slots, busiest slot's time: thousand events a second", title_justify="left"
    )
    for column in ("queries", *scenes.STRATEGIES):
        table.add_column(column, justify="right")
    for queries in sizes.sweep:
        cells = []
        for strategy in scenes.STRATEGIES:
            seen, size = _swept(bench, strategy, queries)
            if size > _SLOT_MEMORY:
                cells.append(f"fails: {size / 1e6:,.0f} MB a slot")
                continue
            measured[strategy][queries] = seen[len(seen) // 2 :]
            cells.append(f"{capability(measured[strategy][queries]) / 1000:,.0f}")
        table.add_row(f"{queries:,}", *cells)
    bench.console.print(table)
    history = measured["history"]
    for strategy, prefix in (("swarm", ""), ("published", "published_")):
        runs = measured[strategy]
        shared = [q for q in sizes.sweep if q in history and q in runs]
        bench.result[f"{prefix}capability_vs_history_mean"] = fmean(
            capability(runs[q]) / capability(history[q]) for q in shared
        )
        bench.result[f"{prefix}latency_vs_history_mean"] = fmean(
            latency_ratio(history[q], runs[q]) for q in shared
        )
    bench.result["attainable_capability_vs_history_mean"] = fmean(
        fmean(e.imbalance for e in seen) for seen in history.values()
    )
    bench.result["replicated_fails_at"] = min(
        (q for q in sizes.sweep if q not in measured["replicated"]), default=0
    )
    shares = [e.stats / sum(e.busy) for seen in measured["swarm"].values() for e in seen]
    bench.result["swarm_share_of_epoch"] = median(shares)
    _draw_sweep(bench, measured)


def _swept(bench: _Bench, strategy: str, queries: int) -> tuple[list[Seen], int]:
    sizes = bench.sizes
    events, slots = sizes.sweep_events, scenes.SLOTS
    if strategy == "replicated":
        # All slots are alike: two of them, with their share of the events, stand for all.
        events, slots = 2 * events // slots, 2
    config = scenes.simulated(strategy, queries, events, sizes.sweep_epochs, slots=slots)
    seen, size = bench.run(f"{queries:,} queries, {strategy}", config, sizes.sweep_epochs)
    more = scenes.SLOTS // slots
    return [replace(epoch, events=more * epoch.events) for epoch in seen], size


def _draw_sweep(bench: _Bench, measured: Mapping[str, Mapping[int, list[Seen]]]) -> None:
    words = Words(
        "Capability (figure 6.5a)", "standing queries", "units of work a second",
        "22 slots; the document gives SWARM 3x of history on average, its curves are lost",
    )  # fmt: skip
    curves = [
        Curve(name, list(runs), [q * capability(seen) for q, seen in runs.items()], _COLOURS[name])
        for name, runs in measured.items()
        if runs
    ]
    draw_curves(bench.figures / "figure-6-5a.svg", words, curves, "xy")
    words = Words(
        "Cost of an event (figure 6.5b)", "standing queries", "microseconds",
        "of the busiest slot; the document gives SWARM a quarter of history's latency on average",
    )  # fmt: skip
    curves = [
        Curve(name, list(runs), [1e6 / capability(seen) for seen in runs.values()], _COLOURS[name])
        for name, runs in measured.items()
        if runs
    ]
    draw_curves(bench.figures / "figure-6-5b.svg", words, curves, "xy")


def _hotspots(bench: _Bench) -> None:
    """Five scenarios; what counts is the time of the hotspot (figures 6.6 to 6.10)."""
    sizes = bench.sizes
    table = Table(
        title="22 slots, during the hotspot: thousand events a second", title_justify="left"
    )
    for column in ("scenario", "uniform", "history", "published", "swarm"):
        table.add_column(column, justify="right")
    work: list[float] = []
    wait: list[float] = []
    scenarios = scenes.hotspots(sizes.spot_queries)
    if bench.result["quick"]:
        scenarios = {"uniform_step": scenarios["uniform_step"]}
    for scenario, spots in scenarios.items():
        runs = {}
        for strategy in _compared(scenario):
            config = scenes.simulated(
                strategy, sizes.queries, sizes.events, sizes.epochs, spots, days=0.25
            )
            runs[strategy], _ = bench.run(f"{scenario}, {strategy}", config, sizes.epochs)
        hot = scenes.during(spots, sizes.epochs)
        rates = {name: f"{capability(seen[hot]) / 1000:,.0f}" for name, seen in runs.items()}
        columns = ("uniform", "history", "published", "swarm")
        table.add_row(scenario, *(rates.get(name, "") for name in columns))
        history, swarm = runs["history"][hot], runs["swarm"][hot]
        work.append(capability(swarm) / capability(history))
        wait.append(latency_ratio(history, swarm))
        bench.result[f"{scenario}_vs_history"] = work[-1]
        if scenario == _STEP:
            published = runs["published"][hot]
            bench.result["published_uniform_step_vs_history"] = capability(published) / capability(
                history
            )
            bench.result["rounds_to_recover_step"] = _recovered(swarm)
        _draw_hotspot(bench, scenario, runs)
    bench.console.print(table)
    bench.result["hotspot_units_of_work_vs_history"] = fmean(work)
    bench.result["hotspot_latency_vs_history"] = fmean(wait)


def _compared(scenario: str) -> tuple[str, ...]:
    """All of them in one scenario, the two that matter in the others."""
    return ("uniform", "history", "published", "swarm") if scenario == _STEP else (
        "history", "swarm",
    )  # fmt: skip


def _recovered(hot: list[Seen]) -> int:
    """Rounds until 90 % of the rate that the same run settles at during the hotspot."""
    rounds = [hot[k : k + _ROUND] for k in range(0, len(hot) - _ROUND + 1, _ROUND)]
    rates = [median(e.rate for e in epochs) for epochs in rounds]
    settled = median(rates[-max(len(rates) // 3, 1) :])
    return next((k + 1 for k, rate in enumerate(rates) if rate >= 0.9 * settled), len(rates))


def _draw_hotspot(bench: _Bench, scenario: str, runs: Mapping[str, list[Seen]]) -> None:
    number = _PUBLISHED_FIGURES[scenario]
    minutes = [k * 5 / 60 for k in range(bench.sizes.epochs)]
    words = Words(
        f"{scenario.replace('_', ', ')} (figure {number})", "minutes", "units of work a second",
        "22 slots, mean of a round; the document's curves are lost, its text says who wins",
    )  # fmt: skip
    curves = []
    for name, seen in runs.items():
        rounds = range(_ROUND, len(seen) - _ROUND + 1, _ROUND)
        y = [fmean(e.rate * e.queries for e in seen[k : k + _ROUND]) for k in rounds]
        curves.append(Curve(name, [minutes[k] for k in rounds], y, _COLOURS[name]))
    draw_curves(bench.figures / f"figure-{number.replace('.', '-')}.svg", words, curves)


def _constant(bench: _Bench) -> None:
    """The same load for ever: it is evened out, and then nothing moves."""
    sizes = bench.sizes
    config = scenes.simulated("swarm", sizes.queries, sizes.events, sizes.epochs, days=0.0)
    seen, _ = bench.run("constant load, swarm", config, sizes.epochs)
    rest = seen[sizes.epochs // 2 :]
    bench.result["moves_on_constant_load"] = sum(e.changes for e in rest)
    bench.result["imbalance_steady"] = median(e.imbalance for e in rest)
    bench.result["work_imbalance_steady"] = median(e.work_imbalance for e in rest)


def _taxis(bench: _Bench, data: Path) -> None:
    """Real positions: the second half of the run, when every plan had its chance."""
    sizes, runs = bench.sizes, {}
    for strategy in ("uniform", "history", "published", "swarm"):
        config = scenes.taxis(strategy, data, bench.folder, sizes)
        runs[strategy], _ = bench.run(f"taxis, {strategy}", config, sizes.epochs)
    later = slice(sizes.epochs // 3, None)
    history = runs["history"][later]
    for strategy, prefix in (("swarm", "taxi_"), ("published", "published_taxi_")):
        seen = runs[strategy][later]
        bench.result[f"{prefix}units_of_work_vs_history"] = capability(seen) / capability(history)
        bench.result[f"{prefix}latency_vs_history"] = latency_ratio(history, seen)
    bench.result["taxi_imbalance"] = median(e.imbalance for e in runs["swarm"][later])
