"""The work of an epoch, whatever the operator: how its rows are routed, what a slot does with them.

The one thing that drivers of an engine need to know of a task: Spark, and the epochs in this
process, run all operators alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from geoflux.engine import execute, keyed_execute, keyed_route, route
from geoflux.engine.keyed_task import KeyedReport, KeyedTask
from geoflux.engine.route import Parcel
from geoflux.engine.task import EpochTask, RouteReport, SlotReport

Task = EpochTask | KeyedTask


@dataclass(frozen=True)
class Work:
    """What is done with the tasks of one kind."""

    route: Callable[..., Iterator[Parcel]]
    """Of a task, the number of the routing task, and its pieces."""
    execute: Callable[..., tuple[Any, list[RouteReport]]]
    """Of a task, a slot, and its parcels."""
    report: type[SlotReport] | type[KeyedReport]


_KINDS: dict[type, Work] = {
    EpochTask: Work(route.route, execute.execute, SlotReport),
    KeyedTask: Work(keyed_route.route, keyed_execute.execute, KeyedReport),
}


def work_of(task: Task) -> Work:
    """What is done with a task."""
    return _KINDS[type(task)]
