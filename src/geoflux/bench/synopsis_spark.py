"""A sketch on Spark, from Parquet, all of it: observations a second of steady epochs.

Reading, checking, routing by prefix, the slots' sketches and commits are all in it. Epochs of the
first half make bins and warm workers up; counted are the rows of the second half, from the commit
in the middle to the last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.sketch_reader import sketch_of
from geoflux.keyed_api import operated
from geoflux.sections import EngineConfig
from geoflux.spark.session import build_session, stop_session
from geoflux.spark.stream import Listener
from geoflux.workload.weather import FEATURES, WeatherStream

_SLOTS = 2


@contextlib.contextmanager
def two_cores() -> Iterator[SparkSession]:
    """A session of ``local[2]``, which ends with the block."""
    spark = build_session(EngineConfig(master="local[2]", memory="3g"))
    try:
        yield spark
    finally:
        stop_session(spark)


def measure_spark(
    spark: SparkSession, stream: WeatherStream, epochs: int, epoch_rows: int, folder: Path
) -> dict[str, Any]:
    """Rows that a second's worth of steady epochs takes in, on two cores."""
    weeks = -(-epochs * epoch_rows // len(stream.observed))
    source = folder / "weather"
    source.mkdir(parents=True)
    left = epochs * epoch_rows
    for number, weather in enumerate(stream.steps(weeks)):
        some = weather.between(0, min(left, len(weather)))
        left -= len(some)
        pq.write_table(some.table(), source / f"{number:03}.parquet", row_group_size=65_536)
    config = Config.from_dict(
        {
            "source": {"kind": "files", "path": str(source)},
            "engine": {"slots": _SLOTS, "epoch_events": epoch_rows},
            "sketch": {"features": FEATURES, "tree_bits": 10, "region_bits": 10,
                       "steady_rows": 1000},
        }
    )  # fmt: skip
    seen: list[Manifest] = []
    operated(sketch_of(config), config, folder / "out", Listener(seen.append), spark=spark)
    return {
        "spark_obs_per_second": steady_rate(seen), "spark_epochs": len(seen),
        "spark_rows": sum(m["processed"] for m in seen), "spark_slots": _SLOTS,
    }  # fmt: skip


def steady_rate(seen: list[Manifest]) -> float:
    """Rows a second from the commit in the middle to the last one that had rows."""
    worked = [m for m in seen if m["processed"]]
    late = worked[max(len(worked) // 2 - 1, 0) :]
    rows = sum(m["processed"] for m in late[1:])
    return float(rows / (late[-1]["committed"] - late[0]["committed"])) if len(late) > 1 else 0.0
