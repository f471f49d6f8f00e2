"""Coastlines of the world, for pictures; the same that the dashboard draws."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=1)
def coastlines() -> tuple[Floats, ...]:
    """Each a closed line of longitudes and latitudes [n, 2].

    >>> lines = coastlines()
    >>> len(lines) > 100, lines[0].shape[1]
    (True, 2)
    """
    noted = json.loads((files("geoflux") / "serve/static/coast.json").read_bytes())
    lines = [np.cumsum(np.reshape(part, (-1, 2)), axis=0) * noted["unit"] for part in noted["land"]]
    return tuple(np.vstack([line, line[:1]]) for line in lines)
