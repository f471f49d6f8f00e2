"""The experiments of Flux on a simulated cluster, with our policies.

Every figure of the paper is repeated with its parameters (:class:`geoflux.sim.Cluster`): one slow
site, a load that goes round, skewed input, too little memory, and both at once. All figures are
ratios to the same cluster undisturbed, or to the same load with nothing balanced, in the same run.

Source: Flux 4 (figure 3), 5.4 (figures 6 to 8), 6.2 (figures 9 and 10), 6.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    result: dict[str, Any] = field(default_factory=dict)
    unloaded: float = 0.0
    """Tuples per second of the cluster undisturbed."""

    def run(
        self, told: str, cluster: Cluster, seconds: int, loads: Sequence[Load] = (),
        tuning: FluxTuning | None = None, seed: int = _SEED,
    ) -> Run:  # fmt: skip
        self.console.print(f"[dim]{told}")
        return simulate(cluster, seconds, seed, loads, tuning)


def run_simulated(console: Console, sizes: Sizes, figures: Path) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``figures``."""
    bench = _Bench(console, sizes, figures)
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
    calm = bench.run("no load", sizes.cluster, sizes.seconds)
    static = bench.run("one site loaded, static", sizes.cluster, sizes.seconds, loads)
    flux = bench.run("one site loaded, flux", sizes.cluster, sizes.seconds, loads, _load())
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
    static, flux = [], []
    for count in counts:
        loads = [CpuLoad(site) for site in order[:count]]
        run = bench.run(f"{count} sites loaded, static", sizes.cluster, sizes.settled, loads)
        static.append(run.rate(sizes.settled // 2))
        run = bench.run(f"{count} sites, flux", sizes.cluster, sizes.seconds, loads, _load())
        flux.append(run.rate(3 * sizes.seconds // 4))
    bench.result["sim_degradation_linear_r2"] = float(np.corrcoef(counts, flux)[0, 1] ** 2)
    draw.degradation(bench.figures, counts, static, flux)


def _rotating(bench: _Bench) -> None:
    """Figure 3: a load that goes round, by the size of the buffer."""
    sizes = bench.sizes
    loads = rotating_load(sizes.cluster)
    seconds = sizes.cluster.sites // 2
    flux, exchange = [], []
    for kilobytes in sizes.buffers:
        cluster = replace(sizes.cluster, buffer_bytes=kilobytes * 1024)
        told = f"rotating load, {kilobytes} KB"
        flux.append(bench.run(f"{told}, flux", cluster, seconds, loads).rate())
        cluster = replace(cluster, exchange=True)
        exchange.append(bench.run(f"{told}, exchange", cluster, seconds, loads).rate())
    middle = len(flux) // 2
    bench.result["sim_buffer_rotating_load"] = flux[middle] / exchange[middle]
    bench.result["sim_buffer_best_vs_unloaded"] = flux[-1] / bench.unloaded
    bench.result["sim_no_buffer_vs_unloaded"] = flux[0] / bench.unloaded
    draw.rotating(bench.figures, sizes.buffers, flux, exchange, bench.unloaded)


def _skew(bench: _Bench) -> None:
    """Figure 8: skewed input, by the minimum of the collection phase."""
    sizes = bench.sizes
    cluster = replace(sizes.cluster, skew=ZIPF_80_20)
    seconds = sizes.skew_seconds
    curves = {}
    for name, loads in (("unloaded", ()), ("loaded", _loads_on_popular(cluster, sizes))):
        static = bench.run(f"80/20, {name}, static", cluster, seconds, loads).rate()
        tuned = bench.run(f"80/20, {name}, self-tuned", cluster, seconds, loads, _load()).rate()
        fixed = [
            bench.run(
                f"80/20, {name}, at least {minimum * 1000:.0f} ms", cluster, seconds, loads,
                FluxTuning.published(kind="load", collect_min=minimum),
            ).rate()
            for minimum in sizes.minima
        ]  # fmt: skip
        curves[name] = draw.Skewed(static, tuned, tuple(fixed))
        bench.result[f"sim_skew_{name}_vs_static"] = tuned / static
        bench.result[f"sim_skew_{name}_fixed_least_vs_static"] = fixed[0] / static
        bench.result[f"sim_skew_{name}_fixed_best_vs_static"] = max(fixed) / static
    popular = float(partition_weights(cluster, np.random.default_rng(_SEED)).max())
    limit = 1e6 / (cluster.process_us * popular + cluster.produce_us / cluster.sites)
    bench.result["sim_skew_unloaded_vs_limit"] = curves["unloaded"].tuned / limit
    draw.skewed(bench.figures, sizes.minima, curves, limit)


def _loads_on_popular(cluster: Cluster, sizes: Sizes) -> tuple[CpuLoad, ...]:
    """Load on some sites, that of the most popular partition among them."""
    weights = partition_weights(cluster, np.random.default_rng(_SEED))
    step = cluster.sites // sizes.skew_loaded
    popular = int(np.argmax(weights)) % cluster.sites
    return tuple(
        CpuLoad((popular + i * step) % cluster.sites) for i in range(sizes.skew_loaded)
    )  # fmt: skip


def _memory(bench: _Bench) -> None:
    """Figures 9 and 10: too little memory on one site."""
    sizes = bench.sizes
    loads = [MemoryLoad(0, sizes.load_at, sizes.squeezed)]
    seconds, since = sizes.crowded_seconds, sizes.crowded_settled
    calm = bench.run("enough memory", sizes.crowded, seconds)
    static = bench.run("one site short of memory, static", sizes.crowded, seconds, loads)
    flux = bench.run(
        "one site short of memory, flux", sizes.crowded, seconds, loads, _memory_only()
    )
    bench.result |= {
        "sim_memory_latency_gain": _latency_us(static, since) / _latency_us(flux, since),
        "sim_memory_throughput_recovered": flux.rate(since) / calm.rate(since),
        "sim_memory_static_throughput": static.rate(since) / calm.rate(since),
    }
    draw.memory(bench.figures, calm, static, flux)


def _memory_degradation(bench: _Bench) -> None:
    """Section 6.2, second experiment: more and more sites short of memory."""
    sizes, since = bench.sizes, bench.sizes.long_settled
    runs: dict[str, list[Run]] = {"static": [], "flux": []}
    for count in sizes.squeezed_counts:
        loads = [MemoryLoad(site, 0.0, sizes.squeezed) for site in range(count)]
        for name, tuning in (("static", None), ("flux", _memory_only())):
            told = f"{count} sites short of memory, {name}"
            runs[name].append(bench.run(told, sizes.crowded, sizes.long_seconds, loads, tuning))
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
    rates: dict[str, list[float]] = {}
    for tuning in (_load(), FluxTuning(kind="hybrid"), _memory_only()):
        # Load and hybrid end close to each other: one seed alone would say nothing.
        for seed in sizes.mixed_seeds if tuning.kind != "memory" else sizes.mixed_seeds[:1]:
            told = f"mixed loads, {tuning.kind}, seed {seed}"
            run = bench.run(told, sizes.crowded, sizes.long_seconds, loads, tuning, seed)
            rates.setdefault(tuning.kind, []).append(run.rate(since))
        bench.result[f"sim_mixed_{tuning.kind}_latency_us"] = _latency_us(run, since)
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
