"""Routing of rows to a keyed operator: judge them, look their partitions up, pack them per slot."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from geoflux.engine.addressing import Addresses
from geoflux.engine.blobs import pack_rows
from geoflux.engine.keyed_task import KeyedTask
from geoflux.engine.marks import MARKED, Marks
from geoflux.engine.rooted import Followed, Watch, as_text
from geoflux.engine.route import REPORT, Parcel, record_rows
from geoflux.engine.source import RawBatch, Rejected, Slice
from geoflux.engine.staging import stage_rejected
from geoflux.engine.task import RouteReport


def route(
    task: KeyedTask, worker: int, pieces: Iterable[tuple[Slice | None, Iterable[RawBatch]]]
) -> Iterator[Parcel]:
    """Parcels for the slots, the last one this task's report."""
    started = time.perf_counter()
    addresses = Addresses.of(task.plan.partitions)
    rejected: list[Rejected] = []
    slices: list[tuple[int, int, int]] = []
    recorded: list[str] = []
    received, followed, marks, watch = 0, Followed(), Marks(), Watch()
    for piece, batches in pieces:
        if piece is not None:
            slices.append((piece.stream, piece.start, piece.stop))
        for batch in batches:
            rows, positions, bad = task.intake.accept(batch)
            if task.sampling is not None:
                lane_epoch = task.epoch if piece is None else None
                with watch:
                    marks = followed.marks(task.sampling, batch, lane_epoch)
                    marks = followed.accepted(marks, batch, positions)
            received += len(rows) + len(bad)
            rejected += bad
            if task.record_input:
                recorded.append(record_rows(task.store, task.epoch, batch.table))
            if len(rows):
                order, stretches = addresses.sorted(task.located(rows))
                ordered = rows.take(pa.array(order)).combine_chunks().to_batches()[0]
                with watch:
                    marks = marks.ordered(order)
                for slot, first, last, runs in stretches:
                    with watch:
                        some = marks.between(first, last)
                        more = {MARKED: some.to_bytes()} if len(some) else None
                    blob = pack_rows(ordered.slice(first, last - first), runs, more)
                    yield Parcel(slot, int(positions[0]), blob)
    files: tuple[str, ...] = ()
    if rejected:
        files = (stage_rejected(task.store, task.epoch, "event", rejected),)
    report = RouteReport(
        received, len(rejected), dict(Counter(bad.code for bad in rejected)), 0, None,
        tuple(slices), files, tuple(recorded), time.perf_counter() - started,
        as_text(followed.roots), as_text(followed.acks), watch.seconds,
    )  # fmt: skip
    yield Parcel(worker % task.plan.slots, REPORT, report.to_bytes())
