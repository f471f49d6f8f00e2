"""The section of the settings that says what a sketch is about and how fine it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from geoflux.settings import between, duration, one_of, seconds, setting


def moment(value: Any) -> str | None:
    """The value is a date or a time, or empty for none."""
    try:
        if value:
            seconds_at(value)
    except ValueError:
        return f"{value!r} is no date or time; write it like 2026-03-25 or 2026-03-25T14:00"
    return None


def seconds_at(text: str) -> int:
    """Seconds since 1970 of a date or time, in UTC unless it says otherwise.

    >>> seconds_at("1970-01-02"), seconds_at("1970-01-01T01:00:00+01:00")
    (86400, 0)
    """
    found = datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def recurring(value: Any) -> str | None:
    """The value is ``epoch`` or a duration."""
    try:
        if value != "epoch" and seconds(value) <= 0:
            return "expected epoch, or a duration of more than 0 s"
    except ValueError:
        return f"{value!r} is neither epoch nor a duration; write for example epoch, 60s or 1h"
    return None


@dataclass(frozen=True)
class ContinuousConfig:
    """A query that is answered again and again while the run goes."""

    name: str = setting("", "Under which its answers are found: letters, digits, `-` and `_`.")
    query: str = setting("", "The query, in SQL or JSON.")
    every: str = setting(
        "epoch", "When: after each `epoch`, or after the first one of each such stretch of time.",
        recurring)  # fmt: skip


@dataclass(frozen=True)
class SketchConfig:
    """A queryable sketch of all that was observed ([synopsis.md](synopsis.md)); with `features`, it
    is what `geoflux run` makes of the source."""

    features: tuple[str, ...] = setting(
        (), "Numeric columns that the sketch is about, 1 to 20; values may be missing."
    )
    tree_bits: int = setting(
        10, "Bits of the geohash of a tree: bins, densities and sets are kept for each, and no "
        "partition is smaller.", between(0, 24))  # fmt: skip
    region_bits: int = setting(
        20, "Bits of the geohash of a region, the finest place that can be asked for.",
        between(0, 60))  # fmt: skip
    finest: str = setting(
        "hour", "The finest time bins: `minute` or `hour`.", one_of("minute", "hour")
    )
    bins: int = setting(32, "Bins of a feature in a tree, at most.", between(2, 128))
    leaves: int = setting(
        8, "Combinations of bins that are kept of a region in a time bin, at most: where there are "
        "more, bins merge; 0: all of them, as many as there are observations.",
        between(0, 1 << 30))  # fmt: skip
    steady_rows: int = setting(
        2000, "Rows of a tree that are kept as they are before bins are made.", between(1, 1 << 40)
    )
    sets: str = setting(
        "1 day", "Time bound of the structures for membership, cardinality and frequency.", duration
    )
    minutes_for: str = setting("2 hours", "Age at which minutes become hours.", duration)
    hours_for: str = setting("14 days", "Age at which hours become hours of a week.", duration)
    weeks_for: str = setting("92 days", "Age at which weeks become months.", duration)
    months_for: str = setting("731 days", "Age at which months become years.", duration)
    length_of_study: str = setting(
        "", "Age from which on bins of features merge further and further; empty: never.", duration
    )
    since: str = setting(
        "", "Rows from before this time (`2026-03-25`, UTC) are refused; empty: none.", moment
    )
    until: str = setting("", "Rows from this time on are refused; empty: none.", moment)
    continuous: tuple[ContinuousConfig, ...] = setting(
        (), "Queries whose answers are written to `answers/`, as `[[sketch.continuous]]` tables."
    )
