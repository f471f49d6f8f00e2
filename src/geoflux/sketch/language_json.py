"""Queries as plain JSON values, without loss: ``from_json(to_json(query)) == query``.

The form follows the SQL: ``{"select": [{"mean": ["t2m_k"]}], "where": {...}, "group_by":
[{"geohash": 3}]}``. Everything that does not follow the form is a :class:`QueryError` with the
path to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from geoflux.errors import QueryError
from geoflux.sketch.check import Names, Subject, check
from geoflux.sketch.expressions import (
    Call,
    Contrast,
    Expression,
    Key,
    Matching,
    Math,
    Number,
    Ref,
    Synthetic,
)
from geoflux.sketch.functions import FUNCTIONS
from geoflux.sketch.json_reader import Reader
from geoflux.sketch.moments import written
from geoflux.sketch.places import pointed
from geoflux.sketch.query import Column, Join, Query
from geoflux.sketch.ranges import EARLIEST, EVERYTHING, LATEST, Range, Span
from geoflux.sketch.scope import Box, Condition, Prefix, Region, Scope

MAX_CHARACTERS = 100_000


def from_json(given: str | Mapping[str, Any], schema: Names | None = None) -> Query:
    """A query from JSON text or from the values that such a text stands for; checked against the
    schema of a sketch if there is one.

    >>> from_json('{"select": [{"mean": ["t2m_k"]}], "limit": 5}').limit
    5
    """
    value: object = given
    if isinstance(given, str):
        if len(given) > MAX_CHARACTERS:
            raise QueryError(
                f"the query has {len(given)} characters; at most {MAX_CHARACTERS} are read"
            )
        try:
            value = json.loads(given, object_pairs_hook=_once, parse_constant=_finite)
        except json.JSONDecodeError as error:
            raise _broken(given, error) from None
        except QueryError:
            raise
        except RecursionError:
            raise QueryError("the query is nested too deeply to be read") from None
        except ValueError:  # whole numbers of thousands of digits
            raise QueryError("the query has a number that is too long to be read") from None
    reader = Reader()
    query = reader.query(value, "query")
    if schema is None:
        return query

    def placed(subject: Subject, sentence: str) -> QueryError:
        return QueryError(sentence, path=reader.places.get(subject))

    return check(query, schema, placed)


def to_json(query: Query) -> dict[str, Any]:
    """The query as plain values: only dict, list, str, int, float, bool.

    >>> to_json(Query((Column(Call("count")),)))
    {'select': [{'count': []}]}
    """
    form: dict[str, Any] = {"select": [_column(column) for column in query.select]}
    if not query.where.everything:
        form["where"] = _scope(query.where)
    if query.group_by:
        form["group_by"] = [_value(key) for key in query.group_by]
    if query.order_by:
        form["order_by"] = [
            {"column": order.column, "descending": order.descending} for order in query.order_by
        ]
    if query.limit is not None:
        form["limit"] = query.limit
    if query.join is not None:
        form["join"] = _join(query.join)
    if query.every is not None:
        form["every"] = query.every
    return form


def _join(join: Join) -> dict[str, Any]:
    return {
        "left": to_json(join.left),
        "right": to_json(join.right),
        "names": [join.left_name, join.right_name],
        "on": [list(pair) for pair in join.on],
    }


def _column(column: Column) -> Any:
    value = _value(column.value)
    if column.name == column.value.title:
        return value
    if isinstance(value, str):
        return {"key": value, "as": column.name}
    return {**value, "as": column.name}


def _value(value: Expression) -> Any:
    match value:
        case Key(name, letters):
            return name if letters is None else {name: letters}
        case Matching(form):
            return form
        case Number(number):
            return number
        case Ref(table, column):
            return {"column": [table, column]}
        case Math(operator, left, right):
            return {operator: [_value(left), _value(right)]}
        case Synthetic(rows, percent, seed):
            parts = {"rows": rows, "percent": percent, "seed": seed}
            return {"synthetic": {k: v for k, v in parts.items() if v is not None}}
        case Contrast(left, left_scope, right, right_scope):
            sides = ((left, left_scope), (right, right_scope))
            return {"contrast": [{"value": _value(v), "where": _scope(s)} for v, s in sides]}
        case Call(name, features, numbers):
            if FUNCTIONS[name].pairs:
                return {name: value.pairs}
            return {name: [*features, *numbers]}


def _scope(scope: Scope) -> dict[str, Any]:
    form: dict[str, Any] = {}
    if scope.regions is not None:
        form["regions"] = [_region(region) for region in scope.regions]
    if scope.times is not None:
        form["times"] = [_span(span) for span in scope.times]
    if scope.hours is not None:
        form["hours"] = sorted(scope.hours)
    if scope.conditions:
        form["features"] = {c.feature: _condition(c) for c in scope.conditions}
    return form


def _region(region: Region) -> dict[str, Any]:
    if isinstance(region, Box):
        return {"bbox": [region.west, region.south, region.east, region.north]}
    if isinstance(region, Prefix):
        return {"geohash": region.text}
    return {"circle": [region.lon, region.lat, region.km]}


def _span(span: Span) -> dict[str, str]:
    ends = {">=": span.start, "<": span.end}
    return {k: written(v) for k, v in ends.items() if v not in (EARLIEST, LATEST)}


def _condition(condition: Condition) -> list[dict[str, Any]]:
    missing = [{"missing": True}] if condition.missing else []
    return [_range(item) for item in condition.ranges] + missing


def _range(item: Range) -> dict[str, Any]:
    if item == EVERYTHING:
        return {"missing": False}
    if item.low == item.high:
        return {"=": item.low}
    form = {}
    if item.low != EVERYTHING.low:
        form[">=" if item.low_closed else ">"] = item.low
    if item.high != EVERYTHING.high:
        form["<=" if item.high_closed else "<"] = item.high
    return form


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise QueryError(f"the name {twice[:100]!r} stands twice in one object")
    return found


def _finite(word: str) -> float:
    raise QueryError(f"{word} is no number in JSON; leave an end away where there is none")


def _broken(text: str, error: json.JSONDecodeError) -> QueryError:
    return pointed(text, error.pos, error.pos + 1, f"the query is no JSON: {error.msg}")
