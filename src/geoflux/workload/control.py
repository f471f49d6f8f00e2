"""The control records of a simulated run, as the engine's port asks for them.

A record is named by its number in the :class:`~geoflux.workload.timeline.Timeline`; the offset is
``{"record": n}``. Reading a range again gives the same records, on any worker, at any time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from geoflux.workload.queries import SCHEMA, StandingQueries
from geoflux.workload.scenario import Scenario
from geoflux.workload.timeline import HOTSPOT, REGISTER, TERMINATE, Segment, Timeline

BATCH = 65_536


@dataclass(frozen=True)
class SimulatedControl:
    """Registrations and terminations of a simulated run (a ``ControlSource``).

    ``started`` is when the run began, in seconds since 1970 by ``clock``; a run that is resumed
    keeps its first start. Not paced: everything that will ever come is there at once (the queries
    of the start and those of hotspots).

    >>> control = SimulatedControl(Scenario(), started=0.0, clock=lambda: 2.0)
    >>> control.poll({})
    {'record': 20200}
    >>> sum(len(table) for table in control.read({"record": 19990}, {"record": 20010}))
    20
    """

    scenario: Scenario
    started: float
    clock: Callable[[], float] = time.time

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        """The number of records that are due now; never less than ``after``."""
        due = Timeline(self.scenario).due(self.clock() - self.started)
        return {"record": max(due, _record(after))}

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[pa.Table]:
        """The records between two offsets, in tables of at most 65,536."""
        first, last = _record(after), _record(upto)
        timeline = Timeline(self.scenario)
        for start in range(first, last, BATCH):
            yield self._table(timeline.segments(start, min(start + BATCH, last)))

    def _table(self, segments: list[Segment]) -> pa.Table:
        """Records source by source, each made in one go, then put into their order."""
        made, order, offset = [], np.zeros(len(segments), dtype=np.int64), 0
        by_source = sorted(range(len(segments)), key=lambda i: segments[i].source)
        for source, members in itertools.groupby(by_source, key=lambda i: segments[i].source):
            span = [segments[i] for i in members]
            # The numbers of one source follow each other from segment to segment.
            made.append(self._records(Segment(source, span[0].start, span[-1].stop)))
        for i in by_source:
            order[i] = offset
            offset += segments[i].stop - segments[i].start
        table = pa.concat_tables(made)
        if len(made) == 1:
            return table
        sizes = np.array([segment.stop - segment.start for segment in segments])
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return table.take(pa.array(np.repeat(order, sizes) + within)).combine_chunks()

    def _records(self, segment: Segment) -> pa.Table:
        queries = StandingQueries(self.scenario)
        if segment.source == REGISTER:
            return queries.registrations(segment.start, segment.stop)
        if segment.source == TERMINATE:
            return queries.terminations(segment.start, segment.stop)
        spot = segment.source - HOTSPOT
        return queries.hotspot_registrations(spot, segment.start, segment.stop)

    @staticmethod
    def schema() -> pa.Schema:
        """Columns and types of a record; ``shape`` is null in a termination."""
        return SCHEMA


def _record(offset: dict[str, Any]) -> int:
    return int(offset.get("record", 0))
