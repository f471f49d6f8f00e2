"""Where people are at an hour of the day: cities by population and by local time.

Activity follows the local clock, so the density moves around the world in a day. All cities of
one UTC offset share one clock: a draw takes the offset first (a small table for each ten minutes
of the day) and then a city of that offset by population (one table for good). Every point lies
inside the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geoflux.workload.cities import Bounds, Cities, cities
from geoflux.workload.draws import AliasTables, Floats, Indices, Words, fold, high, low, normal

STEPS_PER_DAY = 144
_QUIETEST_HOUR = 4.0
_NIGHT, _DAY = 0.1, 1.0


def activity(local_hour: float) -> float:
    """Share of people who are up: smooth, least at 4 in the morning, most at 4 in the afternoon.

    >>> activity(4.0), activity(16.0), activity(10.0)
    (0.1, 1.0, 0.55)
    """
    wave = (1 - math.cos((local_hour - _QUIETEST_HOUR) * math.pi / 12)) / 2
    return round(_NIGHT + (_DAY - _NIGHT) * wave, 6)


@dataclass(frozen=True)
class Density:
    """The cities of a space and the tables to draw from them; made once in a process."""

    bounds: Bounds
    cities: Cities
    spread_lon: Floats
    spread_lat: Floats
    zones: AliasTables
    zone_count: int
    within: AliasTables
    city_of_entry: Indices

    def draw_cities(self, step: Indices, drawn: Words) -> Indices:
        """A city for each word, by population and activity at a step of the (UTC) day."""
        zone = self.zones.draw(step, high(drawn))
        zone -= step * self.zone_count
        return self.city_of_entry.take(self.within.draw(zone, low(drawn)))

    def draw_points(self, city: Indices, drawn: Words) -> tuple[Floats, Floats]:
        """Longitude and latitude around each city, normal with the city's spread, in bounds."""
        west, south, east, north = self.bounds
        lon, lat = normal(high(drawn)), normal(low(drawn))
        lon *= self.spread_lon.take(city)
        lon += self.cities.lon.take(city)
        lat *= self.spread_lat.take(city)
        lat += self.cities.lat.take(city)
        return fold(lon, west, east), fold(lat, south, north)


@lru_cache(maxsize=8)
def density(region: str, bounds: Bounds) -> Density:
    """The density of a region inside the bounds; kept for the process."""
    places = cities(region, bounds)
    offsets, zone_of_city = np.unique(places.utc_offset_hours, return_inverse=True)
    members = [np.flatnonzero(zone_of_city == zone) for zone in range(len(offsets))]
    people = [places.population[group].tolist() for group in members]
    awake = [
        [
            sum(people[zone]) * round(1e6 * activity(step * 24 / STEPS_PER_DAY + offset))
            for zone, offset in enumerate(offsets.tolist())
        ]
        for step in range(STEPS_PER_DAY)
    ]
    spread_lon, spread_lat = places.spread()
    return Density(
        bounds=bounds,
        cities=places,
        spread_lon=spread_lon,
        spread_lat=spread_lat,
        zones=AliasTables.of(awake),
        zone_count=len(offsets),
        within=AliasTables.of(people),
        city_of_entry=np.concatenate(members).astype(np.int64),
    )
