"""Times as people write them, and as whole seconds since 1970.

A day, a month or a year alone is all of it: up to '2026-03-28' includes the 28th. With a clock
time it is that instant. Times are UTC unless they name an offset.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from geoflux.errors import QueryError
from geoflux.sketch.ranges import EARLIEST, LATEST, Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_STRETCH = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", re.ASCII)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d", re.ASCII)
COMPARISONS = (">=", ">", "<=", "<", "=")


def moment(text: str) -> Span:
    """The seconds that a text names; of an instant, the one second (or none, between two).

    >>> moment("2026-03-28")
    Span(start=1774656000, end=1774742400)
    >>> moment("2026-03-28T02:00+02:00")
    Span(start=1774656000, end=1774656001)
    """
    text = text.strip()
    try:
        if found := _STRETCH.fullmatch(text):
            return _stretch(*(int(part) if part else None for part in found.groups()))
        if _INSTANT.match(text):
            when = datetime.fromisoformat(text)
            when = when if when.tzinfo else when.replace(tzinfo=UTC)
            whole, rest = divmod(when - _EPOCH, _SECOND)
            return Span(whole + bool(rest), whole + 1)
    except (ValueError, OverflowError):
        pass
    raise QueryError(
        f"{text[:60]!r} is no time; expected such as '2026-03-26', '2026-03-26T14:00' (UTC) or "
        "'2026-03-26T14:00+02:00'"
    )


def _stretch(year: int | None, month: int | None, day: int | None) -> Span:
    assert year is not None
    start = _days(year, month or 1, day or 1)
    if day:
        end = start + 1
    elif month:
        end = _days(year + month // 12, month % 12 + 1, 1)
    else:
        end = _days(year + 1, 1, 1)
    return Span(start * 86_400, end * 86_400)


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970; of the year 10000, which no calendar here has, the first day."""
    if year == 10_000:
        return (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).days + 1
    return (datetime(year, month, day, tzinfo=UTC) - _EPOCH).days


def compared(comparison: str, named: Span) -> Span:
    """The seconds that compare so with what a text names.

    >>> compared("<=", moment("2026-03-28")) == compared("<", moment("2026-03-29"))
    True
    """
    return {
        ">=": Span(named.start, LATEST),
        ">": Span(named.end, LATEST),
        "<": Span(EARLIEST, named.start),
        "<=": Span(EARLIEST, named.end),
        "=": named,
    }[comparison]


def written(second: int) -> str:
    """A second as text that :func:`moment` reads as the same.

    >>> written(0)
    '1970-01-01T00:00:00Z'
    """
    return (_EPOCH + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
