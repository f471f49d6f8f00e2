"""`geoflux bench synopsis`: what a sketch takes in, holds, and answers, with weather.

With a file of real weather (`--data`), replayed and perturbed for as long as it takes; without one
weather is made up. All in one process, without Spark. Range of a feature, where errors are shares
of it, is its range all over the world.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from geoflux.bench import synopsis_queries as queries
from geoflux.bench import synopsis_scaling as scaling
from geoflux.bench.figure_frame import Words, begin, short, write
from geoflux.bench.figures import FOLDER
from geoflux.bench.table import Bars, check_parts
from geoflux.sketch.accuracy import bin_errors, profile, values_within_half_percent
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.times import Ages
from geoflux.spatial.geohash import codes
from geoflux.workload.weather import (
    FEATURES,
    Weather,
    WeatherStream,
    made_up_weather,
    read_weather,
)

PARTS = ("ingest", "memory", "bins", "growth", "queries", "scaling")
BARS: Bars = {
    "ingest_obs_per_second_core": (">=", 200_000),
    "quantised_memory_share": ("<=", 0.376),
    "values_within_half_percent": (">=", 0.80),
    **queries.BARS,
    **scaling.BARS,
}
_START, _WEEK = 1_774_396_800, 7 * 86_400
_BATCH = 65_160
_RAW_BYTES = 8 * (len(FEATURES) + 3)
"""Of an observation as it comes: place, time, features."""
_NEVER = 1 << 39


@dataclass(frozen=True)
class Sizes:
    """How much is taken in."""

    rows: int = 1_563_840
    """Of made-up weather, a week of it."""
    steps: int = 52
    """Weeks of the long stream."""
    questions: int = 1000


FULL = Sizes()
QUICK = Sizes(200_000, 4, 200)


def schema_of(seen: Weather, **more: Any) -> SketchSchema:
    """What is measured: trees of two letters, hours, at most 8 leaves of a region and hour."""
    spans = tuple(float(np.ptp(column)) or 1.0 for column in seen.values.T)
    return replace(
        SketchSchema(FEATURES, 10, 10, max_leaves=8, spans=spans, steady_rows=1000), **more
    )


def run_benchmark(
    console: Console, quick: bool = False, figures: Path = FOLDER, parts: Sequence[str] = PARTS,
    data: Path | None = None, sizes: Sizes | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Figures by name; draws into ``figures``."""
    check_parts(parts, PARTS)
    sizes = sizes or (QUICK if quick else FULL)
    made = made_up_weather(7, sizes.rows, _START, _WEEK)
    seen = made if data is None else read_weather(data)
    if quick:
        seen = seen.between(0, sizes.rows)
    stream = WeatherStream(seen)
    result: dict[str, Any] = {"quick": quick, "rows": len(seen), "real": data is not None}
    taken: Forest | None = None
    if {"ingest", "bins", "queries"} & set(parts):
        console.print("[dim]taking observations in")
        taken, found = measure_ingest(stream)
        result |= found
    if "memory" in parts:
        console.print("[dim]the same at full resolution")
        result |= measure_memory(seen)
    if "bins" in parts and taken is not None:
        result |= measure_bins(taken, seen, figures)
    if "growth" in parts:
        console.print(f"[dim]{sizes.steps} weeks, one after another")
        result |= measure_growth(stream, sizes.steps, figures)
    if "queries" in parts and taken is not None:
        console.print("[dim]questions")
        result |= queries.measure_queries(taken, seen, sizes.questions)
    if "scaling" in parts:
        wanted = scaling.QUICK if quick else scaling.FULL
        result |= scaling.measure_scaling(console, seen, figures, wanted)
    return result


def took_in(forest: Forest, seen: Weather) -> Forest:
    """All observations, batch by batch."""
    for first in range(0, len(seen), _BATCH):
        some = seen.between(first, first + _BATCH)
        forest = forest.ingest(Observations(some.lon, some.lat, some.time, some.values))
    return forest


def measure_ingest(stream: WeatherStream) -> tuple[Forest, dict[str, Any]]:
    """Observations a second of one core: bins, densities, moments and sets of all. The first week
    makes the bins, and is not counted; the best of three further weeks is, since machines are
    noisy."""
    first = took_in(Forest.empty(schema_of(stream.observed)), stream.step(0))
    forest, rates = first, []
    for number in (1, 2, 3):
        more = stream.step(number)
        began = time.process_time()
        forest = took_in(forest, more)
        rates.append(len(more) / (time.process_time() - began))
    told = {"ingest_obs_per_second_core": max(rates), "ingest_rates": [round(r) for r in rates]}
    return first, told


def measure_memory(seen: Weather) -> dict[str, Any]:
    """The sketch of a week against the same at full resolution (every value a vertex), as table 1;
    sets are left out of both, since they are the same."""
    full = took_in(Forest.empty(schema_of(seen, steady_rows=_NEVER, max_leaves=0)), seen)
    kept = took_in(Forest.empty(schema_of(seen)), seen).quantised().compacted()
    before, after = full.vertices(full.best_order()), kept.vertices(kept.best_order())
    sizes = [forest.bytes - forest.sets.bytes_resident for forest in (full, kept)]
    return {
        "quantised_memory_share": sizes[1] / sizes[0],
        "quantised_vertices_share": after.vertices / before.vertices,
        "quantised_edges_share": after.edges / before.edges,
        "quantised_leaves_share": after.leaves / before.leaves,
        "full_resolution_megabytes": sizes[0] / 1e6,
        "sets_megabytes": kept.sets.bytes_resident / 1e6,
    }


def measure_bins(forest: Forest, seen: Weather, figures: Path) -> dict[str, Any]:
    """How well the bins of a feature stand for its values, as figure 4: the share of values in bins
    whose error is at most half a percent of the feature's range, by feature and over all."""
    schema = forest.schema
    tree = _tree_of(forest, seen)
    shares = {}
    for f, name in enumerate(FEATURES):
        span = float(np.ptp(seen.values[:, f])) or 1.0
        good = total = 0.0
        for place in range(len(forest.trees)):
            mine = seen.values[tree == place, f]
            edges = forest.edges.of(place, f)
            if len(mine) and edges.size > 1:
                good += values_within_half_percent(mine, edges, span) * len(mine)
                total += len(mine)
        shares[name] = good / total if total else float("nan")
    _draw_bins(forest, seen, tree, figures)
    mean = float(np.nanmean(list(shares.values())))
    return {"values_within_half_percent": mean, "max_bins": schema.max_bins,
            **{f"within_{name}": share for name, share in shares.items()}}  # fmt: skip


def _tree_of(forest: Forest, seen: Weather) -> Any:
    return np.searchsorted(forest.trees, codes(seen.lon, seen.lat, forest.schema.tree_bits))


def _draw_bins(forest: Forest, seen: Weather, tree: Any, figures: Path) -> None:
    place = int(np.bincount(tree, minlength=len(forest.trees)).argmax())
    mine = seen.values[tree == place, 0]
    edges = forest.edges.of(place, 0)
    shown = profile(forest.densities, place, 0, edges, mine)
    words = Words(
        "Bins of equal mass", FEATURES[0], "density", "one tree; lines are the ends of bins"
    )
    figure, axes = begin(640, 300, words)
    axes.plot(shown.grid, shown.pdf, color="#2f6fde", lw=1.8)
    inner = shown.edges[1:-1]
    axes.vlines(inner, 0, np.interp(inner, shown.grid, shown.pdf), color="#5d6b7c", lw=0.8)
    axes.set_ylim(0)
    write(figure, figures / "synopsis-4-bins.svg")
    errors, _ = bin_errors(mine, edges, float(np.ptp(seen.values[:, 0])))
    words = Words("Error of each bin", "bin", "share of the range", "half a percent is the bar")
    figure, axes = begin(640, 260, words)
    axes.bar(np.arange(len(errors)), errors, color="#d9772b")
    axes.axhline(0.005, color="#5d6b7c", lw=1, ls="--")
    write(figure, figures / "synopsis-4-errors.svg")


def measure_growth(stream: WeatherStream, steps: int, figures: Path) -> dict[str, Any]:
    """A long stream: bytes that came in over bytes that are kept, as figure 10. Hours become hours
    of a week after two weeks, months after a quarter; sets are those of a week."""
    schema = schema_of(stream.observed, set_seconds=7 * 86_400, bloom_items=2_000, hll_lg_k=10)
    forest, raw, kept, rows = Forest.empty(schema), [], [], 0
    for weather in stream.steps(steps):
        forest = took_in(forest, weather).folded(int(weather.time[-1]), Ages())
        rows += len(weather)
        raw.append(rows * _RAW_BYTES)
        kept.append(forest.bytes)
    words = Words("Growth of the sketch", "bytes that came in", "bytes that are kept", "")
    figure, axes = begin(640, 320, words)
    axes.plot(raw, kept, color="#2f6fde", lw=1.8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: short(value) + "B")
    write(figure, figures / "synopsis-10-growth.svg")
    half = len(kept) // 2
    first, last = kept[half] / raw[half], (kept[-1] - kept[half]) / (raw[-1] - raw[half] or 1)
    return {
        "sketch_vs_raw": raw[-1] / kept[-1],
        "growth_late_over_early": last / first,
        "sketch_megabytes": kept[-1] / 1e6,
        "stream_rows": rows,
    }
