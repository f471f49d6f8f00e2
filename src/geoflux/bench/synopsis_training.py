"""Models of synthetic rows against models of the real ones: a random forest of Spark; table 3.

The sketch sees the rows that are trained on and no others. The air's temperature is learnt from
pressure, rain, wind and the latitude of the region (in the paper: visibility, humidity and
precipitation of one region), not from the dew point, which is derived from it. A sketch knows of
places in which region they are, so that is what all models are told. All are tested on the same
real rows, which neither they nor the sketch have seen.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import RandomForestRegressor
from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

from geoflux.bench.synopsis_ingest import schema_of, took_in
from geoflux.bench.table import Bars
from geoflux.sketch.evaluate import evaluate
from geoflux.sketch.forest import Forest
from geoflux.spatial.geohash import bounds, codes
from geoflux.workload.weather import Weather

BARS: Bars = {
    "rmse_ratio_10": ("<=", 1.03), "rmse_ratio_20": ("<=", 1.03), "r2_real": (">=", 0.5),
    "training_time_share_10": ("<=", 1.0), "training_time_share_20": ("<=", 1.0),
}  # fmt: skip
TARGET = "t2m_k"
LEARNT_FROM = ("region_lat", "msl_pa", "tp_m", "u10_ms", "v10_ms", "wind_ms")
_HELD_OUT = 0.2
_SEED = 17
_PUBLISHED = {"real": (4.611, 520.657, 6.025), "10": (3.424, 246.212, 5.980),
              "20": (3.997, 278.682, 6.018)}  # fmt: skip
"""Seconds to load, seconds to train, RMSE."""


@dataclass(frozen=True)
class Trained:
    """A model, by its figures."""

    rows: int
    megabytes: float
    load_seconds: float
    train_seconds: float
    rmse: float
    r2: float


def measure_training(
    spark: SparkSession, seen: Weather, trees: int, folder: Path
) -> dict[str, Any]:
    """Errors and times of models of 10 % and 20 % synthetic rows over those of all real rows."""
    held = np.random.default_rng(_SEED).random(len(seen)) < _HELD_OUT
    real, test = _some(seen, ~held), _some(seen, held)
    sketch = took_in(Forest.empty(schema_of(real)), real)
    tables = {"real": real.table()}
    for percent in ("10", "20"):
        made = evaluate(f"SELECT synthetic('{percent}%', {_SEED})", [sketch]).table
        assert made is not None
        tables[percent] = made
    bits = sketch.schema.region_bits
    files = {name: _written(table, bits, folder / name) for name, table in tables.items()}
    tested = _vectors(_loaded(spark, _written(test.table(), bits, folder / "test"))).cache()
    _trained(spark, files["10"], tested, trees)  # the first one warms the machine up
    found = {name: _trained(spark, path, tested, trees) for name, path in files.items()}
    tested.unpersist()
    whole = found["real"]
    result: dict[str, Any] = {"r2_real": whole.r2}
    for percent in ("10", "20"):
        one = found[percent]
        result[f"rmse_ratio_{percent}"] = one.rmse / whole.rmse
        result[f"training_time_share_{percent}"] = one.train_seconds / whole.train_seconds
    return result | {
        f"table_3_{name}": [one.rows, one.megabytes, one.load_seconds, one.train_seconds, one.rmse,
                            one.r2]
        for name, one in found.items()
    }  # fmt: skip


def _some(seen: Weather, which: Any) -> Weather:
    return Weather(*(column[which] for column in seen))


def _written(table: pa.Table, region_bits: int, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    region = codes(table["lon"].to_numpy(), table["lat"].to_numpy(), region_bits)
    _, south, _, north = bounds(region, region_bits)
    table = table.append_column("region_lat", pa.array((south + north) / 2))
    kept = table.select([TARGET, *LEARNT_FROM])
    pq.write_table(kept, path, row_group_size=max(len(table) // 8, 1))
    return path


def _loaded(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.parquet(str(path))


def _vectors(rows: DataFrame) -> DataFrame:
    together = VectorAssembler(inputCols=list(LEARNT_FROM), outputCol="features")
    return together.transform(rows).select("features", TARGET)


def _trained(spark: SparkSession, path: Path, tested: DataFrame, trees: int) -> Trained:
    began = time.perf_counter()
    rows = _vectors(_loaded(spark, path)).cache()
    count = rows.count()
    loaded = time.perf_counter()
    model = RandomForestRegressor(
        labelCol=TARGET, numTrees=trees, maxDepth=8, maxBins=64, seed=_SEED
    ).fit(rows)
    done = time.perf_counter()
    told = model.transform(tested)
    rmse, r2 = (
        RegressionEvaluator(labelCol=TARGET, metricName=name).evaluate(told)
        for name in ("rmse", "r2")
    )
    rows.unpersist()
    size = path.stat().st_size / 1e6
    return Trained(count, size, loaded - began, done - loaded, rmse, r2)


def table_3(result: dict[str, Any]) -> Table:
    """Table 3, as measured and as published."""
    table = Table(title="Table 3: random forests of real and synthetic rows", title_justify="left")
    for column in ("", "rows", "MB", "load s", "train s", "RMSE", "R²",
                   "published load s", "train s", "RMSE"):  # fmt: skip
        table.add_column(column, justify="left" if not column else "right")
    for name, told in _PUBLISHED.items():
        rows, size, load, train, rmse, r2 = result[f"table_3_{name}"]
        table.add_row(
            name if name == "real" else f"synthetic {name} %", f"{rows:,}", f"{size:.1f}",
            f"{load:.2f}", f"{train:.2f}", f"{rmse:.3f}", f"{r2:.3f}",
            *(f"{value:.3f}" for value in told),
        )  # fmt: skip
    return table
