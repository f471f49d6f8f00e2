"""Bringing rows of an outside source into an application: judged once, and written on as they are.

What is refused is quarantined here, with a reason; whoever reads the stream has rows that can be
read, and can read them as often as there are readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from geoflux.operators.keyed import ID, Operator


@dataclass(frozen=True)
class PassOn(Operator[None]):
    """Passes rows of ``schema`` on. Rows with the same ``key`` keep their order; without one they
    are dealt out to the slots by their ids, and only epochs keep theirs.

    ``timed``: rows without a readable time are refused.

    >>> rows = pa.table({"car": ["a"], "speed": [3.0], "@id": ["0"], "@time": [0]})
    >>> operator = PassOn(pa.schema([("speed", pa.float64()), ("car", pa.string())]), key="car")
    >>> operator.process(None, rows)[1].to_pylist()
    [{'speed': 3.0, 'car': 'a'}]
    """

    schema: pa.Schema
    key: str = ID
    timed: bool = False
    stateless = True

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """All but the key."""
        return tuple(name for name in self.schema.names if name != self.key)

    @property
    def needs_time(self) -> bool:  # type: ignore[override]
        """As it was asked for."""
        return self.timed

    @property
    def output(self) -> pa.Schema:
        """The columns of the source."""
        return self.schema

    def empty(self) -> None:
        """There is no state."""

    def process(self, state: None, rows: pa.Table) -> tuple[None, pa.Table]:
        """The rows as they are."""
        table = rows.select(self.schema.names)
        return None, table if table.schema.equals(self.schema) else table.cast(self.schema)

    def extract(self, state: None) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def install(self, arrays: Mapping[str, Any]) -> None:
        """Nothing."""

    def size(self, state: None) -> int:
        """Nothing."""
        return 0
