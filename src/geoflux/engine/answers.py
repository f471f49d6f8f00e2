"""Answers to snapshots: as values, and as the rows of ``snapshots/``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INSTANT = pa.timestamp("us", "UTC")
_OWN = ("id", "x", "y", "time", "distance")

SNAPSHOT_SCHEMA = pa.schema(
    [
        ("snapshot_id", pa.string()), ("epoch", pa.int64()), ("kind", pa.string()),
        ("event_id", pa.string()), ("x", pa.float64()), ("y", pa.float64()), ("time", _INSTANT),
        ("distance", pa.float64()), ("window_start", _INSTANT), ("window_end", _INSTANT),
        ("function", pa.string()), ("value", pa.float64()), ("count", pa.int64()),
        ("attributes", pa.string()), ("partitions", pa.int64()), ("segments", pa.int64()),
    ]
)  # fmt: skip
"""One row per event (``kind`` event) or per function and window (aggregate), and for every
snapshot one ``summary``: how many events matched, how many partitions and segments were read."""


@dataclass(frozen=True)
class Answer:
    """What a snapshot found.

    ``rows`` are events (id, x, y, time, distance where the nearest were asked for, and the further
    columns; nearest first, otherwise in no particular order), or, with ``is_aggregate``, one row
    per function and window (window_start, window_end, function, value, count). ``matched`` counts
    the events in either case.
    """

    id: str
    rows: pa.Table
    is_aggregate: bool
    matched: int
    partitions_read: int
    partitions_retained: int
    segments_read: int
    segments_retained: int
    events_read: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can tell; times as ISO 8601."""
        kind = "aggregate" if self.is_aggregate else "events"
        counts = {
            name: getattr(self, name)
            for name in (
                "matched", "partitions_read", "partitions_retained", "segments_read",
                "segments_retained", "events_read",
            )
        }  # fmt: skip
        rows = json.loads(json.dumps(self.rows.to_pylist(), default=_told))
        return {"id": self.id, "kind": kind, **counts, "rows": _finite(rows)}


def answers_table(epoch: int, answers: Sequence[Answer]) -> pa.Table:
    """Answers as they are published; every snapshot has exactly one ``summary``."""
    parts = [SNAPSHOT_SCHEMA.empty_table()]
    for answer in answers:
        body = _aggregate_rows(answer) if answer.is_aggregate else _event_rows(answer)
        kind = "aggregate" if answer.is_aggregate else "event"
        parts.append(_rows(answer, epoch, kind, len(answer.rows), body))
        summary = {
            "count": pa.array([answer.matched]),
            "partitions": pa.array([answer.partitions_read]),
            "segments": pa.array([answer.segments_read]),
        }
        parts.append(_rows(answer, epoch, "summary", 1, summary))
    return pa.concat_tables(parts).combine_chunks()


def _rows(answer: Answer, epoch: int, kind: str, count: int, body: dict[str, Any]) -> pa.Table:
    columns = {
        "snapshot_id": pa.repeat(answer.id, count),
        "epoch": pa.array(np.full(count, epoch, np.int64)),
        "kind": pa.repeat(kind, count),
        **body,
    }
    arrays = [
        columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type)
        for f in SNAPSHOT_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SNAPSHOT_SCHEMA)


def _event_rows(answer: Answer) -> dict[str, Any]:
    rows = answer.rows
    body = {name: rows.column(name) for name in _OWN if name in rows.schema.names and name != "id"}
    further = [name for name in rows.schema.names if name not in _OWN]
    texts = [_json_texts(rows.column(name).combine_chunks()) for name in further]
    pieces: list[Any] = []
    for place, (name, text) in enumerate(zip(further, texts, strict=True)):
        pieces += [pa.scalar(("{" if place == 0 else ",") + json.dumps(name) + ":"), text]
    if pieces and len(rows):
        body["attributes"] = pc.binary_join_element_wise(*pieces, pa.scalar("}"), "")
    return {"event_id": rows.column("id"), **body}


def _aggregate_rows(answer: Answer) -> dict[str, Any]:
    names = ("window_start", "window_end", "function", "value", "count")
    return {name: answer.rows.column(name) for name in names}


def _json_texts(values: pa.Array) -> pa.Array:
    """Every value as JSON, column by column: a value that occurs often is written once."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else values.combine_chunks()
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string()).fill_null("null")
    if pa.types.is_floating(kind):
        told = pc.if_else(pc.is_finite(values), values, pa.scalar(None, kind))
        return told.cast(pa.string()).fill_null("null")
    try:
        encoded = values.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return pa.array([_json_text(value) for value in values.to_pylist()], pa.string())
    texts = pa.array([_json_text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices).fill_null("null")


def _json_text(value: Any) -> str:
    return json.dumps(_finite(value), default=_told)


def _told(value: Any) -> Any:
    """A value that JSON has no form for."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _finite(value: Any) -> Any:
    """Without NaN and infinities, which are no JSON."""
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return value
