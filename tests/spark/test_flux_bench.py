"""The part of `geoflux bench flux` that runs on Spark, on next to nothing: every figure is there, and
every run gives what one loop gives. What the figures come to is for the benchmark to show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from geoflux.bench import flux, flux_spark

TINY = replace(
    flux_spark.QUICK, epoch_rows=200, row_seconds=1e-3, partition_seconds=0.02, groups=64,
    history=4, epochs=dict.fromkeys(flux_spark.QUICK.epochs, 3) | {"memory, flux": 8},
)  # fmt: skip


@pytest.mark.long
def test_every_figure_is_there_and_every_run_is_right(spark: SparkSession, tmp_path: Path) -> None:
    result = flux_spark.measured(Console(quiet=True), TINY, tmp_path, spark)
    assert {name for name in flux.BARS if name.startswith("spark_")} <= set(result)
    assert json.loads(json.dumps(result)) == result
    assert result["spark_oracle_clean"] is True
    assert result["spark_moves_slow_slot"] >= 1
    assert result["spark_spilled_most"] > 0
    assert result["spark_spilled_static"] > 0


def test_the_rate_is_that_of_the_second_half() -> None:
    seen = [{"processed": rows, "committed": at} for rows, at in ((9, 1), (9, 2), (6, 4), (2, 6))]
    assert flux_spark._settled_rate(seen) == (6 + 2) / (6 - 2)
