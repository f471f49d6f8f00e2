"""What each operation of SWARM takes: figures 6.12 (routing, coordinator) and 6.13 (executors).

Measured between two epochs of a run, on its plan, queries and statistics, by the engine's own
calls; events lie at corners of standing queries, as many as the last epoch had. Invariant: the run
is left as it was. What is written goes to a store of links, and the epoch that is opened for its
task is not open afterwards: true while the run's clock stands still and no query expires.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from geoflux.balance.pairing import paired
from geoflux.balance.policy import Observed, Orders, SlotLoad
from geoflux.balance.reduction import Holding, slot_cost, slot_received
from geoflux.balance.requests import Receiver
from geoflux.balance.sharing import search
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.bench.emulated import Emulation
from geoflux.bench.figures import Pair, Words, draw_pairs
from geoflux.engine.route import route
from geoflux.engine.slot_stats import SlotStats
from geoflux.engine.source import RawBatch
from geoflux.engine.task import EpochTask
from geoflux.operators.matching import SortedEvents
from geoflux.operators.pubsub import PartitionState, PubSub
from geoflux.operators.queries import numeric
from geoflux.plan import GridPlan, Move, Partition
from geoflux.state.segments import read_segment
from geoflux.state.store import Store
from geoflux.stats import stats_from_arrays
from geoflux.workload.simulator import BATCH

_REPEATS = 25
_HOTSPOT = 3.0
"""By what the costliest slot is taken to cost more, so that there is something to rebalance."""
_INTENTS = "epochs/intents"
_OPERATIONS = {
    "6.12: What SWARM costs routing and the coordinator": (
        ("route_ns_per_event", "route an event", "routing tasks", "every event"),
        ("index_update_us", "update the index", "routing tasks", "every change of the plan"),
        ("decide_us", "take in costs, decide", "coordinator", "every round"),
        ("pair_us", "pair donors and receivers", "coordinator", "rounds that rebalance"),
    ),
    "6.13: What SWARM costs a slot": (
        ("collect_stat_ns_per_event", "collect an event", "all slots", "every event"),
        ("close_slot_us", "close a round", "all slots", "every round"),
        ("search_us", "search for a reduction", "donors", "rounds that rebalance"),
        ("install_ms", "open a new partition", "receivers", "every partition cut off"),
    ),
}
_NOTE = "medians, one core; what an event takes is amortised over an epoch"
_MICROS = {"event": 1e-3, "us": 1.0, "ms": 1e3}
"""By what a name ends with."""
_Part = tuple[Partition, PartitionState, SortedEvents]
"""A partition as its slot has it when its events have come."""
_Held = list[list[Holding]]
"""By slot."""


def overheads(console: Console, emulation: Emulation, figures: Path) -> dict[str, float]:
    """Medians by name, in the units of the names; prints a table, draws figures 6.12 and 6.13. The
    emulation has run some epochs under SWARM and has standing queries."""
    with _next_task(emulation) as task:
        micros = _measured(task, emulation)
    table = Table("figure", "operation", "done by", "when", title="What SWARM takes")
    table.add_column("microseconds", justify="right")
    for title, operations in _OPERATIONS.items():
        number, _, _ = title.partition(":")
        for name, *about in operations:
            took = micros[name]
            table.add_row(number, *about, f"{took:,.0f}" if took >= 100 else f"{took:.3g}")
        pairs = [Pair(f"({k}) {o[1]}", micros[o[0]]) for k, o in enumerate(operations, 1)]
        path = figures / f"figure-{number.replace('.', '-')}.svg"
        draw_pairs(path, Words(title, "microseconds", "", _NOTE), pairs)
    console.print(table)
    return {name: took / _MICROS[name.rpartition("_")[2]] for name, took in micros.items()}


@contextmanager
def _next_task(emulation: Emulation) -> Iterator[EpochTask]:
    """The task of the next epoch, on a store of links to the run's segments."""
    store, known = emulation.store, emulation.store.names(_INTENTS)
    task = emulation.engine.open(emulation.last["epoch"] + 1).task
    for name in set(store.names(_INTENTS)).difference(known):
        store.delete(f"{_INTENTS}/{name}")
    with tempfile.TemporaryDirectory(prefix="geoflux-overhead-") as folder:
        shutil.copytree(store.path("state"), f"{folder}/state", copy_function=os.symlink)
        yield replace(task, store=Store(folder))


def _measured(task: EpochTask, emulation: Emulation) -> dict[str, float]:
    """Microseconds of every operation."""
    plan, tuning = task.plan, task.tuning
    assert isinstance(plan, GridPlan), "SWARM partitions the space"
    assert tuning is not None, "the policy of the run is SWARM"
    batches, parts = _came(task, emulation)
    events = sum(len(batch.table) for batch in batches)
    held = _held(task, tuning, parts)
    costs = {slot: slot_cost(mine, tuning.cost) for slot, mine in enumerate(held)}
    donor = max(costs, key=costs.__getitem__)
    costs[donor] *= _HOTSPOT
    ask = paired(costs, {}, tuning)[0]
    # The donor measured less than it is taken to cost; in its terms the others cost less as well.
    ask = replace(ask, receivers=tuple(Receiver(r.slot, r.cost / _HOTSPOT) for r in ask.receivers))
    given = max(held[donor], key=lambda holding: holding.cost(tuning.cost)).partition
    move = Move(given.id, ask.receivers[0].slot)
    routing = _median(lambda: list(route(task, 0, [(None, batches)])))
    collecting = _median(lambda s: _receive(s, parts), lambda: _opened(task, tuning, parts))
    closing = _median(lambda fresh: _close(fresh, tuning), lambda: deepcopy(held))
    return {
        "route_ns_per_event": routing / events,
        "index_update_us": _median(lambda: _indexed(task, plan.apply(move))),
        "decide_us": _deciding(tuning, plan, emulation.last, held),
        "pair_us": _median(lambda: paired(costs, {}, tuning)),
        "collect_stat_ns_per_event": collecting / events,
        "close_slot_us": closing / plan.slots,
        "search_us": _median(lambda: search(held[donor], ask, tuning)),
        "install_ms": _installing(task, tuning, given, replace(given, id=plan.next_id)),
    }


def _came(task: EpochTask, emulation: Emulation) -> tuple[list[RawBatch], list[_Part]]:
    """Events at the corners of random queries: as the simulator would hand them over, and as the
    partitions get them."""
    rows, grid, names = emulation.engine.catalogue.live_rows(), task.grid, task.columns
    count, space = emulation.last["processed"], grid.space
    which = np.random.default_rng(12).integers(0, len(rows), count)
    x = np.clip(numeric(rows, "x0")[which], space.west, space.east)
    y = np.clip(numeric(rows, "y0")[which], space.south, space.north)
    positions, now = np.arange(count), np.full(count, task.clock.max_time or 0)
    columns = {names.id: positions, names.x: x, names.y: y, names.time: now.astype("M8[us]")}
    whole = RawBatch(pa.table(columns), positions)
    events, _, _ = task.intake.accept(whole)
    place = task.plan.locate(grid.columns_of(x), grid.rows_of(y), positions)
    operator, parts = PubSub(grid, task.store, task.counting), []
    for at, p in enumerate(task.plan.partitions):
        ready = SortedEvents.of(events.take(np.flatnonzero(place == at)), grid, p)
        parts.append((p, operator.open(p, task.refs.get(p.id, ())), ready))
    starts = range(0, count, BATCH)
    return [RawBatch(whole.table[k : k + BATCH], positions[k : k + BATCH]) for k in starts], parts


def _opened(task: EpochTask, tuning: Tuning, parts: list[_Part]) -> list[SlotStats]:
    slots = [SlotStats(task, tuning, slot) for slot in range(task.plan.slots)]
    for partition, state, _ in parts:
        slots[partition.slot].open(partition, state)
    return slots


def _receive(slots: list[SlotStats], parts: list[_Part]) -> None:
    for partition, state, ready in parts:
        slots[partition.slot].receive(partition, state, ready, state.queries)


def _held(task: EpochTask, tuning: Tuning, parts: list[_Part]) -> _Held:
    """What each slot knows of its partitions after the epoch, when it closes the round."""
    slots = _opened(replace(task, orders=Orders(True, (), task.orders.marks)), tuning, parts)
    _receive(slots, parts)
    segments = {refs[0][1] for stats in slots for refs in stats.finish().refs.values()}
    saved = [stats_from_arrays(read_segment(task.store, s).arrays("trio.")) for s in segments]
    known = {partition: stat for some in saved for partition, stat in some.items()}
    mine = [Holding(partition, known[partition.id]) for partition, _, _ in parts]
    return [[h for h in mine if h.partition.slot == slot] for slot in range(len(slots))]


def _close(held: _Held, tuning: Tuning) -> list[tuple[float, float]]:
    for holding in (holding for mine in held for holding in mine):
        holding.stat.close_round(memory=tuning.memory)
    return [(slot_cost(mine, tuning.cost), slot_received(mine)) for mine in held]


def _indexed(task: EpochTask, plan: GridPlan) -> tuple[Any, ...]:
    """What the routing of events and of queries looks up."""
    return plan.raster, plan.borders, replace(task, plan=plan).addresses


def _deciding(tuning: Tuning, plan: GridPlan, last: dict[str, Any], held: _Held) -> float:
    """A round in which all slots did the same, after one that left the plan alone."""
    swarm = last["policy"]["swarm"]
    pointer = {**swarm["pointer"], "stage": "great", "rebalancing": False, "taken": 1}
    state = {**last["policy"], "swarm": {**swarm, "asks": [], "pointer": pointer}, "costs": {}}
    received = [slot_received(mine) for mine in held]
    loads = tuple(SlotLoad(k, 0, 0, 0, 1.0, cost=1.0, received=r) for k, r in enumerate(received))
    seen = Observed(last["epoch"], last["committed"], loads, closed=True)
    return _median(lambda: SwarmPolicy(tuning).decide(seen, plan, state))


def _installing(task: EpochTask, tuning: Tuning, old: Partition, new: Partition) -> float:
    """The queries of ``old`` are indexed and written anew, its statistics inherited."""
    told = replace(task, stats={new.id: task.stats.get(old.id, ())})
    operator, refs = PubSub(task.grid, task.store, task.counting), task.refs.get(old.id, ())
    return _median(lambda: SlotStats(told, tuning, new.slot).open(new, operator.open(new, refs)))


def _median(run: Callable[..., object], prepare: Callable[[], Any] | None = None) -> float:
    """Microseconds, after a call that warms up; what ``prepare`` makes each time is not in it."""
    taken = []
    for _ in range(1 + _REPEATS):
        given = () if prepare is None else (prepare(),)
        started = time.perf_counter()
        run(*given)
        taken.append(time.perf_counter() - started)
    return 1e6 * median(taken[1:])
