"""Hotspots: squares that for a while draw a share of all events, wherever those would have been.

After the dissertation (004), section 6.3.2: up to 40 % of the data is redirected into a square of
15 % of the space's side, uniformly or normally distributed, with an intensity that swells and
fades or that is there at once; two hotspots share the time or follow each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geoflux.sections import HotspotConfig
from geoflux.workload.cities import Bounds
from geoflux.workload.draws import Floats, Indices, Stream, Words, fold, high, low, normal, unit
from geoflux.workload.draws import words as drawn_words
from geoflux.workload.scenario import Scenario

# The text says "variance 20 % of the side", which has no unit that fits: a standard deviation.
SPREAD_OF_SIDE = 0.2
_BELL_STEPS = 1024
_BELL_DEVIATIONS = 3.0  # from the middle of a hotspot's time to either end


@dataclass(frozen=True)
class Hotspot:
    """One hotspot over a space.

    >>> corner = Hotspot(HotspotConfig(at=(0.95, 0.0), side=0.1), (0.0, 0.0, 10.0, 20.0))
    >>> corner.region  # pushed inside: a hotspot keeps its side
    (9.0, 0.0, 10.0, 2.0)
    """

    spot: HotspotConfig
    bounds: Bounds

    @property
    def region(self) -> Bounds:
        """West, south, east, north of its square, inside the bounds."""
        west, south, east, north = self.bounds
        side = self.spot.side
        left, down = (min(max(at, 0.0), 1.0 - side) for at in self.spot.at)
        return (
            west + left * (east - west),
            south + down * (north - south),
            min(east, west + (left + side) * (east - west)),
            min(north, south + (down + side) * (north - south)),
        )

    def share(self, progress: Floats) -> Floats:
        """Share of all events that it draws at moments of the run; 0 outside its time."""
        age = (progress - self.spot.start) / (self.spot.stop - self.spot.start)
        alive = (age >= 0) & (age < 1)
        if self.spot.intensity == "step":
            return np.where(alive, self.spot.peak, 0.0)
        step = (np.where(alive, age, 0.0) * _BELL_STEPS).astype(np.int64)
        return np.where(alive, self.spot.peak * _bell().take(step), 0.0)

    def points(self, drawn: Words) -> tuple[Floats, Floats]:
        """A longitude and a latitude inside the square for each word."""
        west, south, east, north = self.region
        if self.spot.inside == "uniform":
            across, up = unit(high(drawn)), unit(low(drawn))
        else:
            across = 0.5 + SPREAD_OF_SIDE * normal(high(drawn))
            up = 0.5 + SPREAD_OF_SIDE * normal(low(drawn))
        lon, lat = west + across * (east - west), south + up * (north - south)
        return fold(lon, west, east), fold(lat, south, north)


def hotspots(scenario: Scenario) -> tuple[Hotspot, ...]:
    """The hotspots of a run, in the order of the settings."""
    return tuple(Hotspot(spot, scenario.space.bounds) for spot in scenario.simulate.hotspots)


def redirect(scenario: Scenario, numbers: Indices, lon: Floats, lat: Floats) -> None:
    """Move the events that hotspots draw, in place; ``numbers`` are consecutive.

    Hotspots of the same time add up; where they ask for more than all, the first ones get it.
    """
    spots = hotspots(scenario)
    if not spots or not len(numbers):
        return
    progress = scenario.progress(numbers)
    live = [s for s in spots if progress[-1] >= s.spot.start and progress[0] < s.spot.stop]
    if not live:
        return
    seed, first = scenario.simulate.seed, int(numbers[0])
    chance = unit(high(drawn_words(seed, Stream.HOTSPOT_CHANCE, first, len(numbers))))
    place = drawn_words(seed, Stream.HOTSPOT_PLACE, first, len(numbers))
    taken = np.zeros(len(numbers))
    for spot in live:
        upto = taken + spot.share(progress)
        mine = np.flatnonzero((chance >= taken) & (chance < upto))
        lon[mine], lat[mine] = spot.points(place[mine])
        taken = upto


@lru_cache(maxsize=1)
def _bell() -> Floats:
    """A normal curve over a hotspot's time, 1 in the middle; rounded, to be the same everywhere."""
    away = (np.arange(_BELL_STEPS) + 0.5) * (2 / _BELL_STEPS) - 1
    return np.array([round(math.exp(-((a * _BELL_DEVIATIONS) ** 2) / 2), 9) for a in away.tolist()])
