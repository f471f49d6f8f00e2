"""The parts of the synopsis benchmark that run on Spark, tiny."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from geoflux.bench.synopsis_spark import measure_spark
from geoflux.bench.synopsis_training import measure_training, table_3
from geoflux.workload.weather import WeatherStream, made_up_weather

SEEN = made_up_weather(7, 6_000, 1_774_396_800, 86_400)


def test_all_rows_of_a_stream_are_taken_in(spark: SparkSession, tmp_path: Path) -> None:
    found = measure_spark(spark, WeatherStream(SEEN), 4, 2_000, tmp_path)
    assert found["spark_rows"] == 8_000
    assert found["spark_epochs"] >= 4
    assert found["spark_obs_per_second"] > 0


def test_models_of_real_and_synthetic_rows_are_compared(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = measure_training(spark, SEEN, 2, tmp_path)
    real, tenth, fifth = (found[f"table_3_{name}"] for name in ("real", "10", "20"))
    assert 0.7 * len(SEEN) < real[0] < 0.9 * len(SEEN)
    assert (tenth[0], fifth[0]) == (round(0.1 * real[0]), round(0.2 * real[0]))
    assert found["rmse_ratio_10"] == tenth[4] / real[4]
    assert found["r2_real"] > 0.5
    assert table_3(found).row_count == 3
