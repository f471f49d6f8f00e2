"""Lines of JSON as typed columns: a block at once where it is clean, line by line where not.

Invariant: what becomes of a line depends on the line alone, never on its neighbours. So the fast
way is taken only for blocks of which it is certain that both ways agree; all else goes the slow
way, which says of every line what was wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from geoflux.engine.ndjson_lines import Block, split_lines
from geoflux.engine.row_types import RAW, base_type, cast_or_null, fitted
from geoflux.engine.source import Rejected

MAX_DEPTH = 100
"""Objects and arrays inside each other; deeper ones are attacks on parsers."""

_SHOWN = 1000
_PART_BYTES = 1 << 15
_NO_COLUMN = pa.schema([(RAW, pa.string())])
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?')


@dataclass(frozen=True)
class Rows:
    """The records of a block: a table, the file offset of each row's line, and what was no row."""

    table: pa.Table
    offsets: npt.NDArray[np.int64]
    rejected: tuple[Rejected, ...] = ()


def parse(block: Block, schema: pa.Schema, max_record_bytes: int) -> Rows:
    """The records of a block with the columns of ``schema``.

    Values that do not fit their column are null. Where lines needed a closer look, the table has
    them in a further column ``@raw``, null for the rows that needed none.
    """
    whole = _at_once(block, schema, max_record_bytes)
    if whole is not None:
        return whole
    parts = [
        _at_once(part, schema, max_record_bytes) or _by_line(part, schema, max_record_bytes)
        for part in _parts(block)
    ]
    return Rows(
        pa.concat_tables([part.table for part in parts], promote_options="default"),
        np.concatenate([part.offsets for part in parts]),
        tuple(rejected for part in parts for rejected in part.rejected),
    )


def _parts(block: Block) -> Iterator[Block]:
    """A block in small ones, so that one bad line slows only its neighbours down."""
    begin, newline = 0, 0
    while newline >= 0:
        newline = block.data.find(b"\n", begin + _PART_BYTES)
        end = newline + 1 if newline >= 0 else len(block.data)
        yield Block(block.offset + begin, block.data[begin:end])
        begin = end


def _at_once(block: Block, schema: pa.Schema, max_record_bytes: int) -> Rows | None:
    starts = _clean_lines(block.data, max_record_bytes)
    if starts is None:
        return None
    base = pa.schema([(field.name, base_type(field.type)) for field in schema])
    try:
        table = pj.read_json(
            pa.BufferReader(block.data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(block.data) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=base if base.names else _NO_COLUMN,
                unexpected_field_behavior="ignore",
            ),
        )
        if table.num_rows != len(starts):
            return None
        columns = [_positive_zero(table.column(field.name)).cast(field.type) for field in schema]
    except pa.ArrowException:
        return None
    return Rows(pa.Table.from_arrays(columns, schema=schema), starts + block.offset)


def _positive_zero(column: Any) -> Any:
    return pc.add(column, 0.0) if column.type == pa.float64() else column


def _clean_lines(data: bytes, max_record_bytes: int) -> npt.NDArray[np.int64] | None:
    """Where the lines of a block start, if each could be one object and both parsers agree on it.

    A line that starts with ``{`` and ends with ``}`` cannot continue in the next one: inside an
    object nothing can stand between a ``}`` and a ``{`` but a comma. So as many objects as lines
    means one object on each.
    """
    if not data or b"NaN" in data or b"Inf" in data:  # Arrow takes Inf too, Python does not
        return None
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (ends - starts > max_record_bytes).any():
        return None
    lasts = ends - 1
    lasts = lasts - (codes[lasts] == ord("\r"))
    filled = lasts >= starts
    starts, lasts = starts[filled], lasts[filled]
    if not len(starts) or (codes[starts] != ord("{")).any() or (codes[lasts] != ord("}")).any():
        return None
    if not (_shallow(data, codes, starts, ends[filled]) and _is_utf8(data)):
        return None
    return starts


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shallow(
    data: bytes,
    codes: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> bool:
    if data.count(b"{") + data.count(b"[") - len(starts) < MAX_DEPTH:
        return True
    opening = np.flatnonzero((codes == ord("{")) | (codes == ord("[")))
    counts = np.searchsorted(opening, ends) - np.searchsorted(opening, starts)
    many = np.flatnonzero(counts > MAX_DEPTH)
    return not any(_too_deep(data[starts[i] : ends[i]]) for i in many)


def _too_deep(line: bytes) -> bool:
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return False
    codes = np.frombuffer(_STRINGS.sub(b"", line), np.uint8)
    step = np.isin(codes, list(b"{[")).astype(np.int64) - np.isin(codes, list(b"}]"))
    return bool(np.cumsum(step).max(initial=0) > MAX_DEPTH)


def _by_line(block: Block, schema: pa.Schema, max_record_bytes: int) -> Rows:
    rows, texts, offsets, rejected = [], [], [], []
    for offset, line in split_lines(block, max_record_bytes):
        row = _record(line, max_record_bytes)
        if isinstance(row, Rejected):
            rejected.append(row)
        else:
            rows.append(row)
            texts.append(line.decode())
            offsets.append(offset)
    columns = [_column((row.get(f.name) for row in rows), f.type) for f in schema]
    table = pa.Table.from_arrays(
        [*columns, pa.array(texts, pa.string())], schema=schema.append(pa.field(RAW, pa.string()))
    )
    return Rows(table, np.array(offsets, np.int64), tuple(rejected))


def _column(values: Iterable[Any], wanted: pa.DataType) -> Any:
    base = base_type(wanted)
    column = pa.array(fitted(values, base), base)
    return column if base == wanted else cast_or_null(column, wanted)


def _record(line: bytes, max_record_bytes: int) -> dict[str, Any] | Rejected:
    if len(line) > max_record_bytes:
        shown = line[: 4 * _SHOWN].decode(errors="replace")[:_SHOWN]
        detail = f"the line is longer than max_record_bytes = {max_record_bytes}"
        return Rejected("oversized_record", detail, shown)
    try:
        return record(line)
    except ValueError as error:
        return Rejected("malformed_json", str(error), line.decode(errors="replace"))


def record(line: bytes) -> dict[str, Any]:
    """The object on a line; ``ValueError`` with one sentence where there is none."""
    if _too_deep(line):
        raise ValueError(f"objects and arrays are nested more than {MAX_DEPTH} deep")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except ValueError:  # an integer of more digits than Python converts
        value = json.loads(text, parse_int=_long_number)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {_named(value)}")
    return value


def _long_number(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _named(value: Any) -> str:
    names = {list: "an array", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def sample_records(data: bytes, offset: int = 0) -> Iterator[dict[str, Any]]:
    """The readable objects of a block, for a look at what a file holds."""
    for _, line in split_lines(Block(offset, data)):
        try:
            yield record(line)
        except ValueError:
            continue
