"""What a query asks for: the values of its columns. Frozen, checked when made, not evaluated.

``title`` is how a column is called where the query gives it no name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from geoflux.errors import QueryError
from geoflux.sketch.functions import FUNCTIONS, Kind, check_arguments, function, nearest
from geoflux.sketch.scope import MAX_LETTERS, Scope, plain

MAX_DEPTH = 20
MAX_ROWS = 100_000_000
MAX_SEED = 2**63 - 1

KeyName = Literal[
    "region", "geohash", "minute", "hour", "day", "week", "month", "year", "hour_of_day"
]
PLACES: tuple[str, ...] = ("region", "geohash")
TIME_BINS: tuple[str, ...] = ("minute", "hour", "day", "week", "month", "year")
KEYS: tuple[str, ...] = get_args(KeyName)
Operator = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class Key:
    """What rows are grouped by: ``region`` (the finest of the sketch), ``geohash`` with 1 to 12
    ``letters``, a bin of time, or the hour of the day."""

    name: str
    letters: int | None = None

    def __post_init__(self) -> None:
        if self.name not in KEYS:
            hint = nearest(self.name, KEYS) or ";"
            raise QueryError(
                f"{self.name[:100]!r} is nothing to group by{hint} possible are region, "
                f"geohash(letters), {', '.join(KEYS[2:])}"
            )
        if (self.name == "geohash") != (self.letters is not None):
            raise QueryError("geohash is grouped by with a number of letters: geohash(3)")
        if self.letters is not None and not 1 <= self.letters <= MAX_LETTERS:
            raise QueryError(
                f"geohash({self.letters}) has no such length; expected 1 to {MAX_LETTERS} letters"
            )

    @property
    def title(self) -> str:
        """``region``, ``geohash(3)``, ``hour``."""
        return self.name if self.letters is None else f"{self.name}({self.letters})"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of features and numbers, such as ``quantile(t2m_k, 0.9)``.

    In ``contains`` and ``frequency`` the i-th number is the value of the i-th feature.

    >>> Call("avg", ("t2m_k",)).title
    'mean(t2m_k)'
    """

    name: str
    features: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        made = function(self.name)
        object.__setattr__(self, "name", made.name)
        # Adding 0.0 makes one zero of two, so that equal queries are written alike.
        object.__setattr__(self, "numbers", tuple(float(n) + 0.0 for n in self.numbers))
        if not all(math.isfinite(n) for n in self.numbers):
            raise QueryError(f"{made.name} was given a number that is not finite: {made.usage}")
        check_arguments(made, self.features, self.numbers)

    @property
    def kind(self) -> Kind:
        """Which of the six kinds of queries asks this."""
        return FUNCTIONS[self.name].kind

    @property
    def scalar(self) -> bool:
        """Whether it answers with one number."""
        return FUNCTIONS[self.name].scalar

    @property
    def settings(self) -> tuple[float, ...]:
        """The numbers, with defaults for those left away.

        >>> Call("forecast", ("y", "x"), (3.0,)).settings
        (3.0, 0.95)
        """
        made = FUNCTIONS[self.name]
        missing = made.numbers[1] - len(self.numbers)
        return self.numbers + (made.defaults[-missing:] if missing and made.defaults else ())

    @property
    def pairs(self) -> dict[str, float]:
        """The value of each feature, of ``contains`` and ``frequency``."""
        return dict(zip(self.features, self.numbers, strict=True))

    @property
    def title(self) -> str:
        """The call as text."""
        if self.name == "distinct":
            return "count(DISTINCT *)"
        if FUNCTIONS[self.name].pairs:
            inside = ", ".join(f"{f} = {plain(n)}" for f, n in self.pairs.items())
        else:
            inside = ", ".join((*self.features, *(plain(n) for n in self.numbers)))
        return f"{self.name}({inside or ('*' if self.name == 'count' else '')})"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two numbers side by side and their difference: ``left`` of the rows in ``left_scope``,
    ``right`` of those in ``right_scope``; both and-ed with the scope of the query."""

    left: Call
    left_scope: Scope
    right: Call
    right_scope: Scope

    def __post_init__(self) -> None:
        for call in (self.left, self.right):
            if not call.scalar:
                raise QueryError(f"contrast compares single numbers; {call.name} answers with more")

    @property
    def title(self) -> str:
        """Without the scopes: ``contrast(mean(t2m_k))``."""
        both = (
            (self.left.title,) if self.left == self.right else (self.left.title, self.right.title)
        )
        return f"contrast({', '.join(both)})"


@dataclass(frozen=True, slots=True)
class Number:
    """A constant in a calculation."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise QueryError("a number in the query is not finite")
        object.__setattr__(self, "value", float(self.value) + 0.0)

    @property
    def title(self) -> str:
        """The number in its shortest form."""
        return plain(self.value)


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of one of two joined queries: ``a.t``."""

    table: str
    column: str

    @property
    def title(self) -> str:
        """``a.t``."""
        return f"{self.table}.{self.column}"


@dataclass(frozen=True, slots=True)
class Math:
    """A calculation with columns of the answer: ``max(t) - min(t)``."""

    operator: Operator
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        if self.operator not in get_args(Operator):
            raise QueryError(f"{self.operator!r} is no calculation; possible are + - * /")
        for side in (self.left, self.right):
            scalar = isinstance(side, Number | Ref | Math)
            if not scalar and not (isinstance(side, Call) and side.scalar):
                raise QueryError(f"{side.title} is not a single number; calculate with those only")
        if depth(self) > MAX_DEPTH:
            raise QueryError(f"a calculation is nested more than {MAX_DEPTH} deep")

    @property
    def title(self) -> str:
        """The calculation as text, with brackets around each inner one."""
        left, right = (
            f"({side.title})" if isinstance(side, Math) else side.title
            for side in (self.left, self.right)
        )
        return f"{left} {self.operator} {right}"


@dataclass(frozen=True, slots=True)
class Matching:
    """The matching part of the sketch itself: its leaves as a table, or vertices and edges."""

    form: Literal["leaves", "graph"] = "leaves"

    def __post_init__(self) -> None:
        if self.form not in ("leaves", "graph"):
            raise QueryError(f"{self.form!r} is no form of the sketch; possible: leaves, graph")

    @property
    def title(self) -> str:
        """The form."""
        return self.form


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Rows drawn from the sketch: a number of ``rows``, or ``percent`` of those that match."""

    rows: int | None = None
    percent: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.percent is None):
            raise QueryError("synthetic takes a number of rows or a share: 1000 or '10%'")
        if self.rows is not None and not 1 <= self.rows <= MAX_ROWS:
            raise QueryError(f"synthetic: {self.rows} rows; expected 1 to {MAX_ROWS}")
        if self.percent is not None and not 0 < self.percent <= 1000:
            raise QueryError(f"synthetic: {self.percent:g} %; expected more than 0, at most 1000")
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise QueryError(f"synthetic: the seed is {self.seed}; expected 0 to 2**63 - 1")

    @property
    def title(self) -> str:
        """``synthetic``."""
        return "synthetic"


Expression: TypeAlias = Call | Contrast | Number | Ref | Math | Key | Matching | Synthetic


def depth(expression: Expression) -> int:
    """How deep calculations are nested."""
    if isinstance(expression, Math):
        return 1 + max(depth(expression.left), depth(expression.right))
    return 0


def inside(expression: Expression) -> tuple[Expression, ...]:
    """The expression, or what a calculation is made of, from left to right."""
    if isinstance(expression, Math):
        return inside(expression.left) + inside(expression.right)
    return (expression,)
