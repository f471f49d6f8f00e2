"""How good the allocations of DRS are, and how long it takes to find them. No Spark.

The greedy is held against all allocations of as many processors; times are those of table II.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from statistics import median

import numpy as np

from geoflux.bench.drs_networks import as_stations, random_network
from geoflux.bench.drs_sizes import ModelSizes
from geoflux.scale.allocation import Wanted, assign
from geoflux.scale.curves import curve_of
from geoflux.scale.greedy import fewest_of
from geoflux.scale.measuring import InputWindow, SlotWindow, aggregated
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.observing import measured_network
from geoflux.scale.smoothing import Smoothed, Smoothing
from geoflux.scale.sojourn import predict
from geoflux.sim.queue_network import simulate_network

_CHAIN = Network(
    (Operator("extract", 2.0, 13.0), Operator("match", 1.5), Operator("gather", 30.0)),
    (Edge("extract", "match", 1.0), Edge("match", "gather", 0.5)),
)
"""The first application of the paper."""
TABLE_II = (12, 24, 48, 96, 192, 1000)
"""Numbers of processors: those of the paper's table, and many more."""


def greedy_optimal(sizes: ModelSizes, spare: int = 6) -> dict[str, float]:
    """On how many random networks with loops the greedy is as good as the best of all allocations,
    for every number of processors up to ``spare`` more than it takes."""
    good = tried = 0
    for seed in range(sizes.networks):
        network, _ = random_network("mmk", seed, most_processors=4)
        weights = network.visits
        times, least = [], []
        for operator, rate in zip(network.operators, network.rates, strict=True):
            curve = curve_of(operator, float(rate))
            least.append(curve.k)
            row = [curve.time]
            for _ in range(spare):
                curve.add()
                row.append(curve.time)
            times.append(row)
        table = np.array(times) * weights[:, None]
        for more in range(spare + 1):
            best = _best_of_all(table, more)
            found = assign(network, sum(least) + more, Wanted("mmk"))
            tried += 1
            good += found.processors == sum(least) + more and (
                found.prediction.total <= best * (1 + 1e-12)
            )
    return {"greedy_is_optimal": good / tried, "greedy_networks": sizes.networks}


def _best_of_all(table: np.ndarray, more: int) -> float:
    """The least sum over all ways to hand ``more`` processors to the rows."""
    size = len(table)
    ways = itertools.combinations(range(more + size - 1), size - 1)
    bars = np.array(list(ways), np.int64).reshape(-1, size - 1)
    edges = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), more + size - 1)])
    given = np.diff(edges, axis=1) - 1
    return float(table[np.arange(size), given].sum(axis=1).min())


def fork_allocations(sizes: ModelSizes, spare: int = 4) -> dict[str, float]:
    """Where tuples fork, the greedy is no longer exact: by how much its tree takes longer than that
    of the best allocation, on average and at most, by the model."""
    gaps: list[float] = []
    for seed in range(10_000):
        network, _ = random_network("forks", seed, most_processors=3)
        size = len(network.operators)
        if not network.forks or size > 4:
            continue
        least = fewest_of(network)
        ways = itertools.product(range(spare + 1), repeat=size)
        counts = (np.add(least, more).tolist() for more in ways if sum(more) == spare)
        best = min(
            predict(network, dict(zip(network.index, each, strict=True))).total for each in counts
        )
        gaps.append(assign(network, sum(least) + spare).prediction.total / best - 1)
        if len(gaps) == max(sizes.simulated // 2, 3):
            break
    return {"forks_greedy_gap": float(np.mean(gaps)), "forks_greedy_gap_max": max(gaps)}


def recommended(sizes: ModelSizes, processors: int = 22) -> dict[str, float]:
    """The paper's two applications (a chain, and one with a loop), simulated with the recommended
    allocation and with its neighbours: the best time over that of the recommended one, and how well
    predicted and simulated times go together in rank."""
    loop = Network(
        (Operator("generate", 80.0, 320.0), Operator("detect", 60.0), Operator("report", 90.0)),
        (Edge("generate", "detect", 1.0), Edge("detect", "detect", 0.45),
         Edge("detect", "report", 0.2)),
    )  # fmt: skip
    best, ranks = [], []
    for network in (_CHAIN, loop):
        chosen = tuple(assign(network, processors).counts.values())
        predicted, simulated = [], []
        for counts in _around(network, chosen):
            allocation = dict(zip(network.index, counts, strict=True))
            predicted.append(predict(network, allocation).total)
            stations = as_stations(network, allocation)
            simulated.append(simulate_network(stations, sizes.trees, 3).completion)
        best.append(min(simulated) / simulated[0])
        ranks.append(rank_correlation(predicted, simulated))
    return {"simulated_recommended_is_best": min(best), "simulated_rank_correlation": min(ranks)}


def _around(network: Network, chosen: tuple[int, ...], most: int = 8) -> list[tuple[int, ...]]:
    """The chosen allocation first, then its nearest neighbours that keep up."""
    ways = itertools.product(range(1, sum(chosen)), repeat=len(chosen))
    least = fewest_of(network)
    others = [
        counts
        for counts in ways
        if sum(counts) == sum(chosen) and all(k >= n for k, n in zip(counts, least, strict=True))
    ]
    others.sort(key=lambda counts: sum(abs(a - b) for a, b in zip(counts, chosen, strict=True)))
    return others[:most]


def rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Spearman's: how well the order of two rows of values agrees.

    >>> round(rank_correlation([1.0, 2.0, 9.0], [3.0, 5.0, 6.0]), 6)
    1.0
    """
    first, second = (np.argsort(np.argsort(values)) for values in (ours, theirs))
    return float(np.corrcoef(first, second)[0, 1])


def allocate_times(repeats: int = 9) -> dict[str, float]:
    """Milliseconds of processor time to find the best allocation of K processors for the first
    application of the paper, as its table II; its load grows with K."""
    out = {}
    for processors in TABLE_II:
        network = _CHAIN.at_rate(processors / 25)
        taken = []
        for _ in range(repeats):
            started = time.process_time()
            assign(network, processors)
            taken.append(time.process_time() - started)
        out[f"allocate_ms_k{processors}"] = median(taken) * 1e3
    return out


def measure_times(repeats: int = 9) -> dict[str, float]:
    """Milliseconds of processor time to make a network out of the reports of so many slots,
    smoothed, as table II."""
    out = {}
    for slots in TABLE_II:
        windows = [
            SlotWindow(name, slot, 10.0, 100, 100, 8.0, 1.3, 100, {"match": 100, "gather": 50})
            for slot in range(slots // 3 + 1)
            for name in _CHAIN.index
        ][:slots]
        inputs = [InputWindow("extract", 10.0, 130, 130, 10.0, 1.6)]
        known = Smoothed(Smoothing())
        taken = []
        for _ in range(repeats):
            started = time.process_time()
            known = known.after(aggregated(windows, inputs))
            measured_network(_CHAIN, known.now)
            taken.append(time.process_time() - started)
        out[f"measure_ms_k{slots}"] = median(taken) * 1e3
    return out
