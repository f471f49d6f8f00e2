"""Records that go through operators in micro-batches, epoch by epoch: what the model of
:mod:`geoflux.scale.epochs` is held against."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geoflux.scale.epochs import Epochs, SlotWork

Floats = npt.NDArray[np.float64]


def simulate_epochs(work: SlotWork, epochs: Epochs, records: int, seed: int) -> tuple[float, float]:
    """Mean time from a record's arrival until its epoch is committed, and mean length of an epoch;
    the first twentieth only fills the line."""
    draw = np.random.default_rng(seed)
    arrivals = np.cumsum(draw.exponential(1 / work.rate, records))
    opened, ends = played(arrivals, work, epochs, draw)
    kept = slice(records // 20, None)
    _, firsts = np.unique(opened[kept], return_index=True)
    lengths = (ends - opened)[kept][firsts]
    return float((ends - arrivals)[kept].mean()), float(lengths.mean())


def simulate_chain(
    works: Sequence[SlotWork], epochs: Epochs, records: int, seed: int
) -> float:  # fmt: skip
    """Mean time through several operators, each with epochs of its own that begin at different
    times; every record goes through all of them."""
    draw = np.random.default_rng(seed)
    first = times = np.cumsum(draw.exponential(1 / works[0].rate, records))
    for place, work in enumerate(works):
        _, times = played(times, work, epochs, draw, 0.37 * place)
    return float((times - first)[records // 20 :].mean())


def played(
    arrivals: Floats, work: SlotWork, epochs: Epochs, draw: np.random.Generator, start: float = 0.0
) -> tuple[Floats, Floats]:
    """When the epoch of every record opened, and when it was committed. Services are exponential,
    or constant where they do not vary."""
    heavy, light = work.shares
    shares = np.array([heavy] + [light] * (work.slots - 1))
    at, now = 0, start
    opened, ends = np.empty(len(arrivals)), np.empty(len(arrivals))
    while at < len(arrivals):
        upto = int(np.searchsorted(arrivals, now, side="right"))
        if upto == at:
            now = float(arrivals[at]) if epochs.trigger == 0 else now + epochs.trigger
            continue
        services = np.full(upto - at, work.service)
        if work.service_scv > 0:
            services = draw.exponential(work.service, upto - at)
        if work.dealt:
            slowest = _dealt(services, work.slots)
        else:
            slots = draw.choice(work.slots, upto - at, p=shares / shares.sum())
            slowest = float(np.bincount(slots, services).max())
        opened[at:upto] = now
        ends[at:upto] = end = now + epochs.overhead + slowest + epochs.commit
        at = upto
        now = max(end, now + epochs.trigger)
    return opened, ends


def _dealt(services: Floats, slots: int) -> float:
    """Whoever is free takes the next."""
    free = [0.0] * slots
    for service in services.tolist():
        heapq.heapreplace(free, free[0] + service)
    return max(free)
