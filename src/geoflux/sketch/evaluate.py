"""Queries evaluated: a query and some forests in, an answer out.

A query is prepared once (names found, shapes and times planned) and run as often as wanted, over
forests as they are then. Forests are pooled, so it does not matter how the sketch is split over
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from geoflux.errors import QueryError
from geoflux.sketch.answers import Answer, KeyColumn, Values
from geoflux.sketch.asking import Asking, Keys
from geoflux.sketch.check import check
from geoflux.sketch.cover import ScopePlan
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
from geoflux.sketch.forest import Forest
from geoflux.sketch.functions_of import Notes, measures_of
from geoflux.sketch.language import parse_query
from geoflux.sketch.measures import Measure, calculated, exact
from geoflux.sketch.query import Column, Join, Query
from geoflux.sketch.relational import graph_tables, leaf_table
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.synthesis import synthetic_table
from geoflux.sketch.view import View, view_of

Given = str | Mapping[str, Any] | Query


def evaluate(query: Given, forests: Sequence[Forest]) -> Answer:
    """The answer to a query (SQL, JSON or a value) over all of these forests together."""
    return prepare(query, _schema_of(forests)).run(forests)


def prepare(query: Given, schema: SketchSchema) -> Prepared:
    """A query that is read, checked against the schema and planned."""
    return Prepared(parse_query(query, schema), schema)


class Prepared:
    """A query that can be run many times."""

    def __init__(self, query: Query, schema: SketchSchema) -> None:
        self.query = check(query, schema)
        self.schema = schema
        self._sides: tuple[Prepared, Prepared] | None = None
        if query.join is not None:
            self._sides = Prepared(query.join.left, schema), Prepared(query.join.right, schema)
        self._keys = Keys.of(query.group_by, schema)
        self._plan = ScopePlan(schema, query.where)

    def run(self, forests: Sequence[Forest]) -> Answer:
        """The answer over these forests as they are."""
        if _schema_of(forests) != self.schema:
            raise QueryError(
                "the query was prepared for a sketch of another schema; prepare it again"
            )
        return self.over([view_of(forest) for forest in forests])

    def over(self, views: Sequence[View]) -> Answer:
        """The answer over views of forests."""
        query = self.query
        if self._sides is not None and query.join is not None:
            sides = self._sides[0].over(views), self._sides[1].over(views)
            return _joined(query, query.join, sides).sorted(query.order_by, query.limit)
        first = query.select[0].value
        asking = Asking(self._plan, self._keys, views)
        if isinstance(first, Matching):
            return _matching(query, first, asking)
        if isinstance(first, Synthetic):
            covers = asking.leaf_pool.covers
            return Answer(table=synthetic_table(first, self._plan, covers))
        notes: Notes = []
        columns = tuple(_column(column, asking, notes) for column in query.columns)
        answer = Answer(columns, tuple(dict.fromkeys(notes)))
        return answer.sorted(query.order_by, query.limit)


def _schema_of(forests: Sequence[Forest]) -> SketchSchema:
    if not forests:
        raise QueryError("there is no sketch to ask: give at least one")
    schema = forests[0].schema
    if any(forest.schema != schema for forest in forests[1:]):
        raise QueryError("the sketches have different schemas; ask each kind by itself")
    return schema


def _matching(query: Query, asked: Matching, asking: Asking) -> Answer:
    covers = asking.leaf_pool.covers
    if asked.form == "graph":
        vertices, edges = graph_tables(covers)
        return Answer(table=vertices, edges=edges)
    table = leaf_table(covers)
    if query.order_by:
        keys = []
        for order in query.order_by:
            name = order.column
            if name in asking.schema.features:
                name = f"{name}_mean"
            keys.append((name, "descending" if order.descending else "ascending"))
        table = table.take(pc.sort_indices(table, sort_keys=keys))
    return Answer(table=table if query.limit is None else table.slice(0, query.limit))


def _column(column: Column, asking: Asking, notes: Notes) -> KeyColumn | Values:
    value = column.value
    if isinstance(value, Key):
        return asking.key_column(value, column.name)
    if isinstance(value, Call):
        return Values(column.name, measures_of(asking, value, notes))
    if isinstance(value, Contrast):
        return Values(column.name, _contrast(value, asking, notes))
    return Values(column.name, {"": _number(value, asking, notes)})


def _number(value: Expression, asking: Asking, notes: Notes) -> Measure:
    if isinstance(value, Number):
        return exact(np.full(len(asking.groups), value.value))
    if isinstance(value, Math):
        left, right = (_number(side, asking, notes) for side in (value.left, value.right))
        return calculated(value.operator, left, right)
    assert isinstance(value, Call), "a calculation is made of calls and numbers"
    return measures_of(asking, value, notes)[""]


def _contrast(value: Contrast, asking: Asking, notes: Notes) -> dict[str, Measure]:
    """Both sides and left less right, for the groups of the query."""
    found = []
    for call, scope in ((value.left, value.left_scope), (value.right, value.right_scope)):
        side = asking.narrowed(scope)
        measure = measures_of(side, call, notes)[""]
        nothing = 0.0 if call.name == "count" else np.nan
        found.append(measure if asking.ungrouped else asking.aligned(measure, side, nothing))
    left, right = found
    return {"left": left, "right": right, "difference": calculated("-", left, right)}


def _joined(query: Query, join: Join, sides: tuple[Answer, Answer]) -> Answer:
    """Rows of both sides whose keys are equal, in the order of the left."""
    keys = []
    for answer, which in zip(sides, (0, 1), strict=True):
        both = [answer.column(pair[which]) for pair in join.on]
        values = [c.values.tolist() for c in both if isinstance(c, KeyColumn)]
        keys.append(list(zip(*values, strict=True)))
    places: dict[tuple[Any, ...], list[int]] = {}
    for number, key in enumerate(keys[1]):
        places.setdefault(key, []).append(number)
    pairs = [(i, j) for i, key in enumerate(keys[0]) for j in places.get(key, [])]
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    held = {join.left_name: (sides[0], rows[:, 0]), join.right_name: (sides[1], rows[:, 1])}
    columns = tuple(_joined_column(column, held, len(rows)) for column in query.columns)
    return Answer(columns, tuple(dict.fromkeys(sides[0].notes + sides[1].notes)))


def _joined_column(
    column: Column, held: Mapping[str, tuple[Answer, Any]], size: int
) -> KeyColumn | Values:
    value = column.value
    if not isinstance(value, Ref):
        return Values(column.name, {"": _joined_number(value, held, size)})
    answer, rows = held[value.table]
    found = answer.column(value.column)
    if isinstance(found, KeyColumn):
        return KeyColumn(column.name, found.values[rows])
    return Values(column.name, {k: m.taken(rows) for k, m in found.measures.items()})


def _joined_number(value: Expression, held: Mapping[str, tuple[Answer, Any]], size: int) -> Measure:
    if isinstance(value, Number):
        return exact(np.full(size, value.value))
    if isinstance(value, Math):
        left, right = (_joined_number(side, held, size) for side in (value.left, value.right))
        return calculated(value.operator, left, right)
    assert isinstance(value, Ref), "a join calculates with columns of its sides"
    answer, rows = held[value.table]
    found = answer.column(value.column)
    assert isinstance(found, Values), "checked when the query was made"
    return found.only.taken(rows)
