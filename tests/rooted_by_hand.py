"""Rows that give rise to others, and inputs for them: operators of applications with trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from geoflux.engine.source import RawBatch, Slice
from geoflux.operators.keyed import Operator

SEED = 11
STREAMS = ("a", "b")


@dataclass(frozen=True)
class Spreading(Operator[int]):
    """Gives one row on ``log`` for every row, and up to two on the streams that are read, some of
    them without a key, some from no row at all; ``left`` says how often that goes on."""

    key: str = "key"
    columns: tuple[str, ...] = ("origin", "left")
    streams: tuple[str, ...] = (*STREAMS, "log")
    output: ClassVar[pa.Schema] = pa.schema(  # type: ignore[misc]
        [("key", pa.string()), ("origin", pa.int64()), ("@row", pa.int64()), ("left", pa.int64()),
         ("@stream", pa.string())]
    )  # fmt: skip

    def empty(self) -> int:
        return 0

    def process(self, state: int, rows: pa.Table) -> tuple[int, pa.Table]:
        found = []
        for place, row in enumerate(rows.to_pylist()):
            mixed = (row["origin"] * 31 + row["left"] * 7 + len(row["key"])) % 11
            for number in range(mixed % 3 if row["left"] else 0):
                found.append(
                    {"key": None if mixed == 8 and number else f"k{mixed + number}",
                     "origin": row["origin"], "@row": place, "left": row["left"] - 1,
                     "@stream": STREAMS[(mixed + number) % 2]}
                )  # fmt: skip
            if mixed == 4 and row["left"]:
                stray = {"key": "k", "origin": -1, "@row": None, "left": 0, "@stream": "b"}
                found.insert(0, stray)
            log = {"key": "k", "origin": row["origin"], "@row": place, "left": 0, "@stream": "log"}
            found.append(log)
        return state + len(rows), pa.Table.from_pylist(found, schema=self.output)

    def extract(self, state: int) -> Mapping[str, Any]:
        return {"n": np.array([state])}

    def install(self, arrays: Mapping[str, Any]) -> int:
        return int(arrays["n"][0].as_py())

    def size(self, state: int) -> int:
        return 8


class Inputs:
    """Rows from outside; some have no key."""

    def __init__(self, count: int) -> None:
        keys = [None if n % 9 == 5 else f"k{n % 7}" for n in range(count)]
        self._table = pa.table(
            {"key": pa.array(keys, pa.string()), "origin": np.arange(count),
             "left": np.arange(count) % 4, "time": np.arange(count)}
        )  # fmt: skip
        self.end = count

    def latest(self, start: int, limit: int) -> int:
        return min(start + limit, self.end)

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)] if stop > start else []

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Any:
        for first in range(piece.start, piece.stop, 3):
            last = min(first + 3, piece.stop)
            yield RawBatch(self._table.slice(first, last - first), np.arange(first, last))
