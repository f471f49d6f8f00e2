"""Intake: raw rows become valid events, or are rejected with a reason.

Vectorised; a row is looked at by itself only when it is bad. Reasons are tested in a fixed order,
so that a row that is wrong in two ways always gets the same code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.source import RawBatch, Rejected
from geoflux.operators.events import Events
from geoflux.sections import SourceConfig, SpaceConfig
from geoflux.spatial.space import FloatArray, Space

_UNIT_MICROS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_SENTENCES = {
    "missing_column": "a column that every event needs is missing",
    "bad_coordinates": "a coordinate is missing or is not a finite number",
    "outside_space": "the point lies outside the space",
    "bad_time": "the time is missing or cannot be read as a time",
    "missing_id": "the event has no id",
}
_ZONED, _ZONELESS = pa.timestamp("us", "UTC"), pa.timestamp("us")
POSITION_ID = "@position"
RAW = "@raw"


@dataclass(frozen=True)
class EventColumns:
    """What the user calls the columns that the engine needs, and the unit of numeric times."""

    id: str
    x: str
    y: str
    time: str
    time_unit: str

    @classmethod
    def of(cls, source: SourceConfig, space: SpaceConfig) -> EventColumns:
        """The names from the settings, with the defaults of the space's kind."""
        x, y = ("lon", "lat") if space.kind == "lonlat" else ("x", "y")
        return cls(source.id, source.x or x, source.y or y, source.time, source.time_unit)

    @property
    def needed(self) -> frozenset[str]:
        """The columns to read whatever the queries ask for."""
        return frozenset({self.id, self.x, self.y, self.time}) - {POSITION_ID}

    def id_type(self, schema: pa.Schema) -> pa.DataType:
        """The type of event ids in the results: whole numbers stay numbers, all else is text."""
        if self.id == POSITION_ID:
            return pa.int64()
        kind = schema.field(self.id).type if self.id in schema.names else pa.string()
        return (
            pa.int64()
            if pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
            else pa.string()
        )


@dataclass(frozen=True)
class Intake:
    """Judges rows and gives them the engine's form."""

    columns: EventColumns
    space: Space
    id_type: pa.DataType
    wanted: frozenset[str]
    """Further columns that live queries ask for."""

    def accept(self, batch: RawBatch) -> tuple[Events, npt.NDArray[np.int64], list[Rejected]]:
        """Valid events with their positions, and what was rejected (unreadable lines included)."""
        table = batch.table
        count = len(table)
        names = set(table.schema.names)
        x = _floats(table, self.columns.x)
        y = _floats(table, self.columns.y)
        time, time_known = micros_of(table, self.columns.time, self.columns.time_unit)
        ids, id_known = self._ids(table, batch.positions)
        verdict = np.zeros(count, np.uint8)
        lacking = self.columns.needed - names
        if lacking:
            verdict[:] = 1
        finite = np.isfinite(x) & np.isfinite(y)
        for code, good in (
            (2, finite),
            (3, self.space.inside(x, y)),
            (4, time_known),
            (5, id_known),
        ):
            if good is not None and not good.all():
                verdict[(verdict == 0) & ~good] = code
        rejected = list(batch.rejected)
        if not verdict.any():
            events = Events(x, y, time, ids, self._further(table))
            return events, batch.positions, rejected
        rejected += explained(table, verdict, lacking, _SENTENCES)
        kept = np.flatnonzero(verdict == 0)
        rows = pa.array(kept)
        events = Events(
            x[kept], y[kept], time[kept], ids.take(rows), self._further(table.take(rows))
        )
        return events, batch.positions[kept], rejected

    def _ids(
        self, table: pa.Table, positions: npt.NDArray[np.int64]
    ) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
        if self.columns.id == POSITION_ID:
            return pa.array(positions), None
        if self.columns.id not in table.schema.names:
            return pa.nulls(len(table), self.id_type), None
        ids = whole_array(table.column(self.columns.id))
        if ids.type != self.id_type:
            ids = converted(ids, self.id_type)
        return ids, None if ids.null_count == 0 else pc.is_valid(ids).to_numpy(zero_copy_only=False)

    def _further(self, table: pa.Table) -> dict[str, pa.Array]:
        return {
            name: whole_array(table.column(name))
            if name in table.schema.names
            else pa.nulls(len(table))
            for name in self.wanted
        }


def whole_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; dictionaries as their values."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_dictionary(array.type):
        return array.cast(array.type.value_type)
    return array


def _floats(table: pa.Table, name: str) -> FloatArray:
    """A column as floats; what is no number becomes NaN."""
    if name not in table.schema.names:
        return np.full(len(table), np.nan)
    values = whole_array(table.column(name))
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        numbers = pd.to_numeric(pd.Series(values.to_numpy(zero_copy_only=False)), errors="coerce")
        return numbers.to_numpy(np.float64, na_value=np.nan)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return np.full(len(table), np.nan)
    floats = values if pa.types.is_float64(kind) else values.cast(pa.float64(), safe=False)
    if floats.null_count:
        floats = floats.fill_null(np.nan)
    out: FloatArray = floats.to_numpy(zero_copy_only=False)
    return out


def micros_of(
    table: pa.Table, name: str, unit: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
    """A column as microseconds since 1970, and where it could be read (``None``: everywhere)."""
    nowhere = np.zeros(len(table), np.int64), np.zeros(len(table), np.bool_)
    if name not in table.schema.names:
        return nowhere
    values = whole_array(table.column(name))
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _parsed_times(values, _UNIT_MICROS[unit])
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz), safe=False)
    elif pa.types.is_date(kind):
        values = values.cast(pa.timestamp("us"))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _scaled(values, _UNIT_MICROS[unit])
    else:
        return nowhere
    return _known(values.cast(pa.int64()))


def _known(micros: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
    if micros.null_count == 0:
        return micros.to_numpy(), None
    return micros.fill_null(0).to_numpy(), pc.is_valid(micros).to_numpy(zero_copy_only=False)


def _scaled(
    values: pa.Array, factor: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
    whole_numbers = pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type)
    if whole_numbers and values.null_count == 0 and factor >= 1:
        whole, most = values.cast(pa.int64()).to_numpy(), 2**62 / factor
        if whole.size and -most < whole.min() and whole.max() < most:
            return whole * np.int64(factor), None
    floats = values.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy() * factor
    known = np.isfinite(floats) & (np.abs(floats) < 2**62)
    return np.where(known, np.rint(np.where(known, floats, 0)), 0).astype(np.int64), known


def _parsed_times(
    texts: pa.Array, factor: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
    """ISO 8601 texts as microseconds, UTC where they name no zone; a number as text (a column of
    mixed types holds such) counts as a number. What a text means never depends on the others."""
    for kind in (_ZONED, _ZONELESS):
        try:
            return _known(texts.cast(kind).cast(pa.int64()))
        except pa.ArrowInvalid:
            continue
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")  # beyond microseconds
    micros, known = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    there = pc.is_valid(texts).to_numpy(zero_copy_only=False)
    has_zone = pc.match_substring_regex(texts, r"[Tt ].*([Zz]|[+-]\d\d(:?\d\d)?)$").fill_null(False)
    zoned = has_zone.to_numpy(zero_copy_only=False)
    for kind, which in ((_ZONED, there & zoned), (_ZONELESS, there & ~zoned)):
        _parse_into(texts, kind, np.flatnonzero(which), micros, known)
    rest = np.flatnonzero(there & ~known)
    series = pd.Series(texts.take(pa.array(rest)).to_numpy(zero_copy_only=False), dtype=object)
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    micros[rest], good = _scaled(pa.array(numbers), factor)
    known[rest] = True if good is None else good
    return micros, known


def _parse_into(
    texts: pa.Array, kind: pa.DataType, rows: npt.NDArray[np.int64],
    micros: npt.NDArray[np.int64], known: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    """Parse what can be parsed, halving around what cannot."""
    if rows.size == 0:
        return
    try:
        micros[rows] = texts.take(pa.array(rows)).cast(kind).cast(pa.int64()).to_numpy()
        known[rows] = True
    except pa.ArrowInvalid:
        if rows.size > 1:
            half = rows.size // 2
            _parse_into(texts, kind, rows[:half], micros, known)
            _parse_into(texts, kind, rows[half:], micros, known)


def converted(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    """Ids in the type of the results; null where a number is asked for and it is none."""
    try:
        return ids.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        values = ids.to_pylist()
    if pa.types.is_string(kind):
        return pa.array([None if v is None else str(v) for v in values], kind)
    whole = [v if isinstance(v, int) and -(2**63) <= v < 2**63 else None for v in values]
    return pa.array(whole, kind)


def explained(
    table: pa.Table, verdict: npt.NDArray[np.uint8], lacking: frozenset[str],
    sentences: Mapping[str, str],
) -> list[Rejected]:  # fmt: skip
    """The rows that were refused: ``verdict`` says by which of the sentences, counted from 1."""
    rows, codes = np.flatnonzero(verdict), tuple(sentences)
    out = []
    for row, record in zip(rows, table.take(pa.array(rows)).to_pylist(), strict=True):
        code = codes[verdict[row] - 1]
        detail = sentences[code]
        if code == "missing_column":
            detail += f": {', '.join(sorted(lacking))}"
        raw: Any = record.get(RAW)
        out.append(Rejected(code, detail, raw if raw else json.dumps(record, default=str)))
    return out
