"""An application as queues: operators, what comes from outside, and what derives from what.

Splits, joins and loops are edges. An edge says how many tuples for its target come out of one tuple
that its source has processed, on average: a filter 0.2, a loop that is left three times out of four
0.25, a frame with 40 features 40.

Source: DRS III-A.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from geoflux.errors import ConfigError
from geoflux.scale.epochs import Epochs
from geoflux.scale.traffic import solved

Form = Literal["shared", "keyed"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Operator:
    """An operator: what one processor of it does, and how tuples wait for it.

    ``shared``: one queue for all processors (M/M/k). ``keyed``: each tuple waits for the processor
    that its key belongs to (k times M/M/1).
    """

    name: str
    service_rate: float
    """Tuples that one processor serves a second while it is busy; above 0."""
    arrivals: float = 0.0
    """Tuples a second from outside."""
    arrival_scv: float = 1.0
    """Squared coefficient of variation of the times between those."""
    service_scv: float = 1.0
    """The same of service times."""
    form: Form = "shared"
    heaviest: float = 0.0
    """Of a keyed one: the share of its input that cannot be divided (the heaviest key), 0 to 1; the
    rest is spread evenly."""
    everything: bool = False
    """Whether a processed tuple gives rise to what all edges say at once (a split), or goes along
    one of them (their means are chances then)."""
    speeds: tuple[float, ...] = ()
    """Speeds of its processors relative to ``service_rate``, in the order in which it gets them;
    those beyond have speed 1."""
    epochs: Epochs | None = None
    """How it makes micro-batches; ``None``: tuples are served as they come."""

    def rates(self, k: int) -> tuple[float, ...]:
        """What each of its first ``k`` processors serves a second."""
        speeds = self.speeds[:k] + (1.0,) * (k - len(self.speeds))
        return tuple(self.service_rate * speed for speed in speeds)


@dataclass(frozen=True)
class Edge:
    """``mean`` tuples for ``target`` out of one that ``source`` processed; ``variance`` of their
    number, ``None``: as little as the mean allows."""

    source: str
    target: str
    mean: float
    variance: float | None = None

    @property
    def spread(self) -> float:
        """The variance of the number of derived tuples.

        >>> Edge("a", "b", 0.25).spread, Edge("a", "b", 3.0).spread
        (0.1875, 0.0)
        """
        part = self.mean % 1.0
        return part * (1 - part) if self.variance is None else self.variance


@dataclass(frozen=True)
class Network:
    """Operators and edges; checked when it is made.

    >>> loop = Network(
    ...     (Operator("generate", 10.0, arrivals=3.0), Operator("detect", 20.0)),
    ...     (Edge("generate", "detect", 1.0), Edge("detect", "detect", 0.25)),
    ... )
    >>> loop.rates.tolist(), loop.visits.round(4).tolist()
    ([3.0, 4.0], [1.0, 1.3333])
    """

    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        problems = [p for o in self.operators for p in _problems(o)]
        names = [o.name for o in self.operators]
        problems += [f"operator {n!r} is there twice" for n in set(names) if names.count(n) > 1]
        for edge in self.edges:
            problems += _edge_problems(edge, names)
        pairs = [(e.source, e.target) for e in self.edges]
        problems += [
            f"edge {s} -> {t} is there twice" for s, t in {*pairs} if pairs.count((s, t)) > 1
        ]
        if not any(o.arrivals > 0 for o in self.operators):
            problems.append("nothing comes from outside: some operator needs arrivals above 0")
        for operator in self.operators:
            total = sum(e.mean for e in self.edges if e.source == operator.name)
            if not operator.everything and total > 1 + 1e-9:
                problems.append(
                    f"operator {operator.name!r} sends each tuple one way, but the chances of its "
                    f"edges add up to {total:g}: at most 1, or everything = true"
                )
        if problems:
            raise ConfigError.of(problems)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Where each operator stands."""
        return {operator.name: i for i, operator in enumerate(self.operators)}

    @cached_property
    def derived(self) -> Floats:
        """``[i, j]``: mean number of tuples for j out of one that i processed."""
        out = np.zeros((len(self.operators), len(self.operators)))
        for edge in self.edges:
            out[self.index[edge.source], self.index[edge.target]] = edge.mean
        return out

    @cached_property
    def rates(self) -> Floats:
        """Tuples a second at each operator: the traffic equations, for any topology."""
        outside = np.array([o.arrivals for o in self.operators])
        return solved(tuple(o.name for o in self.operators), self.derived, outside)

    @property
    def outside(self) -> float:
        """Tuples a second from outside, all together."""
        return sum(o.arrivals for o in self.operators)

    @property
    def visits(self) -> Floats:
        """Tuples at each operator per tuple from outside."""
        return self.rates / self.outside

    @property
    def forks(self) -> bool:
        """Whether one tuple may become several."""
        for operator in self.operators:
            ways = [e.mean for e in self.edges if e.source == operator.name and e.mean > 0]
            if operator.everything and (len(ways) > 1 or any(mean > 1 for mean in ways)):
                return True
        return False

    def at_rate(self, factor: float) -> Network:
        """The same with so many times as much from outside."""
        more = (replace(o, arrivals=o.arrivals * factor) for o in self.operators)
        return replace(self, operators=tuple(more))


def _problems(o: Operator) -> list[str]:
    return [
        f"{name} = {getattr(o, name)!r} of operator {o.name!r}: expected {expected}"
        for name, good, expected in (
            ("service_rate", 0 < o.service_rate < np.inf, "more than 0"),
            ("arrivals", 0 <= o.arrivals < np.inf, "at least 0"),
            ("arrival_scv", 0 <= o.arrival_scv < np.inf, "at least 0"),
            ("service_scv", 0 <= o.service_scv < np.inf, "at least 0"),
            ("form", o.form in ("shared", "keyed"), "shared or keyed"),
            ("heaviest", 0 <= o.heaviest <= 1, "0 to 1"),
            ("speeds", all(speed > 0 for speed in o.speeds), "all above 0"),
            ("speeds", not o.speeds or o.epochs is None, "none together with micro-batches"),
            ("epochs", o.epochs is None or min(vars(o.epochs).values()) >= 0, "times from 0 on"),
        )
        if not good
    ]


def _edge_problems(edge: Edge, names: list[str]) -> list[str]:
    told = f"edge {edge.source} -> {edge.target}"
    problems = [
        f"{told}: no operator {name!r}; there are {', '.join(names)}"
        for name in (edge.source, edge.target)
        if name not in names
    ]
    if not 0 <= edge.mean < np.inf:
        problems.append(f"{told}: mean = {edge.mean!r}, expected at least 0")
    elif edge.variance is not None and edge.variance < Edge("", "", edge.mean).spread - 1e-9:
        problems.append(
            f"{told}: variance = {edge.variance!r}, but whole numbers of mean {edge.mean:g} vary "
            f"by {Edge('', '', edge.mean).spread:g} at least"
        )
    return problems
