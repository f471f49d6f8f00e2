"""The windows of one slot in one epoch: close what is due, then collect what came.

Nothing here knows of other slots: what concerns a query at home elsewhere is addressed there, and
read in a later epoch.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoflux.engine.staging import staged_name
from geoflux.engine.task import EpochTask
from geoflux.operators.asking import homed, homes_of
from geoflux.operators.collecting import Collector
from geoflux.operators.count_windows import NUMBER, pending_rows
from geoflux.operators.deltas import read_ended
from geoflux.operators.events import Events
from geoflux.operators.pubsub import PartitionState
from geoflux.operators.queries import no_queries
from geoflux.operators.window_state import (
    Homes,
    HomeState,
    Kept,
    is_settled,
    no_rows,
    write_windows,
)
from geoflux.operators.windows import Homed
from geoflux.plan.plan import Partition
from geoflux.state.segments import unique_name

_CACHED = 64
_cache: OrderedDict[tuple[Any, ...], tuple[int, HomeState]] = OrderedDict()
_lock = threading.Lock()

_INSTANT = pa.timestamp("us", tz="UTC")
AGGREGATE_SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("window_start", _INSTANT),
        ("window_end", _INSTANT),
        ("function", pa.string()),
        ("value", pa.float64()),
        ("count", pa.int64()),
        ("epoch", pa.int64()),
    ]
)


@dataclass
class WindowReport:
    """What the slot did about windows; a part of its report."""

    files: list[str] = field(default_factory=list)
    rows: int = 0
    late: int = 0
    closed_until: int | None = None
    refs: dict[str, list[list[Any]]] = field(default_factory=dict)
    """Partitions (as text) whose references changed."""
    sent: list[list[Any]] = field(default_factory=list)
    """References that were written for homes, each [kind, segment, partition]."""


class SlotWindows:
    """Made once per slot and epoch; :meth:`finish` writes what was collected."""

    def __init__(self, task: EpochTask, slot: int) -> None:
        self._task = task
        self._slot = slot
        self._results: list[pa.Table] = []
        self._for_homes: dict[int, list[Kept]] = {}
        self._homes = Homes(task.store)
        self.report = WindowReport()
        ended = no_queries() if task.delta is None else read_ended(task.store, task.delta)
        self._ended = ended
        self._ended_homes = homes_of(ended, task.grid, task.plan)

    def close(self, partition: Partition, state: PartitionState) -> None:
        """Close the windows that are due of the queries at home in a partition."""
        task = self._task
        refs = task.windows.get(partition.id, ())
        ends = self._ended_homes == partition.id
        due = ends.any() or state.asking.has_due(task.clock) or (refs and not len(state.asking))
        if not due and is_settled(partition.id, refs):
            return
        here = state.asking.homes(task.grid, task.plan) == partition.id
        live = state.asking.rows
        live = live if here.all() else live.filter(pa.array(here))
        ended = self._ended.filter(pa.array(ends))
        if not (len(live) or len(ended)):
            if refs:  # of queries that are gone
                self.report.refs[str(partition.id)] = []
            return
        queries = homed(live, ended, task.clock)
        place = (task.store.root, partition.id)
        closing = self._homes.close(partition.id, queries, refs, _known(place, task.epoch))
        _remember(place, task.epoch, closing.known)
        if closing.refs != refs:
            self.report.refs[str(partition.id)] = [ref.plain() for ref in closing.refs]
        for table in closing.results:
            self._tell(queries, table)

    def collector(self, state: PartitionState, events: Events) -> Collector | None:
        """Who collects the matches of a batch, where any query of the partition aggregates."""
        if not len(state.asking):
            return None
        return Collector(state.asking.asked, events, self._task.clock.floor)

    def take(self, state: PartitionState, events: Events, collector: Collector) -> None:
        """Address what was collected to the homes of its queries."""
        task, asking = self._task, state.asking
        self.report.late += collector.late
        partials = collector.partials()
        rows = no_rows()
        event, numbers = collector.pending()
        if event.size:
            rows = pending_rows(asking.asked, events, event, numbers)
        homes = asking.homes(task.grid, task.plan)
        of_groups = homes[np.searchsorted(asking.asked.numbers, partials.number)]
        of_rows = homes[np.searchsorted(asking.asked.numbers, rows.column(NUMBER).to_numpy())]
        for home in np.union1d(of_groups, of_rows):
            mine = of_groups == home
            some = partials if mine.all() else partials.taken(np.flatnonzero(mine)).pruned()
            theirs = rows.filter(pa.array(of_rows == home)) if len(rows) else rows
            self._for_homes.setdefault(int(home), []).append(Kept(some, theirs))

    def finish(self) -> WindowReport:
        """Write what is for homes as one segment, and the results as one staged file."""
        store, report = self._task.store, self.report
        if self._for_homes:
            name = unique_name("state", f"windows-s{self._slot}")
            homes = sorted(self._for_homes)
            write_windows(store, name, [(h, kept) for h in homes for kept in self._for_homes[h]])
            report.sent = [["windows", name, home] for home in homes]
        if self._results:
            name = staged_name("aggregates", self._task.epoch, self._slot)
            with store.output(name) as stream:
                pq.write_table(
                    pa.concat_tables(self._results), stream, compression=self._task.compression
                )
            report.files = [name]
        return report

    def _tell(self, queries: Homed, table: pa.Table) -> None:
        rank = np.searchsorted(queries.asked.numbers, table.column("number").to_numpy())
        last = pc.max(table.column("window_end")).as_py()
        known = self.report.closed_until
        self.report.closed_until = last if known is None else max(known, last)
        self.report.rows += len(table)
        columns = [
            queries.ids.take(pa.array(rank)),
            table.column("window_start").cast(_INSTANT),
            table.column("window_end").cast(_INSTANT),
            *(table.column(name) for name in ("function", "value", "count")),
            pa.array(np.full(len(table), self._task.epoch, np.int64)),
        ]
        self._results.append(pa.Table.from_arrays(columns, schema=AGGREGATE_SCHEMA))


def _known(place: tuple[Any, ...], epoch: int) -> HomeState:
    """What was merged in an earlier epoch; another attempt at this one has to begin where the
    first one began."""
    with _lock:
        when, state = _cache.get(place, (epoch, HomeState()))
    return state if when < epoch else HomeState()


def _remember(place: tuple[Any, ...], epoch: int, state: HomeState) -> None:
    """What is remembered is told by its references: whoever has others reads them."""
    with _lock:
        _cache[place] = epoch, state
        _cache.move_to_end(place)
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
