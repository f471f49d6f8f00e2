"""`geoflux bench engine`: the engine beside plain Spark SQL and beside its bare kernel.

Two workloads on one skewed stream: `dense` (a million queries, results as counts) and `light` (a
hundred thousand, matches written). All on the same files and in the same run; what is compared is
a ratio. Every figure is of warm epochs: the first epoch of a run loads the queries.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from geoflux import api
from geoflux.bench.data import EVENTS_PER_SECOND, Files, Workload, write_files
from geoflux.bench.kernel import run_kernel
from geoflux.bench.memory import peak_memory
from geoflux.bench.spark_sql import run_sql
from geoflux.bench.table import Bars
from geoflux.config import Config
from geoflux.engine.catalogue import rebuilt
from geoflux.engine.epochs import Manifest
from geoflux.engine.summary import latencies
from geoflux.spark.session import build_session, stop_session, warm_workers
from geoflux.state.store import Store

_SLOTS = 8
BARS: Bars = {
    "dense_vs_spark_sql": (">=", 20), "light_vs_spark_sql": (">=", 3),
    "dense_vs_kernel": (">=", 0.4), "checks_per_second_core": (">=", 3e8),
    "bytes_per_query": ("<=", 250), "load_seconds_per_million_queries": ("<=", 60),
    "dense_memory_gb": ("<=", 3),
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    dense: Workload
    light: Workload
    dense_epoch: int
    light_epoch: int
    sql_dense: int
    sql_light: int
    overhead_epochs: int
    latency_seconds: int


FULL = Sizes(
    Workload("dense", 1_000_000, 16_000_000, 16, "counts"),
    Workload("light", 100_000, 12_000_000, 12, "rows"),
    4_000_000, 2_000_000, 2_000_000, 12_000_000, 30, 25,
)  # fmt: skip
QUICK = Sizes(
    Workload("dense", 100_000, 2_000_000, 4, "counts"),
    Workload("light", 50_000, 1_000_000, 4, "rows"),
    1_000_000, 500_000, 500_000, 1_000_000, 6, 6,
)  # fmt: skip


def run_benchmark(console: Console, quick: bool = False) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name."""
    sizes = QUICK if quick else FULL
    folder = Path(tempfile.mkdtemp(prefix="geoflux-bench-"))
    result: dict[str, Any] = {"quick": quick}
    try:
        for step, workload in (("dense", sizes.dense), ("light", sizes.light)):
            console.print(
                f"[dim]{step}: writing {workload.events:,} events, {workload.queries:,} queries"
            )
            files = write_files(folder, workload)
            result |= _workload(console, sizes, files, folder)
            if workload is sizes.light:
                result |= _latency(console, sizes, files, folder)
            shutil.rmtree(folder / workload.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _workload(console: Console, sizes: Sizes, files: Files, folder: Path) -> dict[str, Any]:
    name, dense = files.workload.name, files.workload is sizes.dense
    console.print(f"[dim]{name}: geoflux")
    epoch = sizes.dense_epoch if dense else sizes.light_epoch
    with peak_memory() as peak:
        manifests = _run(_config(files, epoch), folder / "geoflux")
    warm = manifests[1:]
    seconds = warm[-1]["committed"] - manifests[0]["committed"]
    events = sum(m["processed"] for m in warm)
    rate = events / seconds
    matches = sum(m["matches"] for m in warm) / events
    console.print(f"[dim]{name}: plain Spark SQL, best of three cell sizes")
    sql = run_sql(files, folder, sizes.sql_dense if dense else sizes.sql_light)
    out: dict[str, Any] = {
        f"{name}_events_per_second": rate,
        f"{name}_matches_per_event": matches,
        f"{name}_spark_sql_events_per_second": sql.events_per_second,
        f"{name}_spark_sql_cells": sql.cells,
        f"{name}_vs_spark_sql": rate / sql.events_per_second,
        f"{name}_memory_gb": peak.bytes / 2**30,
        f"{name}_where_the_time_goes": _breakdown(warm),
    }
    _check_agrees(manifests, "Spark SQL", sql.events, sql.matches)
    if dense:
        console.print(f"[dim]{name}: the bare kernel in two processes")
        kernel = run_kernel(files, folder)
        _check_agrees(manifests, "the kernel", kernel.events, kernel.matches)
        busy = sum(s["busy_seconds"] - s["load_seconds"] for m in warm for s in m["slots"])
        out |= {
            "dense_kernel_events_per_second": kernel.events_per_second,
            "dense_vs_kernel": rate / kernel.events_per_second,
            "checks_per_second_core": sum(s["checks"] for m in warm for s in m["slots"]) / busy,
            "bytes_per_query": _bytes_per_query(folder / "geoflux", manifests[-1]),
            "load_seconds_per_million_queries": _load_seconds(manifests)
            * 1e6 / files.workload.queries,
        }  # fmt: skip
    shutil.rmtree(folder / "geoflux")
    return out


def _check_agrees(manifests: list[Manifest], other: str, events: int, matches: int) -> None:
    """Whoever went over the same events must have found the same matches, or all is void."""
    if events == sum(m["processed"] for m in manifests):
        ours = sum(m["matches"] for m in manifests)
        assert ours == matches, f"geoflux found {ours} matches, {other} found {matches}"


def _config(files: Files, epoch_events: int) -> Config:
    return Config.from_dict(
        {
            "space": {"kind": "planar", "bounds": [0, 0, 1, 1], "grid": [1000, 1000]},
            "source": {"kind": "files", "path": str(files.events)},
            "control": {"path": str(files.control)},
            "engine": {
                "slots": _SLOTS, "balance": "history", "epoch_events": epoch_events,
                "memory": "1g",
            },
            "output": {"matches": files.workload.matches},
        }
    )  # fmt: skip


def _run(config: Config, out: Path) -> list[Manifest]:
    manifests: list[Manifest] = []
    api.run(config, out, on_epoch=manifests.append)
    return manifests


def _load_seconds(manifests: list[Manifest]) -> float:
    """From the opening of the first epoch to its commit, less what its events cost by the rate of
    the later ones: reading, checking, routing, indexing and committing all queries."""
    first, warm = manifests[0], manifests[1:]
    per_event = sum(m["job_seconds"] for m in warm) / sum(m["processed"] for m in warm)
    return float(first["committed"] - first["opened"] - per_event * first["processed"])


def _bytes_per_query(out: Path, manifest: Manifest) -> float:
    """Segments that partitions map, index included, and the driver's catalogue, per live query."""
    store = Store(str(out))
    mapped = {ref[1] for refs in manifest["refs"].values() for ref in refs}
    catalogue = rebuilt(store, manifest["catalogue"]).nbytes
    return (sum(store.size(name) for name in mapped) + catalogue) / manifest["live_queries"]


def _breakdown(warm: list[Manifest]) -> dict[str, float]:
    """Mean seconds of an epoch by stage; route and execute are the sum over tasks by cores."""
    count, cores = len(warm), os.cpu_count() or 1
    route = sum(m["route_seconds"] for m in warm) / count
    busy = sum(s["busy_seconds"] for m in warm for s in m["slots"]) / count
    job = sum(m["job_seconds"] for m in warm) / count
    opening = sum(m["open_seconds"] for m in warm) / count
    spent = [m["committed"] - m["opened"] for m in warm]
    return {
        "open": opening,
        "route": route / cores,
        "execute": busy / cores,
        "spark": job - (route + busy) / cores,
        "commit": sum(spent) / count - opening - job,
        "between": (warm[-1]["committed"] - warm[0]["opened"] - sum(spent)) / max(count - 1, 1),
    }  # fmt: skip


def _latency(console: Console, sizes: Sizes, files: Files, folder: Path) -> dict[str, Any]:
    console.print("[dim]light: overhead of an epoch, and latency at a steady rate")
    tiny = replace(
        _config(files, 100), output=replace(_config(files, 100).output, matches="counts")
    )
    seen: list[Manifest] = []
    stream: list[Any] = []

    def epoch(manifest: Manifest) -> None:
        seen.append(manifest)
        if len(seen) > sizes.overhead_epochs:
            stream[0].stop()

    spark = build_session(tiny.engine)
    warm_workers(spark)
    api.run(tiny, folder / "tiny", spark=spark, on_epoch=epoch, on_start=stream.append)
    gaps = sorted(b["committed"] - a["committed"] for a, b in itertools.pairwise(seen[1:]))
    bodies = sorted(m["committed"] - m["opened"] for m in seen[2:])
    config = _config(files, 1_000_000)
    paced = replace(
        config,
        source=replace(config.source, speed=1.0),
        run=replace(config.run, duration=f"{sizes.latency_seconds}s"),
    )
    paced_epochs: list[Manifest] = []
    api.run(paced, folder / "paced", spark=spark, on_epoch=paced_epochs.append)
    stop_session(spark)
    half = [m for m in paced_epochs[len(paced_epochs) // 2 :] if m["processed"]]
    p50, p99 = latencies(half)
    return {
        "epoch_overhead_seconds": gaps[len(gaps) // 2],
        "epoch_body_seconds": bodies[len(bodies) // 2],
        "latency_p50_seconds": p50,
        "latency_p99_seconds": p99,
        "latency_at_events_per_second": EVENTS_PER_SECOND,
    }
