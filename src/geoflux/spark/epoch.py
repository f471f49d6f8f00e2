"""One epoch as a Spark job: route, exchange by slot, execute, collect the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from geoflux.engine.route import Parcel
from geoflux.engine.source import EventSource, RawBatch, Rejected, Slice
from geoflux.engine.task import RouteReport
from geoflux.engine.topic_values import TopicValues
from geoflux.engine.work import Task, work_of
from geoflux.spark.files import CORRUPT
from geoflux.spark.warm import settle

_PARCEL = StructType(
    [
        StructField("slot", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("blob", BinaryType(), False),
    ]
)
_PARCEL_ARROW = pa.schema([("slot", pa.int32()), ("sequence", pa.int64()), ("blob", pa.binary())])
_REPORT = StructType(
    [StructField("routed", IntegerType(), False), StructField("report", BinaryType(), False)]
)
_REPORT_ARROW = pa.schema([("routed", pa.int32()), ("report", pa.binary())])
_WIDE = 40
_ATTEMPTS = 4
"""Of a job that lost executors, as many as Spark grants a stage."""
_GAVE_UP = (
    "cannot rollback the ResultStage",
    "Task with indeterminate results from old attempt succeeded",
    "Rollback failed due to: Not able to kill running tasks",
)
"""What Spark says when it gives a job up that it could have begun anew."""

Arrow = Iterator[pa.RecordBatch]
Result = TypeVar("Result")


@dataclass(frozen=True)
class RouteSlices:
    """Routing in the fast lane: incoming rows are slices, read here."""

    task: Task
    source: EventSource

    def __call__(self, rows: Arrow) -> Arrow:
        columns = self.task.read_columns

        def pieces() -> Iterator[tuple[Slice, Iterator[RawBatch]]]:
            for batch in rows:
                for row in batch.to_pylist():
                    piece = Slice(row["stream"], row["start"], row["stop"])
                    yield piece, self.source.read(piece, columns)

        yield from _as_arrow(work_of(self.task).route(self.task, _task_number(), pieces()))


@dataclass(frozen=True)
class RouteRows:
    """Routing in the general lane: incoming rows are events, or records that hold such."""

    task: Task
    values: TopicValues | None = None

    def __call__(self, rows: Arrow) -> Arrow:
        number = _task_number()

        def batches() -> Iterator[RawBatch]:
            first = number << _WIDE
            for batch in rows:
                if self.values is not None:
                    yield from self.values.batches(pa.Table.from_batches([batch]))
                    continue
                table, unreadable = _readable(pa.Table.from_batches([batch]))
                positions = np.arange(first, first + len(table), dtype=np.int64)
                yield RawBatch(table, positions, unreadable)
                first += len(table)

        yield from _as_arrow(work_of(self.task).route(self.task, number, [(None, batches())]))


@dataclass(frozen=True)
class ExecuteSlot:
    """Execution: incoming rows are the parcels of one slot."""

    task: Task

    def __call__(self, rows: Arrow) -> Arrow:
        parcels = (
            Parcel(slot.as_py(), sequence.as_py(), blob.as_buffer())
            for batch in rows
            for slot, sequence, blob in zip(*batch.columns, strict=True)
        )
        report, told = work_of(self.task).execute(self.task, _task_number(), parcels)
        reports = [report.to_bytes(), *(r.to_bytes() for r in told)]
        kinds = [0] + [1] * len(told)
        yield pa.RecordBatch.from_arrays(
            [pa.array(kinds, pa.int32()), pa.array(reports, pa.binary())], schema=_REPORT_ARROW
        )


def _readable(table: pa.Table) -> tuple[pa.Table, list[Rejected]]:
    """Rows that Spark could read, and the lines of JSON that it could not."""
    if CORRUPT not in table.schema.names:
        return table, []
    broken = table.column(CORRUPT)
    lines = broken.drop_null().to_pylist()
    rejected = [Rejected("malformed_json", "the line is not JSON", line) for line in lines]
    return table.filter(pc.is_null(broken)).drop_columns([CORRUPT]), rejected


def _task_number() -> int:
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def _as_arrow(parcels: Iterator[Parcel]) -> Arrow:
    for parcel in parcels:
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([parcel.slot], pa.int32()),
                pa.array([parcel.sequence], pa.int64()),
                pa.array([parcel.blob], pa.binary()),
            ],
            schema=_PARCEL_ARROW,
        )


def run_job(
    rows: DataFrame, task: Task, router: Callable[[Arrow], Arrow]
) -> tuple[list[Any], list[RouteReport]]:
    """Run an epoch's two stages and bring the reports home."""
    if isinstance(router, RouteSlices):
        _trust_routing(rows.sparkSession)

    def job() -> list[Any]:
        parcels = rows.mapInArrow(_plain(router), _PARCEL)
        exchanged = parcels.repartitionById(task.plan.slots, "slot")
        return exchanged.mapInArrow(_plain(ExecuteSlot(task)), _REPORT).collect()

    reports = tried(job)
    told = work_of(task).report
    slots = [told.from_bytes(bytes(r["report"])) for r in reports if r["routed"] == 0]
    routes = [RouteReport.from_bytes(bytes(r["report"])) for r in reports if r["routed"] == 1]
    return slots, routes


def _trust_routing(spark: SparkSession) -> None:
    """Let Spark route again only what was lost with an executor. It compares what comes of it, and
    gives the whole job up if anything differs; here only reports do, and each is read by one slot.
    Slices are always the same rows. Those of a DataFrame may not be, so there Spark goes on to
    compare. The session is the stream's own."""
    spark.conf.set("spark.sql.shuffle.orderIndependentChecksum.enabled", "false")
    spark.conf.set("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false")


def tried(job: Callable[[], Result]) -> Result:
    """The result of a job; again from its beginning where Spark gave it up because, after an
    executor was lost, other rows were routed than slots had finished with. What was staged by then
    counts for nothing: no manifest names it."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return job()
        except Py4JJavaError as error:
            if not any(text in str(error) for text in _GAVE_UP):
                raise
    return job()


def _plain(call: Callable[[Arrow], Arrow]) -> Callable[[Arrow], Arrow]:
    """Spark asks for a function by name; a callable value has none."""

    def stage(rows: Arrow) -> Arrow:
        yield from call(rows)
        settle()

    return stage
