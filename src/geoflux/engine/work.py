"""The work of an epoch, whatever the operator: what to read, how to route it, what a slot does.

The one thing that drivers of an engine need to know of a task: Spark, and the epochs in this
process, run all operators alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from geoflux.engine import execute as matching
from geoflux.engine import keyed_execute, keyed_route
from geoflux.engine import route as routing
from geoflux.engine.keyed_task import KeyedReport, KeyedTask
from geoflux.engine.route import Parcel
from geoflux.engine.source import RawBatch, Slice
from geoflux.engine.task import EpochTask, RouteReport, SlotReport

Pieces = Iterable[tuple[Slice | None, Iterable[RawBatch]]]
Task = EpochTask | KeyedTask


class Report(Protocol):
    """What a slot says when it is done."""

    def to_bytes(self) -> bytes:
        """For the trip to the driver."""
        ...


def columns_of(task: Task) -> frozenset[str]:
    """The columns of the events that are read."""
    return task.columns if isinstance(task, KeyedTask) else task.columns.needed | task.wanted


def routed(task: Task, worker: int, pieces: Pieces) -> Iterator[Parcel]:
    """Parcels for the slots; ``worker`` numbers the routing tasks of the epoch."""
    if isinstance(task, KeyedTask):
        return keyed_route.route(task, worker, pieces)
    return routing.route(task, worker, pieces)


def executed(
    task: Task, slot: int, parcels: Iterable[Parcel]
) -> tuple[Report, list[RouteReport]]:  # fmt: skip
    """A slot's work of one epoch."""
    if isinstance(task, KeyedTask):
        return keyed_execute.execute(task, slot, parcels)
    return matching.execute(task, slot, parcels)


def report_of(task: Task, data: bytes) -> Any:
    """The report that a slot sent."""
    return (KeyedReport if isinstance(task, KeyedTask) else SlotReport).from_bytes(data)
