"""What a sketch takes in and holds: observations a second of one core, and table 1.

All in one plain process. The range of a feature, where errors are shares of it, is its range all
over the world.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from rich.table import Table

from geoflux.bench.table import Bars
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.schema import SketchSchema
from geoflux.workload.weather import FEATURES, Weather, WeatherStream

BARS: Bars = {
    "ingest_obs_per_second_core": (">=", 200_000),
    "quantised_memory_share": ("<=", 0.376),
}
BATCH = 65_160
"""Observations of an hour of the real weather."""
RAW_BYTES = 8 * (len(FEATURES) + 3)
"""Of an observation as it comes: place, time, features."""
_NEVER = 1 << 39
_PUBLISHED = {
    "vertices": (3_104_874, 1_238_424), "edges": (3_367_665, 1_441_639),
    "leaves": (262_792, 203_216), "megabytes": (1710.6, 643.1),
}  # fmt: skip


def schema_of(seen: Weather, **more: Any) -> SketchSchema:
    """What is measured: trees of two letters, hours, at most 8 leaves of a region and hour."""
    spans = tuple(float(np.ptp(column)) or 1.0 for column in seen.values.T)
    return replace(
        SketchSchema(FEATURES, 10, 10, max_leaves=8, spans=spans, steady_rows=1000), **more
    )


def took_in(forest: Forest, seen: Weather) -> Forest:
    """All observations, batch by batch."""
    for first in range(0, len(seen), BATCH):
        some = seen.between(first, first + BATCH)
        forest = forest.ingest(Observations(some.lon, some.lat, some.time, some.values))
    return forest


def measure_ingest(stream: WeatherStream, weeks: int) -> dict[str, Any]:
    """Observations a second of one core: bins, densities, moments and sets of all. The first week
    makes the bins, and is not counted; the best of the further weeks is, since machines are noisy
    (all of them are told)."""
    forest, rates = took_in(Forest.empty(schema_of(stream.observed)), stream.step(0)), []
    for number in range(1, weeks + 1):
        more = stream.step(number)
        began = time.process_time()
        forest = took_in(forest, more)
        rates.append(len(more) / (time.process_time() - began))
    return {"ingest_obs_per_second_core": max(rates), "ingest_rates": [round(r) for r in rates]}


def measure_memory(seen: Weather, kept: Forest) -> dict[str, Any]:
    """The sketch of a week against the same at full resolution (every value a vertex), as table 1;
    sets are left out of both, since they are the same."""
    full = took_in(Forest.empty(schema_of(seen, steady_rows=_NEVER, max_leaves=0)), seen)
    kept = kept.quantised().compacted()
    sizes = [_size(forest) for forest in (full, kept)]
    result: dict[str, Any] = {
        f"quantised_{name}_share": sizes[1][name] / sizes[0][name]
        for name in ("vertices", "edges", "leaves")
    }
    result["quantised_memory_share"] = sizes[1]["megabytes"] / sizes[0]["megabytes"]
    for name in sizes[0]:
        result[f"table_1_{name}"] = [size[name] for size in sizes]
    return result | {"sets_megabytes": kept.sets.bytes_resident / 1e6}


def _size(forest: Forest) -> dict[str, float]:
    graph = forest.vertices(forest.best_order())
    held = (forest.bytes - forest.sets.bytes_resident) / 1e6
    return {"vertices": graph.vertices, "edges": graph.edges, "leaves": graph.leaves,
            "megabytes": held}  # fmt: skip


def table_1(result: dict[str, Any]) -> Table:
    """Table 1, as measured and as published."""
    table = Table(title="Table 1: before and after quantisation", title_justify="left")
    for column in ("", "full", "quantised", "share", "published"):
        table.add_column(column, justify="left" if not column else "right")
    for name, (before, after) in _PUBLISHED.items():
        full, kept = result[f"table_1_{name}"]
        table.add_row(
            name, f"{full:,.0f}", f"{kept:,.0f}", f"{kept / full:.3f}", f"{after / before:.3f}"
        )
    return table
