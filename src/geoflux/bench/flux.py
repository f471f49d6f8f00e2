"""`geoflux bench flux`: operators with a key, on a simulated cluster of 32 sites and on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from geoflux.bench import flux_sizes, flux_spark
from geoflux.bench.figures import FOLDER
from geoflux.bench.flux_sim import run_simulated
from geoflux.bench.flux_spark import run_on_spark
from geoflux.bench.table import Bars, check_parts

BARS: Bars = {
    "sim_steady_tuples_per_second": ("in", 0.97 * 7.1e5, 1.03 * 7.1e5),
    "sim_static_one_perturbed": ("in", 0.36, 0.50), "sim_flux_one_perturbed": (">=", 0.95),
    "sim_degradation_linear_r2": (">=", 0.98), "sim_buffer_rotating_load": (">=", 1.2),
    "sim_skew_least_vs_static": (">=", 1.0),
    "sim_memory_latency_gain": (">=", 100), "sim_memory_throughput_recovered": (">=", 0.95),
    "sim_hybrid_vs_load": (">=", 1.0), "sim_hybrid_vs_memory": (">=", 1.0),
    "spark_flux_vs_static": (">=", 2.0), "spark_flux_vs_unperturbed": (">=", 0.7),
    "spark_memory_vs_static": (">=", 1.0), "spark_spilled_at_end": ("<=", 0),
    "spark_oracle_clean": (">=", 1),
}  # fmt: skip
_FOR_THE_PAPERS_SIZE = (
    "sim_steady_tuples_per_second", "sim_flux_one_perturbed", "sim_buffer_rotating_load",
    "sim_memory_throughput_recovered", "spark_flux_vs_static",
)  # fmt: skip
QUICK_BARS: Bars = {name: bar for name, bar in BARS.items() if name not in _FOR_THE_PAPERS_SIZE}
"""Of 8 sites one is more than of 32, and where epochs are short Spark's overhead counts."""
PARTS = ("sim", "spark")


def run_benchmark(
    console: Console, quick: bool = False, figures: Path = FOLDER, parts: Sequence[str] = PARTS
) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``figures``."""
    check_parts(parts, PARTS)
    result: dict[str, Any] = {"quick": quick}
    if "sim" in parts:
        result |= run_simulated(console, flux_sizes.QUICK if quick else flux_sizes.FULL, figures)
    if "spark" in parts:
        with tempfile.TemporaryDirectory() as folder:
            sizes = flux_spark.QUICK if quick else flux_spark.FULL
            result |= run_on_spark(console, sizes, Path(folder))
    return result
