"""Unions of ranges: values of a feature, and stretches of time.

A union is a sorted tuple of ranges that neither overlap nor touch, so that two unions that hold
the same values are equal. Ends are kept exactly as asked: open or closed for features; times are
whole seconds, where ``start <= t < end`` says everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

# Times without a beginning or an end; a packed time bin (eight times as much) still fits an int64.
EARLIEST = -(2**53)
LATEST = 2**53
# The first and the last second that a calendar with four digits of a year can name.
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799


class Range(NamedTuple):
    """Values from ``low`` to ``high``; infinite where there is no end (and then open).

    >>> Range(5.0, math.inf, False, False).holds(5.0)
    False
    """

    low: float
    high: float
    low_closed: bool = True
    high_closed: bool = True

    def holds(self, value: float) -> bool:
        """Whether the value lies in the range."""
        above = value > self.low or (self.low_closed and value == self.low)
        return above and (value < self.high or (self.high_closed and value == self.high))

    @property
    def empty(self) -> bool:
        """Whether no value at all lies in the range."""
        one = self.low == self.high and self.low_closed and self.high_closed
        return not (self.low < self.high or one)


class Span(NamedTuple):
    """Seconds since 1970 UTC from ``start`` on and before ``end``; EARLIEST and LATEST: no end."""

    start: int
    end: int


EVERYTHING = Range(-math.inf, math.inf, False, False)
ALWAYS = Span(EARLIEST, LATEST)


def _starts(item: Range) -> tuple[float, bool]:
    return item.low, not item.low_closed


def _open_at_infinity(item: Range) -> Range:
    low_closed = item.low_closed and item.low > -math.inf
    return Range(item.low, item.high, low_closed, item.high_closed and item.high < math.inf)


def union(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The fewest ranges that hold the same values, in ascending order.

    >>> union([Range(2.0, 3.0), Range(1.0, 2.0, True, False)])
    (Range(low=1.0, high=3.0, low_closed=True, high_closed=True),)
    """
    merged: list[Range] = []
    for item in sorted((_open_at_infinity(r) for r in ranges if not r.empty), key=_starts):
        if not merged:
            merged.append(item)
            continue
        last = merged[-1]
        touches = item.low < last.high or (
            item.low == last.high and (item.low_closed or last.high_closed)
        )
        if not touches:
            merged.append(item)
            continue
        high, closed = max((last.high, last.high_closed), (item.high, item.high_closed))
        merged[-1] = Range(last.low, high, last.low_closed, closed)
    return tuple(merged)


def both(first: Iterable[Range], second: Iterable[Range]) -> tuple[Range, ...]:
    """The values that lie in both unions.

    >>> both([Range(1.0, 5.0)], [Range(5.0, 9.0), Range(0.0, 2.0, True, False)])
    (Range(low=1.0, high=2.0, low_closed=True, high_closed=False), Range(low=5.0, high=5.0, \
low_closed=True, high_closed=True))
    """
    others = tuple(second)
    return union(_overlap(a, b) for a in first for b in others)


def _overlap(a: Range, b: Range) -> Range:
    low, open_low = max((a.low, not a.low_closed), (b.low, not b.low_closed))
    high, high_closed = min((a.high, a.high_closed), (b.high, b.high_closed))
    return Range(low, high, not open_low, high_closed)


def others(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The values that lie in none of the ranges.

    >>> others([Range(1.5, 1.5)])[0]
    Range(low=-inf, high=1.5, low_closed=False, high_closed=False)
    """
    low, closed = -math.inf, False
    found: list[Range] = []
    for item in union(ranges):
        found.append(Range(low, item.low, closed, not item.low_closed and item.low > -math.inf))
        low, closed = item.high, not item.high_closed
    found.append(Range(low, math.inf, closed and low < math.inf, False))
    return union(found)


def union_of_times(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The fewest stretches that hold the same seconds, in ascending order; ends outside the
    calendar are no ends."""
    merged: list[Span] = []
    within = (_within_calendar(*span) for span in spans)
    for item in sorted(s for s in within if s.start < s.end):
        if merged and item.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, item.end))
        else:
            merged.append(item)
    return tuple(merged)


def _within_calendar(start: int, end: int) -> Span:
    if start > LAST_SECOND or end <= FIRST_SECOND:
        return Span(0, 0)
    return Span(EARLIEST if start <= FIRST_SECOND else start, LATEST if end > LAST_SECOND else end)


def both_times(first: Iterable[Span], second: Iterable[Span]) -> tuple[Span, ...]:
    """The seconds that lie in both unions."""
    later = tuple(second)
    return union_of_times(
        Span(max(a.start, b.start), min(a.end, b.end)) for a in first for b in later
    )


def other_times(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The seconds that lie in none of the stretches."""
    start = EARLIEST
    found: list[Span] = []
    for item in union_of_times(spans):
        found.append(Span(start, item.start))
        start = item.end
    found.append(Span(start, LATEST))
    return union_of_times(found)


def compared_numbers(comparison: str, value: float) -> Range:
    """The values that compare so with a number."""
    return {
        ">=": Range(value, math.inf, True, False),
        ">": Range(value, math.inf, False, False),
        "<": Range(-math.inf, value, False, False),
        "<=": Range(-math.inf, value, False, True),
        "=": Range(value, value),
    }[comparison]
