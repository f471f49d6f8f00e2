"""Windows of time: which close now, and what they hold.

A window k of a query is [k slide, k slide + window), in microseconds since 1970. It closes in the
first epoch whose floor has reached its end, before that epoch's events are taken in: what it holds
does not depend on partitions, slots or the order of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.aggregates import Aggregate
from geoflux.operators.clock import BEGINNING, END
from geoflux.operators.collecting import Asked
from geoflux.operators.evaluate import RESULT_SCHEMA, results
from geoflux.operators.partials import Longs, Partials, offsets_of, regrouped

MOST_EMPTY = 10_000
"""Windows without events in a row that are told of a query in one epoch."""
_ROOM = 1 << 22
"""Windows that panes are spread over at a time."""


@dataclass(frozen=True)
class Homed:
    """Queries whose windows are put together in one place, ordered by number.

    Of each the windows close now whose end lies in (``after``, ``upto``]. ``reports_from`` and
    ``reports_to`` bound the windows without events that are reported: their end lies above the
    one, their start not above the other. What ends at or before ``floor`` is needed by nobody;
    ``opened`` is the floor that the epoch was opened with.
    """

    asked: Asked
    ids: pa.Array
    after: Longs
    upto: Longs
    reports_from: Longs
    reports_to: Longs
    floor: int
    opened: int

    def closes(self) -> bool:
        """Whether any window of any of them can close now."""
        window, slide = self.asked.windows
        timed = slide > 0
        if not timed.any():
            return False
        s = np.where(timed, slide, 1)
        first, last = (self.after - window) // s, (self.upto - window) // s
        return bool((timed & (last > first)).any())

    def seals(self) -> bool:
        """Whether more events of a window of events are sealed now."""
        if all(a.window_events is None for a in self.asked.specs):
            return False
        return bool((self.upto > self.after).any())


def last_end(asked: Asked, rank: npt.NDArray[np.int64], pane: Longs) -> Longs:
    """The end of the last window that a pane lies in."""
    window, slide = (part[rank] for part in asked.windows)
    return (pane // np.maximum(slide, 1)) * slide + window


def closed(homed: Homed, parts: Sequence[Partials], ranks: Sequence[Longs]) -> pa.Table:
    """The results of all windows that close now; ``ranks`` tells the query of each group."""
    none = np.empty(0, np.int64)
    rank = np.concatenate([none, *ranks])
    pane = np.concatenate([none, *(part.key for part in parts)])
    window, slide = (part[rank] for part in homed.asked.windows)
    # The windows of a pane begin at multiples of the slide in (pane - window, pane].
    newest = (pane // slide) * slide
    oldest = ((pane - window) // slide + 1) * slide
    oldest = np.maximum(oldest, ((homed.after[rank] - window) // slide + 1) * slide)
    newest = np.minimum(newest, ((homed.upto[rank] - window) // slide) * slide)
    copies = np.maximum((newest - oldest) // np.maximum(slide, 1) + 1, 0)
    begins = offsets_of([len(part) for part in parts])
    tables, numbers, keys = [], [], []
    for groups in _blocks(rank, copies):
        rows = np.repeat(groups, copies[groups])
        before = np.cumsum(copies[groups]) - copies[groups]
        nth = np.arange(rows.size) - np.repeat(before, copies[groups])
        ends = oldest[rows] + nth * slide[rows] + window[rows]
        cuts = np.searchsorted(rows, begins)  # groups ascend
        of_parts = [rows[cuts[k] : cuts[k + 1]] - begins[k] for k in range(len(parts))]
        whole = regrouped(parts, of_parts, homed.asked.numbers[rank[rows]], ends)
        tables += _told(homed, whole)
        numbers.append(whole.number)
        keys.append(whole.key)
    if any(aggregate.empty for aggregate in homed.asked.specs):
        tables += _empty(homed, np.concatenate(numbers), np.concatenate(keys))
    return pa.concat_tables(tables) if tables else RESULT_SCHEMA.empty_table()


def _blocks(rank: Any, copies: Any) -> list[npt.NDArray[np.int64]]:
    """Groups in blocks that spread over so many windows, all groups of a query in one; those of a
    block ascend."""
    if int(copies.sum()) <= _ROOM:
        return [np.arange(rank.size)]
    order = np.argsort(rank, kind="stable")
    ends = np.cumsum(copies[order])
    starts = np.flatnonzero(np.diff(rank[order], prepend=-1))  # of queries
    block = np.concatenate(([0], ends))[starts] // _ROOM
    cuts = starts[np.flatnonzero(np.diff(block)) + 1]
    return [np.sort(block) for block in np.split(order, cuts)]


def _told(homed: Homed, whole: Partials) -> list[pa.Table]:
    """The rows of windows that hold events: groups with the windows' ends as keys."""
    spec = homed.asked.spec[np.searchsorted(homed.asked.numbers, whole.number)]
    tables = []
    for code, aggregate in enumerate(homed.asked.specs):
        rows = np.flatnonzero(spec == code)
        if rows.size and aggregate.window_micros is not None:
            ends = whole.key[rows]
            tables.append(results(aggregate, whole, rows, (ends - aggregate.window_micros, ends)))
    return tables


def _empty(homed: Homed, numbers: Longs, ends: Longs) -> list[pa.Table]:
    """The windows without events of the queries that ask for these too; ``numbers`` (ascending)
    and ``ends`` are those with events. Of a long stretch only the newest are told: one event with
    a wrong time must not make millions of rows."""
    tables = []
    for rank, aggregate in enumerate(homed.asked.specs[code] for code in homed.asked.spec):
        if not aggregate.empty or aggregate.window_micros is None:
            continue
        window, number = aggregate.window_micros, homed.asked.numbers[rank]
        after = max(int(homed.after[rank]), int(homed.reports_from[rank]))
        upto = min(int(homed.upto[rank]), int(homed.reports_to[rank]) + window)
        first, last = np.searchsorted(numbers, number), np.searchsorted(numbers, number, "right")
        for low, high in ((after, min(upto, homed.opened)), (max(after, homed.opened), upto)):
            if low <= BEGINNING or high >= END or high <= low:
                continue
            newest = (high - window) // aggregate.slide
            oldest = max((low - window) // aggregate.slide + 1, newest - MOST_EMPTY + 1)
            starts = np.arange(oldest, newest + 1, dtype=np.int64) * aggregate.slide
            starts = starts[~np.isin(starts + window, ends[first:last])]
            if starts.size:
                tables.append(_nothing(aggregate, int(number), starts, starts + window))
    return tables


def _nothing(aggregate: Aggregate, number: int, starts: Longs, ends: Longs) -> pa.Table:
    none = Partials(np.full(starts.size, number, np.int64), ends, np.zeros(starts.size, np.int64))
    return results(aggregate, none, np.arange(starts.size), (starts, ends))
