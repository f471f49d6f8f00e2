"""The streaming query that drives the engine: one micro-batch, one epoch.

Spark calls the body with an epoch's rows, again after a crash; the engine's log makes that
exactly-once. A run is only ever stopped between two epochs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from geoflux.engine.engine import Engine, Manifest
from geoflux.engine.source import EventSource
from geoflux.errors import GeofluxError
from geoflux.spark.epoch import RouteRows, RouteSlices, run_job
from geoflux.spark.session import default_parallelism
from geoflux.spark.slices import slice_stream
from geoflux.state.store import Store

_POLL_SECONDS = 0.1


class _Stopping(Exception):
    """Ends the body of an epoch that was not begun; Spark will offer the epoch again."""


@dataclass(frozen=True)
class Listener:
    """Who wants to hear of epochs: ``on_epoch(manifest)`` after each commit, and
    ``on_matches(df, epoch)`` with the committed matches; after a crash the last epoch may be told
    again, with the very same rows."""

    on_epoch: Callable[[Manifest], None] | None = None
    on_matches: Callable[[DataFrame, int], None] | None = None


class EpochStream:
    """Runs epochs over a stream until it is drained, ends, or is told to stop.

    ``events`` is a source (the fast lane) or a streaming DataFrame of events (the general lane).
    """

    def __init__(
        self, spark: SparkSession, engine: Engine, store: Store,
        events: EventSource | DataFrame, listener: Listener | None = None,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._engine = engine
        self._store = store
        self._events = events
        self._listener = listener or Listener()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._problem: BaseException | None = None
        self._position = 0 if engine.last is None else engine.manifest(engine.last)["position"]

    def run(
        self, drain: bool, epoch_events: int, epoch_seconds: float = 0.0,
        deadline: float | None = None,
    ) -> None:  # fmt: skip
        """Block until the stream is drained (``drain``), has reached its source's end, or until
        ``deadline`` (seconds since 1970) or :meth:`stop`."""
        frame = self._frame(epoch_events)
        total = None if isinstance(self._events, DataFrame) else self._events.total()
        writer = frame.writeStream.foreachBatch(self._epoch).option(
            "checkpointLocation", self._store.path("checkpoint")
        )
        if drain:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(epoch_seconds * 1000)} milliseconds")
        query = writer.start()
        try:
            while query.isActive:
                if query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
                    break
                ended = not drain and total is not None and self._position >= total
                if ended or self._stopping.is_set() or (deadline and time.time() >= deadline):
                    self._stop_between_epochs(query)
        except StreamingQueryException as error:
            if self._problem is None:
                raise GeofluxError(f"the stream failed: {str(error).splitlines()[0]}") from error
        if self._problem is not None and not isinstance(self._problem, _Stopping):
            raise self._problem

    def stop(self) -> None:
        """Ask the run to end after the epoch that is under way; from any thread."""
        self._stopping.set()

    def _stop_between_epochs(self, query: Any) -> None:
        self._stopping.set()
        with self._lock:
            query.stop()

    def _frame(self, epoch_events: int) -> DataFrame:
        if isinstance(self._events, DataFrame):
            return self._events
        return slice_stream(
            self._spark, self._events, epoch_events, default_parallelism(self._spark)
        )

    def _epoch(self, rows: DataFrame, epoch: int) -> None:
        try:
            with self._lock:
                if self._stopping.is_set():
                    raise _Stopping
                self._run_epoch(rows, epoch)
        except BaseException as error:
            self._problem = error
            raise

    def _run_epoch(self, rows: DataFrame, epoch: int) -> None:
        if self._engine.is_committed(epoch):
            self._tell_matches(self._engine.manifest(epoch))
            return
        opened = self._engine.open(epoch)
        task = opened.task
        begun = time.time()
        if isinstance(self._events, DataFrame):
            slots, routes = run_job(rows, task, RouteRows(task))
            about: dict[str, Any] = {"arrivals": None, "position": 0}
        else:
            slots, routes = run_job(rows, task, RouteSlices(task, self._events))
            pieces = [piece for r in routes for piece in r.slices]
            span = self._events.span(pieces) if pieces else (self._position, self._position)
            self._position = max(self._position, span[1])
            arrivals = self._events.arrivals(*span) if pieces else None
            about = {"arrivals": arrivals, "position": self._position}
        about["job_seconds"] = time.time() - begun
        about["open_seconds"] = begun - opened.started
        manifest = self._engine.commit(opened, slots, routes, about)
        self._tell_matches(manifest)
        if self._listener.on_epoch is not None:
            self._listener.on_epoch(manifest)

    def _tell_matches(self, manifest: Manifest) -> None:
        if self._listener.on_matches is None:
            return
        kinds = ("matches/", "counts/")
        files = [self._store.path(n) for n in manifest["files"] if n.startswith(kinds)]
        if files:
            self._listener.on_matches(self._spark.read.parquet(*files), manifest["epoch"])
