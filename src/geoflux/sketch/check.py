"""Names of a query against a sketch: are its features there, and its bins fine enough?

A query is a value without places; so each mistake names its *subject*, and whoever read the text
knows where that subject stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from geoflux.errors import QueryError
from geoflux.sketch.expressions import Call, Contrast, Expression, Matching, inside
from geoflux.sketch.functions import nearest
from geoflux.sketch.query import Query
from geoflux.sketch.scope import Scope

Subject: TypeAlias = tuple[str, str]
LEAF_COLUMNS = ("region", "time", "count")


class Names(Protocol):
    """What of a sketch's schema a query must fit."""

    @property
    def features(self) -> tuple[str, ...]: ...
    @property
    def region_bits(self) -> int: ...
    @property
    def finest(self) -> str: ...


def check(
    query: Query, schema: Names, placed: Callable[[Subject, str], QueryError] | None = None
) -> Query:
    """The query, if the sketch can answer it; a :class:`QueryError` for its first mistake."""
    for subject, sentence in mistakes(query, schema):
        raise placed(subject, sentence) if placed else QueryError(sentence)
    return query


def mistakes(query: Query, schema: Names) -> Iterator[tuple[Subject, str]]:
    """Everything that does not fit, with its subject: a feature, a key or a column to sort by."""
    if query.join is not None:
        yield from mistakes(query.join.left, schema)
        yield from mistakes(query.join.right, schema)
        return
    for feature in features_of(query):
        if feature not in schema.features:
            yield ("feature", feature), unknown("feature", feature, schema.features)
    letters = schema.region_bits // 5
    for key in query.group_by:
        if key.letters is not None and key.letters > letters:
            yield (
                ("key", key.title),
                f"GROUP BY {key.title}: regions of this sketch have {letters} letters at most",
            )
        if key.name == "minute" and schema.finest != "minute":
            yield (
                ("key", key.title),
                f"GROUP BY minute: the finest time bin of this sketch is the {schema.finest}",
            )
    if isinstance(query.select[0].value, Matching):
        known = (*LEAF_COLUMNS, *schema.features)
        for order in query.order_by:
            if order.column not in known:
                yield ("order", order.column), unknown("column", order.column, known)


def unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    """The sentence about a name that is not there."""
    hint = nearest(name, known) or ";"
    return f"unknown {what} {name[:100]!r}{hint} {what}s: {', '.join(known)}"


def features_of(query: Query) -> tuple[str, ...]:
    """The features that a query names (without its joined queries), each once."""
    found: list[str] = []
    for column in query.select:
        for part in inside(column.value):
            found += _features(part)
    found += _conditions(query.where)
    return tuple(dict.fromkeys(found))


def _features(part: Expression) -> list[str]:
    if isinstance(part, Call):
        return list(part.features)
    if isinstance(part, Contrast):
        return [
            *part.left.features,
            *_conditions(part.left_scope),
            *part.right.features,
            *_conditions(part.right_scope),
        ]
    return []


def _conditions(scope: Scope) -> list[str]:
    return [condition.feature for condition in scope.conditions]
