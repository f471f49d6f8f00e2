"""Immutable segments: named arrays of different lengths in one Arrow IPC file.

A segment is one record batch with one row, whose columns are lists: reading an array back is a
view into the mapped file, whatever its size, and workers of one machine share the pages. Where the
run is encrypted a segment is decrypted instead, once as long as anybody here holds it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.state.decrypted import Decrypted
from geoflux.state.store import Store

Arrays = Mapping[str, Any]


def unique_name(folder: str, stem: str) -> str:
    """A name that no other attempt at the same work has: ``folder/stem-<random>.arrow``."""
    return f"{folder}/{stem}-{uuid.uuid4().hex[:12]}.arrow"


@dataclass(frozen=True)
class Segment:
    """The arrays of a segment, and what its writer noted about it."""

    columns: Mapping[str, pa.Array]
    about: Mapping[str, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(column.nbytes for column in self.columns.values())

    def array(self, name: str) -> npt.NDArray[Any]:
        """A numeric array, without copying."""
        values: npt.NDArray[Any] = self.columns[name].to_numpy(zero_copy_only=True)
        return values

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """All numeric arrays whose name starts with a prefix."""
        return {name: self.array(name) for name in self.columns if name.startswith(prefix)}


def write_segment(store: Store, name: str, arrays: Arrays, about: Mapping[str, Any]) -> int:
    """Write arrays (NumPy or Arrow) under a new name; returns the bytes written."""
    columns = {}
    for key, given in arrays.items():
        values = pa.array(given) if isinstance(given, np.ndarray) else given
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        offsets = pa.array([0, len(values)], pa.int64())
        columns[key] = pa.LargeListArray.from_arrays(offsets, values)
    batch = pa.RecordBatch.from_pydict(columns)
    schema = batch.schema.with_metadata({"about": json.dumps(dict(about))})
    with store.output(name) as stream, pa.ipc.new_file(stream, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return store.size(name)


@lru_cache(maxsize=64)
def _kept_open(store: Store, name: str) -> Segment:
    return _read(store, name)


_decrypted: Decrypted[Segment] = Decrypted(128 << 20)


def reopened(store: Store, name: str) -> Segment:
    """A segment that several will read in turn, opened once; it never changes."""
    return read_segment(store, name) if store.is_sealed(name) else _kept_open(store, name)


def read_segment(store: Store, name: str) -> Segment:
    """Open a segment; costs the same whatever its size, unless it must be decrypted."""
    if not store.is_sealed(name):
        return _read(store, name)
    return _decrypted.get((store, name), lambda: _read(store, name))


def _read(store: Store, name: str) -> Segment:
    reader = pa.ipc.open_file(store.open(name))
    batch = reader.get_batch(0)
    metadata = reader.schema.metadata or {}
    columns = {field: batch.column(field).flatten() for field in batch.schema.names}
    return Segment(columns, json.loads(metadata.get(b"about", b"{}")))
