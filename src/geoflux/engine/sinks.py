"""Where a slot's matches go: a staged Parquet file that counts once the epoch's manifest names it.

Query ids are written as Parquet dictionaries straight from the layer's ids, so that a million
matches of a thousand queries store a thousand texts.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.staging import staged_name
from geoflux.engine.task import EpochTask
from geoflux.operators.events import Events
from geoflux.operators.retained import concatenated
from geoflux.spatial.space import IntArray

_DICTIONARY_BYTES = 64 << 20
_ROWS_AT_ONCE = 1 << 20


class ParquetSink:
    """Writes one file per slot and epoch, when there is anything to write; closed by ``with``."""

    def __init__(self, task: EpochTask, slot: int) -> None:
        self._task = task
        self._name = staged_name("counts" if task.counting else "matches", task.epoch, slot)
        self._files = ExitStack()
        self._writer: Any = None
        self._epochs = np.empty(0, np.int64)
        self._counts: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []
        self.matches = 0
        self.told = 0
        """Queries whose matches were counted, partition by partition."""

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            self._write_counts()
        if self._writer is not None:
            self._writer.close()
        self._files.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The file written, if any."""
        return () if self._writer is None else (self._name,)

    def pairs(self, query_ids: pa.Array, query: IntArray, events: Events, event: IntArray) -> None:
        """Matches one by one."""
        assert events.id is not None, "events that are matched one by one carry their ids"
        ids = _dictionary(query_ids, query)
        self._write({"query_id": ids, "event_id": events.id.take(pa.array(event))}, int(query.size))
        self.matches += int(query.size)

    def counts(self, query_ids: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        """Matches per query."""
        used = np.flatnonzero(counts)
        if used.size == 0:
            return
        ids = query_ids if used.size == len(query_ids) else query_ids.take(pa.array(used))
        self._counts.append((ids, counts[used]))
        self.told += int(used.size)
        self.matches += int(counts.sum())
        if sum(len(some) for some, _ in self._counts) >= _ROWS_AT_ONCE:
            self._write_counts()

    def _write_counts(self) -> None:
        """Counts of several partitions together: a few large writes instead of many small ones."""
        if self._counts:
            ids = concatenated([some for some, _ in self._counts])
            counts = np.concatenate([some for _, some in self._counts])
            self._counts = []
            self._write({"query_id": ids, "count": pa.array(counts)}, counts.size)

    def _write(self, columns: dict[str, pa.Array], rows: int) -> None:
        if self._epochs.size < rows:
            self._epochs = np.full(rows, self._task.epoch, np.int64)
        columns["epoch"] = pa.array(self._epochs[:rows])
        batch = pa.RecordBatch.from_pydict(columns)
        if self._writer is None:
            stream = self._files.enter_context(self._task.store.output(self._name))
            texts = ["epoch"] if "count" in columns else ["query_id", "epoch"]
            self._writer = pq.ParquetWriter(
                stream, batch.schema, compression=self._task.compression, store_schema=False,
                use_dictionary=texts, dictionary_pagesize_limit=_DICTIONARY_BYTES,
                write_statistics=False,
            )  # fmt: skip
        self._writer.write_batch(batch)


def _dictionary(query_ids: pa.Array, query: IntArray) -> pa.DictionaryArray:
    """The ids of the pairs' queries, encoded; the dictionary holds hardly more than occurs."""
    if len(query_ids) > query.size:
        used, query = compact(query, len(query_ids))
        query_ids = query_ids.take(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(query), query_ids)


def compact(query: IntArray, count: int) -> tuple[npt.NDArray[np.int32], IntArray]:
    """The queries that occur, and each pair's place among them."""
    place = np.full(count, -1, np.int32)
    used = np.empty(min(count, query.size), np.int32)
    codes = np.empty(query.size, np.int32)
    return used[: _compact(query, place, used, codes)], codes


@numba.njit(cache=True)
def _compact(query: Any, place: Any, used: Any, codes: Any) -> Any:
    found = 0
    for i in range(query.size):
        q = query[i]
        if place[q] < 0:
            place[q] = found
            used[found] = q
            found += 1
        codes[i] = place[q]
    return found
