"""Reads the JSON form of a query, value by value, and remembers where each name stood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from geoflux.errors import QueryError
from geoflux.sketch.expressions import (
    KEYS,
    MAX_DEPTH,
    Call,
    Contrast,
    Expression,
    Key,
    Matching,
    Math,
    Number,
    Operator,
    Ref,
    Synthetic,
)
from geoflux.sketch.functions import function
from geoflux.sketch.json_scope import ScopeReader
from geoflux.sketch.json_values import array, at, kept, number, obj, text, whole
from geoflux.sketch.query import Column, Join, Order, Query
from geoflux.sketch.scope import Scope

_QUERY = ("select", "where", "group_by", "order_by", "limit", "join", "every")


class Reader(ScopeReader):
    """Reads one query; ``places`` then says where its features and keys stood first."""

    def __init__(self) -> None:
        super().__init__()
        self._joined = False
        self._deep = 0

    def query(self, given: object, path: str) -> Query:
        """A whole query."""
        form = obj(given, _QUERY, path)
        if "select" not in form:
            raise QueryError("a query needs 'select', a list of columns", path=path)
        selected = form["select"]
        selected = [selected] if isinstance(selected, str) else selected
        select = [
            self.column(item, f"{path}.select[{i}]")
            for i, item in enumerate(array(selected, f"{path}.select"))
        ]
        keys = array(form.get("group_by", []), f"{path}.group_by")
        group_by = [self.key(item, f"{path}.group_by[{i}]") for i, item in enumerate(keys)]
        orders = array(form.get("order_by", []), f"{path}.order_by")
        order_by = [self.order(item, f"{path}.order_by[{i}]") for i, item in enumerate(orders)]
        limit, every, joined = form.get("limit"), form.get("every"), form.get("join")
        where = self.scope(form.get("where", {}), f"{path}.where")
        join = None if joined is None else self.join(joined, f"{path}.join")
        if every is not None and every != "epoch":
            every = number(every, f"{path}.every")
        with at(path):
            return Query(
                tuple(select),
                where,
                tuple(group_by),
                tuple(order_by),
                None if limit is None else whole(limit, f"{path}.limit"),
                join,
                every,
            )

    def column(self, given: object, path: str) -> Column:
        """A column: its value, and perhaps a name under ``as``."""
        name = ""
        if isinstance(given, Mapping) and "as" in given:
            name = text(given["as"], f"{path}.as")
            given = {key: value for key, value in given.items() if key != "as"}
            if list(given) == ["key"]:
                given = given["key"]
        value = self.value(given, path)
        with at(path):
            return Column(value, name)

    def value(self, given: object, path: str) -> Expression:
        """What a column asks."""
        if isinstance(given, int | float) and not isinstance(given, bool):
            return Number(number(given, path))
        if isinstance(given, str):
            if given in ("leaves", "graph"):
                return Matching(cast(Any, given))
            return self.key(given, path)
        form = obj(given, (), path)
        if len(form) != 1:
            raise QueryError(
                f'{kept(given)} is no column; expected one function, such as {{"mean": ["x"]}}',
                path=path,
            )
        ((name, inner),) = form.items()
        path = f"{path}.{name[:100]}"
        with at(path):
            if name in get_args(Operator):
                return self._math(cast(Operator, name), inner, path)
            if name == "column":
                table, column = (text(part, path) for part in array(inner, path, 2))
                return Ref(table, column)
            if name in KEYS:
                return self.key({name: inner}, path)
            if name == "synthetic":
                return self._synthetic(inner, path)
            if name == "contrast":
                left, right = (self._side(side, path) for side in array(inner, path, 2))
                return Contrast(*left, *right)
            return self.call(name, inner, path)

    def call(self, name: str, inner: object, path: str) -> Call:
        """A function: a list of features and numbers, or an object of features and their values."""
        made = function(name)
        if made.pairs:
            pairs = obj(inner, (), path)
            features = [self.feature(feature, path) for feature in pairs]
            return Call(name, tuple(features), tuple(number(v, path) for v in pairs.values()))
        given = [inner] if isinstance(inner, str) else array(inner, path)
        features = [self.feature(item, path) for item in given if isinstance(item, str)]
        rest = given[len(features) :]
        return Call(name, tuple(features), tuple(number(item, path) for item in rest))

    def key(self, given: object, path: str) -> Key:
        """``"region"``, ``"hour"``, ``{"geohash": 3}``."""
        with at(path):
            if isinstance(given, str):
                made = Key(given)
            else:
                form = obj(given, ("geohash",), path)
                if len(form) != 1:
                    raise QueryError('geohash is grouped by with letters: {"geohash": 3}')
                made = Key("geohash", whole(form["geohash"], path))
        self.places.setdefault(("key", made.title), path)
        return made

    def order(self, given: object, path: str) -> Order:
        """``"name"`` or ``{"column": "name", "descending": true}``."""
        if isinstance(given, str):
            given = {"column": given}
        form = obj(given, ("column", "descending"), path)
        down = form.get("descending", False)
        if not isinstance(down, bool):
            raise QueryError(f"descending is {kept(down)}; expected true or false", path=path)
        name = text(form.get("column"), f"{path}.column")
        self.places.setdefault(("order", name), path)
        return Order(name, down)

    def join(self, given: object, path: str) -> Join:
        """Two queries, their names and the pairs of equal columns."""
        if self._joined:
            raise QueryError("a side of a join cannot be a join", path=path)
        self._joined = True
        form = obj(given, ("left", "right", "names", "on"), path)
        left, right = (self.query(form.get(side), f"{path}.{side}") for side in ("left", "right"))
        names = [text(n, f"{path}.names") for n in array(form.get("names", ["a", "b"]), path, 2)]
        pairs = []
        for item in array(form.get("on"), f"{path}.on"):
            pair = [item, item] if isinstance(item, str) else array(item, f"{path}.on", 2)
            pairs.append((text(pair[0], f"{path}.on"), text(pair[1], f"{path}.on")))
        with at(path):
            return Join(left, right, tuple(pairs), *names)

    def _math(self, operator: Operator, given: object, path: str) -> Math:
        self._deep += 1
        if self._deep > MAX_DEPTH:
            raise QueryError(f"a calculation is nested more than {MAX_DEPTH} deep")
        left, right = (self.value(side, path) for side in array(given, path, 2))
        self._deep -= 1
        return Math(operator, left, right)

    def _side(self, given: object, path: str) -> tuple[Call, Scope]:
        form = obj(given, ("value", "where"), path)
        value = obj(form.get("value"), (), f"{path}.value")
        if len(value) != 1:
            raise QueryError('contrast takes functions, such as {"mean": ["x"]}', path=path)
        ((name, inner),) = value.items()
        return self.call(name, inner, path), self.scope(form.get("where", {}), f"{path}.where")

    def _synthetic(self, given: object, path: str) -> Synthetic:
        form = obj(given, ("rows", "percent", "seed"), path)
        rows, percent, seed = (form.get(name) for name in ("rows", "percent", "seed"))
        return Synthetic(
            None if rows is None else whole(rows, f"{path}.rows"),
            None if percent is None else number(percent, f"{path}.percent"),
            None if seed is None else whole(seed, f"{path}.seed"),
        )
