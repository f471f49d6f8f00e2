"""A batch of observations: where, when, and the values of every feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows of a batch. Places and times are within bounds (others were quarantined before).

    ``values`` is NaN where a feature was not observed; infinite values count as not observed.
    """

    x: Floats
    """Longitude in degrees."""
    y: Floats
    """Latitude in degrees."""
    time: npt.NDArray[np.int64]
    """Seconds since 1970, UTC."""
    values: Floats
    """[n, F], in the order of the schema's features."""

    def __post_init__(self) -> None:
        n = self.x.size
        if self.y.size != n or self.time.size != n or self.values.shape[:1] != (n,):
            raise ValueError(
                f"a batch has as many places, times and values: {n} longitudes, {self.y.size} "
                f"latitudes, {self.time.size} times, {self.values.shape[0]} rows of values"
            )

    def __len__(self) -> int:
        return int(self.x.size)

    @property
    def finite_values(self) -> Floats:
        """The values, row by row in memory, NaN where they are infinite."""
        values = np.ascontiguousarray(self.values, np.float64)
        infinite = np.isinf(values)
        return np.where(infinite, np.nan, values) if infinite.any() else values

    def take(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Observations:
        """Some of the rows."""
        return Observations(self.x[rows], self.y[rows], self.time[rows], self.values[rows])

    @classmethod
    def joined(cls, batches: Sequence[Observations]) -> Observations:
        """Batches, at least one, one after another."""
        return cls(
            np.concatenate([batch.x for batch in batches]),
            np.concatenate([batch.y for batch in batches]),
            np.concatenate([batch.time for batch in batches]),
            np.concatenate([batch.values for batch in batches]),
        )

    @classmethod
    def none(cls, features: int) -> Observations:
        """No rows."""
        nowhere = np.empty(0)
        return cls(nowhere, nowhere, np.empty(0, np.int64), np.empty((0, features)))
