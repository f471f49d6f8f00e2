"""The built-in simulator as a source of events: only numbers travel, workers make the rows.

A position is an event's number, so a range of positions means the same rows for ever. Pacing says
how far the numbers have come by now; it never changes what a number stands for.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from geoflux.engine.source import RawBatch, Slice
from geoflux.workload.events import SCHEMA, CityEvents
from geoflux.workload.scenario import Scenario

# Small enough that the arrays of a batch stay in the processor's cache; measured best.
BATCH = 65_536


@dataclass(frozen=True)
class Simulator:
    """Events of a simulated run (an ``EventSource``); one stream, number 0.

    ``started`` is when the run began, in seconds since 1970 by ``clock``; a run that is resumed
    keeps its first start, and then finds due what came in the meantime. Paced, ``rate`` events a
    second are due; otherwise the whole run is there at once, and an endless one always has more:
    then ``limit`` must say how many.

    >>> from geoflux.sections import SimulateConfig
    >>> run = Scenario(SimulateConfig(rate=1000), duration_seconds=60)
    >>> source = Simulator(run, started=100.0, clock=lambda: 102.5)
    >>> source.latest(0, None), source.latest(0, 700), source.total()
    (2500, 700, 60000)
    """

    scenario: Scenario
    started: float
    clock: Callable[[], float] = time.time

    def schema(self) -> pa.Schema:
        """Columns of the events."""
        return SCHEMA

    def latest(self, start: int, limit: int | None) -> int:
        """The end of the events that are due now, at most ``limit`` after ``start``."""
        ends = [self.total(), None if limit is None else start + limit]
        if self.scenario.simulate.paced:
            elapsed = self.clock() - self.started
            ends.append(math.floor(elapsed * self.scenario.simulate.rate))
        known = [end for end in ends if end is not None]
        if not known:
            raise ValueError(
                "an endless run that is not paced has no latest event; give a limit, set "
                "run.duration, or set simulate.paced = true"
            )
        return max(start, min(known))

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        """A range in ``parts`` slices whose sizes differ by one at most; none is empty."""
        count = max(stop - start, 0)
        parts = min(max(parts, 1), count)
        cuts = [start + count * i // parts for i in range(parts + 1)] if parts else []
        return [Slice(0, a, b) for a, b in itertools.pairwise(cuts)]

    def span(self, pieces: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        """From the first to the last event of slices."""
        return min(start for _, start, _ in pieces), max(stop for _, _, stop in pieces)

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        """The events of a slice in batches of 65,536; only the named columns are made."""
        events = CityEvents(self.scenario)
        for start in range(piece.start, piece.stop, BATCH):
            stop = min(start + BATCH, piece.stop)
            table = events.table(start, stop, columns)
            yield RawBatch(table, np.arange(start, stop, dtype=np.int64))

    def arrivals(self, start: int, stop: int) -> tuple[float, float] | None:
        """When the first and the last event of a range were due; ``None`` when not paced."""
        if not self.scenario.simulate.paced:
            return None
        rate = self.scenario.simulate.rate
        return self.started + (start + 1) / rate, self.started + max(stop, start + 1) / rate

    def total(self) -> int | None:
        """Events of the whole run; ``None`` when it is endless."""
        return self.scenario.total_events
