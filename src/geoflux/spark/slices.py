"""The fast lane's source: a streaming DataFrame of slices, not of events.

Spark keeps the offsets and schedules the tasks; what travels is (stream, start, stop), and the
worker that routes reads the rows itself. The source is handed over pickled, as an option.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import LongType, StructField, StructType

from geoflux.engine.source import EventSource

NAME = "geoflux_slices"
SCHEMA = StructType([StructField(name, LongType(), False) for name in ("stream", "start", "stop")])


class _Pieces(InputPartition):
    def __init__(self, pieces: list[tuple[int, int, int]]) -> None:
        super().__init__(pieces)
        self.pieces = pieces


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, source: EventSource, limit: int, tasks: int) -> None:
        self._source = source
        self._limit = limit
        self._tasks = tasks
        self._end: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        # Before the first row, so that there is a first epoch (and control is read) without any.
        return {"position": -1}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._source.latest(0, None)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        first = max(int(start["position"]), 0)
        rows = None if isinstance(limit, ReadAllAvailable) else self._limit
        end = self._source.latest(first, rows)
        return {"position": end if self._end is None else min(end, self._end)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, last = max(int(start["position"]), 0), int(end["position"])
        found = self._source.slices(first, last, self._tasks)
        return [_Pieces([(p.stream, p.start, p.stop)]) for p in found]

    def stop(self) -> None:
        """Spark calls this when it has hung up as well; then nobody is left to hear of it."""
        if isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            os._exit(0)

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
        assert isinstance(partition, _Pieces)
        yield from partition.pieces


class SliceSource(DataSource):
    """Registered with Spark under ``geoflux_slices``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        source = pickle.loads(base64.b64decode(self.options["source"]))
        return _Reader(source, int(self.options["limit"]), int(self.options["tasks"]))


def slice_stream(spark: SparkSession, source: EventSource, limit: int, tasks: int) -> DataFrame:
    """A streaming DataFrame of the slices of a source."""
    spark.dataSource.register(SliceSource)
    return (
        spark.readStream.format(NAME)
        .option("source", base64.b64encode(pickle.dumps(source)).decode())
        .option("limit", str(limit))
        .option("tasks", str(tasks))
        .load()
    )
