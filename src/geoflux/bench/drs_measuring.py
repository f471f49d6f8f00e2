"""What measuring takes of an application that does real work, on Spark: following inputs in the
workers, by their own watches, and looking at what they report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.scale.looking import Looking, unseen
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.topology import Ingest, Node, Topology
from geoflux.topology.scaling import network_of, stations_of
from geoflux.topology.settings import configs_of
from geoflux.topology_api import run_topology

_COLD = 2
"""Epochs of an operator in which its workers load what they need."""
_APPLICATION = Topology(
    (
        Node("ingest", Ingest("car"), slots=2),
        Node("speeds", WindowedGroupBy("car", "speed", rows=16), "ingest", slots=2),
    )
)


def measure_share(session: SparkSession, folder: Path, rows: int) -> dict[str, Any]:
    """The share of measuring in the workers' time, with as many inputs followed as by default; the
    looks of the driver count as if they were done by a worker."""
    inputs, out = folder / "measured-in", folder / "measured-out"
    inputs.mkdir(parents=True)
    dice = np.random.default_rng(5)
    cars = pa.DictionaryArray.from_arrays(
        dice.integers(0, 5_000, rows).astype(np.int32), pa.array([f"car-{n}" for n in range(5_000)])
    )
    table = pa.table(
        {"id": np.arange(rows), "car": cars.cast(pa.string()), "speed": dice.random(rows),
         "time": np.arange(rows) / 1e5}
    )  # fmt: skip
    pq.write_table(table, inputs / "inputs.parquet")
    config = Config.from_dict(
        {
            "source": {"kind": "files", "path": str(inputs)},
            "engine": {"epoch_events": rows // 8},
            "run": {"mode": "drain"},
            "scale": {"mode": "observe"},
        }
    )
    heard: dict[str, list[Manifest]] = {name: [] for name in _APPLICATION.by_name}
    run_topology(_APPLICATION, config, out, session, lambda name, m: heard[name].append(m))
    warm = [m for some in heard.values() for m in some[_COLD:]]
    follow = sum(m["follow_seconds"] for m in warm)
    work = sum(m["route_seconds"] + sum(s["busy_seconds"] for s in m["slots"]) for m in warm)
    looks = _look_seconds(config, out) * len(warm) / sum(map(len, heard.values()))
    return {
        "measure_share": (follow + looks) / work,
        "follow_share": follow / work,
        "measured_rows": sum(m["processed"] for m in warm),
    }


def _look_seconds(config: Config, out: Path) -> float:
    """What looking at all that a run reported takes."""
    stations = stations_of(_APPLICATION, configs_of(_APPLICATION, config))
    looking = Looking(network_of(_APPLICATION), stations)
    logs = {name: EpochLog(Store(str(out / name))) for name in _APPLICATION.by_name}
    now = time.time()
    _, state = looking.look(now, {}, looking.first())
    began = time.perf_counter()
    looking.look(now + 1, unseen(logs, state), state)
    return time.perf_counter() - began
