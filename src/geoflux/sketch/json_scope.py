"""Reads the JSON form of a scope: regions, times, hours of the day and ranges of features."""

from __future__ import annotations

from geoflux.errors import QueryError
from geoflux.sketch.check import Subject
from geoflux.sketch.json_values import array, at, kept, number, obj, text, whole
from geoflux.sketch.moments import COMPARISONS, compared, moment
from geoflux.sketch.ranges import (
    ALWAYS,
    EVERYTHING,
    Range,
    Span,
    both,
    both_times,
    compared_numbers,
)
from geoflux.sketch.scope import Box, Circle, Condition, Prefix, Region, Scope

_SCOPE = ("regions", "times", "hours", "features")


class ScopeReader:
    """Reads scopes; ``places`` then says where each feature stood first."""

    def __init__(self) -> None:
        self.places: dict[Subject, str] = {}

    def feature(self, given: object, path: str) -> str:
        """The name of a feature, and where it stood."""
        name = text(given, path)
        self.places.setdefault(("feature", name), path)
        return name

    def scope(self, given: object, path: str) -> Scope:
        """All parts of a scope, and-ed."""
        form = obj(given, _SCOPE, path)
        regions = times = hours = None
        if "regions" in form:
            items = array(form["regions"], f"{path}.regions")
            regions = tuple(_region(r, f"{path}.regions[{i}]") for i, r in enumerate(items))
        if "times" in form:
            items = array(form["times"], f"{path}.times")
            times = tuple(
                span for i, t in enumerate(items) for span in _span(t, f"{path}.times[{i}]")
            )
        if "hours" in form:
            items = array(form["hours"], f"{path}.hours")
            hours = frozenset(whole(hour, f"{path}.hours") for hour in items)
        features = obj(form.get("features", {}), (), f"{path}.features")
        conditions = [self._condition(name, features[name], path) for name in features]
        with at(path):
            return Scope(regions, times, hours, tuple(conditions))

    def _condition(self, name: str, given: object, path: str) -> Condition:
        path = f"{path}.features.{name[:100]}"
        feature = self.feature(name, path)
        items = array(given, path) if isinstance(given, list | tuple) else [given]
        ranges: list[Range] = []
        missing = False
        for item in items:
            form = obj(item, (*COMPARISONS, "missing"), path)
            if "missing" not in form:
                ranges += _ranges(form, path)
            elif len(form) > 1 or not isinstance(form["missing"], bool):
                raise QueryError(
                    f'{kept(item)} was given; expected {{"missing": true}} alone', path=path
                )
            elif form["missing"]:
                missing = True
            else:
                ranges.append(EVERYTHING)
        with at(path):
            return Condition(feature, tuple(ranges), missing)


def _ranges(form: object, path: str) -> tuple[Range, ...]:
    found: tuple[Range, ...] = (EVERYTHING,)
    parts = obj(form, COMPARISONS, path)
    if not parts:
        raise QueryError(f"an empty range was given; expected {', '.join(COMPARISONS)}", path=path)
    for comparison, value in parts.items():
        found = both(found, (compared_numbers(comparison, number(value, path)),))
    return found


def _span(given: object, path: str) -> tuple[Span, ...]:
    found: tuple[Span, ...] = (ALWAYS,)
    for comparison, value in obj(given, COMPARISONS, path).items():
        with at(path):
            named = moment(text(value, path))
        found = both_times(found, (compared(comparison, named),))
    return found


def _region(given: object, path: str) -> Region:
    form = obj(given, ("bbox", "geohash", "circle"), path)
    if len(form) != 1:
        raise QueryError(
            f"{kept(given)} is no region; expected one bbox, geohash or circle", path=path
        )
    ((name, inner),) = form.items()
    with at(path):
        if name == "bbox":
            return Box(*(number(edge, path) for edge in array(inner, path, 4)))
        if name == "circle":
            return Circle(*(number(part, path) for part in array(inner, path, 3)))
        return Prefix(text(inner, path))
