"""The order of simulated control records: what record ``n`` is, and when it is due.

Run time is cut into ticks of a tenth of a second. Within a tick come the registrations, then the
terminations, then the queries of each hotspot; how many of each are due by the end of a tick is a
formula, so any record is found without walking through those before it. Counts never fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geoflux.workload.queries import EXPIRES_EVERY
from geoflux.workload.scenario import Scenario

REGISTER, TERMINATE, HOTSPOT = 0, 1, 2
"""Sources of records; hotspot ``i`` is ``HOTSPOT + i``."""

_TICKS_PER_SECOND = 10
_HOTSPOT_SECONDS = 60.0
_HOTSPOT_SHARE = 0.1
_FARTHEST_TICK = 1 << 50


@dataclass(frozen=True)
class Segment:
    """Consecutive records of one source: its numbers ``start`` to ``stop``."""

    source: int
    start: int
    stop: int


@dataclass(frozen=True)
class Timeline:
    """When the records of a run are due.

    The queries of the start come at once. Then ``query_rate`` a second are registered and as many
    of the oldest are terminated. A hotspot's queries come evenly within its first minute, or
    tenth of the run when that is shorter (section 6.3.2: "during one minute of the hotspot's start
    time"). A run that is not paced has no clock to be due by: hotspot queries then come with those
    of the start, and nothing is registered or terminated later.

    >>> from geoflux.sections import SimulateConfig
    >>> timeline = Timeline(Scenario(SimulateConfig(queries=5, query_rate=20.0)))
    >>> timeline.due(0.0), timeline.due(0.1), timeline.due(1.0)
    (5, 9, 45)
    >>> timeline.segments(4, 8)
    [Segment(source=0, start=4, stop=5), Segment(source=0, start=5, stop=7), Segment(source=1, \
start=0, stop=1)]
    """

    scenario: Scenario

    def due(self, run_seconds: float) -> int:
        """Records that are due at a moment of the run."""
        tick = math.floor(max(run_seconds, 0.0) * _TICKS_PER_SECOND)
        return self._records(min(tick, self._last_tick()))

    def segments(self, first: int, last: int) -> list[Segment]:
        """What the records ``first`` to ``last`` are, in order."""
        found: list[Segment] = []
        tick = self._tick_of(first)
        before = self._counts(tick - 1)
        position = sum(before)
        while position < last:
            after = self._counts(tick)
            for source, (start, stop) in enumerate(zip(before, after, strict=True)):
                begin = start + max(first - position, 0)
                end = min(stop, start + last - position)
                if begin < end:
                    found.append(Segment(source, begin, end))
                position += stop - start
            before, tick = after, tick + 1
        return found

    def _counts(self, tick: int) -> tuple[int, ...]:
        """Of each source, the records that are due by the end of a tick."""
        simulate = self.scenario.simulate
        if tick < 0:
            return (0,) * (HOTSPOT + len(simulate.hotspots))
        if not simulate.paced:
            return (simulate.queries, 0, *(spot.queries for spot in simulate.hotspots))
        run_seconds = tick / _TICKS_PER_SECOND
        churned = math.floor(simulate.query_rate * run_seconds)
        registered = simulate.queries + churned
        terminated = min(churned, registered - registered // EXPIRES_EVERY)
        return (registered, terminated, *self._hotspot_counts(run_seconds))

    def _hotspot_counts(self, run_seconds: float) -> list[int]:
        whole = self.scenario.horizon_seconds
        counts = []
        for spot in self.scenario.simulate.hotspots:
            window = min(_HOTSPOT_SECONDS, _HOTSPOT_SHARE * whole, (spot.stop - spot.start) * whole)
            share = (run_seconds - spot.start * whole) / window
            counts.append(math.floor(spot.queries * min(max(share, 0.0), 1.0)))
        return counts

    def _records(self, tick: int) -> int:
        return sum(self._counts(tick))

    def _last_tick(self) -> int:
        if not self.scenario.simulate.paced:
            return 0
        if self.scenario.duration_seconds is None:
            return _FARTHEST_TICK
        return math.ceil(self.scenario.duration_seconds * _TICKS_PER_SECOND)

    def _tick_of(self, record: int) -> int:
        """The tick in which a record is due: the first by whose end there are more than it."""
        low, high = 0, 1
        while high < self._last_tick() and self._records(high) <= record:
            low, high = high, 2 * high
        high = min(high, self._last_tick())
        while low < high:
            middle = (low + high) // 2
            if self._records(middle) > record:
                high = middle
            else:
                low = middle + 1
        if self._records(low) <= record:
            raise IndexError(f"record {record} never comes; the run has {self._records(low)}")
        return low
