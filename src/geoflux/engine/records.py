"""Control records: from JSON lines or columns to validated rows of queries.

The common case (rectangles, plain fields) is parsed in columns by Arrow; a block that is not of
that form goes record by record. Whatever cannot be accepted is rejected with a code and a
sentence, and never stops the stream.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from geoflux.engine.record_rules import LONGEST_ID, RecordRules, identifier, instant
from geoflux.engine.snapshot_records import parse_snapshot
from geoflux.engine.source import Rejected
from geoflux.errors import RejectedRecord
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.operators.snapshot import SnapshotQuery
from geoflux.spatial.shapes import RECTANGLE, outside, parse_shape
from geoflux.spatial.space import Space

REGISTER, TERMINATE = 0, 1
_EDGES = ("west", "south", "east", "north")
_INSTANTS = ("valid_from", "valid_until")
_NESTED = frozenset({"shape", "aggregate", "nearest"})

_FAST_SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("id", pa.string()),
        ("user", pa.string()),
        ("shape", pa.struct([("type", pa.string()), *((edge, pa.float64()) for edge in _EDGES)])),
        ("where", pa.string()),
        ("valid_from", pa.string()),
        ("valid_until", pa.string()),
    ]
)


@dataclass(frozen=True)
class Records:
    """Valid records in order: ``op`` of each, and its row (``number`` is still 0; a termination
    has only its id); what was rejected; and the snapshots that were asked for."""

    op: npt.NDArray[np.uint8]
    rows: pa.Table
    rejected: list[Rejected]
    snapshots: Sequence[SnapshotQuery] = ()


def parse_lines(lines: list[bytes], rules: RecordRules) -> Records:
    """Records from JSON lines."""
    if all(_is_plain(line, rules.max_bytes) for line in lines):
        table = _fast_table(b"\n".join(lines), len(lines))
        if table is not None:
            found = _from_columns(table, rules)
            if found is not None:
                return found
    return _one_by_one([_decoded(line, rules.max_bytes) for line in lines], rules)


def judge(line: bytes, rules: RecordRules) -> None:
    """Raise :class:`RejectedRecord` for a registration or termination that would be refused
    whatever is live; whoever writes records for others can say so at once."""
    record, _ = _decoded(line, rules.max_bytes)
    if isinstance(record, RejectedRecord):
        raise record
    _row(record, rules)


def parse_table(table: pa.Table, rules: RecordRules) -> Records:
    """Records from columns (Parquet); nested fields are structs or their JSON as text."""
    try:
        instants = {
            name: table.column(name).cast(pa.timestamp("us")).cast(pa.int64())
            for name in set(_INSTANTS) & set(table.schema.names)
            if pa.types.is_timestamp(table.schema.field(name).type)
        }
        common = [n for n in _FAST_SCHEMA.names if n in table.schema.names and n not in instants]
        fast = _as_written(table.select(common))
        for field in _FAST_SCHEMA:
            if field.name not in fast.schema.names:
                fast = fast.append_column(field.name, pa.nulls(len(table), field.type))
        found = _from_columns(fast.select(_FAST_SCHEMA.names).cast(_FAST_SCHEMA), rules, instants)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        found = None
    if found is not None and set(table.schema.names) <= set(_FAST_SCHEMA.names):
        return found
    records: list[Any] = []
    for record in table.to_pylist():
        given = {k: v for k, v in record.items() if v is not None}
        for name in _NESTED & set(given):
            value = given[name]
            if isinstance(value, str):
                with contextlib.suppress(ValueError, RecursionError):  # said below
                    given[name] = json.loads(value)
            elif isinstance(value, dict):
                given[name] = {k: v for k, v in value.items() if v is not None}
        records.append((given, _as_text(given)))
    return _one_by_one(records, rules)


def _as_text(record: dict[str, Any]) -> str:
    """A record for the quarantine, however deep it is nested."""
    try:
        return json.dumps(record, default=str)
    except (ValueError, RecursionError):
        return str({k: v for k, v in record.items() if k not in _NESTED})


def _as_written(table: pa.Table) -> pa.Table:
    """The columns, if their types are what a record has; a cast must not make them so."""
    for field in table.schema:
        kind = field.type
        if field.name == "shape":
            good = pa.types.is_struct(kind) and all(
                _is_text(part.type) if part.name == "type" else _is_number(part.type)
                for part in kind
            )
        else:
            good = _is_text(kind) or pa.types.is_null(kind)
        if not good:
            raise ValueError(f"{field.name} is {kind}")
    return table


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _is_plain(line: bytes, max_bytes: int) -> bool:
    """Whether a line looks like one object: Arrow joins or splits lines that do not, and falls
    over a bare ``null``."""
    text = line.strip()
    return len(line) <= max_bytes and text[:1] == b"{" and text[-1:] == b"}"


def _fast_table(block: bytes, count: int) -> pa.Table | None:
    try:
        block.decode()
        table = pajson.read_json(
            pa.BufferReader(block),
            pajson.ReadOptions(block_size=max(len(block) + 1, 1 << 16)),
            pajson.ParseOptions(explicit_schema=_FAST_SCHEMA, unexpected_field_behavior="error"),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    return table if len(table) == count else None


def _from_columns(
    table: pa.Table, rules: RecordRules, instants: Mapping[str, pa.ChunkedArray] | None = None
) -> Records | None:
    """Records of the common form; ``None`` where one of them needs a closer look. ``instants`` are
    times that were given as such, in microseconds."""
    op = table.column("op")
    registers = pc.equal(op, "register")
    known = pc.or_(registers, pc.equal(op, "terminate"))
    ids = table.column("id")
    if known.null_count or not pc.all(known).as_py() or ids.null_count:
        return None
    lengths = pc.min_max(pc.utf8_length(ids)).as_py()
    if len(table) and (lengths["min"] < 1 or lengths["max"] > LONGEST_ID):
        return None
    is_register = registers.to_numpy().astype(np.bool_)
    shape = table.column("shape").combine_chunks()
    live = shape.filter(pa.array(is_register))
    if live.null_count or (
        not pc.all(pc.equal(live.field("type"), "rectangle")).as_py() and len(live)
    ):
        return None
    edges = {}
    for edge in _EDGES:
        values = shape.field(edge)
        if live.field(edge).null_count:
            return None
        edges[edge] = np.nan_to_num(
            values.fill_null(0.0).to_numpy(zero_copy_only=False), nan=np.inf
        )
    if not _good_boxes(edges, rules.space)[is_register].all():
        return None
    for name in _INSTANTS:
        if table.column(name).null_count < len(table):
            return None
    for text in pc.unique(table.column("where").filter(registers)).to_pylist():
        if text is not None:
            try:
                rules.check_where(text)
            except RejectedRecord:
                return None
    count = len(table)
    wanted = {
        "number": np.zeros(count, np.int64), "id": ids, "user": table.column("user"),
        "kind": np.full(count, RECTANGLE, np.uint8),
        "x0": edges["west"], "y0": edges["south"], "x1": edges["east"], "y1": edges["north"],
        "body": pa.nulls(count, pa.binary()), "where": table.column("where"),
    }  # fmt: skip
    for name in (*_INSTANTS, "aggregate", "since"):
        wanted[name] = pa.nulls(count, QUERY_SCHEMA.field(name).type)
    wanted |= instants or {}
    rows = pa.Table.from_pydict(wanted, schema=QUERY_SCHEMA)
    if not is_register.all():
        rows = _without_terminated(rows, is_register)
    return Records(np.where(is_register, REGISTER, TERMINATE).astype(np.uint8), rows, [])


def _without_terminated(rows: pa.Table, is_register: npt.NDArray[np.bool_]) -> pa.Table:
    """Of a termination only the id counts, whatever else was written."""
    for index, field in enumerate(QUERY_SCHEMA):
        if field.name in ("user", "where", *_INSTANTS):
            kept = pc.if_else(
                pa.array(is_register), rows.column(index), pa.scalar(None, field.type)
            )
        elif field.name in ("x0", "y0", "x1", "y1"):
            kept = pa.array(np.where(is_register, rows.column(index).to_numpy(), 0.0))
        else:
            continue
        rows = rows.set_column(index, field, kept)
    return rows


def _good_boxes(edges: Mapping[str, Any], space: Space) -> npt.NDArray[np.bool_]:
    """Rectangles that are valid and touch the space; the others get their sentence elsewhere."""
    west, south, east, north = (edges[edge] for edge in _EDGES)
    good = (south <= north) & (west <= east) & np.isfinite(west + south + east + north)
    good &= (east >= space.west) & (west <= space.east)
    good &= (north >= space.south) & (south <= space.north)
    if space.is_lonlat:
        good &= (west >= -180) & (east <= 180) & (south >= -90) & (north <= 90)
    result: npt.NDArray[np.bool_] = good
    return result


def _decoded(line: bytes, max_bytes: int) -> tuple[Any, str]:
    """The record of a line, or the rejection that it deserves; and the line as text."""
    text = line.decode("utf-8", "replace")
    if len(line) > max_bytes:
        detail = f"the record has {len(line)} bytes; expected at most {max_bytes}"
        return RejectedRecord("oversized_record", detail), text[:1000]
    try:
        record = json.loads(line)
        json.dumps(record, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        return RejectedRecord("malformed_json", f"the line is not JSON: {error}"), text
    return record, text


def _one_by_one(records: list[tuple[Any, str]], rules: RecordRules) -> Records:
    ops: list[int] = []
    rows: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    snapshots: list[SnapshotQuery] = []
    for record, text in records:
        try:
            if isinstance(record, RejectedRecord):
                raise record
            if isinstance(record, Mapping) and record.get("op") == "snapshot":
                snapshots.append(_snapshot(record, rules))
                continue
            op, row = _row(record, rules)
        except RejectedRecord as error:
            rejected.append(Rejected(error.code, error.detail, text))
            continue
        ops.append(op)
        rows.append(row)
    table = pa.Table.from_pylist(rows, schema=QUERY_SCHEMA)
    return Records(np.array(ops, np.uint8), table, rejected, snapshots)


def _snapshot(record: Mapping[str, Any], rules: RecordRules) -> SnapshotQuery:
    if rules.retained is None:
        raise RejectedRecord(
            "nothing_retained", 'nothing is retained to ask about; set [retention] time = "1 hour"'
        )
    return parse_snapshot(record, replace(rules, events=rules.retained))


def _row(record: Any, rules: RecordRules) -> tuple[int, dict[str, Any]]:
    if not isinstance(record, Mapping):
        raise RejectedRecord("malformed_json", "the record is no object; expected {...}")
    op = record.get("op")
    if op not in ("register", "terminate"):
        expected = "register, terminate or snapshot"
        raise RejectedRecord("unknown_operation", f"op is {op!r}; expected {expected}")
    row: dict[str, Any] = dict.fromkeys(QUERY_SCHEMA.names)
    row |= {"number": 0, "id": identifier(record.get("id")), "kind": RECTANGLE}
    row |= dict.fromkeys(("x0", "y0", "x1", "y1"), 0.0)
    if op == "terminate":
        return TERMINATE, row
    shape = parse_shape(record.get("shape"), rules.space)
    if outside(rules.space, shape.box):
        raise RejectedRecord("outside_space", "the shape lies outside the space")
    row |= {"kind": shape.kind, "body": shape.body}
    row |= dict(zip(("x0", "y0", "x1", "y1"), shape.box, strict=True))
    user = record.get("user")
    row["user"] = None if user is None else str(user)
    where = record.get("where")
    if where is not None and where != "":
        if not isinstance(where, str):
            raise RejectedRecord("bad_where", f"where is {where!r}; expected a text")
        rules.check_where(where)
        row["where"] = where
    row["valid_from"] = instant(record.get("valid_from"), "valid_from")
    row["valid_until"] = instant(record.get("valid_until"), "valid_until")
    if record.get("aggregate") is not None:
        row["aggregate"] = rules.aggregate_text(record["aggregate"])
    return REGISTER, row
