"""Populated places of a space, for a map: the largest, with their names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from geoflux.errors import ConfigError
from geoflux.workload.cities import Bounds, cities

MOST_PLACES = 1500


@lru_cache(maxsize=4)
def places_view(bounds: Bounds) -> dict[str, list[Any]]:
    """Columns, largest first; empty where nobody lives.

    >>> places_view((-125.0, 24.0, -66.0, 50.0))["name"][0]
    'New York City'
    """
    try:
        found = cities("world", bounds)
    except ConfigError:  # no place in these bounds
        return {"name": [], "lon": [], "lat": [], "population": []}
    few = slice(MOST_PLACES)
    return {
        "name": list(found.names[few]), "lon": found.lon[few].round(3).tolist(),
        "lat": found.lat[few].round(3).tolist(), "population": found.population[few].tolist(),
    }  # fmt: skip
