"""Routing, the papers' GlobalIndex: judge rows, look partitions up, pack them per slot.

Runs inside a worker on whatever rows its task has; knows nothing of Spark. The last thing it
yields is its report, addressed to a slot like everything else, so that it is counted exactly once
whatever is retried.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from geoflux.engine.blobs import pack
from geoflux.engine.rooted import Followed, Watch, as_text
from geoflux.engine.source import RawBatch, Rejected, Slice
from geoflux.engine.staging import stage_rejected, stage_table
from geoflux.engine.task import EpochTask, RouteReport
from geoflux.operators.events import Events
from geoflux.state.store import Store

REPORT = -1
"""Sequence number that marks a report among blobs."""


class Parcel(NamedTuple):
    """Something for a slot: a blob with its place in the order, or a report."""

    slot: int
    sequence: int
    blob: bytes


def received(parcels: Iterable[Parcel]) -> tuple[list[Any], list[RouteReport]]:
    """What arrived at a slot, in whatever order: its blobs in theirs, and reports to pass on."""
    routed: list[RouteReport] = []
    blobs: list[tuple[int, Any]] = []
    for parcel in parcels:
        if parcel.sequence == REPORT:
            routed.append(RouteReport.from_bytes(bytes(parcel.blob)))
        else:
            blobs.append((parcel.sequence, parcel.blob))
    blobs.sort(key=lambda item: item[0])
    return [blob for _, blob in blobs], routed


def route(
    task: EpochTask, worker: int, pieces: Iterable[tuple[Slice | None, Iterable[RawBatch]]]
) -> Iterator[Parcel]:
    """Parcels for the slots; ``worker`` numbers the routing tasks of the epoch."""
    started = time.perf_counter()
    router = _Router(task)
    for piece, batches in pieces:
        if piece is not None:
            router.slices.append((piece.stream, piece.start, piece.stop))
        router.lane_epoch = task.epoch if piece is None else None
        for batch in batches:
            yield from router.parcels(batch)
    report = router.finished(time.perf_counter() - started)
    yield Parcel(worker % task.plan.slots, REPORT, report.to_bytes())


class _Router:
    def __init__(self, task: EpochTask) -> None:
        self._task = task
        self._intake = task.intake
        self._received = 0
        self._reasons: Counter[str] = Counter()
        self._times: tuple[int, int] | None = None
        self._late = 0
        self._rejected: list[Rejected] = []
        self._received_files: list[str] = []
        self._followed = Followed()
        self._watch = Watch()
        self.lane_epoch: int | None = None
        self.slices: list[tuple[int, int, int]] = []

    def parcels(self, batch: RawBatch) -> Iterator[Parcel]:
        task = self._task
        events, positions, rejected = self._intake.accept(batch)
        self._received += len(events) + len(rejected)
        self._rejected += rejected
        self._reasons.update(bad.code for bad in rejected)
        if task.record_input:
            self._received_files.append(record_rows(task.store, task.epoch, batch.table))
        if task.sampling is not None:  # what comes in is done with when the epoch is
            with self._watch:
                marks = self._followed.marks(task.sampling, batch, self.lane_epoch)
                self._followed.acks.append(marks.pairs())
        if len(events) == 0:
            return
        self._note_times(events)
        place = task.plan.locate(
            task.grid.columns_of(events.x), task.grid.rows_of(events.y), positions
        )
        order, stretches = task.addresses.sorted(place)
        ordered = self._ordered(events, order)
        for slot, first, last, runs in stretches:
            yield Parcel(slot, int(positions[0]), pack(ordered, first, last, runs))

    def _note_times(self, events: Events) -> None:
        first, last = int(events.time.min()), int(events.time.max())
        if first < self._task.clock.floor:
            self._late += int((events.time < self._task.clock.floor).sum())
        if self._times is not None:
            first, last = min(first, self._times[0]), max(last, self._times[1])
        self._times = first, last

    def _ordered(self, events: Events, order: Any) -> Events:
        task = self._task
        rows = pa.array(order)
        no_time = np.empty(0, np.int64)
        return Events(
            events.x[order],
            events.y[order],
            events.time[order] if task.needs_time else no_time,
            events.id.take(rows) if task.needs_id and events.id is not None else None,
            {name: column.take(rows) for name, column in events.columns.items()},
        )

    def finished(self, seconds: float) -> RouteReport:
        task = self._task
        files: tuple[str, ...] = ()
        if self._rejected:
            files = (stage_rejected(task.store, task.epoch, "event", self._rejected),)
        return RouteReport(
            self._received, len(self._rejected), dict(self._reasons), self._late,
            self._times, tuple(self.slices), files, tuple(self._received_files), seconds,
            as_text(self._followed.roots), as_text(self._followed.acks),
            self._watch.seconds,
        )  # fmt: skip


def record_rows(store: Store, epoch: int, table: pa.Table) -> str:
    """Keep rows as they came, for a later verification."""
    epochs = pa.array(np.full(len(table), epoch, np.int64))
    return stage_table(store, "received", epoch, table.append_column("@epoch", epochs))
