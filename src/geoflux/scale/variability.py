"""How variable the arrivals at each operator are, where services or arrivals are not exponential.

What leaves an operator varies like what comes in when it is idle most of the time, like its
services when it is busy; streams that are split become more like Poisson, and so do streams that
are joined. That is linear in the squared coefficients of variation of the arrivals.

Source: Whitt, The queueing network analyzer (1983), 24 to 45. Random numbers of derived tuples, and
keyed operators as so many single queues, are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geoflux.scale.network import Network

Floats = npt.NDArray[np.float64]
_LEAST_SERVICE_SCV = 0.2
"""Departures of an operator with nearly constant services vary more than its services (QNA 38)."""


def arrival_scvs(network: Network, allocation: Sequence[int]) -> Floats:
    """The squared coefficient of variation of the arrivals at each operator, all streams joined.

    Guarantee: 1 everywhere if everything is exponential and tuples go one way at a time.

    >>> from geoflux.scale.network import Edge, Operator
    >>> network = Network((Operator("a", 2.0, 1.0), Operator("b", 2.0)), (Edge("a", "b", 1.0),))
    >>> arrival_scvs(network, (1, 1)).tolist()
    [1.0, 1.0]
    """
    operators = network.operators
    size = len(operators)
    rates = network.rates
    used = np.array([
        min(rates[i] / (o.service_rate * k), 1.0)
        for i, (o, k) in enumerate(zip(operators, allocation, strict=True))
    ])  # fmt: skip
    constant, slope = _departures(network, allocation, used)
    matrix, right = np.eye(size), np.ones(size)
    for j in range(size):
        if rates[j] <= 0:
            continue
        flows = [(operators[j].arrivals / rates[j], -1, 1.0, 0.0)]
        flows += [
            (edge.mean * rates[i] / rates[j], i, edge.mean, edge.spread / edge.mean)
            for edge in network.edges
            if network.index[edge.target] == j and edge.mean > 0
            for i in (network.index[edge.source],)
        ]
        several = 1 / sum(share**2 for share, *_ in flows)
        weight = 1 / (1 + 4 * (1 - used[j]) ** 2 * (several - 1))
        right[j] = 1 - weight
        for share, source, mean, added in flows:
            if source < 0:
                right[j] += weight * share * operators[j].arrival_scv
            else:
                right[j] += weight * share * (mean * constant[source] + added)
                matrix[j, source] -= weight * share * mean * slope[source]
    return np.maximum(np.linalg.solve(matrix, right), 0.0)


def _departures(
    network: Network, allocation: Sequence[int], used: Floats
) -> tuple[Floats, Floats]:  # fmt: skip
    """Per operator, what leaves it varies by ``constant + slope * (what comes in)``."""
    constant, slope = np.zeros(len(used)), np.zeros(len(used))
    for i, (operator, k) in enumerate(zip(network.operators, allocation, strict=True)):
        services = max(operator.service_scv, _LEAST_SERVICE_SCV) - 1
        if operator.service_scv == 1:
            services = 0.0
        busy = used[i] ** 2
        if operator.form == "keyed":
            # A processor's part of the arrivals is 1 + (c - 1) / k; k such streams are joined.
            slope[i] = (1 - busy) / k
            constant[i] = 1 - (1 - busy) / k + busy * services
        else:
            slope[i] = 1 - busy
            constant[i] = busy + busy / math.sqrt(k) * services
    return constant, slope
