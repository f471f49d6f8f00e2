"""How long a sketchlet takes to answer random questions of each kind: table 2."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from geoflux.bench.figures import Pair, Words, draw_pairs
from geoflux.bench.table import Bars
from geoflux.sketch.evaluate import Prepared, prepare
from geoflux.sketch.forest import Forest
from geoflux.spatial.geohash import bounds
from geoflux.workload.weather import FEATURES, Weather

BARS: Bars = {
    "stat_ms": ("<=", 1.0),
    "relational_5km_ms": ("<=", 50.0),
    "relational_25km_ms": ("<=", 50.0),
    "relational_800km_ms": ("<=", 50.0),
}
_PUBLISHED = {
    "stat": 0.002, "density": 0.007, "membership": 0.015, "cardinality": 0.154, "frequency": 0.036,
    "relational_5km": 46.357, "relational_25km": 47.619, "relational_800km": 53.620,
}  # fmt: skip
"""Means of 1000, in milliseconds: of the graph alone at 5 km, with metadata at 25 and 800."""


def largest_of(whole: Forest) -> Forest:
    """One sketchlet: the largest of 16."""
    parts = [whole.cut(code, 4) for code in range(16)]
    return max(parts, key=lambda forest: forest.leaf_count).compacted()


def asked_of(kind: str, forest: Forest, seen: Weather, count: int) -> list[Prepared]:
    """Random questions of a kind, read and planned."""
    dice = np.random.default_rng(5)
    return [prepare(_KINDS[kind](dice, forest, seen), forest.schema) for _ in range(count)]


def measure_queries(one: Forest, seen: Weather, count: int, figures: Path) -> dict[str, Any]:
    """Milliseconds, medians over random questions to one sketchlet, each read once and run."""
    result: dict[str, Any] = {"sketchlet_leaves": one.leaf_count}
    for kind in _KINDS:
        result[f"{kind}_ms"] = _median_ms(one, asked_of(kind, one, seen, count))
    draw_pairs(
        figures / "synopsis-table-2.svg",
        Words("Time to answer", "milliseconds (median; published: mean)", "",
              "table 2: one sketchlet, read once and run"),
        [Pair(kind.replace("_", " "), result[f"{kind}_ms"], told)
         for kind, told in _PUBLISHED.items()],
    )  # fmt: skip
    return result


def table_2(result: dict[str, Any]) -> Table:
    """Table 2, as measured and as published."""
    table = Table(title="Table 2: milliseconds of a query", title_justify="left")
    for column in ("", "measured (median)", "published (mean)"):
        table.add_column(column, justify="left" if not column else "right")
    for kind, told in _PUBLISHED.items():
        table.add_row(kind, f"{result[f'{kind}_ms']:.3f}", f"{told:.3f}")
    return table


def _median_ms(forest: Forest, queries: list[Prepared]) -> float:
    for query in queries[:5]:
        query.run([forest])
    taken = []
    for query in queries:
        began = time.perf_counter()
        query.run([forest])
        taken.append(time.perf_counter() - began)
    return float(np.median(taken) * 1e3)


def _place(dice: np.random.Generator, forest: Forest) -> tuple[float, float]:
    leaves = forest.leaves()
    code = leaves.region[dice.integers(0, len(leaves))]
    west, south, east, north = (
        float(v[0]) for v in bounds(np.array([code]), forest.schema.region_bits)
    )
    return float(dice.uniform(west, east)), float(dice.uniform(south, north))


def _box(dice: np.random.Generator, forest: Forest, km: float) -> str:
    lon, lat = _place(dice, forest)
    high = km / 222.4
    wide = min(high / max(np.cos(np.radians(lat)), 0.05), 170.0)
    west, east = ((v + 180) % 360 - 180 for v in (lon - wide, lon + wide))
    return (
        f"region IN bbox({west:.4f}, {max(lat - high, -90):.4f}, {east:.4f}, "
        f"{min(lat + high, 90):.4f})"
    )


def times_of(dice: np.random.Generator, seen: Weather) -> tuple[int, int]:
    first, last = int(seen.time[0]), int(seen.time[-1])
    a, b = np.sort(dice.integers(first, last, 2))
    return int(a), int(b)


def _during(dice: np.random.Generator, seen: Weather) -> str:
    a, b = (np.datetime64(t, "s") for t in times_of(dice, seen))
    return f"time BETWEEN '{a}' AND '{b}'"


def _feature(dice: np.random.Generator) -> str:
    return str(dice.choice(FEATURES))


def _stat(dice: np.random.Generator, forest: Forest, seen: Weather) -> str:
    return (
        f"SELECT mean({_feature(dice)}), stddev(t2m_k), corr(t2m_k, msl_pa) "
        f"WHERE {_box(dice, forest, 300)} AND {_during(dice, seen)}"
    )


def _density(dice: np.random.Generator, forest: Forest, seen: Weather) -> str:
    return (
        f"SELECT probability(t2m_k, {dice.uniform(260, 300):.2f}) WHERE {_box(dice, forest, 300)}"
    )


def _value(dice: np.random.Generator, seen: Weather) -> str:
    return f"{seen.values[dice.integers(0, len(seen)), 0]}"


def _membership(dice: np.random.Generator, forest: Forest, seen: Weather) -> str:
    return f"SELECT contains(t2m_k, {_value(dice, seen)}) WHERE {_box(dice, forest, 25)}"


def _cardinality(dice: np.random.Generator, forest: Forest, seen: Weather) -> str:
    return f"SELECT count(DISTINCT *) WHERE {_box(dice, forest, 25)}"


def _frequency(dice: np.random.Generator, forest: Forest, seen: Weather) -> str:
    return f"SELECT frequency(t2m_k, {_value(dice, seen)}) WHERE {_box(dice, forest, 25)}"


def _relational(km: float) -> Callable[[np.random.Generator, Forest, Weather], str]:
    return lambda dice, forest, seen: f"SELECT graph WHERE {_box(dice, forest, km)}"


_KINDS: dict[str, Callable[[np.random.Generator, Forest, Weather], str]] = {
    "stat": _stat,
    "density": _density,
    "membership": _membership,
    "cardinality": _cardinality,
    "frequency": _frequency,
    "relational_5km": _relational(5),
    "relational_25km": _relational(25),
    "relational_800km": _relational(800),
}
