"""An operator that does nothing but pass rows on, by chance: what an application does to rates.

Its work is emulated by sleeping (``Emulated``), so that as many slots behave like as many
processors, however few cores there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.keyed import ID, ROW, STREAM, Operator
from geoflux.plan.hashing import stable_hash

_KEYS = 1 << 20
_ALL = 2.0**64
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Station(Operator[int]):
    """Out of every row come as many for each stream as ``means`` says on average: 0.3 is a chance,
    2.5 is two or three. Which ones follows from the row's id. The state is the rows so far.

    >>> rows = pa.table({"key": [1, 2], ID: ["a", "b"]})
    >>> _, out = Station({"results": 2.0}).process(0, rows)
    >>> out.column(ROW).to_pylist()
    [0, 0, 1, 1]
    """

    means: Mapping[str, float] = field(default_factory=lambda: {"results": 0.0})
    key: str = "key"
    columns: tuple[str, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those that have a mean."""
        return tuple(self.means)

    @property
    def output(self) -> pa.Schema:
        """A new id and key, and where a row comes from and goes to."""
        fields = [("id", pa.int64()), ("key", pa.int64()), (ROW, pa.int64())]
        return pa.schema(fields + ([(STREAM, pa.string())] if len(self.means) > 1 else []))

    def empty(self) -> int:
        """None so far."""
        return 0

    def process(self, state: int, rows: pa.Table) -> tuple[int, pa.Table]:
        """Pass rows on."""
        ids = stable_hash(rows.column(ID))
        parts = [self._passed(ids, place) for place in range(len(self.means))]
        return state + len(rows), pa.concat_tables(parts)

    def _passed(self, ids: npt.NDArray[np.uint64], place: int) -> pa.Table:
        name, mean = list(self.means.items())[place]
        salted = stable_hash((ids ^ np.uint64(place + 1)).view(np.int64))
        whole, rest = divmod(mean, 1.0)
        counts = np.full(len(ids), int(whole)) + (salted / _ALL < rest)
        row = np.repeat(np.arange(len(ids)), counts)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        steps = nth.astype(np.uint64) * np.uint64(_GOLDEN)
        new = stable_hash((salted[row] + steps).view(np.int64)).view(np.int64)
        columns: dict[str, Any] = {"id": new, "key": new % _KEYS, ROW: row}
        if len(self.means) > 1:
            columns[STREAM] = pa.array([name] * len(row), pa.string())
        return pa.table(columns, schema=self.output)

    def extract(self, state: int) -> Mapping[str, Any]:
        """The number."""
        return {"rows": np.array([state], np.int64)}

    def install(self, arrays: Mapping[str, Any]) -> int:
        """The number again."""
        return int(arrays["rows"][0].as_py())

    def size(self, state: int) -> int:
        """Of a number."""
        return 8
