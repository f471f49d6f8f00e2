"""`geoflux bench triostat`: what the statistics cost, in time, bytes and traffic.

An epoch of events in cities of Zipf sizes, sorted by cell as the engine has them, is counted into
the statistics of all partitions of a plan for 22 slots; then rounds are closed, queries come and
go, and slots look for what to give away after a hotspot appeared. No Spark: these are the calls
that a slot's task makes. Figures 6.1 to 6.4 of the dissertation are drawn beside what it says.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from geoflux.balance.pairing import paired
from geoflux.balance.reduction import Holding, reduce_to_one, slot_cost, slot_received
from geoflux.balance.requests import Answer, Ask
from geoflux.balance.sharing import search
from geoflux.balance.splits import best_split
from geoflux.balance.tuning import Tuning
from geoflux.bench import triostat_storage as storage
from geoflux.bench.figures import FOLDER, Pair, Words, draw_pairs
from geoflux.bench.table import Bars
from geoflux.bench.triostat_epoch import (
    EVENT_WORK,
    FULL,
    QUICK,
    Epoch,
    Sizes,
    grid_of,
    held_by_slot,
    plan_of,
)
from geoflux.bench.triostat_storage import Footprint
from geoflux.stats import TrioStat

_Search = Callable[[Sequence[Holding], Ask, Tuning], Answer]

BARS: Bars = {"collect_ns_per_event": ("<=", 100)}
PUBLISHED_COLLECT_US = 0.41
"""To find the partition of a new object and to collect its statistics (figure 6.1)."""
PUBLISHED_CLOSE_US = 58.0
"""To update the statistics of all partitions of a machine (figure 6.1)."""
_HOTSPOT = (0.15, 0.40)
"""Side of a hotspot as a share of the space's, and its share of events (dissertation 6.3)."""


def run_benchmark(
    console: Console, quick: bool = False, sizes: Sizes | None = None, folder: Path = FOLDER
) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``folder``."""
    sizes = sizes or (QUICK if quick else FULL)
    console.print(
        f"[dim]{sizes.events:,} events and {sizes.queries:,} queries on {sizes.side} x "
        f"{sizes.side} cells, {sizes.slots} slots"
    )
    epoch = Epoch.made(sizes)
    result: dict[str, Any] = {"quick": quick, "partitions": len(epoch.plan.partitions)}
    result |= _collecting(epoch, sizes)
    result |= _registering(epoch, sizes)
    result |= _closing(epoch, sizes)
    result |= _searching(epoch, sizes)
    console.print("[dim]storage and traffic on several grids")
    footprint = Footprint.of(sizes.side, epoch.held)
    result |= footprint.against_aqwa()
    others = [_footprint(side, sizes) for side in sizes.sides]
    for other in others:
        ratios = other.against_aqwa()
        result[f"storage_vs_aqwa_{other.side}"] = ratios["storage_vs_aqwa"]
        result[f"traffic_vs_aqwa_{other.side}"] = ratios["traffic_vs_aqwa"]
    drawn = [
        _draw_overhead(folder, result),
        storage.draw_traffic(folder, others),
        storage.draw_storage_by_partitions(folder, sizes.partition_counts, footprint),
        storage.draw_storage_by_grid(folder, sizes.fixed_sides, sizes.fixed_count),
    ]
    _say_where(console, drawn, result)
    return result


def _collecting(epoch: Epoch, sizes: Sizes) -> dict[str, float]:
    """Per event: as the engine does it, with the counts and the work of cells; event by event; and
    the look-up of its partition, which the document's figure contains."""

    def by_cell() -> None:
        for part in epoch.parts:
            cells, offsets, _ = part.groups
            counts = np.diff(offsets)
            part.stat.receive_cells(cells, counts, counts * (part.candidates + EVENT_WORK))

    def by_event() -> None:
        for part in epoch.parts:
            part.stat.receive(part.columns, part.rows, part.work)

    nanos = 1e9 / sizes.events
    collect = nanos * _best_seconds(by_cell, sizes.repeats)
    single = nanos * _best_seconds(by_event, sizes.repeats)
    positions = np.empty(0, np.int64)
    locate = nanos * _best_seconds(
        lambda: epoch.plan.locate(epoch.columns, epoch.rows, positions), sizes.repeats
    )
    return {
        "occupied_cells": sum(part.groups[0].size for part in epoch.parts),
        "collect_ns_per_event": collect,
        "collect_one_by_one_ns_per_event": single,
        "locate_ns_per_event": locate,
    }


def _registering(epoch: Epoch, sizes: Sizes) -> dict[str, float]:
    """All queries come, then all end; per query, however many partitions it touches."""

    def register() -> None:
        for part in epoch.parts:
            part.stat.register(part.queries)

    def end() -> None:
        for part in epoch.parts:
            part.stat.end(part.queries)

    nanos = 1e9 / sizes.queries
    return {
        "register_ns_per_query": nanos * _best_seconds(register, sizes.repeats),
        "end_ns_per_query": nanos * _best_seconds(end, sizes.repeats),
    }


def _closing(epoch: Epoch, sizes: Sizes) -> dict[str, float]:
    """Close the round of every slot, and make its two numbers; the mean over slots."""
    held = epoch.held

    def close() -> None:
        for holdings in held:
            for holding in holdings:
                holding.stat.close_round()

    def report() -> None:
        for holdings in held:
            slot_cost(holdings, "work")
            slot_received(holdings)

    micros = 1e6 / len(held)
    return {
        "close_round_us_per_slot": micros * _best_seconds(close, sizes.repeats),
        "report_us_per_slot": micros * _best_seconds(report, sizes.repeats),
    }


def _searching(epoch: Epoch, sizes: Sizes) -> dict[str, float]:
    """What every slot that is asked does, in the round in which a hotspot came; in both modes, and
    the best split of the costliest partition by itself."""
    _receive_round(epoch, sizes)
    held = epoch.held
    out: dict[str, float] = {}
    for name, tuning, find in (
        ("split_search_us", Tuning(), search),
        ("split_search_published_us", Tuning.published(), reduce_to_one),
    ):
        costs = {slot: slot_cost(holdings, tuning.cost) for slot, holdings in enumerate(held)}
        asks = paired(costs, {}, tuning)
        run = partial(_search_all, held, asks, (find, tuning))
        out[name] = 1e6 / max(1, len(asks)) * _best_seconds(run, sizes.repeats)
    costliest = max(epoch.stats, key=lambda stat: stat.total.work)
    out["best_split_us"] = 1e6 * _best_seconds(
        lambda: best_split(costliest, 0.0, 0.0, "work"), sizes.repeats
    )
    return out


def _search_all(
    held: Sequence[Sequence[Holding]], asks: Sequence[Ask], how: tuple[_Search, Tuning]
) -> None:
    find, tuning = how
    for ask in asks:
        find(held[ask.donor], ask, tuning)


def _receive_round(epoch: Epoch, sizes: Sizes) -> None:
    """One round from a clean slate: queries, the epoch's events, and the hotspot's on top."""
    share = _HOTSPOT[1]
    count = int(sizes.events * share / (1 - share))
    draw = np.random.default_rng(11)
    reach = int(sizes.side * _HOTSPOT[0])
    columns, rows = draw.integers(0, reach, (2, count)).astype(np.int32)
    places = epoch.plan.homes(columns, rows)
    mean = float(np.mean(np.concatenate([part.work for part in epoch.parts])))
    for place, part in enumerate(epoch.parts):
        part.stat.table[:] = 0.0
        part.stat.register(part.queries)
        part.stat.receive(part.columns, part.rows, part.work)
        here = places == place
        part.stat.receive(columns[here], rows[here], np.array([mean]))
        part.stat.close_round()


def _best_seconds(run: Callable[[], Any], repeats: int) -> float:
    """The least of several times, after one that warms up."""
    run()
    gc.collect()
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return min(taken)


def _footprint(side: int, sizes: Sizes) -> Footprint:
    plan = plan_of(grid_of(side), sizes)
    return Footprint.of(side, held_by_slot(plan, [TrioStat.empty(p) for p in plan.partitions]))


def _draw_overhead(folder: Path, result: dict[str, Any]) -> Path:
    """Figure 6.1; the document's time of an object contains the look-up of its partition."""
    collect = (result["locate_ns_per_event"] + result["collect_ns_per_event"]) / 1000
    close = result["close_round_us_per_slot"]
    pairs = [
        Pair("find an event's partition\nand collect it", collect, PUBLISHED_COLLECT_US),
        Pair("close the round\nof a slot", close, PUBLISHED_CLOSE_US),
        Pair("collect a new query", result["register_ns_per_query"] / 1000),
        Pair("search for what to\ngive away", result["split_search_us"]),
    ]
    words = Words(
        "6.1: What statistics cost a slot", "microseconds", "",
        "published: Storm, one object at a time; measured: amortised over an epoch",
    )  # fmt: skip
    return draw_pairs(folder / "triostat-6.1-overhead.svg", words, pairs)


def _say_where(console: Console, drawn: Sequence[Path], result: dict[str, Any]) -> None:
    """A table of the figures: what the document says, what was measured, and the files."""
    collect = (result["locate_ns_per_event"] + result["collect_ns_per_event"]) / 1000
    close = result["close_round_us_per_slot"]
    rows = (
        (f"{PUBLISHED_COLLECT_US:g} µs an object, {PUBLISHED_CLOSE_US:g} µs a round",
         f"{collect:.3g} µs, {close:.3g} µs"),
        ("2 numbers a slot; AQWA 5 a cell", f"1/{result['traffic_vs_aqwa']:,.0f} of AQWA"),
        ("8 numbers a row or column; AQWA 10 a cell",
         f"1/{result['storage_vs_aqwa']:.3g} of AQWA"),
        ("the same, by the side of the grid", "in the figure"),
    )  # fmt: skip
    table = Table(title="Figures 6.1 to 6.4 of the dissertation", title_justify="left")
    for column in ("published", "measured", "drawn in"):
        table.add_column(column, overflow="fold")
    for (published, measured), path in zip(rows, drawn, strict=True):
        table.add_row(published, measured, str(path))
    console.print(table)
