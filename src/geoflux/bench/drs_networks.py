"""Random queueing networks with loops, splits and joins, each with an allocation that keeps up."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from geoflux.scale.network import Edge, Form, Network, Operator
from geoflux.sim.queue_network import Station, Stations

Kind = Literal["mmk", "gigk", "forks"]
_MOST_USED = 0.85
_SCVS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


def random_network(
    kind: Kind, seed: int, most_processors: int = 8
) -> tuple[Network, dict[str, int]]:  # fmt: skip
    """Two to six operators; ``mmk``: exponential times and one way at a time, ``gigk``: other
    times, ``forks``: exponential times, and tuples that become several.

    >>> network, allocation = random_network("mmk", 1)
    >>> network.forks, len(allocation) == len(network.operators)
    (False, True)
    """
    draw = np.random.default_rng((seed, {"mmk": 0, "gigk": 1, "forks": 2}[kind]))
    size = int(draw.integers(2, 7))
    names = [f"op{i}" for i in range(size)]
    splitting = [kind == "forks" and bool(draw.random() < 0.6) for _ in names]
    splitting[0] = kind == "forks"
    edges = _edges(draw, names, splitting)
    entries = {0, int(draw.integers(size))} if draw.random() < 0.3 else {0}
    operators = tuple(
        Operator(
            name, 1.0, float(draw.uniform(0.5, 2.0)) if i in entries else 0.0,
            _scv(draw, kind), _scv(draw, kind), _form(draw, kind), everything=splitting[i],
        )
        for i, name in enumerate(names)
    )  # fmt: skip
    network = Network(operators, edges)
    counts = {name: int(draw.integers(1, most_processors + 1)) for name in names}
    used = draw.uniform(0.3, _MOST_USED, size)
    served = tuple(
        replace(o, service_rate=float(max(rate, 0.01) / (counts[o.name] * used[i])))
        for i, (o, rate) in enumerate(zip(operators, network.rates, strict=True))
    )
    return Network(served, edges), counts


def _edges(
    draw: np.random.Generator, names: list[str], splitting: list[bool]
) -> tuple[Edge, ...]:  # fmt: skip
    """A way from the first operator to all others, more ways at random, some of them back."""
    size = len(names)
    means = np.zeros((size, size))
    for j in range(1, size):
        means[draw.integers(j), j] = draw.uniform(0.3, 1.0)
    for _ in range(int(draw.integers(0, size + 1))):
        i, j = draw.integers(size, size=2)
        means[i, j] = draw.uniform(0.05, 0.4)
    for i in range(size):
        if splitting[i]:
            for j in range(i + 1, size):
                if means[i, j] > 0 and draw.random() < 0.7:
                    means[i, j] = draw.choice([1.0, 1.0, 2.0, 2.5])
        elif means[i].sum() > 0:
            means[i] *= min(draw.uniform(0.5, 1.0) / means[i].sum(), 1.0)
    # Loops must die out: what goes back is lessened until they do.
    while np.abs(np.linalg.eigvals(means)).max() > 0.7:
        means[np.tril_indices(size)] *= 0.7
    return tuple(
        Edge(names[i], names[j], float(means[i, j]))
        for i in range(size)
        for j in range(size)
        if means[i, j] > 0
    )


def _scv(draw: np.random.Generator, kind: Kind) -> float:
    return float(draw.choice(_SCVS)) if kind == "gigk" else 1.0


def _form(draw: np.random.Generator, kind: Kind) -> Form:
    return "keyed" if draw.random() < 0.25 else "shared"


def as_stations(network: Network, allocation: dict[str, int]) -> Stations:
    """The same network for the simulator."""
    return Stations(
        tuple(
            Station(
                (o.service_rate,) * allocation[o.name], o.service_scv, o.form == "keyed",
                arrivals=o.arrivals, arrival_scv=o.arrival_scv, everything=o.everything,
            )
            for o in network.operators
        ),
        tuple((network.index[e.source], network.index[e.target], e.mean) for e in network.edges),
    )  # fmt: skip
