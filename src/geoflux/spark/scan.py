"""Reading all retained segments with Spark: what a snapshot saves one from, for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from geoflux.spark.session import default_parallelism
from geoflux.state.segments import read_segment
from geoflux.state.store import Store

_COUNT = StructType([StructField("count", LongType(), False)])
_COUNT_ARROW = pa.schema([("count", pa.int64())])


def scan_retained(
    spark: SparkSession, store: Store, names: Sequence[str], rectangle: Mapping[str, Any]
) -> int:
    """How many events of all segments lie in a rectangle, by looking at every one; their speeds
    are averaged too, as the snapshot does."""
    edges = tuple(float(rectangle[edge]) for edge in ("west", "south", "east", "north"))

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        west, south, east, north = edges
        for batch in batches:
            total = 0
            for name in batch.column(0).to_pylist():
                segment = read_segment(store, name)
                x, y = segment.array("x"), segment.array("y")
                inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
                total += int(inside.sum())
                float(np.sum(segment.array("column.speed")[inside]))
            yield pa.RecordBatch.from_arrays([pa.array([total])], schema=_COUNT_ARROW)

    parts = default_parallelism(spark)
    frame = spark.createDataFrame([(name,) for name in names], "name string").repartition(parts)
    return sum(row["count"] for row in frame.mapInArrow(count, _COUNT).collect())
