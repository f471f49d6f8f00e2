"""The statistics of one slot in one epoch: collected with its work, searched when it is asked.

Statistics of a partition are kept in the slot that owns it alone, and are saved with every epoch as
one small segment; they move with the partition by reference. What the coordinator gets are two
numbers a round, and an answer where it asked.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from geoflux.balance.reduction import Holding, slot_cost, slot_received
from geoflux.balance.requests import answer_to_dict
from geoflux.balance.sharing import search
from geoflux.balance.tuning import Tuning
from geoflux.engine.sensing import sensed
from geoflux.engine.task import EpochTask
from geoflux.operators import queries
from geoflux.operators.deltas import read_change
from geoflux.operators.matching import SortedEvents
from geoflux.operators.pubsub import PartitionState, checks_per_cell
from geoflux.operators.retained import open_retained
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import CellRanges
from geoflux.state.refs import Ref
from geoflux.state.segments import reopened, unique_name, write_segment
from geoflux.state.store import Store
from geoflux.stats import KnownQueries, TrioStat, inherited, stats_from_arrays, stats_to_arrays


class Weights(NamedTuple):
    """What things cost, in comparisons with the box of a query."""

    refined: float
    """A comparison whose query asks for more than its box."""
    event: float
    """An event besides its comparisons: unpacking, sorting, finding its cell."""
    query: float
    """A query that has matches to be told of in an epoch."""
    registered: float
    """A query that came: checked against the partition, indexed, written a few times."""


WEIGHTS = {"counts": Weights(24.0, 100.0, 200.0, 1000.0), "rows": Weights(2.0, 4.0, 0.0, 40.0)}
"""Measured. Where matches are written one by one, that is most of what a comparison costs; where
they are only counted, a comparison is a nanosecond."""
_PLACED = ("number", "x0", "y0", "x1", "y1")
_CACHED = 4096
_cache: OrderedDict[tuple[str, int], tuple[Ref, TrioStat]] = OrderedDict()
_lock = threading.Lock()


@dataclass
class StatReport:
    """What the slot says of its statistics; a part of its report."""

    cost: float | None = None
    received: float | None = None
    answer: dict[str, Any] | None = None
    refs: dict[str, list[list[Any]]] = field(default_factory=dict)
    work: float = 0.0
    """Of this epoch."""
    seconds: float = 0.0
    sensed: str | None = None
    sense_seconds: float = 0.0


class SlotStats:
    """Made once per slot and epoch; :meth:`finish` answers, closes and saves."""

    def __init__(self, task: EpochTask, tuning: Tuning, slot: int) -> None:
        self._task = task
        self._tuning = tuning
        self._slot = slot
        self._held: dict[int, tuple[Partition, TrioStat]] = {}
        self._states: dict[int, PartitionState] = {}
        self._changed: set[int] = set()
        self._seconds = self._work = 0.0
        self._weights = WEIGHTS["counts" if task.counting else "rows"]

    def open(self, partition: Partition, state: PartitionState) -> None:
        """Take up a partition: its statistics so far, and what control records changed."""
        started = time.perf_counter()
        task = self._task
        self._states[partition.id] = state
        came, ended = self._changes(partition)
        refs = task.stats.get(partition.id, ())
        if len(refs) == 1 and refs[0].partition == partition.id:
            self._held[partition.id] = partition, _known(task.store, refs[0])
            if came is not None:
                self._writable(partition.id).register(came)
            if ended is not None:
                self._writable(partition.id).end(ended)
        else:
            sources = [_known(task.store, ref) for ref in refs]
            known = _known_queries(task, partition, state)
            self._held[partition.id] = partition, inherited(partition, sources, known)
            self._changed.add(partition.id)
        if came is not None and task.epoch > 0:
            # What is there when a run begins says nothing of what will come.
            self._work += self._writable(partition.id).take_up(came, self._weights.registered)
        self._apply_expiry(partition)
        self._seconds += time.perf_counter() - started

    def _writable(self, partition: int) -> TrioStat:
        """The statistics of a partition to be changed: what is cached stays as it was read."""
        owner, stat = self._held[partition]
        if partition not in self._changed:
            self._changed.add(partition)
            stat = stat.copy()
            self._held[partition] = owner, stat
        return stat

    def _changes(self, partition: Partition) -> tuple[CellRanges | None, CellRanges | None]:
        """The cells of queries that came and of those that ended, if there are any."""
        task = self._task
        if task.delta is None:
            return None, None
        came, ended = (
            queries.ranges_in(boxes, task.grid, partition) if len(boxes) else None
            for boxes in read_change(task.store, task.delta, partition.id)
        )
        return came, ended

    def _apply_expiry(self, partition: Partition) -> None:
        for name, col0, row0, col1, row1 in self._task.expired:
            if col0 < partition.col1 and partition.col0 < col1 and (
                row0 < partition.row1 and partition.row0 < row1
            ):  # fmt: skip
                gone = open_retained(self._task.store, name)
                width = gone.grid_columns
                columns, rows = (gone.keys % width), (gone.keys // width)
                self._writable(partition.id).expire(
                    columns.astype(np.int32), rows.astype(np.int32), np.diff(gone.offsets)
                )

    def receive(
        self, partition: Partition, state: PartitionState, ready: SortedEvents, told: int
    ) -> None:
        """Count a batch of events, and the work that it was; ``told`` are the queries whose
        matches were counted."""
        started = time.perf_counter()
        cells, offsets, _ = ready.groups
        counts, weights = np.diff(offsets), self._weights
        work = checks_per_cell(state, ready, weights.refined) + weights.event * counts
        stat = self._writable(partition.id)
        stat.receive_cells(cells, counts, work)
        stat.answer(weights.query * told)
        self._work += float(work.sum()) + weights.query * told
        self._seconds += time.perf_counter() - started

    def finish(self) -> StatReport:
        """Answer if asked, close the round if told to, save what changed."""
        started = time.perf_counter()
        orders, report = self._task.orders, StatReport()
        for ask in orders.asks:
            if ask.donor == self._slot:
                report.answer = answer_to_dict(search(self._holdings(), ask, self._tuning))
                self._sense(report)
        if orders.close:
            for partition in self._held:
                retained = self._task.view is not None
                self._writable(partition).close_round(retained, self._tuning.memory)
            closed = self._holdings()
            report.cost = slot_cost(closed, self._tuning.cost)
            report.received = slot_received(closed)
        self._save(report)
        report.work = self._work
        report.seconds = self._seconds + time.perf_counter() - started
        return report

    def _sense(self, report: StatReport) -> None:
        """Tell Guard of the costliest partition: after a move of others the hotspot stays there."""
        task, started = self._task, time.perf_counter()
        if task.rounds is None or not self._held:
            return
        costliest = max(self._holdings(), key=lambda holding: holding.cost(self._tuning.cost))
        state = self._states[costliest.partition.id]
        report.sensed = sensed(state, task.grid, task.rounds, self._slot, task.epoch)
        report.sense_seconds = time.perf_counter() - started

    def _holdings(self) -> list[Holding]:
        return [Holding(*held) for held in self._held.values()]

    def _save(self, report: StatReport) -> None:
        if not self._changed:
            return
        store = self._task.store
        name = unique_name("state", f"stats-s{self._slot}")
        stats = {p: self._held[p][1] for p in sorted(self._changed)}
        write_segment(store, name, stats_to_arrays(stats), {"kind": "stats"})
        for partition, stat in stats.items():
            ref = Ref("stats", name, partition)
            report.refs[str(partition)] = [ref.plain()]
            _remember(store, ref, stat)


def _known_queries(task: EpochTask, partition: Partition, state: PartitionState) -> KnownQueries:
    """The live queries of a partition, by when they came."""
    parts = []
    for matcher, alive in state.matchers:
        rows = matcher.layer.rows.select(_PLACED)
        parts.append(rows if alive is None else rows.filter(pa.array(alive)))
    if not parts:
        return KnownQueries.none()
    rows = pa.concat_tables(parts)
    ranges = queries.ranges_in(rows, task.grid, partition)
    return KnownQueries.alive(ranges, queries.numeric(rows, "number"), task.orders.marks)


def _known(store: Store, ref: Ref) -> TrioStat:
    """Statistics as they were saved; not to be changed."""
    with _lock:
        cached = _cache.get((store.root, ref.partition))
    if cached is not None and cached[0] == ref:
        return cached[1]
    segment = reopened(store, ref.segment)
    return stats_from_arrays(segment.arrays("trio."))[ref.partition]


def _remember(store: Store, ref: Ref, stat: TrioStat) -> None:
    """What is remembered is told by its reference: an attempt that is not committed is never
    asked for."""
    with _lock:
        _cache[store.root, ref.partition] = ref, stat
        _cache.move_to_end((store.root, ref.partition))
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
