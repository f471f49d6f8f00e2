"""Weather: observations with eight features at many places, for sketches.

Either of a file of global weather (``ts, lat, lon, t2m_k, u10_ms, v10_ms, msl_pa, tp_m``), or made
up: smooth fields with seasons, days and moving pressure systems. Both can be advanced in time,
changed a little each time, as far as a stream of any length goes.

Five features are measured; ``wind_ms`` (speed) and ``wind_deg`` (where it comes from) follow from
the two components of the wind. ``dew_k`` is no measurement: a dew point by the rule of thumb that
it lies a fifth of a kelvin below the air for each percent that relative humidity lacks, where that
is guessed from rain, pressure and latitude. It behaves like one and is good for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.errors import ConfigError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MEASURED = ("t2m_k", "u10_ms", "v10_ms", "msl_pa", "tp_m")
FEATURES = (*MEASURED, "wind_ms", "wind_deg", "dew_k")
_DAY = 86_400
_YEAR = 365 * _DAY
_DECIMALS = (2, 2, 2, 0, 6, 2, 0, 2)
"""Instruments are that exact."""


class Weather(NamedTuple):
    """Observations: places, seconds since 1970, and values of :data:`FEATURES` in columns."""

    lon: Floats
    lat: Floats
    time: Ints
    values: Floats

    def table(self) -> pa.Table:
        """As a source has them."""
        columns = {"lon": self.lon, "lat": self.lat, "time": self.time.astype(np.float64)}
        return pa.table(columns | {n: self.values[:, i] for i, n in enumerate(FEATURES)})

    def between(self, first: int, last: int) -> Weather:
        """The rows ``first`` up to ``last``."""
        some = slice(first, last)
        return Weather(self.lon[some], self.lat[some], self.time[some], self.values[some])

    def __len__(self) -> int:
        return len(self.lon)


def with_derived(lon: Floats, lat: Floats, time: Ints, measured: Floats) -> Weather:
    """All eight features of the five that are measured."""
    air, east, north, pressure, rain = measured.T
    speed = np.hypot(east, north)
    degrees = np.degrees(np.arctan2(-east, -north)) % 360.0
    wet = np.tanh(rain * 5_000) * 0.35 - np.tanh((pressure - 101_325) / 1_500) * 0.12
    humid = np.clip(0.62 + wet - 0.15 * np.cos(np.radians(3 * lat)), 0.05, 1.0)
    dew = air - (1 - humid) * 20.0
    values = np.column_stack([air, east, north, pressure, rain, speed, degrees, dew])
    for column, decimals in enumerate(_DECIMALS):
        values[:, column] = np.round(values[:, column], decimals)
    return Weather(lon, lat, time, values)


def read_weather(path: Path) -> Weather:
    """The observations of a file, in its order."""
    names = {"ts", "lat", "lon", *MEASURED}
    try:
        missing = names - set(pq.read_schema(path).names)
        if missing:
            raise ConfigError(f"{path} has no column {', '.join(sorted(missing))}; give weather")
        table = pq.read_table(path, columns=sorted(names))
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{path} cannot be read as Parquet: {error}") from error
    seconds = table.column("ts").cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())
    measured = np.column_stack([table.column(name).to_numpy() for name in MEASURED])
    return with_derived(
        table.column("lon").to_numpy().astype(np.float64),
        table.column("lat").to_numpy().astype(np.float64),
        seconds.to_numpy(), measured.astype(np.float64),
    )  # fmt: skip


def made_up_weather(seed: int, rows: int, start: int, seconds: int) -> Weather:
    """Observations at random places and times of a stretch; places crowd at middle latitudes."""
    dice = np.random.default_rng(seed)
    lon = dice.uniform(-180, 180, rows)
    lat = np.degrees(np.arcsin(dice.uniform(-0.98, 0.98, rows)))
    time = np.sort(start + dice.integers(0, seconds, rows))
    return with_derived(lon, lat, time, _fields(lon, lat, time, dice))


def _fields(lon: Floats, lat: Floats, time: Ints, dice: np.random.Generator) -> Floats:
    east, north = np.radians(lon), np.radians(lat)
    season = np.cos(2 * np.pi * (time % _YEAR) / _YEAR - 0.35)
    noon = np.cos(2 * np.pi * (time % _DAY) / _DAY + east - np.pi)
    waves = np.sin(3 * east - time / (3 * _DAY)) * np.cos(2 * north)
    waves += 0.6 * np.sin(5 * east + 2 * north + time / (2 * _DAY))
    noise = dice.normal(size=(5, len(lon)))
    air = 300 - 45 * np.sin(north) ** 2 - 14 * season * np.sin(north)
    air += 5 * noon * np.cos(north) - 3 * waves + 1.2 * noise[0]
    pressure = 101_300 + 900 * waves - 500 * np.cos(4 * north) + 90 * noise[1]
    wind_east = 6 * np.sin(3 * north) + 4 * waves + 1.5 * noise[2]
    wind_north = 4 * np.cos(3 * east - time / (3 * _DAY)) + 1.5 * noise[3]
    chance = 1 / (1 + np.exp(4 + 3 * waves))
    rain = np.where(noise[4] > 0.4, chance * 4e-3 * np.abs(noise[4]), 0.0)
    return np.column_stack([air, wind_east, wind_north, pressure, rain])


@dataclass(frozen=True)
class WeatherStream:
    """What was observed, again and again, later each time and never quite the same: a year-like
    stream. Step ``n`` lasts as long as the whole observation did, rounded up to days."""

    observed: Weather
    seed: int = 0

    @property
    def days(self) -> int:
        """Of one step."""
        first, last = int(self.observed.time[0]), int(self.observed.time[-1])
        return last // _DAY - first // _DAY + 1

    def step(self, number: int) -> Weather:
        """The observations of a step, in the order of time."""
        seen = self.observed
        shift = number * self.days * _DAY
        time = seen.time + shift
        if number == 0:
            return seen
        dice = np.random.default_rng((self.seed, number))
        was, now = (np.cos(2 * np.pi * (t % _YEAR) / _YEAR - 0.35) for t in (seen.time, time))
        measured = seen.values[:, : len(MEASURED)].copy()
        sd = measured.std(axis=0)
        measured[:, 0] -= 14 * (now - was) * np.sin(np.radians(seen.lat))
        measured += dice.normal(size=measured.shape) * sd * 0.03
        measured += dice.normal(size=len(MEASURED)) * sd * 0.05
        measured[:, 4] = np.maximum(measured[:, 4], 0.0)
        return with_derived(seen.lon, seen.lat, time, measured)

    def steps(self, count: int) -> Iterator[Weather]:
        """The first so many."""
        return (self.step(number) for number in range(count))
