"""Committed results as messages, each with a key that tells doubles apart.

A message's key names the run, the epoch, the file in its manifest and the row in that file. Files
that a manifest names never change, so whatever is sent again after a crash has the same keys: a
reader who drops keys that it has seen sees every row exactly once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

KINDS = ("matches", "counts", "aggregates")
"""Folders of results that are sent."""
KEY, KIND, EPOCH = "geoflux.key", "geoflux.kind", "geoflux.epoch"
"""Names of the headers."""
END = "epoch"
"""Kind of the message that closes an epoch."""
_ROWS = 4096
MESSAGES = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


@dataclass(frozen=True)
class Parcelled:
    """A file of results to be sent: where it is, and what its messages are called after."""

    path: str
    kind: str
    run: str
    epoch: int
    number: int


def parcelled(files: Sequence[str], run: str, epoch: int) -> list[Parcelled]:
    """The results among the files of a manifest, numbered in their order.

    >>> [(f.kind, f.number) for f in parcelled(["received/a", "matches/b", "matches/c"], "r", 3)]
    [('matches', 0), ('matches', 1)]
    """
    names = [name for name in files if name.split("/")[0] in KINDS]
    return [Parcelled(name, name.split("/")[0], run, epoch, i) for i, name in enumerate(names)]


def messages(file: Parcelled, arrow: bool) -> Iterator[pa.RecordBatch]:
    """The messages of a file, the same ones whenever they are asked for."""
    table = pq.read_table(file.path)
    for first in range(0, len(table), _ROWS):
        (batch,) = table.slice(first, _ROWS).combine_chunks().to_batches()
        yield _of_batch(file, batch, first, arrow)


def amounts(files: Sequence[Parcelled], arrow: bool) -> tuple[int, int]:
    """How many messages and rows the files come to."""
    rows = [int(pq.read_metadata(file.path).num_rows) for file in files]
    return sum(math.ceil(n / _ROWS) if arrow else n for n in rows), sum(rows)


def _of_batch(file: Parcelled, batch: pa.RecordBatch, first: int, arrow: bool) -> pa.RecordBatch:
    prefix = f"{file.run}.{file.epoch}.{file.number}."
    if arrow:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        key = f"{prefix}{first}"
        return _messages([key.encode()], [sink.getvalue().to_pybytes()], [key], file)
    rows = batch.to_pylist()
    keys = [f"{prefix}{first + i}" for i in range(len(rows))]
    # A query's messages stay in one partition, and there in order.
    owners = [str(row["query_id"]).encode() for row in rows]
    return _messages(owners, [_json(row) for row in rows], keys, file)


def closing(run: str, epoch: int, sent: int, rows: int) -> pa.RecordBatch:
    """The message that says how many messages and rows an epoch has; sent after all of them."""
    about = {"epoch": epoch, "messages": sent, "rows": rows}
    key = f"{run}.{epoch}.end"
    file = Parcelled("", END, run, epoch, 0)
    return _messages([END.encode()], [_json(about)], [key], file)


def _messages(
    owners: list[bytes], values: list[bytes], keys: list[str], file: Parcelled
) -> pa.RecordBatch:
    same = [
        {"key": KIND, "value": file.kind.encode()},
        {"key": EPOCH, "value": str(file.epoch).encode()},
    ]
    headers = [[{"key": KEY, "value": key.encode()}, *same] for key in keys]
    return pa.RecordBatch.from_pydict(
        {"key": owners, "value": values, "headers": headers}, schema=MESSAGES
    )


def _json(row: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(row, default=str, allow_nan=False)
    except ValueError:  # JSON has no word for what is not finite
        text = json.dumps(_finite(row), default=str)
    return text.encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
