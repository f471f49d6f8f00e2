"""Collecting matches into partial aggregates, in columns.

Every pair (event, query) finds its group: the query and the *pane* of the event's time. A pane is
a stretch of time that no window of the query cuts, so a window is some whole panes, and an event
is counted once however many windows overlap. With a window of w and a slide of s, panes begin at
multiples of s and at w mod s after them ("paired windows", Krishnamurthy et al. 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from geoflux.operators.aggregates import Aggregate, aggregate_of
from geoflux.operators.bags import BagFiller, Coded
from geoflux.operators.clock import BEGINNING, END
from geoflux.operators.events import Events
from geoflux.operators.measures import Mask, Measure, Values
from geoflux.operators.partials import Longs, Partials, bag_name
from geoflux.operators.runs import Runs, by_rank
from geoflux.spatial.space import IntArray

_EXTREMES, _SUMS, _SQUARES = 0, 1, 2
_WANTS = {"min": _EXTREMES, "max": _EXTREMES, "sum": _SUMS, "avg": _SUMS,
          "stddev": _SQUARES, "stddev_pop": _SQUARES}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """Queries that aggregate, by *rank*: the number of each, and which of ``specs`` it asks."""

    numbers: Longs
    spec: IntArray
    specs: tuple[Aggregate, ...]

    def __len__(self) -> int:
        return int(self.numbers.size)

    @cached_property
    def windows(self) -> tuple[Longs, Longs]:
        """Window and slide in microseconds of each rank; a window of events has 0."""
        sizes = [(a.window_micros or 0, a.slide if a.window_micros else 0) for a in self.specs]
        both = np.array(sizes, np.int64).reshape(-1, 2)[self.spec]
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    @cached_property
    def measured(self) -> dict[str, tuple[int, Mask]]:
        """Columns to measure: what for (0 extremes, 1 sums, 2 squares), and which ranks ask."""
        wants: dict[str, int] = {}
        for aggregate in self.specs:
            for f in aggregate.functions:
                if f.kind in _WANTS and f.column is not None:
                    wants[f.column] = max(wants.get(f.column, 0), _WANTS[f.kind])
        return {column: (level, self._asking(column, _WANTS)) for column, level in wants.items()}

    @cached_property
    def bagged(self) -> dict[str, tuple[str, str, Mask]]:
        """Bags to fill: the kind and column of each, and which ranks ask."""
        found = {}
        for kinds in (("distinct",), ("median", "quantile")):
            for aggregate in self.specs:
                for f in aggregate.functions:
                    if f.kind in kinds and f.column is not None:
                        name = bag_name(f.kind, f.column)
                        found[name] = (kinds[0], f.column, self._asking(f.column, kinds))
        return found

    def _asking(self, column: str, kinds: Any) -> Mask:
        asks = [
            any(f.kind in kinds and f.column == column for f in aggregate.functions)
            for aggregate in self.specs
        ]
        found: Mask = np.array(asks, np.bool_)[self.spec]
        return found


class Collector:
    """Takes in the matches of one batch of events, piece by piece.

    Pairs whose windows are all closed are counted as ``late`` and left out. Pairs of queries with
    windows of events are only kept (``pending``), unless they are late.
    """

    def __init__(self, asked: Asked, events: Events, floor: int) -> None:
        self._asked = asked
        self._events = events
        self._floor = floor
        self._span = int(events.time.min(initial=END)), int(events.time.max(initial=BEGINNING))
        self._groups = _Groups(len(asked))
        self._values = {
            column: Values.of(events.columns[column], wants)
            for column, (wants, _) in asked.measured.items()
        }
        self._measures = {c: Measure.ready_for(0, v) for c, v in self._values.items()}
        self._bags = {
            name: BagFiller(_coded(kind, events.columns[column]), asks, kind != "distinct")
            for name, (kind, column, asks) in asked.bagged.items()
        }
        self._pending: list[tuple[IntArray, IntArray]] = []
        self.late = 0

    def add(self, event: IntArray, rank: IntArray) -> None:
        """Matches: rows of the events, ranks of the queries."""
        ordered, ranks, offsets = by_rank(event, rank, len(self._asked))
        runs, late, waiting = self._groups.assigned(
            (ordered, ranks, offsets, self._events.time), self._span, self._asked.windows,
            self._floor,
        )  # fmt: skip
        self.late += late
        for column, values in self._values.items():
            measure = self._measures[column]
            if measure.n.size < self._groups.room:
                measure = self._measures[column] = measure.grown(self._groups.room)
            measure.add(runs, self._asked.measured[column][1], values)
        for filler in self._bags.values():
            filler.add(runs)
        if waiting[0].size:
            self._pending.append(waiting)

    def partials(self) -> Partials:
        """What the matches came to; every key once, in no order."""
        groups = self._groups.used
        if groups == 0:
            return Partials.none()
        ranks, panes, counts = self._groups.columns
        return Partials(
            self._asked.numbers[ranks[:groups]], panes[:groups], counts[:groups],
            {c: m.grown(groups) if m.n.size < groups else m.taken(slice(0, groups))
             for c, m in self._measures.items()},
            {name: filler.bag(groups) for name, filler in self._bags.items()},
        )  # fmt: skip

    def pending(self) -> tuple[IntArray, Longs]:
        """Matches of queries with windows of events: rows of the events, numbers of queries."""
        if not self._pending:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        event = np.concatenate([e for e, _ in self._pending])
        return event, self._asked.numbers[np.concatenate([r for _, r in self._pending])]


def collected(
    aggregate: Aggregate, key: Longs, group: IntArray, columns: dict[str, pa.Array]
) -> Partials:
    """Partials of one aggregate over rows whose groups are known: row ``i`` belongs to group
    ``group[i]``, whose key is ``key[group[i]]``. The number of every group is 0."""
    asked = Asked(np.zeros(1, np.int64), np.zeros(1, np.int32), (aggregate,))
    runs = Runs.of_groups(group, key.size)
    count = np.bincount(group, minlength=key.size).astype(np.int64)
    measures = {}
    for column, (wants, asks) in asked.measured.items():
        values = Values.of(columns[column], wants)
        measures[column] = Measure.ready_for(key.size, values)
        measures[column].add(runs, asks, values)
    found = {}
    for name, (kind, column, asks) in asked.bagged.items():
        filler = BagFiller(_coded(kind, columns[column]), asks, kind != "distinct")
        filler.add(runs)
        found[name] = filler.bag(key.size)
    return Partials(np.zeros(key.size, np.int64), key, count, measures, found)


def _coded(kind: str, column: pa.Array) -> Coded:
    return Coded.things(column) if kind == "distinct" else Coded.numbers(column)


class _Groups:
    """The groups seen so far: a hash table of (rank, pane)."""

    def __init__(self, ranks: int) -> None:
        self.room = max(1024, 2 * ranks)
        self.used = 0
        self.columns = self._columns(self.room)
        self._table = np.full(4 * _power(self.room), -1, np.int32)

    @staticmethod
    def _columns(room: int) -> tuple[IntArray, Longs, Longs]:
        return np.empty(room, np.int32), np.empty(room, np.int64), np.zeros(room, np.int64)

    def assigned(
        self, matches: tuple[IntArray, IntArray, IntArray, Longs], span: tuple[int, int],
        windows: tuple[Longs, Longs], floor: int,
    ) -> tuple[Runs, int, tuple[IntArray, IntArray]]:  # fmt: skip
        """Matches rank by rank, cut into runs of one group each; how many came too late; and the
        events and ranks of those that belong to windows of events. ``span`` are the earliest and
        the latest time of the events."""
        event, ranks, _, _ = matches
        runs = tuple(np.empty(event.size, np.int32) for _ in range(4))
        waiting = np.empty(event.size, np.int32), np.empty(event.size, np.int32)
        at = (0, 0, 0, 0)  # ranks done, runs, late, waiting
        while True:
            at, self.used = _assign(
                matches, span, windows, floor, self.columns, self._table, (self.used, *at), runs,
                waiting,
            )  # fmt: skip
            if at[0] == ranks.size:
                rank, group, start, stop = (part[: at[1]] for part in runs)
                late = (waiting[0][: at[3]], waiting[1][: at[3]])
                return Runs(event, rank, group, start, stop), at[2], late
            self._grow()

    def _grow(self) -> None:
        self.room *= 2
        larger = self._columns(self.room)
        for place in range(3):
            larger[place][: self.used] = self.columns[place][: self.used]
        self.columns = larger
        self._table = np.full(4 * _power(self.room), -1, np.int32)
        _rehash(self.columns, self.used, self._table)


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


@numba.njit(cache=True, inline="always")
def _place(rank: Any, pane: Any, mask: Any) -> Any:
    mixed = np.uint64(pane) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(rank)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(20)) & mask


@numba.njit(cache=True)
def _rehash(columns: Any, used: int, table: Any) -> None:
    ranks, panes, _ = columns
    mask = table.size - 1
    for g in range(used):
        place = _place(ranks[g], panes[g], mask)
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = g


@numba.njit(cache=True)
def _assign(
    matches: Any, span: Any, windows: Any, floor: int, columns: Any, table: Any, at: Any,
    runs: Any, waiting: Any,
) -> Any:  # fmt: skip
    """From the rank at ``at`` on, until all are done or there is no room for another group; a
    rank that could not be finished is begun again."""
    event, of, offsets, time = matches
    window, slide = windows
    ranks, panes, counts = columns
    run_rank, run_group, run_start, run_stop = runs
    used, begun, done, late, waits = at
    mask = table.size - 1
    earliest, latest = span
    for k in range(begun, of.size):
        r = of[k]
        s = slide[r]
        begin, end = offsets[k], offsets[k + 1]
        if s == 0:  # a window of events
            for i in range(begin, end):
                if time[event[i]] < floor:
                    late += 1
                else:
                    waiting[0][waits] = event[i]
                    waiting[1][waits] = r
                    waits += 1
            continue
        cut = window[r] % s
        run, lost = done, late
        while begin < end:
            t = time[event[begin]]
            low = (t // s) * s  # of the pane, and where it ends
            high = low + s
            lives = low + window[r] > floor
            if cut > 0:
                if t - low >= cut:
                    low += cut
                else:
                    high = low + cut
            g = np.int32(-1)
            if lives:
                place = _place(r, low, mask)
                while table[place] >= 0 and not (
                    ranks[table[place]] == r and panes[table[place]] == low
                ):
                    place = (place + 1) & mask
                g = table[place]
                if g < 0:
                    if used == ranks.size:
                        return (k, done, late, waits), used
                    g = np.int32(used)
                    table[place] = g
                    ranks[g] = r
                    panes[g] = low
                    used += 1
            i = end if low <= earliest and latest < high else begin + 1
            while i < end and low <= time[event[i]] < high:
                i += 1
            if g < 0:
                lost += i - begin
            else:
                run_rank[run], run_group[run] = r, g
                run_start[run], run_stop[run] = begin, i
                run += 1
            begin = i
        for j in range(done, run):
            counts[run_group[j]] += run_stop[j] - run_start[j]
        done, late = run, lost
    return (of.size, done, late, waits), used


def asked_of(numbers: Longs, texts: pa.ChunkedArray) -> Asked:
    """Queries by number with the canonical texts of what they ask."""
    encoded = texts.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    specs = tuple(aggregate_of(text) for text in encoded.dictionary.to_pylist())
    return Asked(numbers, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), specs)
