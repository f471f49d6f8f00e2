"""Rows of a Parquet file by row number: only the row groups and columns that are needed.

Invariant: a row is the same whichever range it is read in, its columns have the types asked for,
and a value that cannot be given its type is null, with the whole row as JSON text beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoflux.engine.marks import Marks
from geoflux.engine.row_types import RAW, cast_or_null
from geoflux.errors import SourceError

BATCH_ROWS = 262_144


def footer(path: Path) -> Any:
    """The metadata of a finished file; an error where the file is unfinished or damaged."""
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"two columns have the same name: {', '.join(twice)}; rename one")
        return file.metadata


def read_rows(
    path: Path, start: int, stop: int, schema: pa.Schema | None = None
) -> Iterator[tuple[range, pa.Table, Marks]]:
    """The rows ``[start, stop)`` in batches, each with the numbers of its rows, and their marks.

    With a ``schema`` exactly its columns: null where the file has none of that name. Without one
    the columns as the file has them.
    """
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows < stop:
                raise SourceError(
                    f"{path} has {file.metadata.num_rows} rows, it had at least {stop} when it was "
                    "logged; restore it and run again"
                )
            marks = Marks.from_metadata(file.metadata.metadata)
            for first, batch in _batches(file, start, stop, schema):
                table = pa.Table.from_batches([batch])
                rows = range(first, first + batch.num_rows)
                if schema is not None:
                    table = _typed(table, schema)
                yield rows, table, marks.between(rows.start, rows.stop)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path} cannot be read: {error}; restore it and run again") from error


def _batches(
    file: Any, start: int, stop: int, schema: pa.Schema | None
) -> Iterator[tuple[int, Any]]:
    groups: list[int] = []
    begin = row = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if row < stop and row + rows > start:
            begin = begin if groups else row
            groups.append(group)
        row += rows
    names = None if schema is None else [n for n in schema.names if n in file.schema_arrow.names]
    if names == []:
        for first in range(start, stop, BATCH_ROWS):
            yield first, _without_columns(min(BATCH_ROWS, stop - first))
        return
    # One thread: the readers of a run are as many as its cores already.
    for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names, use_threads=False):
        low, high = max(start - begin, 0), min(stop - begin, batch.num_rows)
        if high > low:
            yield begin + low, batch.slice(low, high - low)
        begin += batch.num_rows
        if begin >= stop:
            return


def _without_columns(rows: int) -> Any:
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[RAW])


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns, lost = [], np.zeros(table.num_rows, bool)
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        given = table.column(field.name)
        column = given if given.type == field.type else cast_or_null(given, field.type)
        if column.null_count > given.null_count:
            lost |= np.asarray(pc.and_(pc.is_null(column), pc.is_valid(given)), bool)
        columns.append(column)
    typed = pa.Table.from_arrays(columns, schema=schema)
    if lost.any():
        rows = table.filter(pa.array(lost)).to_pylist()
        texts: list[str | None] = [None] * table.num_rows
        for at, row in zip(np.flatnonzero(lost), rows, strict=True):
            texts[at] = json.dumps(row, default=str)
        typed = typed.append_column(RAW, pa.array(texts, pa.string()))
    return typed
