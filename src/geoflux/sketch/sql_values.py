"""Reads the columns of a query: functions, keys, calculations."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

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
    Synthetic,
)
from geoflux.sketch.functions import Function, function
from geoflux.sketch.sql_scope import ScopeReader
from geoflux.sketch.sql_source import name_of

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_CONTRAST = (
    "contrast takes a function and two conditions: contrast(mean(a), region IN bbox(...), "
    "region IN bbox(...))"
)


class ValueReader(ScopeReader):
    """Reads what columns ask; ``places`` then says where features and keys stood first."""

    def value(self, node: exp.Expr, deep: int = 0) -> Expression:
        """What an expression asks."""
        if deep > 2 * MAX_DEPTH:
            raise self.source.error(f"a calculation is nested more than {MAX_DEPTH} deep", node)
        if isinstance(node, exp.Paren):
            return self.value(node.this, deep + 1)
        number = self.source.number(node)
        if number is not None:
            return Number(number)
        with self.source.at(node):
            if isinstance(node, exp.Neg):
                return Math("-", Number(0.0), self.value(node.this, deep + 1))
            if type(node) in _OPERATORS:
                left = self.value(node.this, deep + 1)
                return Math(_OPERATORS[type(node)], left, self.value(node.expression, deep + 1))
            if isinstance(node, exp.Star):
                self.source.only(node)
                return Matching()
            if isinstance(node, exp.Anonymous):
                return self._function(node)
            return self.named(node)

    def named(self, node: exp.Expr) -> Expression:
        """What a bare name asks: a key, or the matching part of the sketch."""
        name = name_of(node)
        if name in ("leaves", "graph"):
            return Matching("leaves" if name == "leaves" else "graph")
        if name in KEYS:
            return self.key(node)
        if isinstance(node, exp.Column) and node.table:
            raise QueryError(f"{self.source.words(node)} names a joined query, and there is none")
        if name:
            feature = self.feature(node)
            raise QueryError(
                f"{feature!r} stands alone; ask a function of it, such as mean({feature}), or "
                "SELECT * for the leaves"
            )
        if isinstance(node, exp.Filter | exp.Window):
            raise QueryError(
                "FILTER and OVER are not possible; compare parts with contrast(mean(a), condition, "
                "condition), or group by a key"
            )
        raise QueryError(
            f"{self.source.words(node)} cannot be selected; possible are functions of features, "
            "+ - * / of them, keys that are grouped by, and *"
        )

    def key(self, node: exp.Expr) -> Key:
        """A key to group by."""
        with self.source.at(node):
            if isinstance(node, exp.Anonymous) and node.name.lower() == "geohash":
                if len(node.expressions) != 1:
                    raise QueryError("geohash is grouped by with a number of letters: geohash(3)")
                made = Key("geohash", self.source.whole(node.expressions[0], "geohash's length"))
            elif isinstance(node, exp.Column):
                made = Key(name_of(node) or self.source.words(node))
            else:
                made = Key(self.source.words(node))
        self.places.setdefault(("key", made.title), node)
        return made

    def _function(self, node: exp.Anonymous) -> Expression:
        name = node.name.lower()
        if name == "geohash":
            return self.key(node)
        if name == "synthetic":
            return self._synthetic(node)
        if name == "contrast":
            return self._contrast(node)
        return self.call(node)

    def call(self, node: exp.Expr) -> Call:
        """A function of features and numbers."""
        with self.source.at(node):
            if not isinstance(node, exp.Anonymous):
                raise QueryError(f"{self.source.words(node)} is no function of a feature")
            given = list(node.expressions)
            made = function(node.name)
            if made.name == "count" and len(given) == 1:
                if isinstance(given[0], exp.Star):
                    self.source.only(given[0])
                    return Call("count")
                if isinstance(given[0], exp.Distinct):
                    return self._distinct(given[0])
            if made.pairs:
                return self._paired(made, given)
            features: list[str] = []
            numbers: list[float] = []
            for item in given:
                number = self.source.number(item)
                if number is not None:
                    numbers.append(number)
                elif numbers:
                    raise self.source.error(
                        f"{made.name} takes features first, then numbers: {made.usage}", item
                    )
                else:
                    features.append(self.feature(item))
            return Call(made.name, tuple(features), tuple(numbers))

    def _distinct(self, node: exp.Distinct) -> Call:
        self.source.only(node, "expressions")
        inner = node.expressions
        if len(inner) == 1 and isinstance(inner[0], exp.Star):
            self.source.only(inner[0])
            return Call("distinct")
        raise QueryError(
            "distinct values are counted of whole observations only: count(DISTINCT *)"
        )

    def _paired(self, made: Function, given: list[exp.Expr]) -> Call:
        """``contains(a = 1.5, b = 2)`` or ``contains(a, 1.5, b, 2)``."""
        if all(isinstance(item, exp.EQ) for item in given):
            pairs = [(item.this, item.expression) for item in given]
        elif len(given) % 2 == 0:
            pairs = list(zip(given[::2], given[1::2], strict=True))
        else:
            raise QueryError(f"{made.name} takes one value for each feature: {made.usage}")
        features = [self.feature(feature) for feature, _ in pairs]
        return Call(made.name, tuple(features), tuple(self._number(value) for _, value in pairs))

    def _contrast(self, node: exp.Anonymous) -> Contrast:
        given = node.expressions
        if len(given) == 3:
            call = self.call(given[0])
            return Contrast(call, self.scope(given[1]), call, self.scope(given[2]))
        if len(given) == 4:
            left, right = self.call(given[0]), self.call(given[2])
            return Contrast(left, self.scope(given[1]), right, self.scope(given[3]))
        raise QueryError(f"{_CONTRAST}; it was given {len(given)} arguments")

    def _synthetic(self, node: exp.Anonymous) -> Synthetic:
        given = node.expressions
        if not 1 <= len(given) <= 2:
            raise QueryError(
                f"synthetic takes a number of rows or a share, and perhaps a seed; it was given "
                f"{len(given)} arguments: synthetic(1000), synthetic('10%', 42)"
            )
        seed = self.source.whole(given[1], "the seed") if len(given) == 2 else None
        size = given[0]
        if not (isinstance(size, exp.Literal) and size.is_string):
            return Synthetic(self.source.whole(size, "the number of rows"), None, seed)
        text = cast(str, size.this).strip()
        try:
            if not text.endswith("%"):
                raise ValueError
            percent = float(text[:-1])
        except ValueError:
            raise self.source.error(
                f"{text[:40]!r} is no share; expected such as '10%'", size
            ) from None
        return Synthetic(None, percent, seed)
