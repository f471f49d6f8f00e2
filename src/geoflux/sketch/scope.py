"""Which observations a query is about: places, times, hours of the day, values of features.

All parts of a scope are and-ed; each part is a union. Each part is kept in one canonical form, so
that scopes that say the same in other words are equal (regions stay as they were given).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from geoflux.errors import QueryError
from geoflux.sketch.ranges import ALWAYS, EVERYTHING, Range, Span, union, union_of_times

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
MAX_LETTERS = 12
MAX_PARTS = 200
_HALF_ROUND_KM = 20_038.0


def plain(number: float) -> str:
    """A number in the shortest words that read back as the same number."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def _degrees(name: str, value: float, most: float) -> None:
    if not -most <= value <= most:
        raise QueryError(f"{name} is {value:g}; expected {-most:g} to {most:g} degrees")


@dataclass(frozen=True, slots=True)
class Box:
    """Degrees, ends included; it crosses the date line where ``west`` is greater than ``east``."""

    west: float
    south: float
    east: float
    north: float

    def __post_init__(self) -> None:
        for name, most in (("west", 180), ("east", 180), ("south", 90), ("north", 90)):
            _degrees(f"bbox: {name}", getattr(self, name), most)
        if self.south > self.north:
            raise QueryError(
                f"bbox: south {self.south:g} is above north {self.north:g}; the order is "
                "bbox(west, south, east, north)"
            )


@dataclass(frozen=True, slots=True)
class Prefix:
    """A geohash cell by its base-32 letters (1 to 12)."""

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.lower())
        wrong = sorted(set(self.text) - set(LETTERS))
        if wrong:
            raise QueryError(
                f"geohash {self.text[:40]!r} has the letter {wrong[0]!r}; "
                "expected digits and letters without a, i, l, o"
            )
        if not 1 <= len(self.text) <= MAX_LETTERS:
            raise QueryError(
                f"geohash {self.text[:40]!r} has {len(self.text)} letters; "
                f"expected 1 to {MAX_LETTERS}"
            )

    @property
    def bits(self) -> int:
        """How many bits the prefix fixes."""
        return 5 * len(self.text)

    @property
    def code(self) -> int:
        """The prefix as an integer of ``bits`` bits, longitude bit first."""
        code = 0
        for letter in self.text:
            code = code << 5 | LETTERS.index(letter)
        return code


@dataclass(frozen=True, slots=True)
class Circle:
    """Places at most ``km`` from a point, along the sphere."""

    lon: float
    lat: float
    km: float

    def __post_init__(self) -> None:
        _degrees("circle: lon", self.lon, 180)
        _degrees("circle: lat", self.lat, 90)
        if not 0 < self.km <= _HALF_ROUND_KM:
            raise QueryError(
                f"circle: the radius is {self.km:g} km; expected more than 0, and at most "
                f"{_HALF_ROUND_KM:g} (half around the earth)"
            )


Region: TypeAlias = Box | Prefix | Circle


@dataclass(frozen=True, slots=True)
class Condition:
    """A row matches if its value of ``feature`` lies in one of ``ranges``, or if ``missing`` is
    set and it has no value."""

    feature: str
    ranges: tuple[Range, ...] = (EVERYTHING,)
    missing: bool = False

    def __post_init__(self) -> None:
        if not self.feature:
            raise QueryError("a condition has a feature without a name")
        if any(math.isnan(r.low) or math.isnan(r.high) for r in self.ranges):
            raise QueryError(f"the range of {self.feature!r} has an end that is no number")
        ranges = union(self.ranges)
        object.__setattr__(self, "ranges", ranges)
        if not ranges and not self.missing:
            raise QueryError(
                f"no value of {self.feature!r} can meet this condition: its ranges exclude "
                "each other"
            )

    @property
    def anything(self) -> bool:
        """Whether each row matches."""
        return self.missing and self.ranges == (EVERYTHING,)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where, when and with which values; ``None`` or nothing: everywhere, always, any.

    ``hours`` are hours of the day in UTC (0 to 23; 14 is 14:00 to 14:59). ``conditions`` has one
    entry per feature, in the order of their names.
    """

    regions: tuple[Region, ...] | None = None
    times: tuple[Span, ...] | None = None
    hours: frozenset[int] | None = None
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if self.regions is not None:
            self._set_regions(self.regions)
        if self.times is not None:
            times = union_of_times(self.times)
            if not times:
                raise QueryError("no time can meet this condition: its ends exclude each other")
            object.__setattr__(self, "times", None if times == (ALWAYS,) else times)
        if self.hours is not None:
            hours = frozenset(self.hours)
            if not hours or not hours <= frozenset(range(24)):
                raise QueryError(
                    f"hours of the day are {sorted(hours)[:30]}; expected one or more of 0 to 23"
                )
            object.__setattr__(self, "hours", None if len(hours) == 24 else hours)
        kept = sorted((c for c in self.conditions if not c.anything), key=lambda c: c.feature)
        if len({c.feature for c in kept}) < len(kept):
            raise QueryError("a feature has two conditions; make them one, with all its ranges")
        object.__setattr__(self, "conditions", tuple(kept))
        parts = [self.regions or (), self.times or (), *(c.ranges for c in kept)]
        if sum(len(part) for part in parts) > MAX_PARTS:
            raise QueryError(f"a scope has at most {MAX_PARTS} regions, times and ranges together")

    def _set_regions(self, regions: tuple[Region, ...]) -> None:
        if not regions:
            raise QueryError("the list of regions is empty; leave it away to ask everywhere")
        object.__setattr__(self, "regions", tuple(dict.fromkeys(regions)))

    @property
    def everything(self) -> bool:
        """Whether every observation is meant."""
        return self == EVERYWHERE

    def condition(self, feature: str) -> Condition | None:
        """What is asked of a feature, or nothing."""
        return next((c for c in self.conditions if c.feature == feature), None)


EVERYWHERE = Scope()
