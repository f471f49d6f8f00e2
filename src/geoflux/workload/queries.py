"""Simulated standing queries: squares whose focal points follow the events, each known by number.

After the dissertation (004), section 6.1.1: queries lie where the data lies, with sides of 0.16 %
of the space's side; those of a hotspot lie as its events do. A hundred users place them, 20 % of
whom place 80 % (Zipf, s = 1.215).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.workload.draws import (
    AliasTables,
    Floats,
    Indices,
    Stream,
    Words,
    high,
    low,
    unit,
    words,
)
from geoflux.workload.hotspots import hotspots
from geoflux.workload.scenario import START_US, Scenario, day_step

EDGES = ("west", "south", "east", "north")
SHAPE = pa.struct([("type", pa.string()), *((edge, pa.float64()) for edge in EDGES)])
SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("id", pa.string()),
        ("user", pa.string()),
        ("shape", SHAPE),
        ("where", pa.string()),
        ("valid_from", pa.timestamp("us", tz="UTC")),
        ("valid_until", pa.timestamp("us", tz="UTC")),
    ]
)

USERS = 100
ZIPF_80_20 = 1.215
WHERES = (None, "speed > 10", "kind = 'taxi'", "speed <= 1.5", "kind = 'bus' and speed > 5")
_WHERE_SHARES = (95, 2, 1, 1, 1)

# Every 50th query ends by itself: it is valid for six hours of event time from its registration.
EXPIRES_EVERY = 50
_VALID_US = 6 * 3_600_000_000
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class StandingQueries:
    """The queries of a run by number; tables have the columns of a control record.

    Queries 0 to ``simulate.queries`` are there at the start and follow the events of the whole
    run; later ones follow the events of their time. Hotspot queries are numbered in each hotspot.

    >>> queries = StandingQueries(Scenario())
    >>> queries.registrations(0, 100).slice(60) == queries.registrations(60, 100)
    True
    """

    scenario: Scenario

    def focal_points(self, start: int, stop: int) -> tuple[Floats, Floats]:
        """Longitude and latitude of the centres of a range of queries."""
        seed, count = self.scenario.simulate.seed, stop - start
        density = self.scenario.density()
        step = day_step(self._followed_us(start, stop))
        city = density.draw_cities(step, words(seed, Stream.QUERY_CITY, start, count))
        return density.draw_points(city, words(seed, Stream.QUERY_PLACE, start, count))

    def registrations(self, start: int, stop: int) -> pa.Table:
        """Registrations of a range of queries."""
        lon, lat = self.focal_points(start, stop)
        numbers = np.arange(start, stop, dtype=np.int64)
        since = self.scenario.run_time_us(self._registered_seconds(numbers))
        # Where event time stands still, nothing could ever end.
        endless = (numbers % EXPIRES_EVERY != EXPIRES_EVERY - 1) | (
            self.scenario.simulate.time_speed == 0
        )
        return self._table(
            Stream.QUERY_TRAITS,
            (start, stop),
            ids=_ids("q", numbers),
            shape=self._squares(lon, lat),
            valid_from=pa.array(since, mask=endless),
            valid_until=pa.array(since + _VALID_US, mask=endless),
        )

    def hotspot_registrations(self, spot: int, start: int, stop: int) -> pa.Table:
        """Registrations of a range of the queries that a hotspot brings."""
        place = words(
            self.scenario.simulate.seed, Stream.HOTSPOT_QUERY_PLACE + spot, start, stop - start
        )
        lon, lat = hotspots(self.scenario)[spot].points(place)
        return self._table(
            Stream.HOTSPOT_QUERY_TRAITS + spot,
            (start, stop),
            ids=_ids(f"h{spot}-", np.arange(start, stop, dtype=np.int64)),
            shape=self._squares(lon, lat),
        )

    def terminations(self, start: int, stop: int) -> pa.Table:
        """The ``start``-th to ``stop``-th termination: the oldest first, past those that expire."""
        turn = np.arange(start, stop, dtype=np.int64)
        numbers = turn + turn // (EXPIRES_EVERY - 1)
        traits = self._traits(Stream.QUERY_TRAITS, int(numbers[0]), int(numbers[-1]) + 1)
        user = _user_names(traits[numbers - numbers[0]])
        return _records("terminate", ids=_ids("q", numbers), user=user)

    def _table(
        self, stream: int, span: tuple[int, int], ids: pa.Array, **columns: pa.Array
    ) -> pa.Table:
        traits = self._traits(stream, *span)
        where = _wheres().draw(np.int64(0), low(traits))
        texts = pa.array(WHERES, pa.string()).take(pa.array(where))
        return _records("register", ids=ids, user=_user_names(traits), where=texts, **columns)

    def _traits(self, stream: int, start: int, stop: int) -> Words:
        return words(self.scenario.simulate.seed, stream, start, stop - start)

    def _squares(self, lon: Floats, lat: Floats) -> pa.Array:
        west, south, east, north = self.scenario.space.bounds
        reach_lon = self.scenario.simulate.query_side * (east - west) / 2
        reach_lat = self.scenario.simulate.query_side * (north - south) / 2
        edges = [
            np.maximum(lon - reach_lon, west),
            np.maximum(lat - reach_lat, south),
            np.minimum(lon + reach_lon, east),
            np.minimum(lat + reach_lat, north),
        ]
        kind = pa.repeat(pa.scalar("rectangle"), len(lon))
        return pa.StructArray.from_arrays([kind, *map(pa.array, edges)], fields=list(SHAPE))

    def _registered_seconds(self, numbers: Indices) -> Floats:
        """Run time at which each query is registered; 0 for those of the start."""
        simulate = self.scenario.simulate
        later = np.maximum(numbers - simulate.queries + 1, 0)
        return later / simulate.query_rate if simulate.query_rate else np.zeros(len(numbers))

    def _followed_us(self, start: int, stop: int) -> Indices:
        """Event time whose events a query follows; those of the start are spread over the run."""
        numbers = np.arange(start, stop, dtype=np.int64)
        at = self.scenario.run_time_us(self._registered_seconds(numbers))
        drawn = words(self.scenario.simulate.seed, Stream.QUERY_TIME, start, stop - start)
        duration, speed = self.scenario.duration_seconds, self.scenario.simulate.time_speed
        if duration is None:
            whole = _DAY_SECONDS if speed else 0.0
        else:
            whole = duration * speed
        anywhere = START_US + (unit(high(drawn)) * (whole * 1e6)).astype(np.int64)
        return np.where(numbers < self.scenario.simulate.queries, anywhere, at)


def _records(op: str, ids: pa.Array, **columns: pa.Array) -> pa.Table:
    given = {"op": pa.repeat(pa.scalar(op), len(ids)), "id": ids, **columns}
    arrays = [
        given[field.name].cast(field.type)
        if field.name in given
        else pa.nulls(len(ids), field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _ids(prefix: str, numbers: Indices) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def _user_names(traits: Words) -> pa.Array:
    rank = _users().draw(np.int64(0), high(traits))
    return pa.array([f"u{i}" for i in range(USERS)]).take(pa.array(rank))


@lru_cache(maxsize=1)
def _users() -> AliasTables:
    return AliasTables.of([[round(1e9 / rank**ZIPF_80_20) for rank in range(1, USERS + 1)]])


@lru_cache(maxsize=1)
def _wheres() -> AliasTables:
    return AliasTables.of([_WHERE_SHARES])
