"""Simulated events: people in cities, by day and night, each event known by its number alone.

Event ``n`` is the same in every range, on every worker and with any choice of columns: each draw
takes its words from a stream of its own, at the event's number. Every event is valid: inside the
bounds, times never fall, speeds are not negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.workload.cities import Bounds, cities
from geoflux.workload.draws import (
    AliasTables,
    Floats,
    Indices,
    Stream,
    Words,
    low,
    normal,
    unit,
    words,
)
from geoflux.workload.hotspots import redirect
from geoflux.workload.scenario import Scenario, day_step

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("object", pa.int64()),
        ("speed", pa.float32()),
        ("kind", pa.string()),
    ]
)

KINDS = ("phone", "taxi", "bus", "bike", "truck")
_KIND_SHARES = (50, 20, 15, 10, 5)
_KIND_SPEED = np.array([1.5, 9.0, 7.0, 4.5, 14.0])  # m/s
_KIND_SPEED_SPREAD = np.array([1.0, 5.0, 4.0, 1.5, 6.0])
_PEOPLE_PER_OBJECT = 200
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class CityEvents:
    """The events of a run by number.

    Cities are drawn in proportion to population and to activity at their local time; points are
    normal around the city; hotspots then move their share. An object belongs to one city and is
    of one kind; few objects of a city make most of its events.

    >>> events = CityEvents(Scenario())
    >>> whole = events.table(0, 100)
    >>> whole.slice(40, 20) == events.table(40, 60)
    True
    >>> whole.select(["id", "lat"]) == events.table(0, 100, frozenset({"id", "lat"}))
    True
    """

    scenario: Scenario

    def table(self, start: int, stop: int, columns: frozenset[str] | None = None) -> pa.Table:
        """Events ``start`` to ``stop``, all columns or those that are named."""
        names = [name for name in SCHEMA.names if columns is None or name in columns]
        drawn = _Range(self.scenario, start, max(start, stop))
        arrays = [_COLUMNS[name](drawn) for name in names]
        schema = pa.schema([SCHEMA.field(name) for name in names])
        return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class _Range:
    """What several columns of one range are made from; each is made once, when first asked for."""

    scenario: Scenario
    start: int
    stop: int

    def words(self, stream: Stream) -> Words:
        return words(self.scenario.simulate.seed, stream, self.start, self.stop - self.start)

    @cached_property
    def numbers(self) -> Indices:
        return np.arange(self.start, self.stop, dtype=np.int64)

    @cached_property
    def time_us(self) -> Indices:
        return self.scenario.event_time_us(self.numbers)

    @cached_property
    def city(self) -> Indices:
        step = day_step(self.time_us)
        return self.scenario.density().draw_cities(step, self.words(Stream.EVENT_CITY))

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        place = self.words(Stream.EVENT_PLACE)
        lon, lat = self.scenario.density().draw_points(self.city, place)
        redirect(self.scenario, self.numbers, lon, lat)
        return lon, lat

    @cached_property
    def object(self) -> Indices:
        """Within a city the rank falls off as the fourth power: 20 % make two thirds."""
        first, count = _objects(self.scenario.simulate.region, self.scenario.space.bounds)
        share = unit(low(self.words(Stream.EVENT_OBJECT)))
        share *= share
        share *= share
        share *= count.take(self.city)
        return first.take(self.city) + share.astype(np.int64)

    @cached_property
    def kind(self) -> Indices:
        """Hashed from the object, so that a taxi stays a taxi."""
        mixed = self.object.astype(np.uint64) * _MIX
        return _kinds().draw(np.int64(0), mixed >> np.uint64(32))

    @cached_property
    def speed(self) -> npt.NDArray[np.float32]:
        spread = normal(low(self.words(Stream.EVENT_SPEED))) * _KIND_SPEED_SPREAD.take(self.kind)
        speed: Floats = np.maximum(_KIND_SPEED.take(self.kind) + spread, 0.0)
        return speed.astype(np.float32)


_COLUMNS: dict[str, Callable[[_Range], pa.Array]] = {
    "id": lambda drawn: pa.array(drawn.numbers),
    "lon": lambda drawn: pa.array(drawn.points[0]),
    "lat": lambda drawn: pa.array(drawn.points[1]),
    "time": lambda drawn: pa.array(drawn.time_us).view(SCHEMA.field("time").type),
    "object": lambda drawn: pa.array(drawn.object),
    "speed": lambda drawn: pa.array(drawn.speed),
    "kind": lambda drawn: pa.DictionaryArray.from_arrays(
        drawn.kind.astype(np.int8), list(KINDS)
    ).dictionary_decode(),
}


@lru_cache(maxsize=1)
def _kinds() -> AliasTables:
    return AliasTables.of([_KIND_SHARES])


@lru_cache(maxsize=8)
def _objects(region: str, bounds: Bounds) -> tuple[Indices, Indices]:
    """First object of each city, and how many it has."""
    count = cities(region, bounds).population // _PEOPLE_PER_OBJECT + 1
    return np.cumsum(count) - count, count
