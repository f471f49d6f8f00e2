"""Small operators with streams, written out row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from geoflux.operators.keyed import Operator

Counts = dict[str, int]


@dataclass(frozen=True)
class Countdown(Operator[Counts]):
    """Numbers a key's rows; a row with ``left`` > 0 goes round once more with one less, all
    others go out."""

    key: str = "key"
    columns: tuple[str, ...] = ("left", "value")
    streams: tuple[str, ...] = ("again", "done")

    @property
    def output(self) -> pa.Schema:
        return pa.schema(
            [
                ("key", pa.string()),
                ("left", pa.int64()),
                ("value", pa.int64()),
                ("seen", pa.int64()),
                ("@stream", pa.string()),
            ]
        )

    def empty(self) -> Counts:
        return {}

    def process(self, state: Counts, rows: pa.Table) -> tuple[Counts, pa.Table]:
        found = []
        for row in rows.to_pylist():
            seen = state[row["key"]] = state.get(row["key"], 0) + 1
            left = row["left"] or 0
            found.append(
                {
                    "key": row["key"],
                    "left": max(left - 1, 0),
                    "value": row["value"],
                    "seen": seen,
                    "@stream": self.streams[0] if left > 0 else self.streams[1],
                }
            )
        return state, pa.Table.from_pylist(found, schema=self.output)

    def extract(self, state: Counts) -> Mapping[str, Any]:
        return {"keys": pa.array(state, pa.string()), "counts": pa.array(state.values())}

    def install(self, arrays: Mapping[str, Any]) -> Counts:
        return dict(zip(arrays["keys"].to_pylist(), arrays["counts"].to_pylist(), strict=True))

    def size(self, state: Counts) -> int:
        return 20 * len(state)


@dataclass(frozen=True)
class Fragile(Countdown):
    """A countdown that breaks while a file is there."""

    breaks_with: str = ""

    def process(self, state: Counts, rows: pa.Table) -> tuple[Counts, pa.Table]:
        if Path(self.breaks_with).exists():
            raise ValueError("not today")
        return super().process(state, rows)
