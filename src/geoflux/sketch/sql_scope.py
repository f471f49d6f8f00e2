"""Reads the conditions of a query: which of them a scope can hold, and-ed and or-ed.

Each condition is about one subject: the region, the time, the hour of the day or a feature. AND
combines any of them; OR only those about one subject, as a union. NOT is carried to the single
conditions, where it is the other ranges (a row without a value meets neither, as in SQL).
"""

from __future__ import annotations

from sqlglot import exp

from geoflux.errors import QueryError
from geoflux.sketch.check import Subject
from geoflux.sketch.expressions import KEYS
from geoflux.sketch.moments import compared, moment
from geoflux.sketch.ranges import (
    EVERYTHING,
    Range,
    Span,
    both,
    both_times,
    compared_numbers,
    other_times,
    others,
)
from geoflux.sketch.scope import EVERYWHERE, Box, Circle, Prefix, Region, Scope
from geoflux.sketch.scope_parts import (
    Hours,
    Part,
    Parts,
    Regions,
    Times,
    Values,
    all_of,
    one_of,
    scope,
    subject,
)
from geoflux.sketch.sql_source import Source, name_of

_POSSIBLE = (
    "possible are region IN bbox(...), geohash(...) or circle(...); comparisons, BETWEEN and IN on "
    "time, hour and features; feature IS [NOT] NULL"
)
_SIGNS: dict[type[exp.Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "="}
_SHAPES = {"bbox": (4, "west, south, east, north"), "circle": (3, "lon, lat, km")}
_DATES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)


class ScopeReader:
    """Reads scopes; ``places`` then says where each feature stood first."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.places: dict[Subject, exp.Expr] = {}

    def feature(self, node: exp.Expr) -> str:
        """The feature that a node names."""
        if not name_of(node):
            words = self.source.words(node)
            hint = ""
            if isinstance(node, exp.Literal) and node.is_string:
                hint = '; names stand without quotes, or in double quotes ("...")'
            elif isinstance(node, exp.Column):
                hint = "; a name with a dot is a column of a joined query"
            raise self.source.error(f"{words} is not the name of a feature{hint}", node)
        name: str = node.this.name
        self.places.setdefault(("feature", name), node)
        return name

    def scope(self, node: exp.Expr) -> Scope:
        """The scope that a condition is."""
        with self.source.at(node):
            parts = self._parts(node, False)
            return scope(parts) if parts else EVERYWHERE

    def _parts(self, node: exp.Expr, negated: bool) -> Parts:
        if isinstance(node, exp.Paren):
            return self._parts(node.this, negated)
        if isinstance(node, exp.Not):
            return self._parts(node.this, not negated)
        if isinstance(node, exp.NEQ):
            equal = exp.EQ(this=node.this, expression=node.expression)
            return self._parts(equal, not negated)
        if isinstance(node, exp.Boolean) and bool(node.this) != negated:
            return {}
        if isinstance(node, exp.And | exp.Or):
            found = [self._parts(part, negated) for part in node.flatten()]
            with self.source.at(node):
                made = (all_of if isinstance(node, exp.And) != negated else one_of)(found)
                scope(made)  # parts that exclude each other are found where they stand
                return made
        with self.source.at(node):
            part = self._part(node, negated)
            made = {subject(part): part}
            scope(made)
        return made

    def _part(self, node: exp.Expr, negated: bool) -> Part:
        about = node.this if isinstance(node, exp.Between | exp.In | exp.Is) else None
        sign = _SIGNS.get(type(node))
        value: exp.Expr | None = None
        if sign is not None:
            about, value = node.this, node.expression
            if isinstance(value, exp.Column) and not isinstance(about, exp.Column):
                about, value, sign = value, about, _MIRRORED[sign]
        if about is None:
            raise QueryError(f"{self.source.words(node)} is no condition; {_POSSIBLE}")
        name = name_of(about)
        if name == "region":
            return self._regions(node, value if sign == "=" else None, negated)
        if name == "time":
            spans = self._spans(node, sign, value)
            return Times(other_times(spans) if negated else spans)
        if name in ("hour", "hour_of_day"):
            hours = self._hours(node, sign, value)
            return Hours(frozenset(range(24)) - hours if negated else hours)
        if name in KEYS:
            raise self.source.error(
                f"{name} is no condition; write time >= '2026-03-26', or hour (of the day)", about
            )
        return self._values(node, about, sign, value, negated)

    def _values(
        self, node: exp.Expr, about: exp.Expr, sign: str | None, value: exp.Expr | None, no: bool
    ) -> Values:
        feature = self.feature(about)
        if isinstance(node, exp.Is):
            if not isinstance(node.expression, exp.Null):
                raise QueryError(f"IS is possible with NULL only: {feature} IS [NOT] NULL")
            return Values(feature, (EVERYTHING,)) if no else Values(feature, (), True)
        ranges = self._ranges(node, sign, value)
        return Values(feature, others(ranges) if no else ranges)

    def _ranges(
        self, node: exp.Expr, sign: str | None, value: exp.Expr | None
    ) -> tuple[Range, ...]:
        if sign is not None and value is not None:
            return (compared_numbers(sign, self._number(value)),)
        if isinstance(node, exp.Between):
            low, high = self._ends(node)
            above = compared_numbers(">=", self._number(low))
            return both((above,), (compared_numbers("<=", self._number(high)),))
        return tuple(compared_numbers("=", self._number(item)) for item in self._list(node))

    def _spans(self, node: exp.Expr, sign: str | None, value: exp.Expr | None) -> tuple[Span, ...]:
        if sign is not None and value is not None:
            return (compared(sign, self._moment(value)),)
        if isinstance(node, exp.Between):
            low, high = (self._moment(end) for end in self._ends(node))
            return both_times((compared(">=", low),), (compared("<=", high),))
        return tuple(self._moment(item) for item in self._list(node))

    def _hours(self, node: exp.Expr, sign: str | None, value: exp.Expr | None) -> frozenset[int]:
        ranges = self._ranges(node, sign, value)
        found = frozenset(h for h in range(24) if any(r.holds(h) for r in ranges))
        if not found:
            raise QueryError(
                "no hour of the day (0 to 23) can meet this condition; over midnight write "
                "hour >= 22 OR hour <= 3"
            )
        return found

    def _regions(self, node: exp.Expr, value: exp.Expr | None, negated: bool) -> Regions:
        if negated:
            raise QueryError("regions cannot be excluded; name those that are meant")
        if value is not None:
            return Regions(self._shapes(value))
        if not isinstance(node, exp.In):
            raise QueryError(f"{self.source.words(node)} is no condition; {_POSSIBLE}")
        field = node.args.get("field")
        items = self._list(node) if field is None else [field]
        return Regions(tuple(shape for item in items for shape in self._shapes(item)))

    def _shapes(self, node: exp.Expr) -> tuple[Region, ...]:
        if isinstance(node, exp.Literal) and node.is_string:
            with self.source.at(node):
                return (Prefix(node.this),)
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        given = node.expressions
        with self.source.at(node):
            if name == "geohash" and given and all(g.is_string for g in given):
                return tuple(shape for item in given for shape in self._shapes(item))
            if name in _SHAPES:
                count, usage = _SHAPES[name]
                if len(given) != count:
                    raise QueryError(
                        f"{name} takes {count} numbers, it was given {len(given)}: {name}({usage})"
                    )
                numbers = [self._number(item) for item in given]
                return (Box(*numbers) if name == "bbox" else Circle(*numbers),)
            raise QueryError(
                f"{self.source.words(node)} is no region; possible are bbox(west, south, east, "
                "north), geohash('u0', ...) and circle(lon, lat, km)"
            )

    def _list(self, node: exp.Expr) -> list[exp.Expr]:
        if not isinstance(node, exp.In) or not node.expressions:
            raise QueryError(f"{self.source.words(node)} is no condition; {_POSSIBLE}")
        self.source.only(node, "this", "expressions")
        return list(node.expressions)

    def _ends(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        self.source.only(node, "this", "low", "high")
        low, high = node.args.get("low"), node.args.get("high")
        if low is None or high is None:
            raise QueryError("BETWEEN takes two ends: BETWEEN low AND high")
        return low, high

    def _number(self, node: exp.Expr) -> float:
        value = self.source.number(node)
        if value is None:
            hint = "; write IS NULL" if isinstance(node, exp.Null) else ""
            if isinstance(node, exp.Column):
                hint = "; a feature is compared with a number"
            raise self.source.error(f"{self.source.words(node)} is no number{hint}", node)
        return value

    def _moment(self, node: exp.Expr) -> Span:
        if isinstance(node, exp.Cast) and node.to.this in _DATES:
            node = node.this  # DATE '2026-03-26'
        with self.source.at(node):
            if not isinstance(node, exp.Literal) or not node.is_string:
                raise QueryError(
                    f"{self.source.words(node)} is no time; write it as text, '2026-03-26T14:00'"
                )
            return moment(node.this)
