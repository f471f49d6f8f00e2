"""The fast lane's source: a streaming DataFrame of slices, not of events.

Spark keeps the offsets and schedules the tasks; what travels is (stream, start, stop), and the
worker that routes reads the rows itself. The source is handed over pickled, as an option. In the
general lane the same source, of nothing, stands beside the user's stream for its silence.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import LongType, StructField, StructType

from geoflux.engine.source import Slice
from geoflux.spark.hush import hush
from geoflux.spark.silence import Beat, Offset, Pulse

hush()  # Spark imports this module in the workers that plan the source

NAME = "geoflux_slices"
SCHEMA = StructType([StructField(name, LongType(), False) for name in ("stream", "start", "stop")])
_ROWS_A_TASK = 4096


class Positions(Protocol):
    """As much of an event source as Spark's offsets need."""

    def latest(self, start: int, limit: int | None) -> int:
        """The end of what can be read now."""
        ...

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        """The rows of a range of positions in slices."""
        ...


class _Nothing:
    """A source in which nothing ever comes."""

    def latest(self, start: int, limit: int | None) -> int:
        return 0

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return []


class _Pieces(InputPartition):
    def __init__(self, pieces: list[tuple[int, int, int]]) -> None:
        super().__init__(pieces)
        self.pieces = pieces


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self, source: Positions, limit: int, tasks: int, beat: Beat, pushback: Path | None
    ) -> None:
        self._source = source
        self._limit = limit
        self._pushback = pushback
        self._tasks = tasks
        self._closing = beat.closing is not None
        self._pulse = Pulse(beat)
        self._end: int | None = None

    def initialOffset(self) -> Offset:
        # Before the first row, so that there is a first epoch (and control is read) without any.
        return {"position": -1}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most())

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._source.latest(0, None)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        if self._closing:  # whatever came in the meantime is for the next run
            return self._pulse.quiet(start)
        first = max(int(start["position"]), 0)
        rows = None if isinstance(limit, ReadAllAvailable) else self._most()
        end = self._source.latest(first, rows)
        position = end if self._end is None else max(first, min(end, self._end))
        if position == start["position"]:
            return self._pulse.quiet(start)
        self._pulse.heard()
        return {"position": position}

    def _most(self) -> int:
        """Events of the next epoch: as many as the slots can take, where they say so."""
        if self._pushback is None or not self._pushback.exists():
            return self._limit
        return min(self._limit, int(self._pushback.read_text()))

    def commit(self, end: Offset) -> None:
        """An epoch was run, perhaps for another source of the query that is not silent."""
        self._pulse.heard()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, last = max(int(start["position"]), 0), int(end["position"])
        tasks = worth_starting(last - first, self._tasks)
        found = self._source.slices(first, last, tasks)
        return [_Pieces(pieces) for pieces in packed(found, tasks)]

    def stop(self) -> None:
        """Spark calls this when it has hung up as well; then nobody is left to hear of it."""
        if isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            os._exit(0)

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
        assert isinstance(partition, _Pieces)
        yield from partition.pieces


def worth_starting(rows: int, most: int) -> int:
    """Routing tasks for so many rows: a task costs about as much as routing some thousands, so a
    small epoch on many cores has one.

    >>> [worth_starting(rows, 16) for rows in (0, 100, 10_000, 1_000_000)]
    [1, 1, 3, 16]
    """
    return max(1, min(most, -(-rows // _ROWS_A_TASK)))


def packed(slices: Sequence[Slice], parts: int) -> list[list[tuple[int, int, int]]]:
    """Neighbouring slices together, so that many small files make no more tasks than there are
    cores to run them.

    >>> packed([Slice(0, 0, 4), Slice(1, 0, 1), Slice(2, 0, 1), Slice(3, 0, 2)], 2)
    [[(0, 0, 4)], [(1, 0, 1), (2, 0, 1), (3, 0, 2)]]
    """
    total = sum(piece.stop - piece.start for piece in slices)
    groups: list[list[tuple[int, int, int]]] = [[] for _ in range(max(parts, 1))]
    before = 0
    for piece in slices:
        size = piece.stop - piece.start
        middle = (before + size / 2) / max(total, 1)
        groups[min(int(middle * len(groups)), len(groups) - 1)].append(
            (piece.stream, piece.start, piece.stop)
        )
        before += size
    return [group for group in groups if group]


class SliceSource(DataSource):
    """Registered with Spark under ``geoflux_slices``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        source, beat, pushback = pickle.loads(base64.b64decode(self.options["source"]))
        limit, tasks = int(self.options["limit"]), int(self.options["tasks"])
        return _Reader(source, limit, tasks, beat, pushback)


def slice_stream(
    spark: SparkSession, source: Positions, limit: int, tasks: int, beat: Beat,
    pushback: Path | None = None,
) -> DataFrame:  # fmt: skip
    """A streaming DataFrame of the slices of a source; a number in the file ``pushback`` lowers
    the limit while it runs."""
    spark.dataSource.register(SliceSource)
    return (
        spark.readStream.format(NAME)
        .option("source", base64.b64encode(pickle.dumps((source, beat, pushback))).decode())
        .option("limit", str(limit))
        .option("tasks", str(tasks))
        .load()
    )


def with_silence(events: DataFrame, beat: Beat) -> DataFrame:
    """A streaming DataFrame of events, and of nothing: epochs happen also when none come."""
    nothing = slice_stream(events.sparkSession, _Nothing(), 1, 1, beat)
    columns = [sf.lit(None).cast(f.dataType).alias(f.name) for f in events.schema.fields]
    return events.union(nothing.select(*columns))
