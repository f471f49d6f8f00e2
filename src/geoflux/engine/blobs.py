"""Blobs: the events of one slot from one routed batch, packed in columns.

A blob is an Arrow IPC stream with one record batch; the runs of rows that belong to one partition
follow each other, and the schema's metadata tells them. A few blobs travel through the shuffle
where otherwise millions of rows would.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from geoflux.operators.events import Events

_X, _Y, _TIME, _ID = "@x", "@y", "@time", "@id"
_OWN = (_X, _Y, _TIME, _ID)


@dataclass(frozen=True)
class Run:
    """Consecutive rows of one partition."""

    partition: int
    rows: int


def pack(events: Events, start: int, stop: int, runs: Sequence[Run]) -> bytes:
    """The rows ``start`` to ``stop`` of events that are in the order of the runs."""
    arrays = {_X: pa.array(events.x[start:stop]), _Y: pa.array(events.y[start:stop])}
    if events.time.size:
        arrays[_TIME] = pa.array(events.time[start:stop])
    if events.id is not None:
        arrays[_ID] = events.id.slice(start, stop - start)
    for name, column in events.columns.items():
        arrays[name] = column.slice(start, stop - start)
    return pack_rows(pa.RecordBatch.from_pydict(arrays), runs)


def pack_rows(
    batch: pa.RecordBatch, runs: Sequence[Run], more: Mapping[bytes, bytes] | None = None
) -> bytes:
    """Rows that are in the order of the runs, and ``more`` to know about them."""
    about = {b"runs": json.dumps([[run.partition, run.rows] for run in runs]).encode()}
    about |= more or {}
    sink = pa.BufferOutputStream()
    schema = batch.schema.with_metadata(about)
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(about))
    return sink.getvalue().to_pybytes()


def unpack(blob: pa.Buffer | bytes) -> tuple[pa.RecordBatch, list[Run]]:
    """The rows of a blob, without copying, and their runs."""
    reader = pa.ipc.open_stream(blob)
    runs = json.loads(reader.schema.metadata[b"runs"])
    return reader.read_next_batch(), [Run(partition, rows) for partition, rows in runs]


def by_partition(
    blobs: Sequence[Any], contents: list[tuple[Mapping[bytes, bytes], list[Run]]] | None = None
) -> dict[int, list[pa.RecordBatch]]:
    """The rows of several blobs, in their order, by partition; ``contents`` gets what every blob
    tells of itself, and its runs."""
    pieces: dict[int, list[pa.RecordBatch]] = {}
    for blob in blobs:
        batch, runs = unpack(blob)
        if contents is not None:
            contents.append((batch.schema.metadata, runs))
        first = 0
        for run in runs:
            pieces.setdefault(run.partition, []).append(batch.slice(first, run.rows))
            first += run.rows
    return pieces


def joined(pieces: Sequence[pa.RecordBatch]) -> Events:
    """Pieces of one partition as one batch of events. A column that some rows never had is null
    there, whatever its type elsewhere."""
    tables = [pa.Table.from_batches([p.replace_schema_metadata(None)]) for p in pieces]
    table = (
        tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    )
    names = table.schema.names

    def whole(name: str) -> pa.Array:
        column = table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)

    return Events(
        whole(_X).to_numpy(),
        whole(_Y).to_numpy(),
        whole(_TIME).to_numpy() if _TIME in names else np.empty(0, np.int64),
        whole(_ID) if _ID in names else None,
        {name: whole(name) for name in names if name not in _OWN},
    )
