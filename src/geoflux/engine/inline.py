"""Epochs in this process, without Spark: for tests, and for looking at the engine in a debugger.

The same routing, exchange, execution and commit as on a cluster, one after another.
"""

from __future__ import annotations

from geoflux.engine.engine import Engine, Manifest
from geoflux.engine.execute import execute
from geoflux.engine.route import Parcel, route
from geoflux.engine.source import EventSource


def run_epoch(
    engine: Engine, source: EventSource, epoch: int, span: tuple[int, int], tasks: int = 2,
    final: bool = False,
) -> Manifest:  # fmt: skip
    """One epoch over a range of positions, with so many routing tasks; ``final`` closes a drained
    stream, with an empty range."""
    opened = engine.open(epoch, final)
    task = opened.task
    columns = task.columns.needed | task.wanted
    parcels: list[Parcel] = []
    pieces = source.slices(*span, tasks)
    for worker in range(tasks):
        mine = pieces[worker::tasks]
        parcels += route(task, worker, ((piece, source.read(piece, columns)) for piece in mine))
    slots, routes = [], []
    for slot in range(task.plan.slots):
        report, routed = execute(task, slot, [p for p in parcels if p.slot == slot])
        slots.append(report)
        routes += routed
    return engine.commit(opened, slots, routes)


def drain(engine: Engine, source: EventSource, epoch_events: int) -> list[Manifest]:
    """Epoch after epoch until the source has no more; at least one, so that control is read,
    and one more that closes the stream, where that is wanted."""
    manifests: list[Manifest] = []
    position, epoch = 0, 0
    while True:
        end = source.latest(position, epoch_events)
        if end == position and epoch > 0:
            break
        if not engine.is_committed(epoch):
            manifests.append(run_epoch(engine, source, epoch, (position, end)))
        position, epoch = end, epoch + 1
    if engine.wants_closing():
        manifests.append(run_epoch(engine, source, epoch, (position, position), final=True))
    return manifests
