"""Real positions in `geoflux bench swarm`: as they are, and with a hotspot that appears at once.

The hotspot is made as in the document: two fifths of the positions are redirected into a square in
the lower left, and its queries come within one minute.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.bench import swarm_scenarios as scenes
from geoflux.bench.emulated import EPOCH_SECONDS, Seen, attainable, capability, latency_ratio
from geoflux.bench.swarm_bench import COLOURS, Bench, table_of
from geoflux.config import Config

_BOUNDS = [-123.2, 37.0, -121.2, 38.5]
_SIDE, _PEAK = 0.15, 0.4
_FIRST, _LAST = 0.25, 0.85
"""When the hotspot begins and ends, as a share of the run."""
_BURST = round(60 / EPOCH_SECONDS)
"""Epochs in which the hotspot's queries come."""
_DAY = 86_400_000
"""Milliseconds. The taxis of all days drive on one, as one large fleet, and a run is half of it: an
epoch is five minutes."""
_APART = 0.0005
"""Where that is too little, positions stand for several taxis, some 50 metres apart."""
_REACH = 0.0008
"""Half a side of a query, as a share of the area's."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Taxis:
    """A scenario on disk."""

    events: Path
    queries: Floats
    spot_queries: Floats


def measure_taxis(bench: Bench, data: Path) -> None:
    """``data`` is a Parquet file with ``ts``, ``lon``, ``lat``, in the order of time."""
    table = table_of(
        "22 slots, real taxis: thousand events a second", "scenario", *list(COLOURS)[1:],
        "swarm / history", "attainable",
    )  # fmt: skip
    epochs, folder = bench.sizes.epochs, bench.folder / "taxis"
    folder.mkdir()
    for name, hot in (("taxi", False), ("taxi_step", True)):
        scenario = _written(bench, data, folder / f"{name}.parquet", hot)
        later = slice(round(_FIRST * epochs), round(_LAST * epochs) if hot else None)
        runs = {
            strategy: _run(bench, f"{name}, {strategy}", strategy, scenario)[later]
            for strategy in list(COLOURS)[1:]
        }
        history = runs["history"]
        for strategy, prefix in (("swarm", ""), ("published", "published_")):
            ratio = capability(runs[strategy]) / capability(history)
            bench.result[f"{prefix}{name}_units_of_work_vs_history"] = ratio
        bench.result[f"{name}_latency_vs_history"] = latency_ratio(history, runs["swarm"])
        best = capability(attainable(history)) / capability(history)
        bench.result[f"{name}_attainable_vs_history"] = best
        rates = [f"{capability(seen) / 1000:,.0f}" for seen in runs.values()]
        ratio = bench.result[f"{name}_units_of_work_vs_history"]
        table.add_row(name, *rates, f"{ratio:.2f}", f"{best:.2f}")
    bench.console.print(table)


def _written(bench: Bench, data: Path, path: Path, hot: bool) -> _Taxis:
    """The positions that a run takes, and the queries: where taxis were in the beginning, and,
    with a hotspot, as many in its square."""
    sizes, draw = bench.sizes, np.random.default_rng(5)
    west, south, east, north = _BOUNDS
    events = sizes.taxi_events * sizes.epochs
    x, y, time = _on_one_day(data, events)
    x += _APART * draw.standard_normal(x.size)
    y += _APART * draw.standard_normal(y.size)
    inside = np.flatnonzero((x > west) & (x < east) & (y > south) & (y < north))
    early = inside[inside < x.size // 5]
    at = draw.choice(early, sizes.taxi_queries)
    spread = 4 * _REACH * draw.standard_normal((2, at.size))
    centres = np.array([x[at] + (east - west) * spread[0], y[at] + (north - south) * spread[1]])
    spot = np.empty((2, 0))
    if hot:
        steps = np.arange(x.size) / events
        moved = (steps >= _FIRST) & (steps < _LAST) & (draw.random(x.size) < _PEAK)
        x[moved], y[moved] = _in_square(draw, int(moved.sum()))
        spot = _in_square(draw, sizes.taxi_queries)
    written = pa.table({"ts": pa.array(time, pa.timestamp("ms", "UTC")), "lon": x, "lat": y})
    pq.write_table(written, path, row_group_size=sizes.taxi_events)
    return _Taxis(path, centres, spot)


def _on_one_day(data: Path, events: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """So many positions with their times, in the order of time."""
    table = pq.read_table(data, columns=["ts", "lon", "lat"])
    stamps = table.column("ts").cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
    times = stamps[0] + (stamps - stamps[0]) % _DAY
    order = np.argsort(times, kind="stable")
    order = order[: np.searchsorted(times[order], stamps[0] + _DAY // 2)]
    order = np.repeat(order, -(-events // order.size))
    order = order[np.linspace(0, order.size - 1, events).astype(np.int64)]
    return (
        table.column("lon").to_numpy()[order],
        table.column("lat").to_numpy()[order],
        times[order],
    )


def _in_square(draw: np.random.Generator, count: int) -> Floats:
    west, south, east, north = _BOUNDS
    left, low = scenes.LOWER_LEFT
    x = west + (east - west) * (left + _SIDE * draw.random(count))
    y = south + (north - south) * (low + _SIDE * draw.random(count))
    return np.array([x, y])


def _run(bench: Bench, label: str, strategy: str, taxis: _Taxis) -> list[Seen]:
    """A run, during which the queries of the hotspot are dropped into the folder of control."""
    control = bench.folder / "taxis" / "control"
    shutil.rmtree(control, ignore_errors=True)
    control.mkdir()
    _write_queries(control / "a.parquet", taxis.queries, "t")
    emulation = bench.emulated(label, _config(bench, strategy, taxis.events, control))
    epochs = bench.sizes.epochs
    seen = emulation.run(round(_FIRST * epochs))
    if taxis.spot_queries.size:
        for step, part in enumerate(np.array_split(taxis.spot_queries, _BURST, axis=1)):
            _write_queries(control / f"b{step:03d}.parquet", part, f"h{step}-")
            seen += emulation.run(1)
    return seen + emulation.run(epochs - len(seen))


def _config(bench: Bench, strategy: str, events: Path, control: Path) -> Config:
    chosen = scenes.STRATEGIES[strategy]
    return Config.from_dict(
        {
            "space": {"bounds": _BOUNDS, "grid": [1000, 1000]},
            "source": {"kind": "files", "path": str(events), "id": "@position", "time": "ts"},
            "control": {"path": str(control)},
            "engine": {
                "slots": scenes.SLOTS, "epoch_events": bench.sizes.taxi_events, **chosen["engine"],
            },
            "swarm": chosen.get("swarm", {}),
            "output": {"matches": "counts"},
        }
    )  # fmt: skip


def _write_queries(path: Path, centres: Floats, prefix: str) -> None:
    west, south, east, north = _BOUNDS
    x, y = centres
    wide, high, count = _REACH * (east - west), _REACH * (north - south), x.size
    shape = pa.StructArray.from_arrays(
        [pa.array(["rectangle"] * count), pa.array(np.maximum(x - wide, west)),
         pa.array(np.maximum(y - high, south)), pa.array(np.minimum(x + wide, east)),
         pa.array(np.minimum(y + high, north))],
        names=["type", "west", "south", "east", "north"],
    )  # fmt: skip
    ids = pa.array([f"{prefix}{i}" for i in range(count)])
    table = pa.table({"op": ["register"] * count, "id": ids, "shape": shape})
    pq.write_table(table, path.with_name(f".{path.name}"))
    path.with_name(f".{path.name}").rename(path)
