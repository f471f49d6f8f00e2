"""`geoflux bench drs`: the model behind scaling against simulators, and applications on Spark.

Redraws figures 6 to 10 of the paper and prints its table II.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from geoflux.bench import drs_changes, drs_model, drs_spark
from geoflux.bench import drs_figures as draw
from geoflux.bench.drs_allocations import TABLE_II
from geoflux.bench.drs_apps import CHAIN, LOOP
from geoflux.bench.drs_bulks import measure_bulks
from geoflux.bench.drs_measuring import measure_share
from geoflux.bench.drs_sizes import ModelSizes
from geoflux.bench.figures import FOLDER
from geoflux.bench.table import Bars, check_parts
from geoflux.errors import ConfigError
from geoflux.scale.decisions import shown
from geoflux.sections import EngineConfig
from geoflux.spark.session import build_session, stop_session, warm_workers

_APPS = (CHAIN, LOOP)
_ON_SPARK = ("share", "chain", "loop", "changes")
PARTS = ("model", *_ON_SPARK)
BARS: Bars = {
    **drs_model.BARS,
    **{f"{app.name}_recommended_is_best": (">=", 0.95) for app in _APPS},
    **{f"{app.name}_rank_correlation": (">=", 0.9) for app in _APPS},
    **{f"{app.name}_wrong_runs": ("<=", 0) for app in _APPS},
    "measure_share": ("<=", 0.01),
    "decisions_on_constant_load": ("<=", 0),
    "rearranged_alike": (">=", 1),
    "longest_met_again": (">=", 1),
    "processors_given_back": (">=", 1),
    "rearranged_lost_or_doubled": ("<=", 0),
    "tuples_lost_or_doubled": ("<=", 0),
}
_FOR_ALL_SIZES = (
    "simulated_rank_correlation", "chain_recommended_is_best", "chain_rank_correlation",
    "loop_recommended_is_best", "loop_rank_correlation", "loop_wrong_runs", "measure_share",
    "decisions_on_constant_load", "rearranged_alike", "longest_met_again", "processors_given_back",
)  # fmt: skip
QUICK_BARS: Bars = {name: bar for name, bar in BARS.items() if name not in _FOR_ALL_SIZES}
"""Short runs are too noisy to tell neighbours apart, and of the chain alone."""


def run_benchmark(
    console: Console, quick: bool = False, figures: Path = FOLDER, parts: Sequence[str] = PARTS
) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``figures``."""
    check_parts(parts, PARTS)
    result: dict[str, Any] = {"quick": quick}
    if "model" in parts:
        result |= run_model(console, drs_model.QUICK if quick else drs_model.FULL, figures)
    on_spark = [part for part in _ON_SPARK if part in parts and not (quick and part == "loop")]
    if on_spark:
        with tempfile.TemporaryDirectory() as folder:
            result |= run_on_spark(console, Path(folder), figures, quick, on_spark)
    return result


def run_model(console: Console, sizes: ModelSizes, figures: Path) -> dict[str, Any]:
    """The part without Spark: figure 10 and table II."""
    result = drs_model.measure_model(sizes, lambda told: console.print(f"[dim]{told}"))
    try:
        result |= drs_model.ciw_within(sizes)
    except ConfigError as error:
        console.print(f"[yellow]two figures are left out:[/] {escape(str(error))}")
    found, bulks = measure_bulks(sizes.trees // 2)
    draw.bulks(figures, bulks)
    console.print("[dim]bulk arrivals")
    console.print(draw.table_ii(result, TABLE_II))
    return result | found


def run_on_spark(
    console: Console, folder: Path, figures: Path, quick: bool, parts: Sequence[str]
) -> dict[str, Any]:
    """The parts on Spark, in a session of their own: figures 6 to 9."""
    sizes = drs_spark.QUICK if quick else drs_spark.FULL
    # Slots sleep: there are threads for all of them, and for those who read and route.
    config = EngineConfig(master=f"local[{sizes.processors + 4}]", memory="2g")
    session = build_session(config, {"spark.scheduler.mode": "FAIR"})
    result: dict[str, Any] = {}
    runs: dict[str, list[draw.Allocated]] = {}
    try:
        warm_workers(session)
        if "share" in parts:
            result |= measure_share(session, folder, sizes.measured_rows)
        loading = replace(sizes, seconds=max(sizes.seconds / 2, 5.0), warm=1.0)
        warm = drs_spark.SparkBench(console, session, folder / "warm", loading, CHAIN)
        warm.measured(drs_spark.evenly(CHAIN, sizes.processors))  # workers load, kernels compile
        benches = {
            app.name: drs_spark.SparkBench(console, session, folder, sizes, app) for app in _APPS
        }
        for app in (app for app in _APPS if app.name in parts):
            bench = benches[app.name]
            found, pairs = drs_spark.measure_app(bench)
            result |= {f"{app.name}_{name}": value for name, value in found.items()}
            runs[app.name] = [
                draw.Allocated(shown(run.allocation), run.sojourn, run.error, predicted)
                for run, predicted in pairs
            ]
            draw.allocations(figures, app.name, runs[app.name], found["recommended"])
        if "changes" in parts:
            changing = drs_changes.QUICK if quick else drs_changes.FULL
            best = benches[CHAIN.name].recommended
            result |= drs_changes.measure_changes(
                console, session, folder, figures, CHAIN, best, changing
            )
    finally:
        stop_session(session)
    if runs:
        draw.predicted(figures, runs)
    return result
