"""The experiments of Flux on a simulated cluster, with our policies.

Every figure of the paper is repeated with its parameters (:class:`geoflux.sim.Cluster`): one slow
site, a load that goes round, skewed input, too little memory, and both at once. All figures are
ratios to the same cluster undisturbed, or to the same load with nothing balanced. A run depends on
its seed alone and takes about half a minute: as many as there are processors go side by side.

Source: Flux 4 (figure 3), 5.4 (figures 6 to 8), 6.2 (figures 9 and 10), 6.3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console

from geoflux.balance.flux_tuning import FluxTuning
from geoflux.bench import flux_figures as draw
from geoflux.bench.flux_sizes import Sizes
from geoflux.errors import IntegrityError
from geoflux.sim import (
    ZIPF_80_20,
    Cluster,
    CpuLoad,
    Load,
    MemoryLoad,
    Run,
    rotating_load,
    simulate,
)
from geoflux.sim.simulate import partition_weights

_SEED = 1


@dataclass
class _Bench:
    console: Console
    sizes: Sizes
    figures: Path
    pool: ProcessPoolExecutor
    result: dict[str, Any] = field(default_factory=dict)
    unloaded: float = 0.0
    """Tuples per second of the cluster undisturbed."""

    def start(
        self, told: str, cluster: Cluster, seconds: int, loads: Sequence[Load] = (),
        tuning: FluxTuning | None = None, seed: int = _SEED,
    ) -> Future[Run]:  # fmt: skip
        """Begin a run, which is told of when it is done."""
        run = self.pool.submit(simulate, cluster, seconds, seed, loads, tuning)
        run.add_done_callback(lambda _: self.console.print(f"[dim]{told}"))
        return run


def run_simulated(console: Console, sizes: Sizes, figures: Path) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``figures``."""
    processors = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(processors, get_context("spawn")) as pool:
        bench = _Bench(console, sizes, figures, pool)
        _one_perturbed(bench)
        _degradation(bench)
        _rotating(bench)
        _skew(bench)
        _memory(bench)
        _memory_degradation(bench)
        _hybrid(bench)
    return bench.result


def _one_perturbed(bench: _Bench) -> None:
    """Figure 6: a load on one site."""
    sizes = bench.sizes
    loads = [CpuLoad(sizes.cluster.sites // 2, sizes.load_at)]
    started = (
        bench.start("no load", sizes.cluster, sizes.seconds),
        bench.start("one site loaded, static", sizes.cluster, sizes.seconds, loads),
        bench.start("one site loaded, flux", sizes.cluster, sizes.seconds, loads, _load()),
    )
    calm, static, flux = (run.result() for run in started)
    bench.unloaded = calm.rate(1)
    bench.result |= {
        "sim_steady_tuples_per_second": bench.unloaded,
        "sim_static_one_perturbed": static.rate(sizes.settled) / bench.unloaded,
        "sim_flux_one_perturbed": flux.rate(sizes.settled) / bench.unloaded,
        "sim_moves_one_perturbed": flux.moved,
    }
    draw.over_time(bench.figures, calm, static, flux)


def _degradation(bench: _Bench) -> None:
    """Figure 7: a load on more and more sites."""
    sizes, counts = bench.sizes, bench.sizes.perturbed
    order = np.random.default_rng(_SEED).permutation(sizes.cluster.sites).tolist()
    started = []
    for count in counts:
        loads, told = [CpuLoad(site) for site in order[:count]], f"{count} sites loaded"
        still = bench.start(f"{told}, static", sizes.cluster, sizes.settled, loads)
        moved = bench.start(f"{told}, flux", sizes.cluster, sizes.seconds, loads, _load())
        started.append((still, moved))
    static = [still.result().rate(sizes.settled // 2) for still, _ in started]
    flux = [moved.result().rate(3 * sizes.seconds // 4) for _, moved in started]
    bench.result["sim_degradation_linear_r2"] = float(np.corrcoef(counts, flux)[0, 1] ** 2)
    draw.degradation(bench.figures, counts, static, flux)


def _rotating(bench: _Bench) -> None:
    """Figure 3: a load that goes round, by the size of the buffer."""
    sizes = bench.sizes
    loads = rotating_load(sizes.cluster)
    seconds = sizes.cluster.sites // 2
    started = []
    for kilobytes in sizes.buffers:
        cluster = replace(sizes.cluster, buffer_bytes=kilobytes * 1024)
        told = f"rotating load, {kilobytes} KB"
        buffered = bench.start(f"{told}, flux", cluster, seconds, loads)
        cluster = replace(cluster, exchange=True)
        started.append((buffered, bench.start(f"{told}, exchange", cluster, seconds, loads)))
    flux = [buffered.result().rate() for buffered, _ in started]
    exchange = [blocked.result().rate() for _, blocked in started]
    middle = len(flux) // 2
    bench.result["sim_buffer_rotating_load"] = flux[middle] / exchange[middle]
    bench.result["sim_buffer_best_vs_unloaded"] = flux[-1] / bench.unloaded
    bench.result["sim_no_buffer_vs_unloaded"] = flux[0] / bench.unloaded
    draw.rotating(bench.figures, sizes.buffers, flux, exchange, bench.unloaded)


def _skew(bench: _Bench) -> None:
    """Figure 8: skewed input, by the minimum of the collection phase, without load and with some;
    and how a minimum that tunes itself does with load on more and more sites."""
    sizes = bench.sizes
    cluster = replace(sizes.cluster, skew=ZIPF_80_20)
    seconds, some = sizes.skew_seconds, sizes.skew_loaded[len(sizes.skew_loaded) // 2]
    started = {}
    for count in sizes.skew_loaded:
        loads, told = _loads_on_popular(cluster, count), f"80/20, {count} sites loaded"
        started[count] = [
            bench.start(f"{told}, static", cluster, seconds, loads),
            bench.start(f"{told}, self-tuned", cluster, seconds, loads, _load()),
        ]
        for minimum in sizes.minima if count in (0, some) else ():
            tuning = FluxTuning.published(kind="load", collect_min=minimum)
            told = f"80/20, {count} sites loaded, at least {minimum * 1000:.0f} ms"
            started[count].append(bench.start(told, cluster, seconds, loads, tuning))
    rates = {count: [run.result().rate() for run in runs] for count, runs in started.items()}
    curves = {}
    for name, count in (("unloaded", 0), ("loaded", some)):
        static, tuned, *fixed = rates[count]
        curves[name] = draw.Skewed(static, tuned, tuple(fixed))
        bench.result[f"sim_skew_{name}_vs_static"] = tuned / static
        bench.result[f"sim_skew_{name}_fixed_least_vs_static"] = fixed[0] / static
        bench.result[f"sim_skew_{name}_fixed_best_vs_static"] = max(fixed) / static
    gains = {count: tuned / static for count, (static, tuned, *_) in rates.items()}
    bench.result["sim_skew_least_vs_static"] = min(gains.values())
    bench.result["sim_skew_vs_static_by_loaded_sites"] = {str(n): g for n, g in gains.items()}
    popular = float(partition_weights(cluster, np.random.default_rng(_SEED)).max())
    limit = 1e6 / (cluster.process_us * popular + cluster.produce_us / cluster.sites)
    bench.result["sim_skew_unloaded_vs_limit"] = curves["unloaded"].tuned / limit
    draw.skewed(bench.figures, sizes.minima, curves, limit)


def _loads_on_popular(cluster: Cluster, count: int) -> tuple[CpuLoad, ...]:
    """Load on so many sites, that of the most popular partition among them."""
    weights = partition_weights(cluster, np.random.default_rng(_SEED))
    step = cluster.sites // max(count, 1)
    popular = int(np.argmax(weights)) % cluster.sites
    return tuple(CpuLoad((popular + i * step) % cluster.sites) for i in range(count))


def _memory(bench: _Bench) -> None:
    """Figures 9 and 10: too little memory on one site."""
    sizes = bench.sizes
    loads = [MemoryLoad(0, sizes.load_at, sizes.squeezed)]
    seconds, since = sizes.crowded_seconds, sizes.crowded_settled
    told = "one site short of memory"
    started = (
        bench.start("enough memory", sizes.crowded, seconds),
        bench.start(f"{told}, static", sizes.crowded, seconds, loads),
        bench.start(f"{told}, flux", sizes.crowded, seconds, loads, _memory_only()),
    )
    calm, static, flux = (run.result() for run in started)
    bench.result |= {
        "sim_memory_latency_gain": _latency_us(static, since) / _latency_us(flux, since),
        "sim_memory_throughput_recovered": flux.rate(since) / calm.rate(since),
        "sim_memory_static_throughput": static.rate(since) / calm.rate(since),
    }
    draw.memory(bench.figures, calm, static, flux)


def _memory_degradation(bench: _Bench) -> None:
    """Section 6.2, second experiment: more and more sites short of memory."""
    sizes, since = bench.sizes, bench.sizes.long_settled
    started: dict[str, list[Future[Run]]] = {"static": [], "flux": []}
    for count in sizes.squeezed_counts:
        loads = [MemoryLoad(site, 0.0, sizes.squeezed) for site in range(count)]
        for name, tuning in (("static", None), ("flux", _memory_only())):
            told = f"{count} sites short of memory, {name}"
            run = bench.start(told, sizes.crowded, sizes.long_seconds, loads, tuning)
            started[name].append(run)
    runs = {name: [run.result() for run in many] for name, many in started.items()}
    draw.memory_degradation(bench.figures, sizes.squeezed_counts, runs, since)
    gains = [
        flux.rate(since) / static.rate(since)
        for count, flux, static in zip(
            sizes.squeezed_counts, runs["flux"], runs["static"], strict=True
        )
        if count
    ]
    bench.result["sim_memory_least_vs_static"] = min(gains)
    bench.result["sim_memory_best_vs_static"] = max(gains)


def _hybrid(bench: _Bench) -> None:
    """Section 6.3: some sites loaded, others short of memory."""
    sizes, since = bench.sizes, bench.sizes.long_settled
    sites = sizes.crowded.sites
    some = sites // 8
    loads: list[Load] = [
        *(MemoryLoad(site, 0.0, sizes.squeezed_less) for site in range(some)),
        *(CpuLoad(site) for site in range(sites // 2, sites // 2 + some)),
    ]
    started: dict[str, list[Future[Run]]] = {"load": [], "hybrid": [], "memory": []}
    for tuning in (_load(), FluxTuning(kind="hybrid"), _memory_only()):
        # Load and hybrid end close to each other: one seed alone would say nothing.
        for seed in sizes.mixed_seeds if tuning.kind != "memory" else sizes.mixed_seeds[:1]:
            told = f"mixed loads, {tuning.kind}, seed {seed}"
            run = bench.start(told, sizes.crowded, sizes.long_seconds, loads, tuning, seed)
            started[tuning.kind].append(run)
    rates = {kind: [run.result().rate(since) for run in runs] for kind, runs in started.items()}
    for kind, runs in started.items():
        bench.result[f"sim_mixed_{kind}_latency_us"] = _latency_us(runs[-1].result(), since)
    pairs = zip(rates["hybrid"], rates["load"], strict=True)
    ratios = [hybrid / load for hybrid, load in pairs]
    bench.result["sim_hybrid_vs_load"] = fmean(ratios)
    bench.result["sim_hybrid_vs_load_worst"] = min(ratios)
    bench.result["sim_hybrid_vs_memory"] = rates["hybrid"][0] / rates["memory"][0]


def _latency_us(run: Run, since: int) -> float:
    latency = run.mean_latency(since)
    if latency is None:
        raise IntegrityError(f"nothing was processed after {since} s: make the run longer")
    return latency * 1e6


def _load() -> FluxTuning:
    return FluxTuning(kind="load")


def _memory_only() -> FluxTuning:
    return FluxTuning(kind="memory")
