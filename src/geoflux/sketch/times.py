"""Time bins: how they are packed into one integer, how they fold, what a query covers of them.

A bin is ``start_seconds * 8 + level``. A minute and an hour are one stretch of time. A week, month
or year keeps the hour of day: its bin is one hour of every day of the period, and its start is
that hour of the first day. Weeks are the stretches of seven days of a month (days 1, 8, 15, 22 and
29 begin one), so that they nest in months, months in years, and folding loses nothing but time.
All times are UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.errors import ConfigError

Keys = npt.NDArray[np.int64]

MINUTE, HOUR, WEEK, MONTH, YEAR = range(5)
LEVELS = ("minute", "hour", "week", "month", "year")
DAY_SECONDS = 86400


@dataclass(frozen=True)
class Ages:
    """How old bins of a level get before they go to the next one, in seconds."""

    minute: int = 2 * 3600
    hour: int = 14 * DAY_SECONDS
    week: int = 92 * DAY_SECONDS
    month: int = 731 * DAY_SECONDS

    def __post_init__(self) -> None:
        problems = [
            f"bins of a {name} get 0 or more seconds old, not {value}"
            for name, value in zip(LEVELS, self.of_levels, strict=False)
            if value < 0
        ]
        if problems:
            raise ConfigError.of(problems)

    @property
    def of_levels(self) -> tuple[int, int, int, int]:
        """By level, from the finest."""
        return self.minute, self.hour, self.week, self.month


def packed(start: Keys, level: int) -> Keys:
    """The bins of a level that begin at these seconds (which must be the start of one)."""
    return (np.asarray(start, np.int64) << 3) | level


def starts(keys: Keys) -> Keys:
    """The first second of every bin."""
    return np.asarray(keys, np.int64) >> 3


def levels(keys: Keys) -> Keys:
    """The level of every bin, 0 (minute) to 4 (year)."""
    return np.asarray(keys, np.int64) & 7


def keys_of(seconds: Keys, level: int) -> Keys:
    """The bin of a level in which each moment lies.

    >>> starts(keys_of(np.array([3725]), MINUTE)).tolist()
    [3720]
    """
    seconds = np.asarray(seconds, np.int64)
    if level == MINUTE:
        return (seconds - seconds % 60) << 3
    hours = ((seconds - seconds % 3600) << 3) | HOUR
    return hours if level == HOUR else folded(hours, level)


def folded(keys: Keys, level: int) -> Keys:
    """The bin of a coarser level that contains each bin; coarser ones stay as they are."""
    return _folded(np.atleast_1d(np.asarray(keys, np.int64)), level)


def spans(keys: Keys) -> tuple[Keys, Keys]:
    """First second of every bin and the end of its last stretch."""
    first, days, low, high = _windows(np.atleast_1d(np.asarray(keys, np.int64)))
    return first * DAY_SECONDS + low, (first + days - 1) * DAY_SECONDS + high


def seconds_of(keys: Keys) -> Keys:
    """How many seconds every bin has."""
    _, days, low, high = _windows(np.atleast_1d(np.asarray(keys, np.int64)))
    return days * (high - low)


def stretches(keys: Keys) -> tuple[Keys, Keys, Keys]:
    """All stretches of time of all bins: the bin's row, the start, the end (excluded)."""
    first, days, low, high = _windows(np.atleast_1d(np.asarray(keys, np.int64)))
    row = np.repeat(np.arange(days.size), days)
    day = np.arange(row.size) - np.repeat(np.cumsum(days) - days, days) + first[row]
    return row, day * DAY_SECONDS + low[row], day * DAY_SECONDS + high[row]


def coverage(
    keys: Keys,
    times: Sequence[tuple[float, float]] | None,
    hours: tuple[float, float] | None = None,
) -> npt.NDArray[np.float64]:
    """The share of the seconds of every bin that lie in one of ``times`` and in ``hours`` of day.

    ``times`` are stretches [from, to) of seconds, ``hours`` is [from, to) in hours, over midnight
    where ``from > to``; None is no limit. Exactly 1.0 for bins that are covered in full and
    exactly 0.0 for such as are not touched; observations are made at whole seconds.

    >>> coverage(keys_of(np.array([0, 3600, 7200]), HOUR), [(1800, 7200)]).tolist()
    [0.5, 1.0, 0.0]
    >>> coverage(keys_of(np.array([14 * 3600]), MONTH), None, (14, 14.25)).tolist()
    [0.25]
    """
    given = np.asarray(keys, np.int64)
    if times is None:
        limits = np.array([[-(1 << 59), 1 << 59]])
    else:
        limits = _disjoint(times)
    windows = np.array([[0, DAY_SECONDS]] if hours is None else _windows_of_day(*hours), np.int64)
    return _coverage(np.atleast_1d(given), limits, windows).reshape(given.shape)


def _windows_of_day(start: float, end: float) -> list[list[int]]:
    if not (0 <= start <= 24 and 0 <= end <= 24):
        raise ValueError(f"hours of the day are from 0 to 24, not {start} to {end}")
    low, high = ceil(start * 3600), ceil(end * 3600)
    return [[low, high]] if start <= end else [[low, DAY_SECONDS], [0, high]]


def _disjoint(times: Sequence[tuple[float, float]]) -> npt.NDArray[np.int64]:
    """The stretches as whole seconds, overlapping ones made one, so that none counts twice."""
    found: list[list[int]] = []
    limit = 1 << 59
    for start, end in sorted(times):
        low, high = (ceil(min(max(t, -limit), limit)) for t in (start, end))
        if found and low <= found[-1][1]:
            found[-1][1] = max(found[-1][1], high)
        elif low < high:
            found.append([low, high])
    return np.array(found, np.int64).reshape(-1, 2)


@numba.njit(cache=True)
def _month_of(day: int) -> tuple[int, int]:
    """Months since January of the year 0 and day of the month, of a day since 1970.

    Counted from March, so that the leap day is the last of a year (Hinnant's civil_from_days).
    """
    z = day + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = (yoe + era * 400) * 12 + mp + 2
    return month, doy - (153 * mp + 2) // 5


@numba.njit(cache=True)
def _first_day(month: int) -> int:
    """The first day, since 1970, of a month since January of the year 0."""
    m = month - 2
    year = m // 12
    mp = m - year * 12
    era = year // 400
    yoe = year - era * 400
    doe = yoe * 365 + yoe // 4 - yoe // 100 + (153 * mp + 2) // 5
    return era * 146097 + doe - 719468


@numba.njit(cache=True)
def _period(day: int, level: int) -> tuple[int, int]:
    """First day and number of days of the week, month or year of a day."""
    month, index = _month_of(day)
    if level == 2:
        first = day - index % 7
        return first, min(first + 7, _first_day(month + 1)) - first
    if level == 3:
        return day - index, _first_day(month + 1) - (day - index)
    january = month - month % 12
    first = _first_day(january)
    return first, _first_day(january + 12) - first


@numba.njit(cache=True)
def _folded(keys: Any, level: int) -> Any:
    out = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        key = keys[i]
        if key & 7 >= level:
            out[i] = key
            continue
        start = key >> 3
        hour = start - start % 3600
        if level > 1:
            day = start // 86400
            hour = _period(day, level)[0] * 86400 + (hour - day * 86400)
        out[i] = hour * 8 + level
    return out


@numba.njit(cache=True)
def _windows(keys: Any) -> Any:
    """Every bin as a stretch of each of some days: first day, days, from and to within a day."""
    n = keys.size
    first, days = np.empty(n, np.int64), np.ones(n, np.int64)
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        start, level = keys[i] >> 3, keys[i] & 7
        day = start // 86400
        first[i] = day
        low[i] = start - day * 86400
        high[i] = low[i] + (60 if level == 0 else 3600)
        if level > 1:
            days[i] = _period(day, level)[1]
    return first, days, low, high


@numba.njit(cache=True)
def _before(moment: int, day: int, days: int, low: int, high: int) -> int:
    """Seconds before a moment of [low, high) of each of some days."""
    passed = min(max((moment - day * 86400) // 86400, 0), days)
    total = passed * (high - low)
    if passed < days:
        within = moment - (day + passed) * 86400 - low
        total += min(max(within, 0), high - low)
    return total


@numba.njit(cache=True)
def _coverage(keys: Any, limits: Any, windows: Any) -> Any:
    first, days, low, high = _windows(keys)
    out = np.empty(keys.size, np.float64)
    for i in range(keys.size):
        covered = 0
        for w in range(windows.shape[0]):
            a, b = max(low[i], windows[w, 0]), min(high[i], windows[w, 1])
            if a >= b:
                continue
            for t in range(limits.shape[0]):
                covered += _before(limits[t, 1], first[i], days[i], a, b)
                covered -= _before(limits[t, 0], first[i], days[i], a, b)
        out[i] = covered / (days[i] * (high[i] - low[i]))
    return out
