"""A query as a value: what to ask of which part of the sketch, grouped and sorted how.

Made by :func:`~geoflux.sketch.language_sql.parse_sql`, by
:func:`~geoflux.sketch.language_json.from_json` or by hand; checked when it is made
(:class:`~geoflux.errors.QueryError`), evaluated elsewhere. Equal queries are equal values with
equal hashes, so an answer or a plan may be kept for them. Synopsis, section 3.8.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from geoflux.errors import QueryError
from geoflux.sketch.expressions import (
    PLACES,
    TIME_BINS,
    Call,
    Contrast,
    Expression,
    Key,
    Matching,
    Math,
    Number,
    Ref,
    Synthetic,
    inside,
)
from geoflux.sketch.functions import Kind, nearest
from geoflux.sketch.scope import EVERYWHERE, Scope

MAX_COLUMNS = 100
MAX_LIMIT = 2**53
MAX_NAME = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the answer; where no ``name`` is given it is called as it is written."""

    value: Expression
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.value.title)
        found = inside(self.value)
        if all(isinstance(part, Number) for part in found):
            raise QueryError(f"{self.value.title} asks nothing of the sketch")

    @property
    def scalar(self) -> bool:
        """Whether it can be sorted by."""
        value = self.value
        return isinstance(value, Math | Key | Ref) or (isinstance(value, Call) and value.scalar)


@dataclass(frozen=True, slots=True)
class Order:
    """Sorted by the column of that name; rows without a value come last."""

    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """Two queries and the columns that must be equal: pairs of a name on the left and one on the
    right, each a key of its query. Rows without a partner are left out (an inner join)."""

    left: Query
    right: Query
    on: tuple[tuple[str, str], ...]
    left_name: str = "a"
    right_name: str = "b"

    def __post_init__(self) -> None:
        if self.left_name == self.right_name:
            raise QueryError(f"both sides of the join are called {self.left_name!r}")
        for side in (self.left, self.right):
            if side.join is not None or isinstance(side.select[0].value, Matching | Synthetic):
                raise QueryError("a join takes two queries with columns and keys, not others")
            if side.every is not None:
                raise QueryError("'every' belongs to the whole query, not to a side of its join")
        if not self.on:
            raise QueryError("a join needs equal keys: ON a.region = b.region")
        for left, right in self.on:
            keys = (
                self.column(self.left_name, left).value,
                self.column(self.right_name, right).value,
            )
            if keys[0] != keys[1] or not isinstance(keys[0], Key):
                raise QueryError(
                    f"{self.left_name}.{left} and {self.right_name}.{right} are not the same key; "
                    "join on a column that both sides group by"
                )

    def column(self, table: str, name: str) -> Column:
        """A column of one side by its name."""
        sides = {self.left_name: self.left, self.right_name: self.right}
        side = sides.get(table)
        if side is None:
            raise QueryError(f"unknown name {table!r}; the joined queries are {', '.join(sides)}")
        names = [c.name for c in side.columns]
        if name not in names:
            hint = nearest(name, names) or ";"
            raise QueryError(f"{table} has no column {name!r}{hint} columns: {', '.join(names)}")
        return side.columns[names.index(name)]


@dataclass(frozen=True, slots=True)
class Query:
    """``select`` of the observations in ``where``, one row for each value of the ``group_by`` keys.

    With a ``join`` the columns are those of its two queries, and ``where`` and ``group_by`` are
    theirs. ``every``: evaluate again at each epoch (``"epoch"``) or after so many seconds.

    >>> asked = Query((Column(Call("mean", ("t2m_k",))),), group_by=(Key("geohash", 3),))
    >>> [column.name for column in asked.columns], asked.kind
    (['geohash(3)', 'mean(t2m_k)'], 'statistical')
    """

    select: tuple[Column, ...]
    where: Scope = EVERYWHERE
    group_by: tuple[Key, ...] = ()
    order_by: tuple[Order, ...] = ()
    limit: int | None = None
    join: Join | None = None
    every: float | Literal["epoch"] | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.select) <= MAX_COLUMNS:
            raise QueryError(f"{len(self.select)} columns are asked; expected 1 to {MAX_COLUMNS}")
        self._check_alone()
        self._check_keys()
        self._check_refs()
        self._check_names()
        if self.limit is not None and not 1 <= self.limit <= MAX_LIMIT:
            raise QueryError(f"LIMIT is {self.limit}; expected 1 or more")
        if isinstance(self.every, str) and self.every != "epoch":
            raise QueryError(f"every is {self.every!r}; expected 'epoch' or a number of seconds")
        if isinstance(self.every, int | float) and not 0 < self.every < math.inf:
            raise QueryError(f"every is {self.every} seconds; expected more than 0")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the answer: keys that were not selected first, then ``select``."""
        selected = {column.value for column in self.select}
        return (*(Column(key) for key in self.group_by if key not in selected), *self.select)

    @property
    def kind(self) -> Kind:
        """Which of the six kinds it is; "mixed" if its functions are of several."""
        first = self.select[0].value
        if isinstance(first, Matching):
            return "relational"
        if isinstance(first, Synthetic):
            return "synthetic"
        sides = (self,) if self.join is None else (self.join.left, self.join.right)
        values = [v for side in sides for c in side.select for v in inside(c.value)]
        kinds: set[Kind] = {v.kind for v in values if isinstance(v, Call)}
        kinds |= {"statistical" for v in values if isinstance(v, Contrast)}
        return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "statistical"

    def _check_alone(self) -> None:
        whole = [c.value for c in self.select if isinstance(c.value, Matching | Synthetic)]
        if not whole:
            return
        title = whole[0].title
        if len(self.select) > 1:
            raise QueryError(f"{title} stands alone in a query, without other columns")
        if self.select[0].name != title or self.group_by or self.join:
            raise QueryError(f"{title} takes neither a name nor GROUP BY nor a join")
        if isinstance(whole[0], Synthetic) and self.limit is not None:
            raise QueryError("synthetic takes no LIMIT; give it the number of rows")
        if self.order_by and title != "leaves":
            raise QueryError(f"{title} has no order; leave ORDER BY away")

    def _check_keys(self) -> None:
        for names, what in ((PLACES, "place"), (TIME_BINS, "time bin"), (("hour_of_day",), "hour")):
            if sum(key.name in names for key in self.group_by) > 1:
                raise QueryError(f"GROUP BY takes one {what}, it was given several")
        for column in self.select:
            if isinstance(column.value, Key) and column.value not in self.group_by:
                title = column.value.title
                raise QueryError(f"{title} is selected but not grouped by; add GROUP BY {title}")

    def _check_refs(self) -> None:
        for column in self.select:
            for part in inside(column.value):
                if self.join is None and isinstance(part, Ref):
                    raise QueryError(f"{part.title} names a joined query, and there is no join")
                if self.join is not None and not isinstance(part, Ref | Number):
                    raise QueryError(
                        f"{part.title}: a join selects columns of its two queries, "
                        f"such as {self.join.left_name}.{self.join.left.columns[-1].name}"
                    )
                if self.join is not None and isinstance(part, Ref):
                    found = self.join.column(part.table, part.column)
                    if part is not column.value and not _number(found):
                        raise QueryError(f"{part.title} is not a single number to calculate with")
        if self.join is not None and (self.group_by or not self.where.everything):
            raise QueryError("WHERE and GROUP BY of a join belong into its two queries")

    def _check_names(self) -> None:
        columns = self.columns
        names = [column.name for column in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise QueryError(f"two columns are called {twice!r}; give one another name with AS")
        if any(len(name) > MAX_NAME for name in names):
            raise QueryError(f"the name of a column has more than {MAX_NAME} letters; use AS")
        if isinstance(self.select[0].value, Matching):
            return  # sorted by columns of the leaves, which depend on the sketch
        for order in self.order_by:
            if order.column not in names:
                hint = nearest(order.column, names) or ";"
                raise QueryError(
                    f"ORDER BY {order.column[:100]}: no such column{hint} "
                    f"columns: {', '.join(names)}"
                )
            if not self._sortable(columns[names.index(order.column)]):
                raise QueryError(f"ORDER BY {order.column}: it is not a single number")

    def _sortable(self, column: Column) -> bool:
        if self.join is not None and isinstance(column.value, Ref):
            column = self.join.column(column.value.table, column.value.column)
        return column.scalar


def _number(column: Column) -> bool:
    return column.scalar and not isinstance(column.value, Key)
