"""Questions a second against the number of clients that ask at once: figure 11.

Every client is a process that has the sketchlet (shared memory, by fork), reads its questions once
and runs them one after another, as fast as it can, for as long as all others do. There is no more
to gain than the machine has cores; what is looked for is that more clients cost no throughput.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoflux.bench.figure_groups import Row, draw_rows
from geoflux.bench.figures import Curve, Words
from geoflux.bench.synopsis_queries import asked_of
from geoflux.sketch.evaluate import Prepared
from geoflux.sketch.forest import Forest
from geoflux.sketch.view import view_of
from geoflux.workload.weather import Weather

_KINDS = ("stat", "density", "membership", "cardinality", "frequency")
_EACH = 200


def measure_clients(
    one: Forest, seen: Weather, clients: Sequence[int], seconds: float, figures: Path
) -> dict[str, Any]:
    """Statistics, densities and sets in turn, by so many clients at once."""
    queries = [
        query
        for together in zip(*(asked_of(k, one, seen, _EACH) for k in _KINDS), strict=True)
        for query in together
    ]
    for query in queries[: 2 * len(_KINDS)]:
        query.run([one])
    view_of(one)
    rates, waits = [], []
    for count in clients:
        found = _asked_at_once(one, queries, count, seconds)
        rates.append(sum(len(taken) for taken in found) / seconds)
        waits.append(float(np.median(np.concatenate(found)) * 1e3))
    draw_rows(
        figures / "synopsis-11-clients.svg",
        Words("Questions of many clients", "clients at once", "",
              f"one sketchlet, {os.cpu_count()} cores"),
        [Row("a second", [Curve("questions a second", list(clients), rates)]),
         Row("ms", [Curve("median time of one", list(clients), waits, "orange")])],
    )  # fmt: skip
    return {
        "queries_per_second": max(rates), "clients": list(clients),
        "queries_per_second_by_clients": [round(rate) for rate in rates],
        "query_ms_by_clients": [round(wait, 3) for wait in waits],
    }  # fmt: skip


def _asked_at_once(
    one: Forest, queries: list[Prepared], count: int, seconds: float
) -> list[list[float]]:
    """The time of every question, client by client."""
    context = mp.get_context("fork")
    start = context.Barrier(count)
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    asking = [
        context.Process(target=_ask, args=(one, queries, number, seconds, start, pipe[1]))
        for number, pipe in enumerate(pipes)
    ]
    for process in asking:
        process.start()
    found = [pipe[0].recv() for pipe in pipes]
    for process in asking:
        process.join()
    return found


def _ask(
    one: Forest, queries: list[Prepared], number: int, seconds: float, start: Any, pipe: Any
) -> None:
    taken = []
    at = number * len(queries) // 7
    start.wait()
    end = began = time.perf_counter()
    while end - began < seconds:
        before = end
        queries[at % len(queries)].run([one])
        at, end = at + 1, time.perf_counter()
        taken.append(end - before)
    pipe.send(taken)
