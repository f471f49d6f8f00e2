"""SWARM by the wall clock: Spark runs with two slots on two cores, while a hotspot lasts.

The same events from the same files, once under the plan from history and once under SWARM, in turn;
what is compared is the time between commits of the hotspot's epochs. SWARM's own work and the
moving of partitions are in it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from geoflux import api
from geoflux.bench import swarm_scenarios as scenes
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.spark.session import build_session, stop_session, warm_workers
from geoflux.workload import Scenario, Simulator
from geoflux.workload.queries import StandingQueries

_SLOTS = 2
_EPOCHS = 60
_ROUND = "2s"
_START, _STOP = 0.1, 1.0


def wall_clock(console: Console, sizes: scenes.Sizes, folder: Path) -> dict[str, Any]:
    """Seconds per epoch during the hotspot, and the ratio."""
    at, queries = scenes.LOWER_LEFT, sizes.wall_spot_queries
    spots = [scenes.spot(at, _START, _STOP, 0.4, intensity="step", queries=queries)]
    events = sizes.wall_events // _EPOCHS
    base = scenes.simulated("history", sizes.wall_queries, events, _EPOCHS, spots, days=0.1)
    console.print(
        f"[dim]writing {sizes.wall_events:,} events and {sizes.wall_queries + queries:,} queries"
    )
    _write(folder / "wall", base)
    session = build_session(_config("history", base, folder / "wall").engine)
    best: dict[str, float] = {}
    try:
        warm_workers(session)
        for _ in range(2):
            for strategy in ("history", "swarm"):
                console.print(f"[dim]wall clock, {_SLOTS} slots, {strategy}")
                taken = _hot_seconds(
                    _config(strategy, base, folder / "wall"), folder / "o", session
                )
                best[strategy] = min(taken, best.get(strategy, taken))
    finally:
        stop_session(session)
    return {
        "wall_history_epoch_seconds": best["history"],
        "wall_swarm_epoch_seconds": best["swarm"],
        "wall_clock_vs_history": best["history"] / best["swarm"],
    }


def _write(folder: Path, config: Config) -> None:
    """The simulated stream as files; the queries of the hotspot come after all others."""
    (folder / "events").mkdir(parents=True)
    scenario = Scenario.of(config)
    source = Simulator(scenario, 0.0, lambda: float("inf"))
    total, step = source.total() or 0, config.engine.epoch_events
    for first in range(0, total, step):
        piece = source.slices(first, min(first + step, total), 1)[0]
        table = pa.concat_tables([batch.table for batch in source.read(piece)])
        pq.write_table(table, folder / "events" / f"part-{first:012d}.parquet")
    queries = StandingQueries(scenario)
    spot = config.simulate.hotspots[0].queries
    tables = [
        queries.registrations(0, config.simulate.queries),
        queries.hotspot_registrations(0, 0, spot),
    ]
    pq.write_table(pa.concat_tables(tables), folder / "queries.parquet")


def _config(strategy: str, base: Config, folder: Path) -> Config:
    chosen = scenes.STRATEGIES[strategy]
    return Config.from_dict(
        {
            "space": {"bounds": list(base.space.bounds), "grid": list(base.space.grid)},
            "source": {"kind": "files", "path": str(folder / "events")},
            "control": {"path": str(folder / "queries.parquet")},
            "engine": {
                "slots": _SLOTS, "epoch_events": base.engine.epoch_events,
                "master": f"local[{_SLOTS}]", "history_queries": base.simulate.queries,
                **chosen["engine"],
            },
            "swarm": {**chosen.get("swarm", {}), "round": _ROUND, "start": "history"},
            "output": {"matches": "counts"},
        }
    )  # fmt: skip


def _hot_seconds(config: Config, out: Path, session: SparkSession) -> float:
    """Mean seconds of an epoch from the hotspot's beginning to the end of the run."""
    shutil.rmtree(out, ignore_errors=True)
    seen: list[Manifest] = []
    api.run(config, out, spark=session, on_epoch=seen.append)
    hot = seen[round(_START * _EPOCHS) :]
    return float((hot[-1]["committed"] - hot[0]["committed"]) / (len(hot) - 1))
