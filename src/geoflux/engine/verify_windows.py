"""Verification of windows: an epoch's rows of ``aggregates/`` against the oracle's, bit for bit."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.oracle_windows import BEFORE_ALL, Clock, WindowRow
from geoflux.state.store import Store

_COLUMNS = ("query_id", "window_start", "window_end", "function", "value", "count")
_NAN = struct.pack("<d", math.nan)


@dataclass(frozen=True)
class WindowFindings:
    """How many rows an epoch wrote, how many are wrong (missing and surplus ones included), and
    each of these in a sentence."""

    rows: int
    wrong: int
    differences: list[str]


def written_windows(store: Store, manifest: dict[str, Any]) -> list[WindowRow]:
    """The rows that an epoch reported."""
    rows: list[WindowRow] = []
    for name in manifest["files"]:
        if name.startswith("aggregates/"):
            table = pq.read_table(store.open(name))
            epochs = set(table.column("epoch").unique().to_pylist())
            assert epochs == {manifest["epoch"]}, f"{name} holds epochs {epochs}"
            rows += map(WindowRow, *(_plain(table.column(c)) for c in _COLUMNS))
    return rows


def compared(epoch: int, should: Iterable[WindowRow], there: list[WindowRow]) -> WindowFindings:
    """Compare two bags of rows; a value that is missing equals only another that is."""
    wanted, found = (Counter(_exact(row) for row in rows) for rows in (should, there))
    differences: dict[Any, tuple[list[Any], list[Any]]] = {}
    for side, rows in enumerate((wanted - found, found - wanted)):
        for row in rows.elements():
            differences.setdefault(row[:4], ([], []))[side].append(row)
    wrong = sum(max(map(len, sides)) for sides in differences.values())
    sentences = [
        f"epoch {epoch}: query {query}, window {_instant(start)} to {_instant(end)}, {function} "
        f"should be {_told(sides[0])}, is {_told(sides[1])}"
        for (query, start, end, function), sides in sorted(differences.items())
    ]
    return WindowFindings(len(there), wrong, sentences)


def clock_problems(manifest: dict[str, Any], clock: Clock) -> list[str]:
    """Where a manifest says other things of event time than its events, at the epoch's end."""
    expected = {
        "late": clock.late,
        "watermark": clock.watermark,
        "closed": None if clock.floor == BEFORE_ALL else clock.floor,
        "origin": clock.origin,
        "max_time": clock.latest,
    }
    return [
        f"epoch {manifest['epoch']}: {name} should be {value}, is {manifest[name]}"
        for name, value in expected.items()
        if name in manifest and manifest[name] != value
    ]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    plain: list[Any] = column.to_pylist()
    return plain


def _exact(row: WindowRow) -> tuple[Any, ...]:
    """A row with its value's bits instead of its value; all NaN are one."""
    bits = None
    if row.value is not None:
        bits = _NAN if math.isnan(row.value) else struct.pack("<d", row.value)
    return (*row[:4], bits, row.events)


def _told(rows: list[tuple[Any, ...]]) -> str:
    def one(bits: bytes | None, count: int) -> str:
        value = "null" if bits is None else repr(struct.unpack("<d", bits)[0])
        return f"{value} of {count} event{'s' if count != 1 else ''}"

    return " and ".join(one(*row[4:]) for row in rows) or "absent"


def _instant(micros: int) -> str:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat()
    except OverflowError:
        return f"{micros} µs"
