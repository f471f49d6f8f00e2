"""Whether a ``where`` predicate fits the columns of the events.

Types fall into families (numbers, texts, booleans, times), and values compare within a family; a
time also meets a text literal in ISO-8601. Invariant: a predicate that passes ``check`` evaluates
without an error over every batch of that schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

import pyarrow as pa

from geoflux.errors import RejectedRecord
from geoflux.operators.where_parse import Predicate, columns_of, tree
from geoflux.operators.where_tree import Column, Compare, In, Param, leaves, operands

PARAM_TYPES = {"i": pa.int64(), "n": pa.float64(), "s": pa.string(), "b": pa.bool_()}
_FAMILIES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "time": (pa.types.is_timestamp, pa.types.is_date),
    "truth": (pa.types.is_boolean,),
    "null": (pa.types.is_null,),
}


def check(predicate: Predicate, schema: pa.Schema) -> None:
    """Reject a predicate that events of ``schema`` cannot answer.

    Raises ``RejectedRecord``: ``unknown_column``, or ``bad_where`` where types do not fit.

    >>> from geoflux.operators.where_parse import parse
    >>> check(parse("speed > 10"), pa.schema([("speed", pa.float32())]))
    >>> check(parse("sped > 10"), pa.schema([("speed", pa.float32())]))
    Traceback (most recent call last):
    geoflux.errors.RejectedRecord: unknown_column: no column 'sped'; did you mean 'speed'? \
available: speed
    """
    for index in _time_params(predicate.template, schema):
        literal = predicate.params[index]
        if instant_of(str(literal)) is None:
            raise RejectedRecord(
                "bad_where",
                f"{literal!r} is not an ISO-8601 time; write it as '2024-05-01T12:00:00Z'",
            )


@lru_cache(maxsize=8192)
def _time_params(template: str, schema: pa.Schema) -> tuple[int, ...]:
    """Check what all queries of a template have in common; tells which literals must be times."""
    names = schema.names
    for name in sorted(columns_of(template)):
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" did you mean {near[0]!r}?" if near else ""
            available = ", ".join(names)
            raise RejectedRecord(
                "unknown_column", f"no column {name!r};{hint} available: {available}"
            )
    times: list[int] = []
    for leaf in leaves(tree(template)):
        types = [
            PARAM_TYPES[operand.kind]
            if isinstance(operand, Param)
            else schema.field(names.index(operand.name)).type
            for operand in operands(leaf)
        ]
        if isinstance(leaf, Column):
            require_truth(leaf, types[0])
        elif isinstance(leaf, Compare | In):
            op = leaf.op if isinstance(leaf, Compare) else "="
            left, *items = operands(leaf)
            for item, type_ in zip(items, types[1:], strict=True):
                if family_compared(op, (left, types[0]), (item, type_)) == "time":
                    times += [item.slot] if isinstance(item, Param) else []
    return tuple(times)


def family(type_: pa.DataType) -> str:
    """The values that a type compares with."""
    if pa.types.is_dictionary(type_):
        return family(type_.value_type)
    return next((f for f, tests in _FAMILIES.items() if any(t(type_) for t in tests)), "other")


def family_compared(
    op: str, left: tuple[Column | Param, pa.DataType], right: tuple[Column | Param, pa.DataType]
) -> str:
    """The family in which two typed operands are compared; refuses those that do not fit."""
    one, other = family(left[1]), family(right[1])
    if "null" in (one, other):
        return "null"
    if one == "time" and other == "text" and isinstance(right[0], Param):
        return "time"
    if one != other or one == "other":
        raise RejectedRecord(
            "bad_where",
            f"{_label(*left)} cannot be compared with {_label(*right)}; expected both to be "
            "numbers, texts, booleans or times (a time also meets an ISO-8601 text)",
        )
    if one == "truth" and op not in ("=", "!="):
        raise RejectedRecord(
            "bad_where", f"{_label(*left)} has no order for {op!r}; expected '=' or '!='"
        )
    return one


def _label(operand: Column | Param, type_: pa.DataType) -> str:
    if isinstance(operand, Column):
        return f"column {operand.name!r} ({type_})"
    return {"s": "a text", "b": "a boolean"}.get(operand.kind, "a number")


def require_truth(column: Column, type_: pa.DataType) -> None:
    """Refuse a column that stands alone as a condition and is not boolean."""
    if family(type_) not in ("truth", "null"):
        raise RejectedRecord(
            "bad_where", f"{_label(column, type_)} stands alone; expected a boolean or a comparison"
        )


@lru_cache(maxsize=8192)
def instant_of(text: str) -> datetime | None:
    """The time that an ISO-8601 text names; None if it names none."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
