"""The space that is watched, and coordinates in it as small whole numbers.

Matching compares *ticks*, 31-bit whole numbers, because they are half as large as floats and twice
as fast to compare. The map from coordinates to ticks is monotone, so two different ticks decide a
comparison exactly; equal ticks decide nothing, and the exact coordinates are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.sections import SpaceConfig

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

TICKS = 2**31 - 3
"""Ticks across the space; -1 and TICKS + 1 stand for anything below and above it."""


@dataclass(frozen=True)
class Space:
    """A closed rectangle of the plane or of longitudes and latitudes.

    >>> Space("planar", 0.0, 0.0, 10.0, 10.0).inside(np.array([0.0, 10.0, 11.0]), np.zeros(3))
    array([ True,  True, False])
    """

    kind: str
    west: float
    south: float
    east: float
    north: float

    @classmethod
    def of(cls, config: SpaceConfig) -> Space:
        """The space that the settings describe."""
        return cls(config.kind, *(float(edge) for edge in config.bounds))

    @property
    def is_lonlat(self) -> bool:
        """Whether coordinates are degrees, so that the antimeridian and great circles exist."""
        return self.kind == "lonlat"

    @property
    def width(self) -> float:
        """East less west."""
        return self.east - self.west

    @property
    def height(self) -> float:
        """North less south."""
        return self.north - self.south

    def inside(self, x: FloatArray, y: FloatArray) -> npt.NDArray[np.bool_]:
        """Which points lie in the space; NaN does not."""
        inside: npt.NDArray[np.bool_] = (
            (x >= self.west) & (x <= self.east) & (y >= self.south) & (y <= self.north)
        )
        return inside

    def ticks_x(self, x: FloatArray) -> IntArray:
        """Ticks of x coordinates, also of such as lie outside."""
        return _ticks(x, self.west, TICKS / self.width)

    def ticks_y(self, y: FloatArray) -> IntArray:
        """Ticks of y coordinates, also of such as lie outside."""
        return _ticks(y, self.south, TICKS / self.height)


@numba.njit(cache=True)
def _ticks(values: Any, origin: float, scale: float) -> Any:
    out = np.empty(values.size, np.int32)
    for i in range(values.size):
        tick = (values[i] - origin) * scale
        if tick < 0:
            out[i] = -1
        elif tick >= TICKS + 1:
            out[i] = TICKS + 1
        else:
            out[i] = np.int32(tick)
    return out
