"""The yardstick: the bare matching kernel in two plain processes, without Spark.

Each process reads half of the files, sorts the events by cell and counts matches against the same
index that the engine uses. What the engine adds to this (routing, exchange, epochs, commits) is
what `dense_vs_kernel` shows.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.bench.data import Files, query_boxes
from geoflux.operators.events import Events
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

GRID = Grid(Space("planar", 0.0, 0.0, 1.0, 1.0), 1000, 1000)
WHOLE = Partition(0, 0, 0, 1000, 1000, 0)
_PROCESSES = 2


@dataclass(frozen=True)
class KernelResult:
    """What the processes did together."""

    events: int
    matches: int
    checks: int
    seconds: float

    @property
    def events_per_second(self) -> float:
        """Throughput of both together."""
        return self.events / self.seconds


def run_kernel(files: Files, folder: Path) -> KernelResult:
    """Count all matches in two processes; the clock runs from the start signal to the last one."""
    store = Store(str(folder / "kernel"))
    _write_index(store, files.workload.queries)
    parts = sorted(files.events.glob("*.parquet"))
    context = multiprocessing.get_context("spawn")
    ready, go = context.Barrier(_PROCESSES + 1), context.Event()
    results: Any = context.Queue()
    workers = [
        context.Process(target=_count, args=(store, parts[k::_PROCESSES], ready, go, results))
        for k in range(_PROCESSES)
    ]
    for worker in workers:
        worker.start()
    ready.wait(300)
    started = time.perf_counter()
    go.set()
    found = [results.get(timeout=1200) for _ in workers]
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    events, matches, checks = (sum(values) for values in zip(*found, strict=True))
    return KernelResult(events, matches, checks, seconds)


def query_rows(count: int) -> pa.Table:
    """So many queries of the benchmark's workload, as the engine keeps them."""
    west, south, east, north = query_boxes(count)
    columns: dict[str, Any] = {f.name: pa.nulls(count, f.type) for f in QUERY_SCHEMA}
    columns |= {
        "number": np.arange(count), "id": [f"q{q}" for q in range(count)],
        "kind": np.zeros(count, np.uint8), "x0": west, "y0": south, "x1": east, "y1": north,
    }  # fmt: skip
    return pa.Table.from_pydict(columns, schema=QUERY_SCHEMA).combine_chunks()


def _write_index(store: Store, count: int) -> None:
    Layer.build(query_rows(count), GRID, WHOLE).write(store, "index.arrow", {})


def _count(store: Store, parts: list[Path], ready: Any, go: Any, results: Any) -> None:
    matcher = LayerMatcher(Layer.open(store, "index.arrow"), GRID)
    totals = np.zeros(len(matcher.layer), np.int64)
    work = Work()
    warm = _events(parts[0])
    few = Events(warm.x[:1000], warm.y[:1000], warm.time, None, {})
    matcher.counts(SortedEvents.of(few, GRID, WHOLE), Work())
    ready.wait(300)
    go.wait(300)
    seen = 0
    for part in parts:
        events = _events(part)
        seen += len(events)
        totals += matcher.counts(SortedEvents.of(events, GRID, WHOLE), work)
    results.put((seen, int(totals.sum()), work.checks))


def _events(part: Path) -> Events:
    table = pq.read_table(part, columns=["x", "y"], use_threads=False)
    x, y = table.column("x").to_numpy(), table.column("y").to_numpy()
    return Events(x, y, np.empty(0, np.int64), None, {})
