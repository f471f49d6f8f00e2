"""Reads sqlglot's tree of a SELECT into a query."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sqlglot import exp

from geoflux.errors import QueryError
from geoflux.sketch.expressions import KEYS, Expression, Key, Matching, Ref
from geoflux.sketch.query import Column, Join, Order, Query
from geoflux.sketch.scope import EVERYWHERE
from geoflux.sketch.sql_source import Source, name_of
from geoflux.sketch.sql_values import ValueReader

_CLAUSES = ("expressions", "from_", "joins", "where", "group", "order", "limit")
_SKETCH = "sketch"


class Reader(ValueReader):
    """Reads one query; with a join, its columns are those of the two joined queries."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._tables: dict[str, Query] = {}
        self._equal: set[str] = set()  # names that the join makes equal on both sides

    def query(
        self, tree: exp.Expr, *, every: float | Literal["epoch"] | None = None, inner: bool = False
    ) -> Query:
        """The whole query; ``inner`` for one side of a join."""
        if not isinstance(tree, exp.Select):
            raise self.source.error(
                f"{type(tree).__name__.upper()} is not possible; expected one SELECT", tree
            )
        if tree.args.get("distinct"):
            raise self.source.error(
                "SELECT DISTINCT is not possible; to count, write count(DISTINCT *)", tree
            )
        self.source.only(tree, *_CLAUSES)
        join = self._joined(tree, inner)
        where, group = tree.args.get("where"), tree.args.get("group")
        scope = EVERYWHERE if where is None else self.scope(where.this)
        if join is not None:
            self._tables = {join.left_name: join.left, join.right_name: join.right}
            self._equal = {left for left, right in join.on if left == right}
        select = tuple(self._column(node) for node in tree.expressions)
        keys = () if group is None else self._keys(group, select)
        try:
            plain = Query(select, scope, keys, (), None, join, every)
        except QueryError as error:
            for column, node in zip(select, tree.expressions, strict=True):
                with self.source.at(node):  # if it is wrong alone as well, it is the place
                    Query((column,), group_by=keys, join=join)
            raise self.source.error(error.sentence, tree) from None
        order, limit = tree.args.get("order"), tree.args.get("limit")
        with self.source.at(order or tree):
            ordered = replace(plain, order_by=self._order(order, plain))
        with self.source.at(limit or tree):
            return replace(ordered, limit=self._limit(limit))

    def value(self, node: exp.Expr, deep: int = 0) -> Expression:
        """What an expression asks; of a join, a column of one side."""
        if self._tables and isinstance(node, exp.Column | exp.Dot):
            with self.source.at(node):
                return self._ref(node, self._tables)
        return super().value(node, deep)

    def _column(self, node: exp.Expr) -> Column:
        name = ""
        if isinstance(node, exp.Alias):
            name, node = node.alias, node.this
        value = self.value(node)
        with self.source.at(node):
            return Column(value, name)

    def _keys(self, group: exp.Group, select: tuple[Column, ...]) -> tuple[Key, ...]:
        self.source.only(group, "expressions")
        named = {c.name: c.value for c in select if isinstance(c.value, Key)}
        keys = []
        for node in group.expressions:
            # A name of the language means itself, whatever a column is called.
            alias = None if name_of(node) in (*KEYS, "") else named.get(node.name)
            keys.append(self.key(node) if alias is None else alias)
        return tuple(keys)

    def _order(self, order: exp.Order | None, query: Query) -> tuple[Order, ...]:
        if order is None:
            return ()
        self.source.only(order, "expressions")
        found = []
        for node in order.expressions:
            self.source.only(node, "this", "desc")
            with self.source.at(node):
                name = self._sorted_by(node.this, query)
            self.places.setdefault(("order", name), node)
            found.append(Order(name, bool(node.args.get("desc"))))
        return tuple(found)

    def _sorted_by(self, node: exp.Expr, query: Query) -> str:
        """The name of the column that a node of ORDER BY means: its name, number or value."""
        columns = query.columns
        names = [column.name for column in columns]
        single = isinstance(node, exp.Column) and not node.table
        if single and (node.name in names or isinstance(query.select[0].value, Matching)):
            return node.name
        if isinstance(node, exp.Literal) and not node.is_string:
            place = self.source.whole(node, "the number of the column")
            if not 1 <= place <= len(query.select):
                raise QueryError(f"ORDER BY {place}: {len(query.select)} columns are selected")
            return query.select[place - 1].name
        if (
            single
            and not self._tables
            and not any(isinstance(c.value, Key) and c.value.name == name_of(node) for c in columns)
        ):
            return node.name  # the query says which columns there are
        value = self.value(node)
        for column in columns:
            if column.value == value:
                return column.name
        raise QueryError(
            f"ORDER BY {self.source.words(node)}: sort by a column of the answer: "
            f"{', '.join(names)}"
        )

    def _limit(self, node: exp.Limit | None) -> int | None:
        if node is None:
            return None
        if not isinstance(node, exp.Limit):
            raise self.source.error("write LIMIT and a number", node)
        self.source.only(node, "expression")
        return self.source.whole(node.expression, "LIMIT")

    def _joined(self, tree: exp.Select, inner: bool) -> Join | None:
        start, joins = tree.args.get("from_"), tree.args.get("joins") or []
        if start is None:
            return None
        source = start.this
        if isinstance(source, exp.Table):
            self.source.only(source, "this")
            if source.name.lower() != _SKETCH or joins:
                raise self.source.error(
                    f"FROM {self.source.words(source)}: expected FROM {_SKETCH}, nothing, or two "
                    "queries: FROM (SELECT ...) a JOIN (SELECT ...) b ON a.region = b.region",
                    source,
                )
            return None
        if inner or len(joins) != 1:
            raise self.source.error("FROM takes the sketch, or a join of two queries", source)
        joined = joins[0]
        words = [str(joined.args[k]) for k in ("method", "side", "kind") if joined.args.get(k)]
        if words not in ([], ["INNER"]):
            raise self.source.error(
                f"{' '.join(words)} JOIN is not possible; JOIN keeps the keys that both sides have",
                joined.this,
            )
        self.source.only(joined, "this", "on", "using", "kind")
        (left, left_name), (right, right_name) = self._side(source), self._side(joined.this)
        if left_name == right_name:
            raise self.source.error(f"both sides are called {left_name!r}", joined.this)
        on = self._on(joined, {left_name: left, right_name: right})
        with self.source.at(joined.args.get("on") or joined):
            return Join(left, right, on, left_name, right_name)

    def _side(self, node: exp.Expr) -> tuple[Query, str]:
        if not isinstance(node, exp.Subquery) or not node.alias:
            raise self.source.error("a join takes queries with names: (SELECT ...) a", node)
        self.source.only(node, "this", "alias")
        self.source.only(node.args["alias"], "this")
        return self.query(node.this, inner=True), node.alias

    def _on(self, joined: exp.Join, tables: dict[str, Query]) -> tuple[tuple[str, str], ...]:
        using, on = joined.args.get("using"), joined.args.get("on")
        if using:
            return tuple((node.name, node.name) for node in using)
        if on is None:
            raise self.source.error("a join needs equal keys: ON a.region = b.region", joined)
        left, right = tables
        pairs = []
        for node in on.flatten() if isinstance(on, exp.And) else [on]:
            equal = node.unnest()
            ends = (equal.this, equal.expression) if isinstance(equal, exp.EQ) else ()
            with self.source.at(node):
                sides = {ref.table: ref.column for ref in (self._ref(e, tables) for e in ends)}
                if set(sides) != {left, right}:
                    raise QueryError(
                        f"ON takes equal keys of both sides, joined by AND: {left}.region = "
                        f"{right}.region"
                    )
            pairs.append((sides[left], sides[right]))
        return tuple(pairs)

    def _ref(self, node: exp.Expr, tables: dict[str, Query]) -> Ref:
        """``a.t``, ``t`` where only one side has it, or ``a.mean(t2m_k)``."""
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier):
            table = node.this.name
            value = super().value(node.expression)
            for column in tables[table].columns if table in tables else ():
                if column.value == value:
                    return Ref(table, column.name)
            raise QueryError(f"{table} has no column {value.title}; the sides are {_shown(tables)}")
        if not isinstance(node, exp.Column) or node.args.get("db"):
            raise QueryError(
                f"{self.source.words(node)} is no column; the sides are {_shown(tables)}"
            )
        if node.table:
            return Ref(node.table, node.name)
        having = [t for t, side in tables.items() if node.name in {c.name for c in side.columns}]
        if len(having) != 1 and node.name not in self._equal:
            which = "no side has" if not having else "both sides have"
            raise QueryError(f"{which} a column {node.name!r}; the sides are {_shown(tables)}")
        return Ref(having[0], node.name)


def _shown(tables: dict[str, Query]) -> str:
    return " and ".join(
        f"{name} ({', '.join(column.name for column in side.columns)})"
        for name, side in tables.items()
    )
