"""Types of columns: found once in a sample, then the same for every file and block.

JSON says little about types, so the sample decides: whole numbers are int64, with fractions among
them float64, true and false bool, texts string. Anything else (mixed kinds, objects, arrays,
integers past 64 bits) is string, holding texts as they are and all other values as JSON text.
Times stay what they are in the file: ISO texts remain texts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

RAW = "@raw"
"""Name of the extra column with a row as it came, in batches where a value may be lost."""

_INT64 = range(-(1 << 63), 1 << 63)


def types_of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, pa.DataType]:
    """The type of each column of a sample of JSON objects, in order of appearance.

    >>> types_of_rows([{"a": 1, "b": "x"}, {"a": 0.5, "b": 7}])
    {'a': DataType(double), 'b': DataType(string)}
    """
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).add(_kind(value))
    return {name: _type(found) for name, found in kinds.items() if _usable(name)}


def _usable(name: str) -> bool:
    return name != RAW and _is_text(name)


def _kind(value: Any) -> str:
    if type(value) is int:
        return "int" if value in _INT64 else "big"
    return type(value).__name__


def _type(kinds: set[str]) -> pa.DataType:
    given = kinds - {"NoneType"}
    if given == {"int"}:
        return pa.int64()
    if given and given <= {"int", "float"}:
        return pa.float64()
    return pa.bool_() if given == {"bool"} else pa.string()


def merged(schemas: Iterable[pa.Schema | Mapping[str, pa.DataType]]) -> pa.Schema:
    """One schema for all: equal types stay, whole and broken numbers widen, others are string."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        pairs = (
            zip(schema.names, schema.types, strict=True)
            if isinstance(schema, pa.Schema)
            else schema.items()
        )
        for name, given in pairs:
            plain = given.value_type if pa.types.is_dictionary(given) else given
            if name != RAW:
                types[name] = _common(types[name], plain) if name in types else plain
    return pa.schema(list(types.items()))


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    whole = pa.types.is_integer(one), pa.types.is_integer(other)
    if all(whole):
        return pa.int64()
    if all(w or pa.types.is_floating(t) for w, t in zip(whole, (one, other), strict=True)):
        return pa.float64()
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return _common_time(one, other)
    return pa.string()


def _common_time(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The finer unit; in UTC where only one names a zone, for a time without a zone is UTC."""
    unit = max(one.unit, other.unit, key=("s", "ms", "us", "ns").index)
    return pa.timestamp(unit, one.tz if one.tz == other.tz else "UTC")


def schema_to_text(schema: pa.Schema) -> str:
    """A schema as a text that fits into a JSON line."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    """The schema of :func:`schema_to_text`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def base_type(wanted: pa.DataType) -> pa.DataType:
    """The one of JSON's four types that a value of a type is written in."""
    if pa.types.is_integer(wanted):
        return pa.int64()
    if pa.types.is_floating(wanted):
        return pa.float64()
    return pa.bool_() if pa.types.is_boolean(wanted) else pa.string()


def fitted(values: Iterable[Any], base: pa.DataType) -> list[Any]:
    """JSON values as values of a base type, ``None`` where one does not fit."""
    if base == pa.int64():
        return [_whole(v) for v in values]
    if base == pa.float64():
        return [_number(v) for v in values]
    if base == pa.bool_():
        return [v if type(v) is bool else None for v in values]
    return [_text(v) for v in values]


def _whole(value: Any) -> int | None:
    if type(value) is float and value.is_integer() and abs(value) <= 1 << 53:
        return int(value)
    return value if type(value) is int and value in _INT64 else None


def _number(value: Any) -> float | None:
    if type(value) is float:
        return value + 0.0  # negative zero becomes zero, as in a block that is parsed at once
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None


def _text(value: Any) -> str | None:
    if type(value) is str:
        return value if _is_text(value) else None
    return None if value is None else json.dumps(value)


def _is_text(value: str) -> bool:
    """Half of a surrogate pair is legal in JSON but is no text."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def cast_or_null(values: Any, wanted: pa.DataType) -> Any:
    """An array cast value by value, null where one cannot be; fast when all can."""
    try:
        exact = not (pa.types.is_integer(values.type) and pa.types.is_floating(wanted))
        return values.cast(wanted, safe=exact)
    except pa.ArrowNotImplementedError:
        if wanted == pa.string():
            return pa.array([_as_json(v) for v in values.to_pylist()], pa.string())
        return pa.nulls(len(values), wanted)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, wanted)
        half = len(values) // 2
        parts = [cast_or_null(part, wanted) for part in (values[:half], values[half:])]
        chunks = [c for p in parts for c in (p.chunks if isinstance(p, pa.ChunkedArray) else [p])]
        return pa.chunked_array(chunks, wanted)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, default=str)
