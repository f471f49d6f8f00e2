"""Conditions about one subject each, and how AND and OR combine them into a scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from geoflux.errors import QueryError
from geoflux.sketch.ranges import Range, Span, both, both_times
from geoflux.sketch.scope import Condition, Region, Scope


@dataclass(frozen=True, slots=True)
class Regions:
    """Places: inside one of the shapes."""

    shapes: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """Times: inside one of the stretches."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of the day."""

    hours: frozenset[int]


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a feature: inside one of the ranges, or missing if that is allowed."""

    feature: str
    ranges: tuple[Range, ...]
    missing: bool = False


Part: TypeAlias = Regions | Times | Hours | Values
# One part per subject: "region", "time", "hour of the day" or the feature in quotes.
Parts: TypeAlias = dict[str, Part]


def subject(part: Part) -> str:
    """What a part is about, in words."""
    match part:
        case Regions():
            return "region"
        case Times():
            return "time"
        case Hours():
            return "hour of the day"
        case Values(feature):
            return repr(feature)


def all_of(parts: Iterable[Parts]) -> Parts:
    """AND: each part of any of them; two about one subject become what both allow."""
    return reduce(_both, parts)


def one_of(parts: Iterable[Parts]) -> Parts:
    """OR: possible where all are about the same single subject."""
    return reduce(_either, parts)


def scope(parts: Parts) -> Scope:
    """The scope that the parts are."""
    regions: tuple[Region, ...] | None = None
    times: tuple[Span, ...] | None = None
    hours: frozenset[int] | None = None
    conditions: list[Condition] = []
    for part in parts.values():
        match part:
            case Regions(regions):
                pass
            case Times(times):
                pass
            case Hours(hours):
                pass
            case Values(feature, ranges, missing):
                conditions.append(Condition(feature, ranges, missing))
    return Scope(regions, times, hours, tuple(conditions))


def _both(first: Parts, second: Parts) -> Parts:
    joined = dict(first)
    for name, part in second.items():
        joined[name] = _and(joined[name], part) if name in joined else part
    return joined


def _either(first: Parts, second: Parts) -> Parts:
    if not first or not second:
        return {}  # one of them holds always
    names = [*first, *(name for name in second if name not in first)]
    if len(names) > 1:
        raise QueryError(
            f"OR combines {' and '.join(names[:2])}; it is possible only within one feature, among "
            "regions or among times. Ask two queries, or one with contrast(...)"
        )
    (name,) = names
    return {name: _or(first[name], second[name])}


def _and(first: Part, second: Part) -> Part:
    match first, second:
        case Times(a), Times(b):
            return Times(both_times(a, b))
        case Hours(a), Hours(b):
            return Hours(a & b)
        case Values(feature, a, x), Values(_, b, y):
            return Values(feature, both(a, b), x and y)
    raise QueryError(
        "region has two conditions with AND; give one (several shapes of it are a union: OR)"
    )


def _or(first: Part, second: Part) -> Part:
    match first, second:
        case Regions(a), Regions(b):
            return Regions(a + b)
        case Times(a), Times(b):
            return Times(a + b)
        case Hours(a), Hours(b):
            return Hours(a | b)
        case Values(feature, a, x), Values(_, b, y):
            return Values(feature, a + b, x or y)
    raise AssertionError("parts of one subject are of one type")
