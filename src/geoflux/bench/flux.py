"""`geoflux bench flux`: the experiments of Flux on a simulated cluster, with our policies.

Every figure of the paper is repeated with its parameters (:class:`geoflux.sim.Cluster`): one slow
site, a load that goes round, skewed input, too little memory, and both at once. All figures are
ratios to the same cluster undisturbed, or to the same load with nothing balanced, in the same run.

Source: Flux 4 (figure 3), 5.4 (figures 6 to 8), 6.2 (figures 9 and 10), 6.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from geoflux.balance.flux_tuning import FluxTuning
from geoflux.bench import flux_figures as draw
from geoflux.bench.figures import FOLDER
from geoflux.bench.table import Bars
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

BARS: Bars = {
    "sim_steady_tuples_per_second": (">=", 0.97 * 7.1e5),
    "sim_static_one_perturbed": ("<=", 0.50), "sim_flux_one_perturbed": (">=", 0.95),
    "sim_degradation_linear_r2": (">=", 0.98), "sim_buffer_rotating_load": (">=", 1.2),
    "sim_skew_unloaded_vs_static": (">=", 1.0), "sim_skew_loaded_vs_static": (">=", 1.0),
    "sim_memory_latency_gain": (">=", 100), "sim_memory_throughput_recovered": (">=", 0.95),
    "sim_hybrid_vs_load": (">=", 1.0), "sim_hybrid_vs_memory": (">=", 1.0),
}  # fmt: skip
_SEED = 1


@dataclass(frozen=True)
class Sizes:
    """How large the experiments are. Times are in seconds of simulated time."""

    cluster: Cluster
    crowded: Cluster
    """With larger partitions, for the experiments with memory."""
    squeezed: int
    """Memory of a site under pressure."""
    squeezed_less: int
    """The same where others are loaded at the same time: what is on disk is to be settled soon."""
    load_at: int
    seconds: int
    """Of runs over which throughput is drawn."""
    settled: int
    """From when on throughput is taken as that of the balanced state."""
    perturbed: tuple[int, ...]
    buffers: tuple[int, ...]
    """Kilobytes; the ratio to an Exchange is reported for the middle one."""
    minima: tuple[float, ...]
    """Fixed minima of the collection phase."""
    skew_seconds: int
    skew_loaded: int
    """Loaded sites with skewed input."""
    crowded_seconds: int
    crowded_settled: int
    long_seconds: int
    long_settled: int
    """The same where several sites must be relieved: one partition a round leaves each."""
    squeezed_counts: tuple[int, ...]


FULL = Sizes(
    cluster=Cluster(), crowded=Cluster(per_site=128, partition_bytes=6 << 20), squeezed=512 << 20,
    squeezed_less=640 << 20,
    load_at=5, seconds=40, settled=25, perturbed=(0, 1, 2, 4, 8, 16, 24, 32),
    buffers=(0, 10, 20, 40, 80, 160, 320, 640), minima=(0.01, 0.04, 0.16, 0.64),
    skew_seconds=60, skew_loaded=8, crowded_seconds=60, crowded_settled=45,
    long_seconds=150, long_settled=120, squeezed_counts=(0, 1, 8, 32),
)  # fmt: skip
QUICK = replace(
    FULL, cluster=Cluster(sites=8, buffer_bytes=40_000), squeezed=96 << 20,
    squeezed_less=120 << 20,
    crowded=Cluster(sites=8, per_site=24, partition_bytes=6 << 20, memory_bytes=192 << 20),
    load_at=2, seconds=20, settled=14, perturbed=(0, 1, 2, 4, 8), buffers=(0, 10, 40),
    minima=(0.01, 0.16), skew_seconds=15, skew_loaded=2, crowded_seconds=40, crowded_settled=30,
    long_seconds=60, long_settled=45, squeezed_counts=(0, 1, 4),
)  # fmt: skip


@dataclass
class _Bench:
    console: Console
    sizes: Sizes
    figures: Path
    result: dict[str, Any]
    unloaded: float = 0.0
    """Tuples per second of the cluster undisturbed."""

    def run(
        self, told: str, cluster: Cluster, seconds: int, loads: Sequence[Load] = (),
        tuning: FluxTuning | None = None,
    ) -> Run:  # fmt: skip
        self.console.print(f"[dim]{told}")
        return simulate(cluster, seconds, _SEED, loads, tuning)


def run_benchmark(
    console: Console, quick: bool = False, figures: Path = FOLDER, sizes: Sizes | None = None
) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``figures``."""
    bench = _Bench(console, sizes or (QUICK if quick else FULL), figures, {"quick": quick})
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
    limit = 1e6 / (cluster.process_us + cluster.produce_us) / popular
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
    some = next(place for place, count in enumerate(sizes.squeezed_counts) if count > 1)
    bench.result["sim_memory_several_vs_static"] = runs["flux"][some].rate(since) / runs["static"][
        some
    ].rate(since)


def _hybrid(bench: _Bench) -> None:
    """Section 6.3: some sites loaded, others short of memory."""
    sizes, since = bench.sizes, bench.sizes.long_settled
    sites = sizes.crowded.sites
    some = sites // 8
    loads: list[Load] = [
        *(MemoryLoad(site, 0.0, sizes.squeezed_less) for site in range(some)),
        *(CpuLoad(site) for site in range(sites // 2, sites // 2 + some)),
    ]
    rates = {}
    for tuning in (_load(), _memory_only(), FluxTuning(kind="hybrid")):
        run = bench.run(
            f"mixed loads, {tuning.kind}", sizes.crowded, sizes.long_seconds, loads, tuning
        )
        rates[tuning.kind] = run.rate(since)
        bench.result[f"sim_mixed_{tuning.kind}_latency_us"] = _latency_us(run, since)
    bench.result["sim_hybrid_vs_load"] = rates["hybrid"] / rates["load"]
    bench.result["sim_hybrid_vs_memory"] = rates["hybrid"] / rates["memory"]


def _latency_us(run: Run, since: int) -> float:
    latency = run.mean_latency(since)
    if latency is None:
        raise IntegrityError(f"nothing was processed after {since} s: make the run longer")
    return latency * 1e6


def _load() -> FluxTuning:
    return FluxTuning(kind="load")


def _memory_only() -> FluxTuning:
    return FluxTuning(kind="memory")
