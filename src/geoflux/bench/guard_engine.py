"""What Guard takes of an epoch: receiver, sensors and detector beside the engine's own work.

The slots of a cluster are emulated: an epoch lasts from its opening to its commit, with the busiest
slot in between, as a cluster would have it. Guard is charged with all that it does in the driver,
and with the slowest sensor, whether that slot was the busiest or not.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from geoflux.bench.emulated import EPOCH_SECONDS, Emulation
from geoflux.config import Config


@dataclass(frozen=True)
class Sizes:
    """How much of everything, in an epoch where it says so."""

    queries: int = 1_000_000
    events: int = 300_000
    """Of an epoch."""
    requests: int = 3_000
    """Of an epoch; half of them are terminations."""
    slots: int = 22
    epochs: int = 36
    """Six detection rounds."""


FULL = Sizes()
QUICK = Sizes(queries=50_000, events=20_000, slots=8, epochs=12)
_ROUND = 6
"""Epochs of a detection round; half of what is usual, so that more of them are measured."""
_WARM = 6 * _ROUND
"""Epochs that are not counted: the queries of the start are new for five rounds."""


def guard_share(sizes: Sizes = FULL) -> dict[str, float]:
    """Medians and shares by name; ``guard_share_of_epoch`` is the bar."""
    with tempfile.TemporaryDirectory(prefix="geoflux-guard-") as folder:
        emulation = Emulation(Path(folder), _config(sizes))
        driver = _Timed(emulation)
        epochs = [_measured(emulation, driver) for _ in range(_WARM + sizes.epochs)][_WARM:]
    guard = [epoch["driver"] + epoch["sensor"] for epoch in epochs]
    whole = [epoch["epoch"] for epoch in epochs]
    closing = [epoch["driver"] for epoch in epochs if epoch["closed"]]
    sensing = [epoch["sensor"] for epoch in epochs if epoch["sensor"] > 0]
    return {
        "guard_share_of_epoch": sum(guard) / sum(whole),
        "guard_ms_per_epoch": 1e3 * median(guard),
        "epoch_ms": 1e3 * median(whole),
        "guard_close_ms": 1e3 * median(closing) if closing else 0.0,
        "guard_sensor_ms": 1e3 * median(sensing) if sensing else 0.0,
        "guard_hotspots": float(sum(epoch["hotspots"] for epoch in epochs)),
        "guard_rounds": float(len(closing)),
    }


class _Timed:
    """What the driver of an emulated run takes, by the clock on the wall."""

    def __init__(self, emulation: Emulation) -> None:
        self.seconds = 0.0
        engine: Any = emulation.engine
        engine.open, engine.commit = self._around(engine.open), self._around(engine.commit)

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            started = time.perf_counter()
            result = call(*given)
            self.seconds += time.perf_counter() - started
            return result

        return timed


def _measured(emulation: Emulation, driver: _Timed) -> dict[str, float]:
    driver.seconds = 0.0
    seen = emulation.step()
    guard, slots = emulation.last["guard"], emulation.last["slots"]
    return {
        "epoch": driver.seconds + max(seen.busy), "driver": guard["seconds"],
        "sensor": max(slot["sense_seconds"] for slot in slots), "hotspots": guard["hotspots"],
        "closed": float(guard["closed"] is not None),
    }  # fmt: skip


def _config(sizes: Sizes) -> Config:
    """Hotspots come and go, so that the plan is changed and sensors are asked."""
    whole = (_WARM + sizes.epochs) * EPOCH_SECONDS
    spots = [
        {"at": [0.1 + 0.2 * k, 0.3 + 0.1 * k], "start": 0.5 + 0.1 * k, "stop": 0.65 + 0.1 * k,
         "peak": 0.4, "intensity": "step", "queries": sizes.queries // 50}
        for k in range(4)
    ]  # fmt: skip
    return Config.from_dict(
        {
            "engine": {"slots": sizes.slots, "balance": "swarm"}, "swarm": {"round": "15s"},
            "output": {"matches": "counts"},
            "guard": {"enabled": True, "round": f"{_ROUND * EPOCH_SECONDS:.0f}s"},
            "run": {"mode": "drain", "duration": f"{whole:.0f}s"},
            "simulate": {
                "rate": round(sizes.events / EPOCH_SECONDS), "queries": sizes.queries,
                "query_rate": sizes.requests / 2 / EPOCH_SECONDS, "time_speed": 60.0,
                "hotspots": spots,
            },
        }
    )  # fmt: skip
