"""Windows of time: which close now, and what they hold.

A window k of a query is [k slide, k slide + window), in microseconds since 1970. It closes in the
first epoch whose floor has reached its end, before that epoch's events are taken in: what it holds
does not depend on partitions, slots or the order of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.aggregates import Aggregate
from geoflux.operators.clock import BEGINNING, END
from geoflux.operators.collecting import Asked
from geoflux.operators.evaluate import RESULT_SCHEMA, results
from geoflux.operators.partials import Longs, Partials


@dataclass(frozen=True)
class Homed:
    """Queries whose windows are put together in one place, ordered by number.

    Of each the windows close now whose end lies in (``after``, ``upto``]. ``reports_from`` and
    ``reports_to`` bound the windows without events that are reported: their end lies above the
    one, their start not above the other. What ends at or before ``floor`` is needed by nobody.
    """

    asked: Asked
    ids: pa.Array
    after: Longs
    upto: Longs
    reports_from: Longs
    reports_to: Longs
    floor: int

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


def closed(homed: Homed, partials: Partials, rank: npt.NDArray[np.int64]) -> pa.Table:
    """The results of all windows that close now; ``rank`` tells the query of each group."""
    window, slide = (part[rank] for part in homed.asked.windows)
    pane = partials.key
    # The windows of a pane begin at multiples of the slide in (pane - window, pane].
    newest = (pane // slide) * slide
    oldest = ((pane - window) // slide + 1) * slide
    oldest = np.maximum(oldest, ((homed.after[rank] - window) // slide + 1) * slide)
    newest = np.minimum(newest, ((homed.upto[rank] - window) // slide) * slide)
    copies = np.maximum((newest - oldest) // np.maximum(slide, 1) + 1, 0)
    rows = np.repeat(np.arange(len(partials)), copies)
    nth = np.arange(rows.size) - np.repeat(np.cumsum(copies) - copies, copies)
    ends = oldest[rows] + nth * slide[rows] + window[rows]
    whole = partials.regrouped(rows, partials.number[rows], ends)
    return told(homed, whole)


def told(homed: Homed, whole: Partials) -> pa.Table:
    """The rows of windows (groups with their ends as keys), and of empty ones where asked for."""
    rank = np.searchsorted(homed.asked.numbers, whole.number)
    spec = homed.asked.spec[rank]
    tables = []
    for code, aggregate in enumerate(homed.asked.specs):
        if aggregate.window_micros is None:
            continue
        rows = np.flatnonzero(spec == code)
        if rows.size:
            ends = whole.key[rows]
            tables.append(results(aggregate, whole, rows, (ends - aggregate.window_micros, ends)))
        if aggregate.empty:
            tables += _empty(homed, code, aggregate, whole)
    return pa.concat_tables(tables) if tables else RESULT_SCHEMA.empty_table()


def _empty(homed: Homed, code: int, aggregate: Aggregate, whole: Partials) -> list[pa.Table]:
    """The windows without events of the queries that ask for these too."""
    window, slide = aggregate.window_micros, aggregate.slide
    assert window is not None
    tables = []
    for rank in np.flatnonzero(homed.asked.spec == code):
        after = max(int(homed.after[rank]), int(homed.reports_from[rank]))
        upto = min(int(homed.upto[rank]), int(homed.reports_to[rank]) + window)
        if after <= BEGINNING or upto >= END or upto <= after:
            continue
        first = ((after - window) // slide + 1) * slide
        starts = np.arange(first, upto - window + 1, slide, dtype=np.int64)
        number = homed.asked.numbers[rank]
        there = whole.key[np.searchsorted(whole.number, number) :
                          np.searchsorted(whole.number, number, "right")]  # fmt: skip
        starts = starts[~np.isin(starts + window, there)]
        if starts.size:
            nothing = Partials(
                np.full(starts.size, number, np.int64), starts + window,
                np.zeros(starts.size, np.int64),
            )  # fmt: skip
            rows = np.arange(starts.size)
            tables.append(results(aggregate, nothing, rows, (starts, starts + window)))
    return tables
