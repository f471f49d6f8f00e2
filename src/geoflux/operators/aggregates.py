"""What a query asks about its matches over a window: the functions, the window, its slide.

The record's ``aggregate`` is checked once, written back in one canonical form, and travels with
the query's row as text; queries that ask for the same share one parsed value.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from geoflux.errors import RejectedRecord
from geoflux.settings import seconds

NUMERIC = ("sum", "avg", "min", "max", "stddev", "stddev_pop", "median", "quantile")
KINDS = ("count", *NUMERIC, "distinct")
_CALL = re.compile(
    r'^\s*([a-z_]+)\s*(?:\(\s*("(?:[^"]|"")*"|[^\s,()"]+)\s*(?:,\s*([^\s,()]+)\s*)?\))?\s*$'
)
_FIELDS = {"functions", "window", "slide", "empty"}
_MOST_FUNCTIONS = 64
_MOST_OVERLAPS = 10_000
"""Windows that one event may lie in."""
_LONGEST_MICROS = 2**61


@dataclass(frozen=True)
class Function:
    """One thing to compute: a kind, the column it is about, and a quantile's share."""

    kind: str
    column: str | None = None
    parameter: float | None = None

    @property
    def text(self) -> str:
        """As results name it.

        >>> Function("quantile", "speed", 0.95).text
        'quantile(speed, 0.95)'
        """
        if self.column is None:
            return self.kind
        plain = re.fullmatch(r"[^\s,()\"]+", self.column) is not None
        column = self.column if plain else '"' + self.column.replace('"', '""') + '"'
        share = ""
        if self.parameter is not None:
            short = f"{self.parameter:g}"
            share = ", " + (short if float(short) == self.parameter else repr(self.parameter))
        return f"{self.kind}({column}{share})"

    @property
    def share(self) -> float:
        """The quantile that is asked for."""
        return 0.5 if self.parameter is None else self.parameter


@dataclass(frozen=True)
class Aggregate:
    """Functions over a window of time (microseconds), of events, or (both ``None``) over all.

    ``slide`` is in the unit of the window and never larger than it; ``empty``: windows without
    events are reported too.
    """

    functions: tuple[Function, ...]
    window_micros: int | None = None
    window_events: int | None = None
    slide: int = 0
    empty: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The event columns that the functions are about, each once."""
        return tuple(dict.fromkeys(f.column for f in self.functions if f.column is not None))

    def to_text(self) -> str:
        """The canonical form, for the query's row."""
        written: dict[str, Any] = {
            "functions": [[f.kind, f.column, f.parameter] for f in self.functions]
        }
        for name in ("window_micros", "window_events", "slide", "empty"):
            if getattr(self, name):
                written[name] = getattr(self, name)
        return json.dumps(written, separators=(",", ":"))


@lru_cache(maxsize=4096)
def aggregate_of(text: str) -> Aggregate:
    """What :meth:`Aggregate.to_text` wrote."""
    given = json.loads(text)
    return Aggregate(**{**given, "functions": tuple(Function(*f) for f in given["functions"])})


def parse_aggregate(given: Any, needs_window: bool = True) -> Aggregate:
    """An aggregate as a user writes it; :class:`RejectedRecord` for what is wrong with it.

    >>> parse_aggregate({"functions": ["count", "avg(speed)"], "window": "5 minutes"}).slide
    300000000
    """
    if not isinstance(given, Mapping):
        raise _bad(f"aggregate is {given!r}; expected an object with functions and a window")
    unknown = sorted(str(name) for name in set(given) - _FIELDS)
    if unknown:
        raise _bad(f"aggregate has {', '.join(unknown)}; expected {', '.join(sorted(_FIELDS))}")
    functions = _functions(given.get("functions"))
    empty = given.get("empty")
    if empty is not None and not isinstance(empty, bool):
        raise _bad(f"empty is {empty!r}; expected true or false")
    window = given.get("window")
    if window is None:
        if needs_window:
            raise _bad(
                'aggregate has no window; expected "window": "5 minutes" or a number of events'
            )
        if given.get("slide") is not None or empty:
            raise _bad("slide and empty belong to a window; add one, or leave them out")
        return Aggregate(functions)
    size, by_events = _extent(window, "window")
    slide, slide_by_events = size, by_events
    if given.get("slide") is not None:
        slide, slide_by_events = _extent(given["slide"], "slide")
    if slide_by_events != by_events:
        raise _bad("window and slide must both be durations or both be numbers of events")
    if slide > size:
        raise _bad(
            f"slide {given['slide']!r} is longer than window {window!r}; expected at most that"
        )
    if size > _MOST_OVERLAPS * slide:
        raise _bad(
            f"an event would lie in {-(-size // slide):,} windows; expected a slide of at least "
            f"1/{_MOST_OVERLAPS:,} of the window"
        )
    if by_events:
        if empty:
            raise _bad("a window of events is never empty; leave empty out")
        return Aggregate(functions, None, size, slide)
    return Aggregate(functions, size, None, slide, bool(empty))


def check_aggregate(aggregate: Aggregate, schema: pa.Schema) -> None:
    """Reject functions that events of a schema cannot answer."""
    for function in aggregate.functions:
        name = function.column
        if name is None:
            continue
        if name not in schema.names:
            near = difflib.get_close_matches(name, schema.names, n=1)
            hint = f" did you mean {near[0]!r}?" if near else ""
            raise RejectedRecord(
                "unknown_column", f"no column {name!r};{hint} available: {', '.join(schema.names)}"
            )
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise _bad(f"{function.text}: column {name!r} is {kind}; expected plain values")
        if function.kind in NUMERIC and not is_numeric(kind):
            raise _bad(f"{function.text}: column {name!r} is {kind}; expected numbers")


def is_numeric(kind: pa.DataType) -> bool:
    """Whether values of a type can be computed with (a column of nulls can)."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(test(kind) for test in tests)


def _functions(given: Any) -> tuple[Function, ...]:
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_FUNCTIONS:
        raise _bad(
            f"functions is {str(given)[:80]!r}; expected a list of 1 to {_MOST_FUNCTIONS}, such as "
            '["count", "avg(speed)"]'
        )
    functions = tuple(_function(text) for text in given)
    if len(set(functions)) < len(functions):
        raise _bad("a function is asked for twice; expected each once")
    return functions


def _function(text: Any) -> Function:
    found = _CALL.match(text) if isinstance(text, str) else None
    if found is None or found[1] not in KINDS:
        raise _bad(f"function {str(text)[:80]!r} is not known; expected one of {', '.join(KINDS)}")
    kind, column, parameter = found[1], found[2], found[3]
    if column is not None and column.startswith('"'):
        column = column[1:-1].replace('""', '"')
    if (kind == "count") != (column is None):
        expected = "count" if kind == "count" else f"{kind}(column)"
        raise _bad(f"function {text!r}: expected {expected}")
    if kind != "quantile":
        if parameter is not None:
            raise _bad(f"function {text!r}: expected {kind}({column})")
        return Function(kind, column)
    try:
        share = float(parameter or "")
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise _bad(f"function {text!r}: expected quantile(column, share) with a share from 0 to 1")
    return Function(kind, column, share)


def _extent(given: Any, name: str) -> tuple[int, bool]:
    """A window's length: microseconds, or (second value true) events."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= 10_000_000:
            raise _bad(f"{name} is {given}; expected 1 to 10,000,000 events, or a duration")
        return given, True
    micros = 0.0
    if isinstance(given, str):
        try:
            micros = seconds(given) * 1e6
        except ValueError:
            micros = 0.0
    if not 1 <= micros < _LONGEST_MICROS:
        raise _bad(
            f'{name} is {given!r}; expected a duration such as "5 minutes", or a number of events'
        )
    return round(micros), False


def _bad(detail: str) -> RejectedRecord:
    return RejectedRecord("bad_aggregate", detail)
