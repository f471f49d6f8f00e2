"""Writes a query as SQL that reads back as the same query: ``parse_sql(to_sql(q)) == q``.

Only ``every`` has no words in SQL and is left out.
"""

from __future__ import annotations

import re

from sqlglot.dialects.duckdb import DuckDB

from geoflux.sketch.expressions import (
    KEYS,
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
from geoflux.sketch.moments import written
from geoflux.sketch.query import Column, Join, Order, Query
from geoflux.sketch.ranges import EARLIEST, EVERYTHING, LATEST, Range, Span
from geoflux.sketch.scope import Box, Circle, Condition, Prefix, Region, Scope, plain

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RESERVED = {word.lower() for word in DuckDB.Tokenizer.KEYWORDS} | {
    *KEYS,
    "time",
    "leaves",
    "graph",
}


def to_sql(query: Query) -> str:
    """The query as one line of SQL.

    >>> to_sql(Query((Column(Call("mean", ("t2m_k",)), "t"),), limit=3))
    'SELECT mean(t2m_k) AS t LIMIT 3'
    """
    clauses = ["SELECT " + ", ".join(_column(column) for column in query.select)]
    if query.join is not None:
        clauses.append(_join(query.join))
    if not query.where.everything:
        clauses.append("WHERE " + scope_sql(query.where))
    if query.group_by:
        clauses.append("GROUP BY " + ", ".join(key.title for key in query.group_by))
    if query.order_by:
        clauses.append("ORDER BY " + ", ".join(_order(order) for order in query.order_by))
    if query.limit is not None:
        clauses.append(f"LIMIT {query.limit}")
    return " ".join(clauses)


def scope_sql(scope: Scope) -> str:
    """A scope as a condition; ``TRUE`` where everything is meant."""
    parts: list[str] = []
    if scope.regions is not None:
        parts.append(_either([_region(region) for region in scope.regions]))
    if scope.times is not None:
        parts.append(_either([_span(span) for span in scope.times]))
    if scope.hours is not None:
        parts.append(f"hour IN ({', '.join(str(hour) for hour in sorted(scope.hours))})")
    parts += [_condition(condition) for condition in scope.conditions]
    return " AND ".join(parts) or "TRUE"


def name_sql(name: str) -> str:
    """A name, in double quotes where it is not a plain word or is one of the language's."""
    if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _column(column: Column) -> str:
    text = value_sql(column.value)
    return text if column.name == column.value.title else f"{text} AS {name_sql(column.name)}"


def value_sql(value: Expression) -> str:
    """What a column asks."""
    match value:
        case Key() | Number():
            return value.title
        case Matching(form):
            return "*" if form == "leaves" else form
        case Ref(table, column):
            return f"{name_sql(table)}.{name_sql(column)}"
        case Math(operator, left, right):
            sides = [
                f"({value_sql(s)})" if isinstance(s, Math) else value_sql(s) for s in (left, right)
            ]
            return f"{sides[0]} {operator} {sides[1]}"
        case Synthetic(rows, percent, seed):
            size = str(rows) if percent is None else f"'{plain(percent)}%'"
            return f"synthetic({size})" if seed is None else f"synthetic({size}, {seed})"
        case Contrast(left, left_scope, right, right_scope):
            first, second = scope_sql(left_scope), scope_sql(right_scope)
            other = "" if left == right else f"{value_sql(right)}, "
            return f"contrast({value_sql(left)}, {first}, {other}{second})"
        case Call("distinct"):
            return value.title
        case Call(name, features, numbers):
            named = [name_sql(feature) for feature in features]
            written_numbers = [plain(number) for number in numbers]
            if FUNCTIONS[name].pairs:
                pairs = zip(named, written_numbers, strict=True)
                return f"{name}({', '.join(f'{f} = {n}' for f, n in pairs)})"
            inside = ", ".join(named + written_numbers)
            return f"{name}({inside or ('*' if name == 'count' else '')})"


def _order(order: Order) -> str:
    return name_sql(order.column) + (" DESC" if order.descending else "")


def _join(join: Join) -> str:
    left, right = name_sql(join.left_name), name_sql(join.right_name)
    on = " AND ".join(f"{left}.{name_sql(a)} = {right}.{name_sql(b)}" for a, b in join.on)
    return f"FROM ({to_sql(join.left)}) AS {left} JOIN ({to_sql(join.right)}) AS {right} ON {on}"


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"


def _region(region: Region) -> str:
    match region:
        case Box(west, south, east, north):
            return f"region IN bbox({', '.join(plain(n) for n in (west, south, east, north))})"
        case Circle(lon, lat, km):
            return f"region IN circle({plain(lon)}, {plain(lat)}, {plain(km)})"
        case Prefix(text):
            return f"region IN geohash('{text}')"


def _span(span: Span) -> str:
    ends = []
    if span.start != EARLIEST:
        ends.append(f"time >= '{written(span.start)}'")
    if span.end != LATEST:
        ends.append(f"time < '{written(span.end)}'")
    return " AND ".join(ends)


def _condition(condition: Condition) -> str:
    name = name_sql(condition.feature)
    parts = [_range(name, item) for item in condition.ranges]
    return _either(parts + [f"{name} IS NULL"] * condition.missing)


def _range(name: str, item: Range) -> str:
    if item == EVERYTHING:
        return f"{name} IS NOT NULL"
    if item.low == item.high:
        return f"{name} = {plain(item.low)}"
    ends = []
    if item.low != EVERYTHING.low:
        ends.append(f"{name} {'>=' if item.low_closed else '>'} {plain(item.low)}")
    if item.high != EVERYTHING.high:
        ends.append(f"{name} {'<=' if item.high_closed else '<'} {plain(item.high)}")
    return " AND ".join(ends)
