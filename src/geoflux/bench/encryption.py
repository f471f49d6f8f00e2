"""What encryption costs: the same run in plain and encrypted, side by side.

Twice: in this process, the two runs epoch by epoch in turn, by the processor's time (state at rest
alone: sealed segments, intents, manifests); and by the clock on Spark, each kind of run in sessions
of its own, several times in turn, of which the best counts (all of it: also what is sent and what
Spark has on its disk). Queries come and go in every epoch, events are retained, the plan follows
the load.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from geoflux import api
from geoflux.bench.emulated import EPOCH_SECONDS, Emulation
from geoflux.config import Config
from geoflux.errors import IntegrityError
from geoflux.state.keys import new_key
from geoflux.state.seal import Seal, SealedOutput

_WARM = 2
"""Epochs that are not counted: all queries come with the first."""
_RAW_BYTES = 64 << 20


@dataclass(frozen=True)
class Sizes:
    """How much is run: queries, events and epochs in this process, then the same on Spark, where
    each kind of run is repeated."""

    queries: int
    events: int
    epochs: int
    spark_queries: int
    spark_events: int
    spark_epochs: int
    spark_repeats: int


FULL = Sizes(200_000, 100_000, 24, 100_000, 250_000, 16, 2)
QUICK = Sizes(20_000, 20_000, 8, 20_000, 50_000, 6, 1)


def encryption_slowdown(
    console: Console, folder: Path, quick: bool = False, spark: bool = True
) -> dict[str, Any]:
    """The figures by name. ``encryption_slowdown`` is the time of an epoch that is encrypted over
    that of a plain one: on Spark, or in this process where ``spark`` is false."""
    sizes = QUICK if quick else FULL
    result = {**raw_speed(), **in_process(console, sizes, folder)}
    if spark:
        result |= on_spark(console, sizes, folder)
    whole = result.get("encryption_slowdown_spark", result["encryption_slowdown_state"])
    return {"encryption_slowdown": whole, **result}


def raw_speed() -> dict[str, float]:
    """Gigabytes a second that one core seals and opens."""
    seal, data = Seal.new(bytes(32)), bytes(_RAW_BYTES)
    sealed = seal.sealed("state/bench", data)

    def write() -> None:
        output = SealedOutput(seal, "state/bench", _Nowhere())
        output.write(data)
        output.finish()

    def read() -> None:
        seal.unsealed("state/bench", sealed, "bench")

    return {
        name: _RAW_BYTES / 1e9 / min(_busy(work) for _ in range(5))
        for name, work in (("seal_gb_per_second", write), ("unseal_gb_per_second", read))
    }


class _Nowhere:
    """A sink for bytes that nobody wants."""

    def write(self, data: Any) -> None:
        """Forget them."""


def in_process(console: Console, sizes: Sizes, folder: Path) -> dict[str, float]:
    """State at rest: two runs in this process, one epoch of each in turn."""
    console.print("[dim]encryption: state at rest, plain and encrypted in turn")
    runs = {}
    for kind in ("warm-up", "plain", "sealed"):
        config = _config(folder, kind, sizes.queries, sizes.events, sizes.epochs)
        runs[kind] = Emulation(folder / f"state-{kind}", config)
    runs["warm-up"].run(_WARM)  # kernels are compiled, or loaded
    gc.collect()
    gc.freeze()  # collecting garbage is a part of every epoch, and of none of the figures
    seconds: dict[str, list[float]] = {"plain": [], "sealed": []}
    found: dict[str, list[int]] = {"plain": [], "sealed": []}
    for epoch in range(sizes.epochs):
        order = ("plain", "sealed") if epoch % 2 else ("sealed", "plain")
        for kind in order:
            seconds[kind].append(_busy(runs[kind].step))
            found[kind].append(runs[kind].last["matches"])
    gc.unfreeze()
    _check_same(found)
    pairs = zip(seconds["sealed"][_WARM:], seconds["plain"][_WARM:], strict=True)
    ratios = sorted(sealed / plain for sealed, plain in pairs)
    return {
        "encryption_slowdown_state": median(ratios),
        "encryption_slowdown_state_registering": seconds["sealed"][0] / seconds["plain"][0],
        "encryption_plain_epoch_seconds": median(seconds["plain"][_WARM:]),
    }


def on_spark(console: Console, sizes: Sizes, folder: Path) -> dict[str, float]:
    """All of it: whole runs, each in a session of its own."""
    best: dict[str, float] = {}
    found: dict[str, list[int]] = {"plain": [], "sealed": []}
    for _ in range(sizes.spark_repeats):
        for kind in ("plain", "sealed"):
            console.print(f"[dim]encryption: on Spark, {kind}")
            out = folder / f"spark-{kind}"
            shutil.rmtree(out, ignore_errors=True)
            config = _config(
                folder, kind, sizes.spark_queries, sizes.spark_events, sizes.spark_epochs
            )
            seen: list[dict[str, Any]] = []
            api.run(config, out, on_epoch=seen.append)
            found[kind] = [sum(m["matches"] for m in seen)]
            steps = [m["committed"] - m["opened"] for m in seen[_WARM:]]
            best[kind] = min(median(steps), best.get(kind, median(steps)))
    _check_same(found)
    return {
        "encryption_slowdown_spark": best["sealed"] / best["plain"],
        "encryption_spark_plain_epoch_seconds": best["plain"],
    }


def _config(folder: Path, kind: str, queries: int, events: int, epochs: int) -> Config:
    """The simulator as fast as it goes; its own queries come and go ten a second."""
    key = folder / "bench.key"
    if not key.exists():
        new_key(key)
    return Config.from_dict(
        {
            "simulate": {
                "rate": round(events / EPOCH_SECONDS), "queries": queries, "query_rate": 10,
                "paced": False,
            },
            "engine": {"slots": 2, "epoch_events": events, "balance": "swarm", "memory": "1g",
                       "master": "local[2]"},
            "retention": {"events": 4 * events},
            "output": {"matches": "counts"},
            "run": {"duration": f"{epochs * EPOCH_SECONDS}s"},
            "security": {"encrypt": kind == "sealed", "key_file": str(key)},
        }
    )  # fmt: skip


def _check_same(found: dict[str, list[int]]) -> None:
    if found["plain"] != found["sealed"]:
        raise IntegrityError(
            f"the encrypted run found {sum(found['sealed'])} matches, the plain one "
            f"{sum(found['plain'])}; they must find the same"
        )


def _busy(work: Callable[[], Any]) -> float:
    """Seconds that the processor works on it, whoever else it works for meanwhile."""
    began = time.process_time()
    work()
    return time.process_time() - began
