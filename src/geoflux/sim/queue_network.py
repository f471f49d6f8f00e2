"""Open queueing networks, event by event: what predictions of sojourn times are held against.

Tuples come from outside, wait in an operator's shared queue (or in the queue of the processor that
their key belongs to), are served, and give rise to further tuples; the tree that began with one
tuple from outside is complete when nothing of it is left. Everything comes from one seed.

Times are gamma distributed where they vary less than exponential ones, two-phase hyperexponential
with balanced means where they vary more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from geoflux.sim.queue_kernel import run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Station:
    """An operator with its processors: what each serves a second, in which form tuples wait.
    ``shares`` are those of the processors of a keyed one; none: equal."""

    rates: tuple[float, ...]
    service_scv: float = 1.0
    keyed: bool = False
    shares: tuple[float, ...] = ()
    arrivals: float = 0.0
    """From outside, a second."""
    arrival_scv: float = 1.0
    everything: bool = False
    """Whether a tuple gives rise to what all edges say, or goes along one of them."""
    fastest_first: bool = False
    """Of several free processors the fastest is taken, not any."""


@dataclass(frozen=True)
class Stations:
    """A network: stations, and edges as source, target and mean number of derived tuples."""

    stations: tuple[Station, ...]
    edges: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True)
class Simulated:
    """What came out. ``completion`` is the mean time until a whole tree is done, ``summed`` the
    mean of what all its tuples spent, ``error`` the standard error of the first; per station the
    mean time spent there."""

    completion: float
    summed: float
    error: float
    sojourns: Floats
    trees: int = field(default=0)


def simulate_network(network: Stations, trees: int, seed: int) -> Simulated:
    """Let ``trees`` tuples come from outside; a tenth at the start and some at the end only keep
    the others company."""
    stations = network.stations
    most = max(len(s.rates) for s in stations)
    rates = np.zeros((len(stations), most))
    cumulated = np.ones((len(stations), most))
    for i, s in enumerate(stations):
        rates[i, : len(s.rates)] = s.rates
        shares = s.shares or (1 / len(s.rates),) * len(s.rates)
        cumulated[i, : len(s.rates)] = np.cumsum(shares)
        cumulated[i, len(s.rates) - 1 :] = 1.0
    edges = sorted(network.edges)
    first = np.searchsorted([e[0] for e in edges], np.arange(len(stations) + 1)).astype(np.int64)
    flags = np.array([[s.keyed, s.everything, s.fastest_first] for s in stations], np.bool_)
    numbers = np.array([[s.arrivals, s.arrival_scv, s.service_scv] for s in stations])
    counts = np.array([len(s.rates) for s in stations], np.int64)
    targets = np.array([e[1] for e in edges], np.int64)
    means = np.array([e[2] for e in edges], np.float64)
    began, ended, summed, spent, visits = run(
        (counts, rates, cumulated),
        (flags, numbers),
        (first, targets, means),
        trees,
        np.random.default_rng(seed),
    )
    kept = slice(trees // 10, trees - trees // 50)
    whole = (ended - began)[kept]
    return Simulated(
        float(whole.mean()), float(summed[kept].mean()), _error_of_mean(whole),
        spent / np.maximum(visits, 1), len(whole),
    )  # fmt: skip


def _error_of_mean(values: Floats, batches: int = 32) -> float:
    """By batch means: neighbours in time are alike."""
    size = len(values) // batches
    means: Sequence[float] = values[: size * batches].reshape(batches, size).mean(axis=1)
    return float(np.std(means, ddof=1) / np.sqrt(batches))
