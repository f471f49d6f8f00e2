"""Laws of time bins: they equal what the calendar says, fold into each other, and are covered as
counting their seconds one by one would tell."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.errors import ConfigError
from geoflux.sketch import times

DAY = 86400
moments = st.integers(-(10**10), 10**10)
level = st.integers(0, 4)


def by_calendar(moment: int, level: int) -> tuple[dt.datetime, dt.datetime]:
    """First second of the bin, and the first day after its period."""
    t = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=moment)
    if level == times.MINUTE:
        start = t.replace(second=0)
        return start, start + dt.timedelta(minutes=1)
    hour = t.replace(minute=0, second=0)
    if level == times.HOUR:
        return hour, hour + dt.timedelta(hours=1)
    if level == times.WEEK:
        start = hour.replace(day=(t.day - 1) // 7 * 7 + 1)
        end = min(start.replace(hour=0) + dt.timedelta(days=7), after(t))
        return start, end
    if level == times.MONTH:
        return hour.replace(day=1), after(t)
    return hour.replace(day=1, month=1), dt.datetime(t.year + 1, 1, 1)


def after(t: dt.datetime) -> dt.datetime:
    return dt.datetime(t.year + t.month // 12, t.month % 12 + 1, 1)


def seconds(t: dt.datetime) -> int:
    return int((t - dt.datetime(1970, 1, 1)).total_seconds())


@given(moments, level)
def test_bins_are_those_of_the_calendar(moment: int, level: int) -> None:
    key = times.keys_of(np.array([moment]), level)
    start, end = by_calendar(moment, level)
    assert times.starts(key)[0] == seconds(start)
    assert times.levels(key)[0] == level
    row, first, last = times.stretches(key)
    assert set(row.tolist()) == {0}
    assert first[0] == seconds(start)
    if level >= times.WEEK:
        days = (end - start.replace(hour=0)).days
        assert first.tolist() == [first[0] + DAY * d for d in range(days)]
    assert (last - first).sum() == times.seconds_of(key)[0]
    assert times.spans(key)[0][0] == first[0]
    assert times.spans(key)[1][0] == last[-1]
    assert any(a <= moment < b for a, b in zip(first, last, strict=True))


@given(moments, level, level)
def test_folding_step_by_step_is_folding_at_once(moment: int, a: int, b: int) -> None:
    fine, coarse = sorted((a, b))
    key = times.keys_of(np.array([moment]), fine)
    folded = key
    for step in range(fine + 1, coarse + 1):
        folded = times.folded(folded, step)
    assert folded[0] == times.folded(key, coarse)[0] == times.keys_of(np.array([moment]), coarse)[0]
    assert times.folded(folded, fine)[0] == folded[0], "coarser bins stay"


@settings(max_examples=60)
@given(
    st.integers(0, 3 * 10**9), st.integers(0, 3),
    st.lists(st.tuples(st.integers(-40 * DAY, 40 * DAY), st.integers(0, 40 * DAY)), max_size=3),
    st.none() | st.tuples(st.integers(0, 96), st.integers(0, 96)),
)  # fmt: skip
def test_coverage_is_the_share_of_the_seconds(
    moment: int, level: int, near: list[tuple[int, int]], quarters: tuple[int, int] | None
) -> None:
    key = times.keys_of(np.array([moment]), level)
    limits = [(moment + a, moment + a + b) for a, b in near]
    hours = None if quarters is None else (quarters[0] / 4, quarters[1] / 4)
    _, first, last = times.stretches(key)
    every = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
    inside = np.zeros(every.size, np.bool_)
    for a, b in limits:
        inside |= (every >= a) & (every < b)
    if hours is not None:
        of_day = every % DAY / 3600
        low, high = hours
        inside &= (
            (of_day >= low) & (of_day < high) if low <= high else (of_day >= low) | (of_day < high)
        )
    assert times.coverage(key, limits, hours)[0] == inside.sum() / every.size


def test_no_limits_cover_all() -> None:
    keys = np.concatenate([times.keys_of(np.array([0, 10**9]), level) for level in range(5)])
    assert (times.coverage(keys, None) == 1.0).all()
    assert (times.coverage(keys, []) == 0.0).all()
    assert (times.coverage(keys, [(-np.inf, np.inf)], (0, 24)) == 1.0).all()


def test_afternoons_of_three_months() -> None:
    """2 to 4 pm stays answerable when hours are gone."""
    start = seconds(dt.datetime(2026, 3, 1))
    keys = times.keys_of(start + 3600 * np.arange(24), times.MONTH)
    share = times.coverage(keys, [(start, start + 92 * DAY)], (14, 16))
    assert np.flatnonzero(share).tolist() == [14, 15]
    assert (share[14:16] == 1.0).all()


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="from 0 to 24"):
        times.coverage(np.zeros(1, np.int64), None, (3, 25))
    with pytest.raises(ConfigError, match="a week get 0 or more seconds"):
        times.Ages(week=-1)
