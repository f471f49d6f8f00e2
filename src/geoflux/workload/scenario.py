"""A simulated run: its settings, its length, and how its three clocks relate.

*Run seconds* pass on the wall when the run is paced; *event numbers* count ``rate``
per run second; *event time* is what events are stamped with, ``time_speed`` times as fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from geoflux.config import Config
from geoflux.sections import SimulateConfig, SpaceConfig
from geoflux.settings import seconds
from geoflux.workload.density import STEPS_PER_DAY, Density, density
from geoflux.workload.draws import Floats, Indices

# A fixed date: the same seed gives the same event times on any day.
START = datetime(2025, 1, 1, tzinfo=UTC)
START_US = int(START.timestamp()) * 1_000_000

_DAY_US = 86_400 * 1_000_000
_ENDLESS_HORIZON_SECONDS = 3600.0


@dataclass(frozen=True)
class Scenario:
    """What is simulated; a small value that rebuilds its tables wherever it is sent.

    ``duration_seconds`` (above 0) is how long the run lasts; ``None`` is an endless run. Hotspots
    are placed by shares of the run; in an endless run, by shares of its first hour.

    >>> Scenario(SimulateConfig(rate=1000), duration_seconds=2.5).total_events
    2500
    """

    simulate: SimulateConfig = field(default_factory=SimulateConfig)
    space: SpaceConfig = field(default_factory=SpaceConfig)
    duration_seconds: float | None = None

    @classmethod
    def of(cls, config: Config) -> Scenario:
        """The run that the settings ask for; an empty ``run.duration`` is an endless run."""
        duration = seconds(config.run.duration) if config.run.duration else None
        return cls(config.simulate, config.space, duration)

    @property
    def total_events(self) -> int | None:
        """Events of the whole run; ``None`` when it is endless."""
        if self.duration_seconds is None:
            return None
        return math.floor(self.simulate.rate * self.duration_seconds)

    @property
    def horizon_seconds(self) -> float:
        """Run seconds that hotspots take as the whole."""
        if self.duration_seconds is None:
            return _ENDLESS_HORIZON_SECONDS
        return self.duration_seconds

    def density(self) -> Density:
        """Where people are, from the tables of this process."""
        return density(self.simulate.region, self.space.bounds)

    def progress(self, number: Indices) -> Floats:
        """How much of the run is over when an event comes: 0 at the first, 1 at the end."""
        return number / (self.simulate.rate * self.horizon_seconds)

    def event_time_us(self, number: Indices) -> Indices:
        """Event time of each event, in microseconds since 1970; never falls."""
        us_per_event = self.simulate.time_speed * 1e6 / self.simulate.rate
        return START_US + (number * us_per_event).astype(np.int64)

    def run_time_us(self, run_seconds: Floats) -> Indices:
        """Event time at a moment of the run, in microseconds since 1970."""
        return START_US + (run_seconds * (self.simulate.time_speed * 1e6)).astype(np.int64)


def day_step(time_us: Indices) -> Indices:
    """Step of the (UTC) day of each event time, as the density counts them."""
    return (time_us - START_US) // (_DAY_US // STEPS_PER_DAY) % STEPS_PER_DAY
