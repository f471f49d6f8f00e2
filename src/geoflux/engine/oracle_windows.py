"""The oracle's windows: what ``aggregates/`` must hold, each window computed again from its events.

Deliberately simple: matched events are kept one by one, and a window that closes is computed from
those that lie in it. Times are microseconds since 1970; what is not there yet lies at an infinity.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geoflux.engine.oracle_values import place_of, value_of
from geoflux.operators.aggregates import Aggregate
from geoflux.operators.windows import MOST_EMPTY

Moment = int | float
BEFORE_ALL, AFTER_ALL = -math.inf, math.inf


class Kept(NamedTuple):
    """A matched event: time, id, and its values of the aggregate's columns."""

    time: int
    id: Any
    values: tuple[Any, ...]


class WindowRow(NamedTuple):
    """A row of ``aggregates/``, without its epoch."""

    query_id: str
    window_start: int
    window_end: int
    function: str
    value: float | None
    events: int
    """How many are in the window: the column ``count``."""


@dataclass
class Clock:
    """Which windows are closed: those that end at or before ``floor``.

    ``watermark`` and ``floor`` are fixed when an epoch opens, by the events of earlier ones.
    """

    lateness_micros: int | None = None
    latest: int | None = None
    """The largest event time so far."""
    origin: int | None = None
    """The smallest event time of the first epoch with events."""
    watermark: int | None = None
    closed: Moment = BEFORE_ALL
    """The floor before this epoch was opened."""
    floor: Moment = BEFORE_ALL
    late: int = 0
    """Events of this epoch that lie before the floor."""
    _origin_is_known: bool = False

    def open(self, silence: int = 0) -> None:
        """An epoch begins; the source had been silent for so many microseconds."""
        self._origin_is_known = self.origin is not None
        self.late = 0
        self.closed = self.floor
        self.watermark = None
        if self.lateness_micros is not None and self.latest is not None:
            self.watermark = self.latest - self.lateness_micros + silence
            self.floor = max(self.floor, self.watermark)

    def see(self, times: npt.NDArray[np.int64]) -> None:
        """Events of the epoch that is open."""
        if times.size == 0:
            return
        earliest, latest = int(times.min()), int(times.max())
        if not self._origin_is_known:
            self.origin = earliest if self.origin is None else min(self.origin, earliest)
        self.latest = latest if self.latest is None else max(self.latest, latest)
        self.late += int(np.count_nonzero(times < self.floor))

    def finish(self, rows: Iterable[WindowRow]) -> None:
        """The final epoch is over, and reported these."""
        after = BEFORE_ALL if self.latest is None else self.latest + 1
        self.floor = max(self.floor, after, *(row.window_end for row in rows))


@dataclass
class TimeWindows:
    """A query's windows of time: window k begins k slides after 1970."""

    query_id: str
    aggregate: Aggregate
    valid_from: int | None = None
    valid_until: int | None = None
    since: Moment = BEFORE_ALL
    """The floor at registration."""
    _events: list[Kept] = field(default_factory=list)

    def take(self, events: Iterable[Kept], clock: Clock) -> None:
        """Matched events of the epoch that is open."""
        self._events += [event for event in events if self._last_end(event) > clock.floor]

    def opened(self, clock: Clock) -> list[WindowRow]:
        """An epoch was opened: the windows that its floor closes."""
        if clock.floor == clock.closed:
            return []
        last_start = AFTER_ALL if self.valid_until is None else self.valid_until
        found = self._between((clock.closed, clock.floor), last_start, clock)
        self._events = [event for event in self._events if self._last_end(event) > clock.floor]
        return found

    def rest(self, clock: Clock, last_start: Moment) -> list[WindowRow]:
        """All that are still open; of the empty ones those that begin at ``last_start`` at most."""
        if self.valid_until is not None:
            last_start = min(last_start, self.valid_until)
        found = self._between((clock.floor, AFTER_ALL), last_start, clock)
        self._events = []
        return found

    def _last_end(self, event: Kept) -> int:
        window, slide = self._lengths
        return event.time // slide * slide + window

    @property
    def _lengths(self) -> tuple[int, int]:
        assert self.aggregate.window_micros is not None
        return self.aggregate.window_micros, self.aggregate.slide

    def _between(
        self, ends: tuple[Moment, Moment], last_start: Moment, clock: Clock
    ) -> list[WindowRow]:
        """Windows that end after the one moment and not after the other."""
        window, slide = self._lengths
        first = ends[0] if ends[0] == BEFORE_ALL else (ends[0] - window) // slide + 1
        last = ends[1] if ends[1] == AFTER_ALL else (ends[1] - window) // slide
        numbers: set[int] = set()
        for event in self._events:
            low, high = (event.time - window) // slide + 1, event.time // slide
            numbers.update(range(int(max(first, low)), int(min(last, high)) + 1))
        last = last if math.isinf(last_start) else min(last, last_start // slide)
        numbers.update(self._empty_numbers(first, last, clock))
        events = sorted(self._events, key=_time)
        rows = []
        for start in (number * slide for number in sorted(numbers)):
            low = bisect.bisect_left(events, start, key=_time)
            high = bisect.bisect_left(events, start + window, key=_time)
            extent = (start, start + window)
            rows += _rows(self.query_id, self.aggregate, extent, events[low:high])
        return rows

    def _empty_numbers(self, first: Moment, last: Moment, clock: Clock) -> range:
        """The windows among these that are reported even if nothing is in them."""
        if not self.aggregate.empty or clock.origin is None:
            return range(0)
        window, slide = self._lengths
        since = clock.origin if self.since == BEFORE_ALL else self.since
        if self.valid_from is not None:
            since = max(since, self.valid_from)
        oldest = max(first, (since - window) // slide + 1, last - MOST_EMPTY + 1)
        return range(int(oldest), int(last) + 1)


@dataclass
class CountWindows:
    """A query's windows of so many events, in the order of time, id and values.

    An event takes its place when it is *sealed*: when the floor has passed its time.
    """

    query_id: str
    aggregate: Aggregate
    _open: list[Kept] = field(default_factory=list)
    _sealed: list[Kept] = field(default_factory=list)
    """From the first event of the next window on."""

    def take(self, events: Iterable[Kept], clock: Clock) -> None:
        """Matched events of the epoch that is open."""
        self._open += [event for event in events if event.time >= clock.floor]

    def opened(self, clock: Clock) -> list[WindowRow]:
        """An epoch was opened: the windows whose last event its floor seals."""
        return self._seal(clock.floor)

    def rest(self, clock: Clock, last_start: Moment) -> list[WindowRow]:
        """Seal everything."""
        return self._seal(AFTER_ALL)

    def _seal(self, before: Moment) -> list[WindowRow]:
        self._sealed += sorted((e for e in self._open if e.time < before), key=_order)
        self._open = [event for event in self._open if event.time >= before]
        window, slide = self.aggregate.window_events, self.aggregate.slide
        assert window is not None
        first, rows = 0, []
        while first + window <= len(self._sealed):
            inside = self._sealed[first : first + window]
            extent = (inside[0].time, inside[-1].time)
            rows += _rows(self.query_id, self.aggregate, extent, inside)
            first += slide
        self._sealed = self._sealed[first:]
        return rows


def windows_of(query: dict[str, Any], asked: Aggregate, clock: Clock) -> TimeWindows | CountWindows:
    """The windows of a query that is registered now."""
    if asked.window_events is not None:
        return CountWindows(query["id"], asked)
    return TimeWindows(query["id"], asked, query["valid_from"], query["valid_until"], clock.floor)


def _rows(
    query_id: str, aggregate: Aggregate, extent: tuple[int, int], events: list[Kept]
) -> list[WindowRow]:
    rows = []
    for function in aggregate.functions:
        given: list[Any] = list(events)
        if function.column is not None:
            place = aggregate.columns.index(function.column)
            given = [event.values[place] for event in events]
        value = value_of(function, given)
        rows.append(WindowRow(query_id, *extent, function.text, value, len(events)))
    return rows


def _time(event: Kept) -> int:
    return event.time


def _order(event: Kept) -> tuple[Any, ...]:
    return (event.time, event.id, *(place_of(value) for value in event.values))
