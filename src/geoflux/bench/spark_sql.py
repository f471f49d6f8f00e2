"""The baseline: the same job in plain Spark SQL, a cell-keyed join with an exact filter.

As good as Spark SQL lets it be: the queries by cell are in memory before the clock starts, the
session is warm, whole-stage code generation and adaptive execution are on, and of three cell sizes
the best one (on a part of the events) is used.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from geoflux.bench.data import Files
from geoflux.spark.session import stop_session

CELLS = (250, 500, 1000)
"""Cells a side that are tried."""


@dataclass(frozen=True)
class SqlResult:
    """What the baseline did."""

    events: int
    matches: int
    seconds: float
    cells: int

    @property
    def events_per_second(self) -> float:
        """Throughput."""
        return self.events / self.seconds


def run_sql(files: Files, folder: Path, most_events: int) -> SqlResult:
    """Best of three cell sizes on a file's worth of events, then the measured run."""
    spark = _session()
    try:
        parts = sorted(files.events.glob("*.parquet"))
        sample = [str(parts[0])]
        best, by_cell = min(
            ((_timed(spark, files, sample, cells, folder)[0], cells) for cells in CELLS),
            key=lambda found: found[0],
        )
        del best
        per_file = files.workload.events // files.workload.files
        chosen = [str(part) for part in parts[: max(1, most_events // per_file)]]
        seconds, matches = _timed(spark, files, chosen, by_cell, folder)
        return SqlResult(per_file * len(chosen), matches, seconds, by_cell)
    finally:
        stop_session(spark)


def _session() -> SparkSession:
    builder = SparkSession.builder.master("local[*]").appName("baseline")
    for name, value in {
        "spark.ui.enabled": "false", "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "4", "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1", "spark.ui.showConsoleProgress": "false",
    }.items():  # fmt: skip
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _timed(
    spark: SparkSession, files: Files, parts: list[str], cells: int, folder: Path
) -> tuple[float, int]:
    """Seconds and matches of one run; the queries by cell are cached first."""
    queries = _by_cell(spark.read.parquet(str(files.boxes)), cells).cache()
    queries.count()
    out = folder / f"sql-{files.workload.name}"
    shutil.rmtree(out, ignore_errors=True)
    started = time.perf_counter()
    events = spark.read.parquet(*parts).withColumn("cell", _cell(F.col("x"), F.col("y"), cells))
    inside = (
        (F.col("x") >= F.col("west")) & (F.col("x") <= F.col("east"))
        & (F.col("y") >= F.col("south")) & (F.col("y") <= F.col("north"))
    )  # fmt: skip
    matches = events.join(queries, "cell").where(inside)
    counting = files.workload.matches == "counts"
    if counting:
        result = matches.groupBy("query_id").agg(F.count("*").alias("count"))
    else:
        result = matches.select("query_id", F.col("id").alias("event_id"))
    result.write.parquet(str(out))
    seconds = time.perf_counter() - started
    written = spark.read.parquet(str(out))
    total = written.agg(F.sum("count")).first()[0] if counting else written.count()  # type: ignore[index]
    queries.unpersist()
    return seconds, int(total or 0)


def _cell(x: F.Column, y: F.Column, cells: int) -> F.Column:  # type: ignore[name-defined]
    column = F.least(F.floor(x * cells), F.lit(cells - 1))
    row = F.least(F.floor(y * cells), F.lit(cells - 1))
    return (row * cells + column).cast("int")


def _by_cell(boxes: DataFrame, cells: int) -> DataFrame:
    """Every query once for every cell that it touches."""

    def span(low: str, high: str) -> F.Column:  # type: ignore[name-defined]
        first = F.least(F.floor(F.col(low) * cells), F.lit(cells - 1))
        last = F.least(F.floor(F.col(high) * cells), F.lit(cells - 1))
        return F.sequence(first, last)

    return (
        boxes.withColumn("column", F.explode(span("west", "east")))
        .withColumn("row", F.explode(span("south", "north")))
        .withColumn("cell", (F.col("row") * cells + F.col("column")).cast("int"))
        .drop("row", "column")
    )
