"""What each operation of Guard takes: figure 6.23, and the detector with very many users.

Everything is timed on the objects that a run uses: a batch of requests as an epoch brings it, a
partition with as many queries as a slot has, the verdict with features and clusters. Processor
seconds, so that nothing else that runs is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow as pa

from geoflux.bench.figures import Pair, Words, draw_pairs
from geoflux.guard import Found, Guard, GuardTuning, sense

_ROUNDS = 8
_HOTSPOTS = 3
"""Of a detection round: as many as the balancer's rounds allow."""
_TARGETS = 3
_SIDE, _REACH = 1000.0, 50.0


@dataclass(frozen=True)
class Load:
    """Users, how many of them attack, requests of a round, and queries in the hot partition."""

    users: int
    attackers: int
    requests: int
    rows: int


FEW = Load(110, 10, 72_000, 45_000)
MANY = Load(100_000, 100, 400_000, 300_000)


@dataclass(frozen=True)
class Times:
    """Seconds of each operation."""

    receive: float
    """Per request."""
    sense: float
    involve: float
    close: float
    close_worst: float


def measured(load: Load, seed: int = 1) -> Times:
    """Rounds in which attackers go from place to place; observed only, so that they stay."""
    rng = np.random.default_rng(seed)
    guard = Guard(GuardTuning(observe_only=True, judge_early=False))
    names = tuple(f"user-{i}" for i in range(load.users))
    everybody = pa.array(names)
    receive, sensing, involving, closing = [], [], [], []
    for round in range(_ROUNDS):
        who = rng.integers(0, load.users, load.requests)
        op = rng.integers(0, 2, load.requests).astype(np.uint8)
        at = rng.random((2, load.requests)) * _SIDE
        column = everybody.take(pa.array(who))
        now, number = 60.0 * round, round * load.requests
        took = _took(partial(guard.receive, op, column, now, number, at))[0]
        receive.append(took / load.requests)
        for donor in range(_HOTSPOTS):
            west = (round + donor) % _TARGETS * _SIDE / _TARGETS
            box = (west, 0.0, west + _REACH, _REACH)
            found = _partition(names, load, round, west, rng)
            occasion = _HOTSPOTS * round + donor
            took, summary = _took(partial(sense, found, donor, occasion, box=box, round=round))
            sensing.append(took)
            involving.append(_took(partial(guard.sense, summary))[0])
        closing.append(_took(partial(guard.close, now + 60.0, number + load.requests))[0])
    judged = closing[guard.tuning.warm_up_rounds :]
    return Times(median(receive), fmean(sensing), fmean(involving), median(judged), max(judged))


def _partition(
    names: tuple[str, ...], load: Load, round: int, west: float, rng: np.random.Generator
) -> Found:  # fmt: skip
    """A quarter of the rows are recent ones of attackers."""
    user = rng.integers(0, load.users, load.rows)
    user[: load.rows // 4] = rng.integers(0, load.attackers, load.rows // 4)
    ages = rng.integers(0, 12, load.rows)
    ages[: load.rows // 4] %= 2
    x, y = rng.random((2, load.rows)) * _REACH
    return Found(names, user, round - ages, x + west, y)


def _took(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def overheads(figures: Path, quick: bool) -> dict[str, float]:
    """The figures by name; draws figure 6.23."""
    few = measured(FEW)
    many = measured(Load(10_000, 100, 40_000, 30_000) if quick else MANY)
    words = Words(
        "What Guard's operations take (figure 6.23)", "microseconds", "",
        "means; requests are taken in by the batch, 110 users, a partition of 45,000 queries",
    )  # fmt: skip
    pairs = [
        Pair("take in a request", few.receive * 1e6, 4.0),
        Pair("sense a hotspot, in the slot", few.sense * 1e6, 1600.0),
        Pair("update features with it", few.involve * 1e6, 278.0),
        Pair("judge a round", few.close * 1e6, 667.0),
    ]
    draw_pairs(figures / "figure-6-23.svg", words, pairs)
    return {
        "receive_us_per_request": few.receive * 1e6, "sense_us_per_hotspot": few.sense * 1e6,
        "involve_us_per_hotspot": few.involve * 1e6, "detector_ms_110_users": few.close * 1e3,
        "detector_seconds_100k_users": many.close_worst,
    }  # fmt: skip
