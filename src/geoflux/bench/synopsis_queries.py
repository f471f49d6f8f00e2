"""Questions to a sketch: how long answers take, and how they compare with the raw observations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

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
    "covered_mean": (">=", 0.95),
    "covered_stddev": (">=", 0.95),
    "covered_corr": (">=", 0.95),
    "exact_on_whole_bins": (">=", 1.0),
}


def measure_queries(whole: Forest, seen: Weather, count: int) -> dict[str, Any]:
    """Milliseconds, medians over random questions to one sketchlet (the largest of 16), each read
    once and run; table 2 of the paper. And how often the stated error covers the truth."""
    parts = [whole.cut(code, 4) for code in range(16)]
    one = max(parts, key=lambda forest: forest.leaf_count).compacted()
    dice = np.random.default_rng(5)
    result: dict[str, Any] = {"sketchlet_leaves": one.leaf_count}
    for name, asked in _KINDS.items():
        most = count if name not in _SLOW else max(count // 10, 20)
        result[f"{name}_ms"] = _median_ms(one, [asked(dice, one, seen) for _ in range(most)])
    return result | _covered([part.compacted() for part in parts], seen, max(count // 5, 50))


def _median_ms(forest: Forest, asked: list[str]) -> float:
    queries = [prepare(one, forest.schema) for one in asked]
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


def _times(dice: np.random.Generator, seen: Weather) -> tuple[int, int]:
    first, last = int(seen.time[0]), int(seen.time[-1])
    a, b = np.sort(dice.integers(first, last, 2))
    return int(a), int(b)


def _during(dice: np.random.Generator, seen: Weather) -> str:
    a, b = (np.datetime64(t, "s") for t in _times(dice, seen))
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
_SLOW = {"relational_5km", "relational_25km", "relational_800km"}


def _covered(parts: list[Forest], seen: Weather, count: int) -> dict[str, Any]:
    """How often the stated error covers the truth, for boxes and times that fall where they may;
    and whether answers on whole bins are those of the raw observations."""
    dice = np.random.default_rng(6)
    asked = ("mean(t2m_k)", "stddev(t2m_k)", "corr(t2m_k, msl_pa)")
    covered: dict[str, list[bool]] = {name: [] for name in ("mean", "stddev", "corr")}
    exact: list[bool] = []
    for number in range(count):
        west, south = float(dice.uniform(-170, 100)), float(dice.uniform(-80, 40))
        wide, high = float(dice.uniform(5, 70)), float(dice.uniform(5, 40))
        a, b = _times(dice, seen)
        if number % 4 == 0:  # whole regions, whole hours
            west, wide = -180 + 11.25 * int(dice.integers(0, 16)), 11.25 * int(dice.integers(1, 10))
            south, high = -90 + 5.625 * int(dice.integers(2, 16)), 5.625 * int(dice.integers(1, 10))
            a, b = a // 3600 * 3600, b // 3600 * 3600 + 3599
        inside = (
            (seen.lon >= west) & (seen.lon < west + wide) & (seen.lat >= south)
            & (seen.lat < south + high) & (seen.time >= a) & (seen.time <= b)
        )  # fmt: skip
        if inside.sum() < 30:
            continue
        east, north = (float(np.nextafter(v, -999)) for v in (west + wide, south + high))
        query = prepare(
            f"SELECT {', '.join(asked)} WHERE region IN bbox({west}, {south}, {east!r}, {north!r}) "
            f"AND time BETWEEN '{np.datetime64(a, 's')}' AND '{np.datetime64(b, 's')}'",
            parts[0].schema,
        )
        _judge(query, parts, seen.values[inside], number % 4 == 0, covered, exact)
    return {
        **{f"covered_{name}": float(np.mean(hits)) for name, hits in covered.items() if hits},
        "exact_on_whole_bins": float(np.mean(exact)) if exact else None,
        "questions_compared": sum(map(len, covered.values())) // 3,
    }


def _judge(
    query: Prepared, parts: list[Forest], truth: Any, whole: bool,
    covered: dict[str, list[bool]], exact: list[bool],
) -> None:  # fmt: skip
    answer = query.run(parts)
    air, pressure = truth[:, 0], truth[:, FEATURES.index("msl_pa")]
    wanted = (air.mean(), air.std(ddof=1), np.corrcoef(air, pressure)[0, 1])
    for name, column, value in zip(covered, answer.columns, wanted, strict=True):
        measure = column.only  # type: ignore[union-attr]
        slack = 1e-9 * max(abs(value), 1.0)
        got, error = float(measure.value[0]), float(measure.error[0])
        if whole:
            exact.append(abs(got - value) <= 1e-6 * max(abs(value), 1.0))
        else:
            covered[name].append(abs(got - value) <= error + slack)
