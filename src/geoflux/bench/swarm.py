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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.console import Console

from geoflux.bench import swarm_scenarios as scenes
from geoflux.bench.emulated import Seen, attainable, capability, latency_ratio
from geoflux.bench.figures import FOLDER, Curve, Words, draw_curves
from geoflux.bench.swarm_bench import COLOURS, Bench, table_of
from geoflux.bench.swarm_hotspots import measure_hotspots
from geoflux.bench.swarm_overhead import overheads
from geoflux.bench.swarm_taxis import measure_taxis
from geoflux.bench.table import Bars
from geoflux.errors import ConfigError
from geoflux.spark.warm import keep_memory

BARS: Bars = {
    "capability_vs_history_mean": (">=", 3.0), "latency_vs_history_mean": (">=", 4.0),
    "hotspot_units_of_work_vs_history": (">=", 3.0), "hotspot_latency_vs_history": (">=", 4.0),
    "wall_clock_vs_history": (">=", 1.3), "rounds_to_recover_step": ("<=", 10),
    "imbalance_steady": ("<=", 1.25), "moves_on_constant_load": ("<=", 0),
    "swarm_share_of_epoch": ("<=", 0.03),
}  # fmt: skip
_SLOT_MEMORY = 1 << 30
"""What the queries of a slot may take; `replicated` holds all of them in every slot."""


PARTS = ("sweep", "hotspots", "constant", "taxis", "wall")
"""An hour and a half altogether; each can be run by itself."""


def run_benchmark(
    console: Console, quick: bool = False, data: Path | None = None, figures: Path = FOLDER,
    sizes: scenes.Sizes | None = None, parts: Sequence[str] = PARTS,
) -> dict[str, Any]:  # fmt: skip
    """Some parts, one after the other; returns the figures by name. ``data`` is a Parquet file of
    real positions (``ts``, ``lon``, ``lat``), without which there are no taxis."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise ConfigError(
            f"--only {', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}"
        )
    keep_memory()  # as the workers do that slots run in
    folder = Path(tempfile.mkdtemp(prefix="geoflux-bench-"))
    chosen = sizes or (scenes.QUICK if quick else scenes.FULL)
    bench = Bench(console, chosen, folder, figures, {"quick": quick})
    try:
        if "sweep" in parts:
            _sweep(bench)
        if "hotspots" in parts:
            measure_hotspots(bench)
        if "constant" in parts:
            _constant(bench)
        if "taxis" in parts and data is not None:
            measure_taxis(bench, data)
        if "wall" in parts and bench.sizes.wall_events:
            from geoflux.bench.swarm_wall import wall_clock

            bench.result |= wall_clock(console, bench.sizes, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return bench.result


def _sweep(bench: Bench) -> None:
    """Capability and latency against the number of queries (figure 6.5), while day becomes night.
    SWARM begins with the plan that history has: what is compared is following the load."""
    sizes = bench.sizes
    measured: dict[str, dict[int, list[Seen]]] = {name: {} for name in scenes.STRATEGIES}
    table = table_of(
        "22 slots, busiest slot's time: thousand events a second", "queries", *scenes.STRATEGIES
    )
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
    best = {queries: attainable(seen) for queries, seen in history.items()}
    compared = {"": measured["swarm"], "published_": measured["published"], "attainable_": best}
    for prefix, runs in compared.items():
        _compare(bench, prefix, [(history[q], runs[q]) for q in sizes.sweep])
    bench.result["replicated_fails_at"] = min(
        (q for q in sizes.sweep if q not in measured["replicated"]), default=0
    )
    shares = [e.stats / sum(e.busy) for seen in measured["swarm"].values() for e in seen]
    bench.result["swarm_share_of_epoch"] = median(shares)
    _draw_sweep(bench, measured)


def _compare(bench: Bench, prefix: str, pairs: list[tuple[list[Seen], list[Seen]]]) -> None:
    """Means of what runs gain over others, each other first."""
    bench.result[f"{prefix}capability_vs_history_mean"] = fmean(
        capability(seen) / capability(other) for other, seen in pairs
    )
    bench.result[f"{prefix}latency_vs_history_mean"] = fmean(
        latency_ratio(other, seen) for other, seen in pairs
    )


def _swept(bench: Bench, strategy: str, queries: int) -> tuple[list[Seen], int]:
    sizes = bench.sizes
    events, slots = sizes.sweep_events, scenes.SLOTS
    if strategy == "replicated":
        # All slots are alike: two of them, with their share of the events, stand for all.
        events, slots = 2 * events // slots, 2
    config = scenes.simulated(
        strategy, queries, events, sizes.sweep_epochs, slots=slots, swarm={"start": "history"}
    )
    emulation = bench.emulated(f"{queries:,} queries, {strategy}", config)
    seen = emulation.run(sizes.sweep_epochs)
    more = scenes.SLOTS // slots
    return [replace(e, events=more * e.events) for e in seen], emulation.bytes_per_slot()


def _draw_sweep(bench: Bench, measured: Mapping[str, Mapping[int, list[Seen]]]) -> None:
    words = Words(
        "Capability (figure 6.5a)", "standing queries", "units of work a second",
        "22 slots; the document gives SWARM 3x of history on average, its curves are lost",
    )  # fmt: skip
    curves = [
        Curve(name, list(runs), [q * capability(seen) for q, seen in runs.items()], COLOURS[name])
        for name, runs in measured.items()
        if runs
    ]
    draw_curves(bench.figures / "figure-6-5a.svg", words, curves, "xy")
    words = Words(
        "Cost of an event (figure 6.5b)", "standing queries", "microseconds",
        "of the busiest slot; the document gives SWARM a quarter of history's latency on average",
    )  # fmt: skip
    curves = [
        Curve(name, list(runs), [1e6 / capability(seen) for seen in runs.values()], COLOURS[name])
        for name, runs in measured.items()
        if runs
    ]
    draw_curves(bench.figures / "figure-6-5b.svg", words, curves, "xy")


def _constant(bench: Bench) -> None:
    """The same load for ever: it is evened out, and then nothing moves. Single operations are
    timed on what is there then (figures 6.12 and 6.13)."""
    sizes = bench.sizes
    config = scenes.simulated("swarm", sizes.queries, sizes.events, sizes.epochs, days=0.0)
    emulation = bench.emulated("constant load, swarm", config)
    rest = emulation.run(sizes.epochs)[sizes.epochs // 2 :]
    bench.result["moves_on_constant_load"] = sum(e.changes for e in rest)
    bench.result["imbalance_steady"] = median(e.imbalance for e in rest)
    bench.result["work_imbalance_steady"] = median(e.work_imbalance for e in rest)
    bench.result |= overheads(bench.console, emulation, bench.figures)
