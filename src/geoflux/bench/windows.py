"""`geoflux bench windows`: what aggregates cost, and how fast the retained events are asked.

Moving objects report where they are, in cities of Zipf sizes over the contiguous United States.
The same stream and the same standing queries run twice, without and with aggregates; then twenty
million events are retained and asked about from Python, warm, beside a scan of all of them with
Spark. All in one run; what is compared is a ratio.
"""

from __future__ import annotations

import gc
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from geoflux import api
from geoflux.bench.table import Bars
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.snapshot_reader import Snapshots
from geoflux.spark.scan import scan_retained
from geoflux.spark.session import build_session, stop_session, warm_workers
from geoflux.state.keys import store_of
from geoflux.state.store import Store
from geoflux.workload.clusters import Clusters

BARS: Bars = {
    "aggregate_overhead": ("<=", 1.5), "snapshot_p50_ms": ("<=", 50),
    "snapshot_p99_ms": ("<=", 250), "snapshot_vs_scan": (">=", 20),
}  # fmt: skip
_BOUNDS = (-125.0, 24.0, -66.0, 50.0)
_AGGREGATE = {"functions": ["count", "avg(speed)", "max(speed)", "distinct(object)"],
              "window": "5 minutes", "slide": "1 minute"}  # fmt: skip
_SPAN_MICROS = 120_000_000
"""Event time that the aggregates see; at the full size that is 100,000 events a second, and every
sixth epoch closes a window of every query."""
_START_MICROS = 1_700_000_000_000_000
_CITY = (0.5, 0.4)
"""Degrees of a rectangle that a large city fits in, about 45 km a side."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    queries: int
    events: int
    epoch_events: int
    retained: int
    objects: int
    asked: int
    rounds: int


FULL = Sizes(100_000, 12_000_000, 1_000_000, 20_000_000, 200_000, 300, 3)
QUICK = Sizes(20_000, 1_000_000, 250_000, 1_000_000, 50_000, 60, 1)


def run_benchmark(console: Console, quick: bool = False) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name."""
    sizes = QUICK if quick else FULL
    folder = Path(tempfile.mkdtemp(prefix="geoflux-bench-"))
    result: dict[str, Any] = {"quick": quick}
    try:
        events = max(sizes.events, sizes.retained)
        console.print(f"[dim]writing {events:,} events of {sizes.objects:,} objects")
        _write_events(folder / "events", sizes)
        spark = build_session(_config(sizes, folder, "", 0).engine)
        try:
            warm_workers(spark)
            result |= _aggregates(console, sizes, folder, spark)
            result |= _snapshots(console, sizes, folder, spark)
        finally:
            stop_session(spark)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _write_events(folder: Path, sizes: Sizes) -> None:
    """Objects keep to their surroundings; each event is one of them, somewhere near its place."""
    folder.mkdir(parents=True)
    home_x, home_y = Clusters().points(sizes.objects, stream=2)
    draw = np.random.default_rng(7)
    west, south, east, north = _BOUNDS
    for first in range(0, max(sizes.events, sizes.retained), sizes.epoch_events):
        number = np.arange(first, first + sizes.epoch_events, dtype=np.int64)
        who = draw.integers(0, sizes.objects, number.size)
        x = np.clip(home_x[who] + 0.0004 * draw.standard_normal(number.size), 0, 1)
        y = np.clip(home_y[who] + 0.0004 * draw.standard_normal(number.size), 0, 1)
        micros = number * (_SPAN_MICROS // sizes.events) + _START_MICROS
        columns = {
            "id": number, "lon": west + (east - west) * x, "lat": south + (north - south) * y,
            "time": pa.array(micros, pa.timestamp("us", "UTC")), "object": who.astype(np.int64),
            "speed": np.round(draw.gamma(3, 5, number.size), 2),
        }  # fmt: skip
        pq.write_table(pa.table(columns), folder / f"part-{first:010d}.parquet")


def _write_queries(path: Path, count: int, aggregate: dict[str, Any] | None) -> None:
    x, y = Clusters().points(count, stream=1)
    west, south, east, north = _BOUNDS
    wide, high = 0.0016 * (east - west), 0.0016 * (north - south)
    more = "" if aggregate is None else f',"aggregate":{json.dumps(aggregate)}'
    with open(path, "w", encoding="utf-8") as file:
        for q in range(count):
            lon, lat = float(west + (east - west) * x[q]), float(south + (north - south) * y[q])
            box = (max(lon - wide / 2, west), max(lat - high / 2, south),
                   min(lon + wide / 2, east), min(lat + high / 2, north))  # fmt: skip
            file.write(
                f'{{"op":"register","id":"q{q}","shape":{{"type":"rectangle","west":{box[0]!r},'
                f'"south":{box[1]!r},"east":{box[2]!r},"north":{box[3]!r}}}{more}}}\n'
            )


def _config(sizes: Sizes, folder: Path, control: str, retained: int) -> Config:
    return Config.from_dict(
        {
            "space": {"bounds": list(_BOUNDS), "grid": [1000, 1000]},
            "source": {"kind": "files", "path": str(folder / "events")},
            "control": {"path": str(folder / control) if control else ""},
            "engine": {
                "slots": 8, "balance": "history", "epoch_events": sizes.epoch_events,
                "memory": "1g", "lateness": "10s",
            },
            "retention": {"events": retained},
        }
    )  # fmt: skip


def _run(config: Config, out: Path, epochs: int, spark: SparkSession) -> list[Manifest]:
    """The manifests of so many epochs (fewer where the stream is shorter)."""
    seen: list[Manifest] = []
    stream: list[Any] = []

    def epoch(manifest: Manifest) -> None:
        seen.append(manifest)
        if len(seen) == epochs:
            stream[0].stop()

    api.run(config, out, spark=spark, on_epoch=epoch, on_start=stream.append)
    return seen


def _aggregates(
    console: Console, sizes: Sizes, folder: Path, spark: SparkSession
) -> dict[str, Any]:
    """Both ways in turn, so that a noisy moment does not hit one side alone; the best counts."""
    _write_queries(folder / "plain.ndjson", sizes.queries, None)
    _write_queries(folder / "aggregating.ndjson", sizes.queries, _AGGREGATE)
    epochs = sizes.events // sizes.epoch_events
    seconds: dict[str, list[float]] = {"plain": [], "aggregating": []}
    out: dict[str, Any] = {}
    matches: dict[str, int] = {}
    for _ in range(sizes.rounds):
        for kind in seconds:
            console.print(f"[dim]{sizes.queries:,} {kind} queries, {epochs} epochs")
            config = _config(sizes, folder, f"{kind}.ndjson", 0)
            manifests = _run(config, folder / "out", epochs, spark)
            warm = manifests[1:]
            seconds[kind].append((warm[-1]["committed"] - manifests[0]["committed"]) / len(warm))
            matches[kind] = sum(m["matches"] for m in manifests)
            if kind == "aggregating":
                out["windows_closed"] = sum(m["aggregates"] for m in warm) // 4
                out["window_state_mb"] = _window_bytes(folder / "out", manifests[-1]) / 1e6
            shutil.rmtree(folder / "out")
    assert matches["plain"] == matches["aggregating"], f"both must match alike: {matches}"
    plain, aggregating = min(seconds["plain"]), min(seconds["aggregating"])
    return {
        "matches_per_event": matches["plain"] / sizes.events,
        "plain_epoch_seconds": plain,
        "aggregating_epoch_seconds": aggregating,
        "aggregate_overhead": aggregating / plain,
        **out,
    }


def _window_bytes(out: Path, manifest: Manifest) -> int:
    names = {ref[1] for refs in manifest["windows"].values() for ref in refs}
    return sum(Store(str(out)).size(name) for name in names)


def _snapshots(console: Console, sizes: Sizes, folder: Path, spark: SparkSession) -> dict[str, Any]:
    console.print(f"[dim]retaining {sizes.retained:,} events")
    (folder / "none.ndjson").write_text("")
    epochs = sizes.retained // sizes.epoch_events
    out = folder / "retained"
    config = _config(sizes, folder, "none.ndjson", sizes.retained)
    manifests = _run(config, out, epochs, spark)
    held = manifests[-1]["held"]
    rows, size = sum(h[2] for h in held), sum(h[3] for h in held)
    reader = Snapshots(out)
    cities, anywhere = _places(sizes.asked, 3), _uniform(sizes.asked, 4)
    console.print(f"[dim]asking {sizes.asked} times, warm")
    rectangles = [_rectangle(*place) for place in cities]
    functions = {"functions": ["count", "avg(speed)"]}
    asked = [{"shape": shape, "aggregate": functions} for shape in rectangles]
    counted = _milliseconds(lambda k: reader.ask(asked[k]), sizes.asked)
    listed = _milliseconds(lambda k: reader.ask({"shape": rectangles[k]}), sizes.asked)
    near = _milliseconds(lambda k: reader.ask(_nearest(*cities[k])), sizes.asked)
    far = _milliseconds(lambda k: reader.ask(_nearest(*anywhere[k])), sizes.asked)
    answers = [reader.ask(query) for query in asked[:20]]
    console.print("[dim]the same question by a scan of all retained segments with Spark")
    scans = _scans(spark, out, held, rectangles[:20], [int(a.matched) for a in answers])
    both = np.concatenate((counted, listed))
    return {
        "retained_events": rows,
        "retained_segments": len(held),
        "bytes_per_retained_event": size / rows,
        "matched_per_snapshot": float(np.mean([a.matched for a in answers])),
        "segments_read_per_snapshot": float(np.mean([a.segments_read for a in answers])),
        "snapshot_aggregate_p50_ms": float(np.quantile(counted, 0.5)),
        "snapshot_list_p50_ms": float(np.quantile(listed, 0.5)),
        "snapshot_p50_ms": float(np.quantile(both, 0.5)),
        "snapshot_p99_ms": float(np.quantile(both, 0.99)),
        "nearest_p50_ms": float(np.quantile(near, 0.5)),
        "nearest_p99_ms": float(np.quantile(near, 0.99)),
        "nearest_anywhere_p50_ms": float(np.quantile(far, 0.5)),
        "scan_ms": scans,
        "snapshot_vs_scan": scans / float(np.quantile(counted, 0.5)),
    }


def _scans(
    spark: SparkSession, out: Path, held: list[Any], shapes: list[dict[str, Any]],
    expected: list[int],
) -> float:  # fmt: skip
    """The median milliseconds of a warm scan; it must count what the snapshots counted."""
    taken = []
    for shape, count in zip(shapes, expected, strict=True):
        started = time.perf_counter()
        found = scan_retained(spark, store_of(out), [h[0] for h in held], shape)
        taken.append(1000 * (time.perf_counter() - started))
        assert found == count, f"the scan counted {found} events, the snapshot {count}"
    return float(np.median(taken[len(taken) // 4 :]))


def _milliseconds(ask: Callable[[int], Any], count: int) -> npt.NDArray[np.float64]:
    """What each question takes; the first fifth warms up."""
    taken = []
    gc.collect()
    for k in range(count):
        started = time.perf_counter()
        ask(k)
        taken.append(1000 * (time.perf_counter() - started))
    return np.array(taken[count // 5 :])


def _places(count: int, stream: int) -> list[tuple[float, float]]:
    """Places where people are."""
    x, y = Clusters().points(count, stream=stream)
    return _in_degrees(x, y)


def _uniform(count: int, seed: int) -> list[tuple[float, float]]:
    x, y = np.random.default_rng(seed).random((2, count))
    return _in_degrees(x, y)


def _in_degrees(x: Any, y: Any) -> list[tuple[float, float]]:
    west, south, east, north = _BOUNDS
    return [
        (float(west + (east - west) * a), float(south + (north - south) * b))
        for a, b in zip(x, y, strict=True)
    ]


def _rectangle(lon: float, lat: float) -> dict[str, Any]:
    return {
        "type": "rectangle", "west": lon - _CITY[0] / 2, "east": lon + _CITY[0] / 2,
        "south": lat - _CITY[1] / 2, "north": lat + _CITY[1] / 2,
    }  # fmt: skip


def _nearest(lon: float, lat: float) -> dict[str, Any]:
    return {"nearest": {"lon": lon, "lat": lat, "k": 10}}
