"""Making a process ready for epochs: compiled kernels loaded, long-lived objects out of the way."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from geoflux.balance.policy import Decision, Observed, Orders, Policy
from geoflux.balance.requests import Ask, Receiver
from geoflux.balance.tuning import Tuning
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.rooted import Sampling
from geoflux.engine.setting import Setting
from geoflux.engine.sinks import compact
from geoflux.engine.source import RawBatch, Slice
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.plan import GridPlan, HashPlan, Split
from geoflux.state.store import Store

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_FREEZES = 3
_settled = 0


def keep_memory() -> None:
    """Let this process reuse what it has freed. Arrays of some megabytes come and go with every
    piece of work; given back to the system each time, they cost a page fault every 4 KB, and
    workers side by side wait for each other there. At most 256 MB are kept."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, 32 << 20)
        library.mallopt(_TRIM_THRESHOLD, 256 << 20)


def warm_up() -> list[Manifest]:
    """Do a little of everything once, so that all kernels are compiled (or loaded from the cache)
    before any clock runs: a few epochs of the engine in this process, in a folder of their own."""
    done = []
    compact(np.zeros(1, np.int32), 2)  # for layers with more queries than a piece has matches
    for matches in ("rows", "counts"):
        with tempfile.TemporaryDirectory(prefix="geoflux-warm-") as folder:
            config = Config.from_dict(_CONFIG | {"output": {"matches": matches}})
            setting = Setting(config, Store(folder), _SCHEMA, _Control(), _Restless())
            engine = Engine.recovered(setting, lambda: GridPlan.initial(8, 8, 2))
            for epoch in range(_EPOCHS):
                span = (_ROWS * epoch, _ROWS * (epoch + 1))
                done.append(run_epoch(engine, _Events(), epoch, span))
    return [*done, _keyed_epoch()]


def _keyed_epoch() -> Manifest:
    """One of a keyed operator whose rows are followed."""
    operator = WindowedGroupBy("id", "v", rows=4)
    with tempfile.TemporaryDirectory(prefix="geoflux-warm-") as folder:
        setting = KeyedSetting(
            Store(folder), operator, KeyedIntake(operator, "id", "time", "s"),
            sampling=Sampling(0, 0, 4, {"results": (1,)}),
        )  # fmt: skip
        engine = KeyedEngine.recovered(setting, lambda: HashPlan.initial(2, 2))
        return run_epoch(engine, _Events(), 0, (0, _ROWS))


_ROWS, _EPOCHS = 64, 4
_SCHEMA = pa.schema(
    [("id", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("time", pa.int64()),
     ("v", pa.float64())]
)  # fmt: skip
_CONFIG: dict[str, Any] = {
    "space": {"kind": "planar", "bounds": [0, 0, 1, 1], "grid": [8, 8]},
    "source": {"kind": "dataframe", "time_unit": "s"},
    "engine": {"slots": 2, "lateness": "1s"},
    "retention": {"time": "20s"},
    "run": {"mode": "follow"},
}
_FUNCTIONS = ["count", "avg(v)", "stddev(v)", "min(v)", "distinct(id)", "median(v)"]


class _Events:
    """A few events all over the space, ten seconds an epoch."""

    def schema(self) -> pa.Schema:
        return _SCHEMA

    def latest(self, start: int, limit: int | None) -> int:
        return start

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)]

    def span(self, pieces: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        return pieces[0][1], pieces[-1][2]

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        number = np.arange(piece.start, piece.stop)
        place = (number % _ROWS + 0.5) / _ROWS
        seconds = number * 10 // _ROWS
        yield RawBatch(pa.table([number, place, 1 - place, seconds, place], schema=_SCHEMA), number)

    def arrivals(self, start: int, stop: int) -> None:
        return None

    def total(self) -> None:
        return None


class _Control:
    """Queries of every kind, one of which ends."""

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        return {"record": min(after.get("record", 0) + 1, 2)}

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[list[bytes]]:
        if not after:
            yield [json.dumps(record).encode() for record in _registrations()]
        elif upto != after:
            more = [{"op": "terminate", "id": "plain"}, *_snapshots()]
            yield [json.dumps(record).encode() for record in more]


_BOX = {"type": "rectangle", "west": 0.1, "south": 0.1, "east": 0.9, "north": 0.9}


def _snapshots() -> list[dict[str, Any]]:
    functions = {"functions": _FUNCTIONS}
    near = {"x": 0.5, "y": 0.5, "k": 2}
    return [
        {"op": "snapshot", "id": "some", "shape": _BOX, "aggregate": functions},
        {"op": "snapshot", "id": "near", "nearest": near},
    ]


def _registrations() -> list[dict[str, Any]]:
    box = _BOX
    shapes: dict[str, dict[str, Any]] = {
        "plain": {"shape": box},
        "where": {"shape": box, "where": "v > 0.5", "valid_from": 0},
        "circle": {"shape": {"type": "circle", "x": 0.5, "y": 0.5, "radius": 0.3}},
        "window": {"shape": box, "aggregate": {
            "functions": _FUNCTIONS, "window": "10s", "slide": "4s"}},
        "events": {"shape": box, "aggregate": {"functions": _FUNCTIONS, "window": 10}},
    }  # fmt: skip
    return [{"op": "register", "id": name, **more} for name, more in shapes.items()]


class _Restless(Policy):
    """Closes a round in every epoch, asks, and cuts the first partition."""

    tuning = Tuning()

    def orders(self, now: float, state: Mapping[str, Any]) -> Orders:
        return Orders(True, (Ask(0, (Receiver(1, 0.0),)),), (0, 0))

    def decide(
        self, seen: Observed, plan: GridPlan, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        first = plan.partitions[0]
        changes = (Split(first.id, "rows", first.row0 + 4, 0, 1),) if seen.epoch == 0 else ()
        return Decision(changes, "warming up"), state


def settle() -> None:
    """Freeze what the first tasks of a worker have loaded, so that collecting garbage after every
    task stays cheap also in sessions that were not built by geoflux."""
    global _settled
    if _settled < _FREEZES:
        _settled += 1
        gc.collect()
        gc.freeze()
