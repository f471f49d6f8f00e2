"""How much of each time bin a scope covers, in whole seconds, so that "wholly" is exact.

Every time bin is a comb: the same stretch of the day (``offset`` and ``length`` in seconds) on
``days`` days in a row from ``day`` on. A minute or an hour is a comb of one day; a week, month or
year that keeps the hour of day has one tooth per day. What a scope covers of a comb has a closed
form, so a year costs no more than a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sketch import times
from geoflux.sketch.ranges import ALWAYS, Span

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
DAY = 86_400
HOUR = 3_600


@dataclass(frozen=True, eq=False, slots=True)
class Combs:
    """Time bins as combs, one entry each; days and seconds since 1970 UTC."""

    day: Ints
    days: Ints
    offset: Ints
    length: Ints

    @property
    def start(self) -> Ints:
        """The first second of each."""
        return self.day * DAY + self.offset

    @property
    def end(self) -> Ints:
        """The first second after the last tooth of each."""
        return (self.day + self.days - 1) * DAY + self.offset + self.length


def combs_of(time: Ints) -> Combs:
    """Packed time bins (``start * 8 + level``) as combs.

    >>> int(combs_of(np.array([7 * 86400 * 8 + 2])).days[0])  # the second week of January 1970
    7
    """
    start = times.starts(time)
    length = np.where(times.levels(time) == times.MINUTE, 60, HOUR)
    day = start // DAY
    return Combs(day, times.seconds_of(time) // length, start - day * DAY, length)


@numba.njit(cache=True)
def _before(t: int, day: int, days: int, first: int, size: int) -> int:
    """Seconds of the comb's teeth ``first`` to ``first + size`` that lie before ``t``."""
    at = t // 86_400
    if at < day:
        return 0
    if at >= day + days:
        return days * size
    return (at - day) * size + min(max(t - at * 86_400 - first, 0), size)


@numba.njit(cache=True)
def covered_seconds(day: Any, days: Any, offset: Any, length: Any, spans: Any, hours: Any) -> Any:
    """Seconds of each comb inside the spans (disjoint) and the hours of day (24 flags)."""
    found = np.zeros(day.size, np.int64)
    for i in range(day.size):
        for hour in range(offset[i] // 3_600, (offset[i] + length[i] - 1) // 3_600 + 1):
            if not hours[hour % 24]:
                continue
            first = max(offset[i], hour * 3_600)
            size = min(offset[i] + length[i], (hour + 1) * 3_600) - first
            for s in range(spans.shape[0]):
                upto = _before(spans[s, 1], day[i], days[i], first, size)
                found[i] += upto - _before(spans[s, 0], day[i], days[i], first, size)
    return found


def spans_array(spans: tuple[Span, ...] | None) -> Ints:
    """Stretches of time as an array of starts and ends; nothing given is always."""
    return np.array([list(s) for s in spans or (ALWAYS,)], np.int64).reshape(-1, 2)


def hours_array(hours: frozenset[int] | None) -> npt.NDArray[np.bool_]:
    """24 flags, one per hour of the day."""
    flags = np.full(24, hours is None)
    if hours is not None:
        flags[list(hours)] = True
    return flags


UNITS = ("minute", "hour", "day", "week", "month", "year")
MAX_UNITS = 1_000_000


def unit_starts(unit: str, first: int, last: int) -> Ints:
    """Starts of the units from the one that holds ``first`` to the end of the one that holds
    ``last``; one more than there are units, so that neighbours are start and end.

    >>> unit_starts("day", 5, 86400).tolist()
    [0, 86400, 172800]
    """
    if unit in ("minute", "hour", "day"):
        size = {"minute": 60, "hour": HOUR, "day": DAY}[unit]
        return np.arange(first // size, last // size + 2, dtype=np.int64) * size
    code = "datetime64[Y]" if unit == "year" else "datetime64[M]"
    ends = np.array([first // DAY, last // DAY]).astype("datetime64[D]").astype(code)
    periods = np.arange(ends[0], ends[1] + 2)
    days = periods.astype("datetime64[D]").astype(np.int64)
    if unit == "week":
        weeks = (days[:-1, None] + 7 * np.arange(5)).ravel()
        # February of most years has no fifth week: its start would be the next month's.
        days = np.unique(np.append(weeks, days[-1]))
        days = days[np.searchsorted(days, first // DAY, "right") - 1 :]
        days = days[: np.searchsorted(days, last // DAY, "right") + 1]
    return days * DAY


@numba.njit(cache=True)
def shares_by_unit(
    day: Any, days: Any, offset: Any, length: Any, spans: Any, hours: Any, starts: Any
) -> Any:
    """What each unit ``starts[j]`` to ``starts[j + 1]`` has of each comb: rows of comb, unit,
    covered seconds of the comb in it. Units without a covered second are left out."""
    combs: list[int] = []
    units: list[int] = []
    seconds: list[int] = []
    cut = np.empty((spans.shape[0], 2), np.int64)
    for i in range(day.size):
        begin = day[i] * 86_400 + offset[i]
        end = (day[i] + days[i] - 1) * 86_400 + offset[i] + length[i]
        at = max(np.searchsorted(starts, begin, side="right") - 1, 0)
        while at < starts.size - 1 and starts[at] < end:
            for s in range(spans.shape[0]):
                cut[s, 0] = max(spans[s, 0], starts[at])
                cut[s, 1] = max(min(spans[s, 1], starts[at + 1]), cut[s, 0])
            one = slice(i, i + 1)
            got = covered_seconds(day[one], days[one], offset[one], length[one], cut, hours)[0]
            if got > 0:
                combs.append(i)
                units.append(at)
                seconds.append(got)
            at += 1
    found = np.empty((len(combs), 3), np.int64)
    for k in range(len(combs)):
        found[k, 0], found[k, 1], found[k, 2] = combs[k], units[k], seconds[k]
    return found
