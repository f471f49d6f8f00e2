"""A topology with measured numbers in it: what the model is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from geoflux.scale.measuring import OperatorSums
from geoflux.scale.network import Edge, Network


@dataclass(frozen=True)
class NotReady:
    """Too little was measured yet to say anything, and why: no failure."""

    reason: str


def measured_network(
    topology: Network, sums: Mapping[str, OperatorSums], least_timed: float = 0.0
) -> Network | NotReady:
    """The topology with rates, variabilities and numbers of derived tuples as measured. Where a
    variability or an edge was not measured, what the topology says stays.

    >>> from geoflux.scale.network import Operator
    >>> topology = Network((Operator("a", 1.0, 1.0),))
    >>> measured_network(topology, {})
    NotReady(reason='nothing was measured of a')
    """
    operators = []
    for operator in topology.operators:
        known = sums.get(operator.name)
        if known is None:
            return NotReady(f"nothing was measured of {operator.name}")
        rate = known.service_rate
        if rate is None or known.timed < least_timed:
            return NotReady(f"too few services of {operator.name} were timed")
        operators.append(replace(
            operator, service_rate=rate, arrivals=known.outside,
            service_scv=_or(known.service_scv, operator.service_scv),
            arrival_scv=_or(known.arrival_scv, operator.arrival_scv),
            heaviest=known.heaviest if operator.form == "keyed" else 0.0,
        ))  # fmt: skip
    if not any(operator.arrivals > 0 for operator in operators):
        return NotReady("nothing comes from outside")
    edges = tuple(_edge(edge, topology, sums[edge.source]) for edge in topology.edges)
    return Network(tuple(operators), edges)


def _edge(edge: Edge, topology: Network, sums: OperatorSums) -> Edge:
    if sums.served <= 0 or edge.target not in sums.derived:
        return edge
    mean = sums.derived[edge.target] / sums.served
    variance = None
    if topology.operators[topology.index[edge.source]].everything:
        squares = sums.derived_squares.get(edge.target)
        least = Edge("", "", mean).spread
        variance = None if squares is None else max(squares / sums.served - mean**2, least)
    else:
        mean = min(mean, 1.0)
    return replace(edge, mean=mean, variance=variance)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
