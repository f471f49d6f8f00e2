"""What an allocation comes to: the time at every operator, and the expected total sojourn time.

Equation 4 adds up what all tuples derived from one input spend, each visit counted. Where one tuple
becomes several at once that is more than the time until all of them are done: there
:mod:`geoflux.scale.trees` says how long the whole tree takes.

Source: DRS, equations 1 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from geoflux.errors import ConfigError
from geoflux.scale.forms import Model
from geoflux.scale.network import Network
from geoflux.scale.parts import Part, part_of
from geoflux.scale.trees import completion
from geoflux.scale.variability import arrival_scvs


@dataclass(frozen=True)
class AtOperator:
    """What is predicted of one operator; times in seconds."""

    name: str
    k: int
    rate: float
    visits: float
    utilisation: float
    """Of its busiest processor."""
    arrival_scv: float
    wait: float
    sojourn: float


@dataclass(frozen=True)
class Prediction:
    """What an allocation comes to. ``summed`` is equation 4, ``total`` the time until the whole
    tree of an input is done: the same where tuples go one way at a time. Both are infinite if some
    operator does not keep up."""

    operators: tuple[AtOperator, ...]
    summed: float
    total: float

    @cached_property
    def overrun(self) -> tuple[str, ...]:
        """The operators that do not keep up."""
        return tuple(o.name for o in self.operators if o.utilisation >= 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the record; what is infinite becomes ``None``."""
        return {
            "total": _finite(self.total), "summed": _finite(self.summed),
            "operators": [
                {"name": o.name, "k": o.k, "rate": o.rate, "utilisation": o.utilisation,
                 "sojourn": _finite(o.sojourn)}
                for o in self.operators
            ],
        }  # fmt: skip


def predict(network: Network, allocation: Mapping[str, int], model: Model = "gigk") -> Prediction:
    """The times that an allocation leads to.

    Guarantee: with exponential times and one way at a time it is exact (a Jackson network).

    >>> from geoflux.scale.network import Operator
    >>> predict(Network((Operator("a", 2.0, 1.0),)), {"a": 1}).total
    1.0
    """
    counts = [allocation[o.name] for o in network.operators]
    if min(counts) < 1:
        raise ConfigError(f"{dict(allocation)}: every operator needs at least 1 processor")
    parts = parts_of(network, counts, model)
    found = tuple(
        AtOperator(o.name, p.k, p.rate, p.rate / network.outside, p.utilisation, p.arrival_scv,
                   p.wait + p.behind, p.wait + p.behind + p.service)
        for o, p in zip(network.operators, parts, strict=True)
    )  # fmt: skip
    return Prediction(found, summed_of(network, parts), total_of(network, parts))


def parts_of(network: Network, counts: Sequence[int], model: Model) -> list[Part]:
    """Every operator with so many processors."""
    scvs = [1.0] * len(counts) if model == "mmk" else arrival_scvs(network, counts).tolist()
    return [part_of(network, i, k, (model, scvs[i])) for i, k in enumerate(counts)]


def summed_of(network: Network, parts: Sequence[Part]) -> float:
    """Equation 4."""
    return math.fsum(
        part.rate / network.outside * (part.wait + part.behind + part.service)
        for part in parts
        if part.rate > 0
    )


def total_of(network: Network, parts: Sequence[Part]) -> float:
    """The time until the whole tree of an input is done."""
    summed = summed_of(network, parts)
    if not network.forks or not math.isfinite(summed):
        return summed
    return completion(network, parts, summed)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
