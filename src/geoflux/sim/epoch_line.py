"""Records that go through one operator in micro-batches, epoch by epoch: what the model of
:mod:`geoflux.scale.epochs` is held against."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from geoflux.scale.epochs import Epochs, SlotWork


def simulate_epochs(work: SlotWork, epochs: Epochs, records: int, seed: int) -> tuple[float, float]:
    """Mean time from a record's arrival until its epoch is committed, and mean length of an epoch;
    the first twentieth only fills the line. Services are exponential, or constant where they do not
    vary."""
    draw = np.random.default_rng(seed)
    arrivals = np.cumsum(draw.exponential(1 / work.rate, records))
    heavy, light = work.shares
    shares = np.array([heavy] + [light] * (work.slots - 1))
    at, now, waited, counted = 0, 0.0, 0.0, 0
    lengths = []
    while at < records:
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
        end = now + epochs.overhead + slowest + epochs.commit
        if at > records // 20:
            waited += float((end - arrivals[at:upto]).sum())
            counted += upto - at
            lengths.append(end - now)
        at = upto
        now = max(end, now + epochs.trigger)
    return waited / counted, float(np.mean(lengths))


def _dealt(services: npt.NDArray[np.float64], slots: int) -> float:
    """Whoever is free takes the next."""
    free = [0.0] * slots
    for service in services.tolist():
        heapq.heapreplace(free, free[0] + service)
    return max(free)
