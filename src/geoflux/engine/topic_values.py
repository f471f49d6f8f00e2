"""Values of topics as rows: JSON objects, or Arrow streams of any number of rows.

A row's position is made of its topic, partition and offset, so it is the same whoever reads it
again. Invariant: every value gives its rows or exactly one rejection, whatever stands beside it.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.ndjson_lines import Block
from geoflux.engine.ndjson_rows import parse, record
from geoflux.engine.row_types import cast_or_null
from geoflux.engine.source import RawBatch, Rejected
from geoflux.errors import IntegrityError
from geoflux.sections import SourceConfig

_TYPES = {"long": pa.int64(), "double": pa.float64(), "text": pa.string(), "boolean": pa.bool_(),
          "timestamp": pa.timestamp("us", "UTC")}  # fmt: skip
_OFFSET_BITS, _PARTITION_BITS = 40, 15
_SHOWN = 750
_NOTHING = "the value is empty"


def declared(columns: tuple[str, ...]) -> pa.Schema:
    """The columns that (checked) settings name.

    >>> declared(("id long", "kind text")).types
    [DataType(int64), DataType(string)]
    """
    return pa.schema([(name, _TYPES[kind]) for name, kind in (text.split() for text in columns)])


@dataclass(frozen=True)
class TopicValues:
    """Turns records (topic, partition, offset, value) into rows with positions; picklable."""

    topics: tuple[str, ...]
    columns: tuple[str, ...]
    arrow: bool
    max_record_bytes: int

    @classmethod
    def of(cls, source: SourceConfig) -> TopicValues:
        """As the settings of the source say."""
        arrow = source.format == "arrow"
        return cls(source.topics, source.columns, arrow, source.max_record_bytes)

    def batches(self, records: pa.Table) -> Iterator[RawBatch]:
        """One batch per stretch of records of the same partition, in their order."""
        topics = pc.index_in(records.column("topic"), pa.array(self.topics)).to_numpy()
        partitions = records.column("partition").to_numpy()
        offsets = records.column("offset").to_numpy()
        changes = (np.diff(topics) != 0) | (np.diff(partitions) != 0)
        cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(records)]
        for first, last in itertools.pairwise(cuts):
            if first == last:
                continue
            base = _base(int(topics[first]), int(partitions[first]), int(offsets[last - 1]))
            values = records.column("value").slice(first, last - first).to_pylist()
            yield self._batch(values, base + offsets[first:last].astype(np.int64))

    def _batch(self, values: list[bytes | None], positions: npt.NDArray[np.int64]) -> RawBatch:
        if self.arrow:
            return self._of_arrow(values, positions)
        return self._of_json(values, positions)

    def _of_json(self, values: list[bytes | None], positions: npt.NDArray[np.int64]) -> RawBatch:
        schema, rejected = declared(self.columns), []
        lines: list[bytes] = []
        known: list[int] = []
        for position, value in zip(positions.tolist(), values, strict=True):
            line = self._line(value)
            if isinstance(line, Rejected):
                rejected.append(line)
            else:
                lines.append(line)
                known.append(position)
        if not lines:
            return RawBatch(schema.empty_table(), np.empty(0, np.int64), rejected)
        starts = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])])
        rows = parse(Block(0, b"\n".join(lines) + b"\n"), schema, self.max_record_bytes)
        found = np.array(known, np.int64)[np.searchsorted(starts, rows.offsets)]
        return RawBatch(rows.table, found, [*rejected, *rows.rejected])

    def _line(self, value: bytes | None) -> bytes | Rejected:
        """A value on one line. Outside of texts a newline is a space; in one it is malformed."""
        if value is None or not value.strip():
            return Rejected("empty_value", _NOTHING, "")
        if b"\n" not in value:
            return value
        if len(value) <= self.max_record_bytes:
            try:
                record(value)
            except ValueError as error:
                return Rejected("malformed_json", str(error), value.decode(errors="replace"))
        return value.replace(b"\n", b" ")

    def _of_arrow(self, values: list[bytes | None], positions: npt.NDArray[np.int64]) -> RawBatch:
        schema, rejected, tables, counts = declared(self.columns), [], [], []
        for value in values:
            rows = _arrow_rows(value, schema)
            if isinstance(rows, Rejected):
                rejected.append(rows)
            else:
                tables.append(rows)
            counts.append(0 if isinstance(rows, Rejected) else len(rows))
        table = pa.concat_tables(tables) if tables else schema.empty_table()
        return RawBatch(table, np.repeat(positions, counts), rejected)


def _base(topic: int, partition: int, last_offset: int) -> int:
    if last_offset >= 1 << _OFFSET_BITS or partition >= 1 << _PARTITION_BITS:
        raise IntegrityError(
            f"offset {last_offset} of partition {partition} has no position: there are "
            f"{1 << _OFFSET_BITS} offsets and {1 << _PARTITION_BITS} partitions; begin a new topic"
        )
    return ((topic << _PARTITION_BITS) + partition) << _OFFSET_BITS


def _arrow_rows(value: bytes | None, schema: pa.Schema) -> pa.Table | Rejected:
    """The rows of an Arrow stream in the columns of ``schema``; what does not fit is null."""
    if not value:
        return Rejected("empty_value", _NOTHING, "")
    try:
        table = pa.ipc.open_stream(pa.py_buffer(value)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        shown = base64.b64encode(value[:_SHOWN]).decode()
        return Rejected("malformed_arrow", f"the value is no Arrow stream: {error}", shown)
    columns = [
        _fitting(table.column(field.name), field.type)
        if table.schema.get_field_index(field.name) >= 0
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _fitting(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if column.type == kind:
        return column
    return cast_or_null(column, kind)
