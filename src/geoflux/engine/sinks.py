"""Where a slot's matches go: a staged Parquet file that counts once the epoch's manifest names it.

Query ids are written as Parquet dictionaries straight from the layer's ids, so that a million
matches of a thousand queries store a thousand texts.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.staging import staged_name
from geoflux.engine.task import EpochTask
from geoflux.operators.events import Events
from geoflux.spatial.space import IntArray

_DICTIONARY_BYTES = 64 << 20


class ParquetSink:
    """Writes one file per slot and epoch, when there is anything to write; closed by ``with``."""

    def __init__(self, task: EpochTask, slot: int) -> None:
        self._task = task
        self._name = staged_name("counts" if task.counting else "matches", task.epoch, slot)
        self._files = ExitStack()
        self._writer: Any = None
        self.matches = 0

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, *problem: Any) -> None:
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
        used, codes = _compact(query, len(query_ids))
        ids = pa.DictionaryArray.from_arrays(pa.array(codes), query_ids.take(pa.array(used)))
        self._write({"query_id": ids, "event_id": events.id.take(pa.array(event))}, int(query.size))
        self.matches += int(query.size)

    def counts(self, query_ids: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        """Matches per query."""
        used = np.flatnonzero(counts)
        if used.size == 0:
            return
        ids = query_ids if used.size == len(query_ids) else query_ids.take(pa.array(used))
        self._write({"query_id": ids, "count": pa.array(counts[used])}, int(used.size))
        self.matches += int(counts.sum())

    def _write(self, columns: dict[str, pa.Array], rows: int) -> None:
        columns["epoch"] = pa.array(np.full(rows, self._task.epoch, np.int64))
        batch = pa.RecordBatch.from_pydict(columns)
        if self._writer is None:
            stream = self._files.enter_context(self._task.store.output(self._name))
            texts = ["epoch"] if "count" in columns else ["query_id", "epoch"]
            self._writer = pq.ParquetWriter(
                stream, batch.schema, compression=self._task.compression, store_schema=False,
                use_dictionary=texts, dictionary_pagesize_limit=_DICTIONARY_BYTES,
                write_statistics=["epoch"],
            )  # fmt: skip
        self._writer.write_batch(batch)


def _compact(query: IntArray, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The queries that occur, and each pair's place among them."""
    if query.size * 8 < count:
        used, codes = np.unique(query, return_inverse=True)
        return used, codes.astype(np.int32)
    occurs = np.zeros(count, np.bool_)
    occurs[query] = True
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs), place[query]
