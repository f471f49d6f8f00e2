"""A batch of valid events in columns, as operators get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.spatial.space import FloatArray


@dataclass(frozen=True)
class Events:
    """Events of one partition: place, time in microseconds since 1970, id, and those further
    columns (by the user's names) that some live query asks for."""

    x: FloatArray
    y: FloatArray
    time: npt.NDArray[np.int64]
    id: pa.Array | None
    columns: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return int(self.x.size)

    def take(self, rows: npt.NDArray[Any]) -> Events:
        """Some rows, in the order given."""
        places = pa.array(rows)
        return Events(
            self.x[rows],
            self.y[rows],
            self.time[rows] if self.time.size else self.time,
            None if self.id is None else self.id.take(places),
            {name: column.take(places) for name, column in self.columns.items()},
        )

    def take_columns(self, names: frozenset[str], rows: npt.NDArray[Any]) -> dict[str, pa.Array]:
        """Some columns at some rows."""
        places = pa.array(rows)
        return {name: self.columns[name].take(places) for name in names}
