"""Great circles: distances on the sphere, and the box around everything within a distance.

The sphere has the Earth's mean radius (IUGG R1). The box is a little too large, never too small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

EARTH_RADIUS_M = 6_371_008.8
_MARGIN_DEGREES = 1e-9


def distance_m(lon1: Any, lat1: Any, lon2: Any, lat2: Any) -> Any:
    """Great-circle distance in metres by the haversine formula; arrays or numbers.

    >>> round(float(distance_m(0.0, 0.0, 0.0, 90.0)) / 1000)
    10008
    """
    phi1, phi2 = np.radians(lat1), np.radians(lat2)
    half_phi = (phi2 - phi1) / 2
    half_lambda = np.radians(np.subtract(lon2, lon1)) / 2
    a = np.sin(half_phi) ** 2 + np.cos(phi1) * np.cos(phi2) * np.sin(half_lambda) ** 2
    return 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(a, 1.0)))


def box_around(lon: float, lat: float, radius_m: float) -> tuple[float, float, float, float]:
    """West, south, east, north of all points within a distance; west > east wraps.

    >>> [round(edge, 3) for edge in box_around(179.95, 0.0, 11_119.5)]
    [179.85, -0.1, -179.95, 0.1]
    """
    angle = radius_m / EARTH_RADIUS_M
    reach = math.degrees(angle) + _MARGIN_DEGREES
    south, north = lat - reach, lat + reach
    if south <= -90 or north >= 90 or angle >= math.pi / 2:
        return -180.0, max(south, -90.0), 180.0, min(north, 90.0)
    ratio = math.sin(angle) / math.cos(math.radians(lat))
    if ratio >= 1:
        return -180.0, south, 180.0, north
    spread = math.degrees(math.asin(ratio)) * (1 + 1e-12) + _MARGIN_DEGREES
    west, east = lon - spread, lon + spread
    if east - west >= 360:
        return -180.0, south, 180.0, north
    if west <= -180:
        west += 360
    if east >= 180:
        east -= 360
    return west, south, east, north
