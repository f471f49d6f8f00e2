"""Epochs in this process, without Spark: for tests, and for looking at the engine in a debugger.

The same routing, exchange, execution and commit as on a cluster, one after another.
"""

from __future__ import annotations

from typing import Any

from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.route import Parcel
from geoflux.engine.source import EventSource
from geoflux.engine.task import RouteReport
from geoflux.engine.work import work_of


def run_epoch(
    engine: Engine | KeyedEngine, source: EventSource, epoch: int, span: tuple[int, int],
    tasks: int = 2, final: bool = False, about: dict[str, Any] | None = None,
) -> Manifest:  # fmt: skip
    """One epoch over a range of positions, with so many routing tasks; ``final`` closes a drained
    stream, with an empty range; ``about`` goes into the manifest."""
    opened: Any = engine.open(epoch, final)
    task = opened.task
    work, columns = work_of(task), task.read_columns
    parcels: list[Parcel] = []
    pieces = source.slices(*span, tasks)
    for worker in range(tasks):
        mine = pieces[worker::tasks]
        parcels += work.route(
            task, worker, ((piece, source.read(piece, columns)) for piece in mine)
        )
    slots: list[Any] = []
    routes: list[RouteReport] = []
    for slot in range(task.plan.slots):
        report, told = work.execute(task, slot, [p for p in parcels if p.slot == slot])
        slots.append(report)
        routes += told
    return engine.commit(opened, slots, routes, about)


def drain(
    engine: Engine | KeyedEngine, source: EventSource, epoch_events: int
) -> list[Manifest]:  # fmt: skip
    """Epoch after epoch until the source has no more; at least one, so that control is read,
    and as many more as it takes to close the stream, where that is wanted."""
    manifests: list[Manifest] = []
    position, epoch = 0, 0
    while True:
        end = source.latest(position, min(engine.epoch_events, epoch_events))
        if end == position and epoch > 0:
            break
        if not engine.is_committed(epoch):
            manifests.append(run_epoch(engine, source, epoch, (position, end)))
        position, epoch = end, epoch + 1
    while engine.wants_closing():
        manifests.append(run_epoch(engine, source, epoch, (position, position), final=True))
        epoch += 1
    return manifests
