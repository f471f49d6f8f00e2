"""What is common to all forms of an operator: models, shares, and the fewest processors."""

from __future__ import annotations

import math
from typing import Literal

from geoflux.scale.erlang import enough_for
from geoflux.scale.network import Operator
from geoflux.scale.waiting import equation_5, whitt

Model = Literal["mmk", "gigk", "whitt"]
"""Exponential times; equation 5; equation 5 with Whitt's refinement."""


def lengthened(model: Model, scvs: tuple[float, float], k: int, utilisation: float) -> float:
    """By what the waiting time of M/M/k is multiplied where arrivals and services vary so.

    >>> lengthened("mmk", (4.0, 0.0), 2, 0.5), lengthened("gigk", (4.0, 0.0), 2, 0.5)
    (1.0, 2.0)
    """
    if model == "mmk":
        return 1.0
    return equation_5(*scvs) if model == "gigk" else whitt(*scvs, k, utilisation)


def one_processor(operator: Operator, rate: float, model: Model, arrival_scv: float) -> float:
    """Mean sojourn time at one processor that gets ``rate`` tuples a second, in seconds."""
    load = rate / operator.service_rate
    if load >= 1:
        return math.inf
    factor = lengthened(model, (arrival_scv, operator.service_scv), 1, load)
    return (factor * load / (1 - load) + 1) / operator.service_rate


def shares_of(operator: Operator, k: int) -> tuple[float, float]:
    """The share of the busiest of ``k`` processors of a keyed operator, and that of any other.

    >>> shares_of(Operator("a", 1.0, form="keyed", heaviest=0.2), 4)
    (0.4, 0.2)
    """
    light = (1 - operator.heaviest) / k
    return operator.heaviest + light, light


def fewest_processors(operator: Operator, rate: float) -> int:
    """The fewest processors with which an operator keeps up, if any number does.

    >>> fewest_processors(Operator("a", 1.0), 2.5)
    3
    >>> fewest_processors(Operator("a", 1.0, speeds=(2.0, 2.0)), 2.5)
    2
    """
    if not operator.speeds:
        if operator.form == "keyed":
            return fewest_keyed(operator, rate)
        return enough_for(rate / operator.service_rate)
    known = len(operator.speeds)
    for k in range(1, known + 1):
        if _keep_up(operator, rate, k):
            return k
    if operator.form == "shared":
        beyond = rate / operator.service_rate - sum(operator.speeds)
        return known + enough_for(beyond)
    slowest = min(operator.service_rate, *operator.rates(known))
    spread, left = rate * (1 - operator.heaviest), operator.rates(1)[0] - rate * operator.heaviest
    needed = max(spread / slowest, spread / left if left > 0 else 0.0)
    return max(known, math.floor(needed)) + 1


def _keep_up(operator: Operator, rate: float, k: int) -> bool:
    rates = operator.rates(k)
    if operator.form == "shared":
        return sum(rates) > rate
    heavy, light = shares_of(operator, k)
    return rates[0] > heavy * rate and all(r > light * rate for r in rates[1:])


def fewest_keyed(operator: Operator, rate: float) -> int:
    """The fewest processors of which none is overrun; the heaviest key may make it impossible: then
    so many as the rest needs."""
    left = operator.service_rate - rate * operator.heaviest
    spread = rate * (1 - operator.heaviest)
    if left <= 0 or spread == 0:
        return math.floor(spread / operator.service_rate) + 1
    return math.floor(spread / left) + 1
