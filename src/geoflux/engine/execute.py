"""Execution in a slot: open its partitions, match its events, write results, report.

Runs inside a worker; knows nothing of Spark. Opened partitions are cached by their references, so
that any worker may get any slot and a reused worker finds its state warm.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from geoflux.engine.answers import answers_table
from geoflux.engine.blobs import by_partition, joined
from geoflux.engine.route import Parcel, received
from geoflux.engine.sinks import ParquetSink
from geoflux.engine.slot_stats import SlotStats, StatReport
from geoflux.engine.slot_windows import SlotWindows, WindowReport
from geoflux.engine.snapshots import View, answered
from geoflux.engine.staging import stage_table
from geoflux.engine.task import EpochTask, RouteReport, SlotReport
from geoflux.operators.compaction import retain
from geoflux.operators.events import Events
from geoflux.operators.matching import SortedEvents
from geoflux.operators.pubsub import PartitionState, PubSub
from geoflux.operators.snapshot import SnapshotQuery
from geoflux.plan.plan import Partition
from geoflux.scale.services import ServiceSums

_CACHED = 512
_cache: OrderedDict[Any, PartitionState] = OrderedDict()
_lock = threading.Lock()


def execute(
    task: EpochTask, slot: int, parcels: Iterable[Parcel]
) -> tuple[SlotReport, list[RouteReport]]:
    """Do a slot's work of one epoch; passes the routers' reports on."""
    blobs, routed = received(parcels)
    started = time.perf_counter()
    pieces = by_partition(blobs)
    _forget_retired(task)
    operator = PubSub(task.grid, task.store, task.counting)
    windows = SlotWindows(task, slot) if task.has_windows else None
    stats = SlotStats(task, task.tuning, slot) if task.tuning is not None else None
    written: dict[str, list[list[Any]]] = {}
    per_partition: dict[str, list[int]] = {}
    kept: list[list[Any]] = []
    processed = checks = refined = queries = 0
    load_seconds = 0.0
    timed: list[tuple[int, float]] = []
    with ParquetSink(task, slot) as sink:
        for partition in task.plan.partitions:
            if partition.slot != slot:
                continue
            opening = time.perf_counter()
            refs = task.refs.get(partition.id, ())
            state = _opened(task, operator, partition)
            load_seconds += time.perf_counter() - opening
            if state.refs != refs:
                written[str(partition.id)] = [ref.plain() for ref in state.refs]
            queries += state.queries
            if windows is not None:
                windows.close(partition, state)
            if stats is not None:
                stats.open(partition, state)
            mine = pieces.pop(partition.id, None)
            if mine is None:
                continue
            began = time.perf_counter()
            ready = SortedEvents.of(joined(mine), task.grid, partition)
            events = ready.events
            collector = None if windows is None else windows.collector(state, events)
            before = sink.told
            work = operator.process(state, ready, sink, collector)
            if windows is not None and collector is not None:
                windows.take(state, events, collector)
            if stats is not None:
                stats.receive(partition, state, ready, sink.told - before)
            if task.view is not None:
                kept += _retained(task, task.view, partition, events)
            timed.append((len(events), time.perf_counter() - began))
            processed += len(events)
            checks += work.checks
            refined += work.refined
            per_partition[str(partition.id)] = [len(events), work.checks]
    assert not pieces, f"slot {slot} got events of partitions it does not own: {list(pieces)}"
    told = WindowReport() if windows is None else windows.finish()
    known = StatReport() if stats is None else stats.finish()
    report = SlotReport(
        slot, processed, sink.matches, checks, refined, queries,
        time.perf_counter() - started, load_seconds, sum(map(len, blobs)), sink.names, written,
        per_partition,
        tuple(told.files), told.rows, told.late, told.closed_until, told.refs, tuple(told.sent),
        tuple(kept), _answers(task, slot),
        known.cost, known.received, known.answer, known.refs, known.work,
        known.seconds, known.sensed, known.sense_seconds, ServiceSums.of(timed).to_list(),
    )  # fmt: skip
    return report, routed


def _retained(task: EpochTask, view: View, partition: Partition, events: Events) -> list[list[Any]]:
    """Keep a partition's events; writes segments, and says which older ones they replace."""
    few = replace(events, columns={name: events.columns[name] for name in view.naming.stored})
    held = view.retained.by_partition.get(partition.id, ())
    return [k.to_list() for k in retain((task.store, task.grid, partition), held, few, task.epoch)]


def _answers(task: EpochTask, slot: int) -> tuple[str, ...]:
    """Answer this slot's share of the snapshots; any slot can read all that is retained."""
    mine = task.snapshots[slot :: task.plan.slots]
    if task.view is None or not mine:
        return ()
    answers = [answered(task.view, SnapshotQuery.from_dict(query)) for query in mine]
    return (stage_table(task.store, "snapshots", task.epoch, answers_table(task.epoch, answers)),)


def _forget_retired(task: EpochTask) -> None:
    """Let go of the states of partitions that the plan has no more: they would keep deleted
    segments mapped, for as long as the worker lives."""
    living = {partition.id for partition in task.plan.partitions}
    with _lock:
        for home in [h for h in _cache if h[0] == task.store.root and h[2] not in living]:
            del _cache[home]


def _opened(task: EpochTask, operator: PubSub, partition: Partition) -> PartitionState:
    """The state from the cache, if what is cached stands for the very same references."""
    refs = task.refs.get(partition.id, ())
    box = (partition.col0, partition.row0, partition.col1, partition.row1)
    home = (task.store.root, task.grid, partition.id, box)
    with _lock:
        known = _cache.get(home)
        if known is not None and known.refs == refs:
            _cache.move_to_end(home)
            return known
    state = operator.open(partition, refs)
    with _lock:
        # Kept under the references that it was rewritten to: if this attempt is not committed,
        # nobody will ever ask for them.
        _cache[home] = state
        _cache.move_to_end(home)
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
    return state
