"""The streaming query that drives the engine: one micro-batch, one epoch.

Spark calls the body with an epoch's rows, again after a crash; the engine's log makes that
exactly-once. A run is only ever stopped between two epochs. A stream that was drained is closed by
one more epoch without events, in a query of its own: only then is it known that it was drained.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from geoflux import errors
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.source import EventSource
from geoflux.errors import GeofluxError
from geoflux.settings import seconds
from geoflux.spark.epoch import RouteRows, RouteSlices, run_job
from geoflux.spark.kafka import TopicStream
from geoflux.spark.progress import Progress
from geoflux.spark.session import default_parallelism, end_lookup
from geoflux.spark.silence import Beat, is_closing
from geoflux.spark.slices import slice_stream, with_silence
from geoflux.state.store import Store

_POLL_SECONDS = 0.1
_starting = threading.Lock()
"""Queries of one session are started one by one: the worker that looks a source up is ended
afterwards, which must not happen to somebody else's; and Spark gives a worker ten seconds to start,
which many at once on a busy machine may not do."""
_STARTING = ("Initializing", "Getting offsets")
_START_SECONDS = 30.0
_TOO_SLOW = "Python worker failed to connect back"
_ATTEMPTS = 5
_CLOSINGS = 3
PUSHBACK = "epoch_events"
"""The file that tells the source how many events the next epoch may have."""


class _Stopping(Exception):
    """Ends the body of an epoch that was not begun; Spark will offer the epoch again."""


@dataclass(frozen=True)
class Listener:
    """Who wants to hear of epochs: ``on_epoch(manifest)`` after each commit, and, before Spark's
    offsets go on, ``on_commit(manifest)`` and ``on_matches(df, epoch)`` with the committed matches;
    after a crash these two may be told the last epoch again, with the very same rows."""

    on_epoch: Callable[[Manifest], None] | None = None
    on_matches: Callable[[DataFrame, int], None] | None = None
    on_commit: Callable[[Manifest], None] | None = None


@dataclass(frozen=True)
class Pace:
    """How a run goes.

    ``drain``: until all that is there is in, otherwise for ever; ``paced``: a source of ours hands
    its rows out as time goes by; ``epoch_events`` at most in an epoch, ``epoch_seconds`` at least
    between the starts of two; epochs without events every ``idle_seconds`` of silence (0: none);
    no longer than ``deadline`` (seconds since 1970).
    """

    drain: bool
    paced: bool
    epoch_events: int
    epoch_seconds: float = 0.0
    idle_seconds: float = 0.0
    deadline: float | None = None

    @classmethod
    def of(cls, config: Config, idle_seconds: float) -> Pace:
        """The pace that (checked) settings ask for; their time begins to run now."""
        limit = seconds(config.run.duration) if config.run.duration else None
        simulated = config.source.kind == "simulate"
        paced = (simulated and config.simulate.paced) or config.source.speed > 0
        deadline = None if limit is None or simulated else time.time() + limit
        return cls(
            config.run.mode == "drain", paced, config.engine.epoch_events,
            config.engine.epoch_seconds, idle_seconds, deadline,
        )  # fmt: skip


class EpochStream:
    """Runs epochs over a stream until it is drained, ends, or is told to stop.

    ``events`` is a source (the fast lane), or a streaming DataFrame of events or of records of
    topics (the general lane).
    """

    def __init__(
        self, spark: SparkSession, engine: Engine | KeyedEngine, store: Store,
        events: EventSource | DataFrame | TopicStream, listener: Listener | None = None,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._engine = engine
        self._store = store
        self._values = events.values if isinstance(events, TopicStream) else None
        self._events = events.frame if isinstance(events, TopicStream) else events
        self._listener = listener or Listener()
        self._checkpoint = Path(store.path("checkpoint"))
        self._pushback = Path(store.path(PUSHBACK))
        self._most = ""
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._ending = False
        self._problem: BaseException | None = None
        self._told: int | None = None
        self.started = threading.Event()
        """Set once the first query runs."""
        self.gate: threading.Event | None = None
        """No epoch begins before it is set: queries that are started together do not have to start
        beside each other's work."""
        self.is_over = False
        """Whether the last run came to the end of the stream, and closed it if it was to."""
        self._progress: Progress | None = None
        self._position = 0 if engine.last is None else engine.manifest(engine.last)["position"]

    def run(self, pace: Pace) -> None:
        """Block until the stream is drained and closed, has reached its source's end, or until the
        deadline or :meth:`stop`.

        A stream of the user's own may have had something new when it was to be closed. That is
        taken in first; after a few times it is left open, for the next run to close. Rows that a
        keyed operator has handed back are worked off, however many epochs that takes.
        """
        self.is_over = self._ran(pace)

    def _ran(self, pace: Pace) -> bool:
        self._most = str(pace.epoch_events)
        self._push_back()
        at_once = pace.drain and (not pace.paced or isinstance(self._events, DataFrame))
        beat = Beat(0.0 if at_once else pace.idle_seconds)
        ended = self._query(pace, beat, at_once or self._is_at_end())
        if ended and not at_once and not self._is_at_end():  # it was over, but more has come since
            ended = self._query(pace, beat, at_once)
        tries, waiting = 0, math.inf
        while True:
            last = self._engine.last
            if not (pace.drain and ended and last is not None and self._engine.wants_closing()):
                return ended
            before, waiting = waiting, self._engine.manifest(last)["carried_out"]
            tries = 1 if waiting < before else tries + 1
            if tries > _CLOSINGS:
                return False
            ended = self._query(pace, Beat(closing=last + 1), at_once=True)

    def stop(self) -> None:
        """Ask the run to end after the epoch that is under way; from any thread."""
        self._asked.set()

    def _query(self, pace: Pace, beat: Beat, at_once: bool) -> bool:
        """Run one streaming query, over what is there ``at_once`` or until the source's end;
        whether it came that far. One whose worker did not start in time is started again: nothing
        was begun."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._attempt(pace, beat, at_once)
            except StreamingQueryException as error:
                if _TOO_SLOW not in str(error) or attempt + 1 == _ATTEMPTS:
                    raise _as_ours(str(error)) from error
        raise AssertionError("the last attempt ends in one way or the other")

    def _attempt(self, pace: Pace, beat: Beat, at_once: bool) -> bool:
        with _starting:
            query, late = self._started(pace, beat, at_once), False
            _await_source(query)
        self._progress = Progress(query)
        self.started.set()
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                late = pace.deadline is not None and time.time() >= pace.deadline
                if late or self._asked.is_set() or (not at_once and self._is_at_end()):
                    self._stop_between_epochs(query)
        except StreamingQueryException:
            if self._problem is None:
                raise
        if self._problem is not None and not isinstance(self._problem, _Stopping):
            raise self._problem
        return (at_once or self._is_at_end()) and not (late or self._asked.is_set())

    def _started(self, pace: Pace, beat: Beat, at_once: bool) -> Any:
        self._ending, self._problem = False, None
        writer = self._frame(pace, beat).writeStream.foreachBatch(self._epoch)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        if at_once:
            return writer.trigger(availableNow=True).start()
        milliseconds = int(pace.epoch_seconds * 1000)
        return writer.trigger(processingTime=f"{milliseconds} milliseconds").start()

    def _is_at_end(self) -> bool:
        """Whether all that will ever come is in; for a stream of the user's own nobody knows."""
        total = None if isinstance(self._events, DataFrame) else self._events.total()
        return total is not None and self._position >= total

    def _stop_between_epochs(self, query: Any) -> None:
        self._ending = True
        with self._lock:
            query.stop()

    def _frame(self, pace: Pace, beat: Beat) -> DataFrame:
        if isinstance(self._events, DataFrame):
            return with_silence(self._events, beat)
        tasks = default_parallelism(self._spark)
        frame = slice_stream(
            self._spark, self._events, pace.epoch_events, tasks, beat, self._pushback
        )
        end_lookup(self._spark)
        return frame

    def _epoch(self, rows: DataFrame, epoch: int) -> None:
        try:
            self._begin()
            try:
                self._run_epoch(rows, epoch)
            finally:
                self._lock.release()
        except (PySparkException, Py4JJavaError) as error:
            self._problem = _as_ours(str(error))  # now: it cannot be asked once Spark has gone
            raise
        except BaseException as error:
            self._problem = error
            raise

    def _begin(self) -> None:
        """Take the lock, unless the run is to end. Who stops the query holds it, and waits for
        this very thread: waiting for the lock then would be for ever."""
        while not (self._ending or self._asked.is_set()):
            if self.gate is not None and not self.gate.wait(_POLL_SECONDS):
                continue
            if self._lock.acquire(timeout=_POLL_SECONDS):
                return
        raise _Stopping

    def _run_epoch(self, rows: DataFrame, epoch: int) -> None:
        if self._engine.is_committed(epoch):
            if epoch != self._told:
                self._tell_matches(self._engine.manifest(epoch))
            return
        opened: Any = self._engine.open(epoch, final=self._closes(rows, epoch))
        task = opened.task
        begun = time.time()
        if isinstance(self._events, DataFrame):
            slots, routes = run_job(rows, task, RouteRows(task, self._values))
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
        about["spark_seconds"] = None if self._progress is None else self._progress.between()
        manifest = self._engine.commit(opened, slots, routes, about)
        self._push_back()
        self._tell_matches(manifest)
        if self._listener.on_epoch is not None:
            self._listener.on_epoch(manifest)

    def _push_back(self) -> None:
        """Tell the source how many events the next epoch may have, where that is news to it."""
        allowed = str(self._engine.epoch_events)
        told = self._pushback.read_text() if self._pushback.exists() else self._most
        if allowed != told:
            self._store.write_bytes(PUSHBACK, allowed.encode())

    def _closes(self, rows: DataFrame, epoch: int) -> bool:
        """Whether an epoch closes the stream: it was made to, it should, and nothing came after
        all (a source of ours holds back, the user's own cannot be told to)."""
        if not (is_closing(self._checkpoint, epoch) and self._engine.wants_closing()):
            return False
        return not isinstance(self._events, DataFrame) or rows.isEmpty()

    def _tell_matches(self, manifest: Manifest) -> None:
        self._told = manifest["epoch"]
        if self._listener.on_commit is not None:
            self._listener.on_commit(manifest)
        if self._listener.on_matches is None:
            return
        kinds = ("matches/", "counts/", "results/")
        files = [self._store.path(n) for n in manifest["files"] if n.startswith(kinds)]
        if files:
            self._listener.on_matches(self._spark.read.parquet(*files), manifest["epoch"])


def _await_source(query: Any) -> None:
    """Wait until the worker that plans a query's source has said something."""
    limit = time.monotonic() + _START_SECONDS
    while query.isActive and query.status["message"].startswith(_STARTING):
        if time.monotonic() > limit:
            return
        time.sleep(_POLL_SECONDS / 2)


def _as_ours(text: str) -> GeofluxError:
    r"""The error of ours that made a worker fail, out of what Spark tells of it.

    >>> _as_ours("Job aborted\nTraceback\ngeoflux.errors.OperatorError: it broke\n\tat org")
    OperatorError('it broke')
    >>> _as_ours("An error occurred while calling o1.collect.\n: org.spark.E: no room\n\tat org")
    GeofluxError('the stream failed: org.spark.E: no room')
    >>> _as_ours("Job aborted\nTraceback\nModuleNotFoundError: No module named 'x'\n\tat org")
    GeofluxError("the stream failed: ModuleNotFoundError: No module named 'x'")
    """
    told = re.search(r"geoflux\.errors\.(\w+): (.*)", text)
    if told is None:
        lines = [line.removeprefix(": ") for line in text.splitlines()]
        called = lines[0].startswith("An error occurred while calling") and len(lines) > 1
        raised = re.findall(r"^\w*(?:Error|Exception): .*$", text, re.MULTILINE)
        return GeofluxError(f"the stream failed: {raised[-1] if raised else lines[called]}")
    kind: type[GeofluxError] = getattr(errors, told[1], GeofluxError)
    return kind(told[2])
