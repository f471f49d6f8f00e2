"""How an operator's mean sojourn time falls with its processors, one processor at a time.

A curve knows the time with as many processors as it has now and with one more, and gets one more in
constant time: allocation is made of nothing else. The curves fall and are convex, as long as the
two squared coefficients of variation stay what they are, which makes the greedy exact; only Whitt's
refinement and micro-batches may bend a little the other way.

Source: DRS, equations 1, 2 and 5; Dyer and Proll (1977) for the convexity of M/M/k.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

from geoflux.scale.epochs import SlotWork, epoch_delay
from geoflux.scale.erlang import Erlang, enough_for
from geoflux.scale.network import Operator
from geoflux.scale.waiting import equation_5, whitt

Model = Literal["mmk", "gigk", "whitt"]
"""Exponential times; equation 5; equation 5 with Whitt's refinement."""
_PLENTY = 4096


class Curve(Protocol):
    """The mean sojourn time of one operator as its processors become more."""

    k: int
    time: float
    """With ``k`` processors, in seconds; infinite if they do not keep up."""
    least: float
    """What is left of it with any number of processors: the service time."""

    def add(self) -> None:
        """One processor more."""


class SharedCurve:
    """One queue for all processors.

    >>> curve = SharedCurve(Operator("a", 2.0), 1.0)
    >>> curve.k, curve.time
    (1, 1.0)
    """

    __slots__ = ("_erlang", "_model", "_operator", "_scv", "k", "least", "time")

    def __init__(
        self, operator: Operator, rate: float, model: Model = "mmk", arrival_scv: float = 1.0
    ) -> None:
        self._operator, self._model, self._scv = operator, model, arrival_scv
        self.least = 1 / operator.service_rate
        self._erlang = Erlang(rate / operator.service_rate)
        self.k = 0
        for _ in range(math.floor(self._erlang.load)):
            self._erlang.add()
        self.add()

    def add(self) -> None:
        """One processor more."""
        erlang = self._erlang
        erlang.add()
        self.k = k = erlang.k
        wait = erlang.wait
        if self._model != "mmk" and wait < math.inf:
            service = self._operator.service_scv
            if self._model == "gigk":
                wait *= equation_5(self._scv, service)
            else:
                wait *= whitt(self._scv, service, k, erlang.load / k)
        self.time = (wait + 1) * self.least

    @property
    def delayed(self) -> float:
        """The share of tuples that wait."""
        return self._erlang.delayed


class KeyedCurve:
    """A queue for every processor: the heaviest key's processor has that and its part of the rest,
    the others share the rest evenly. What one processor gets of an arrival process is more like
    Poisson the smaller its share.

    >>> even = KeyedCurve(Operator("a", 1.0, form="keyed"), 2.8)
    >>> even.add()
    >>> even.k, round(even.time, 4)
    (4, 3.3333)
    """

    __slots__ = ("_model", "_operator", "_rate", "_scv", "k", "least", "time")

    def __init__(
        self, operator: Operator, rate: float, model: Model = "mmk", arrival_scv: float = 1.0
    ) -> None:
        self._operator, self._rate = operator, rate
        self._model, self._scv = model, arrival_scv
        self.least = 1 / operator.service_rate
        self.k = max(0, fewest_keyed(operator, rate) - 1)
        self.add()

    def add(self) -> None:
        """One processor more."""
        self.k += 1
        heavy, light = shares_of(self._operator, self.k)
        self.time = self._part(heavy) + (self.k - 1) * self._part(light)

    def _part(self, share: float) -> float:
        """What a processor with this share adds to the mean over all tuples."""
        if share == 0:
            return 0.0
        return share * one_processor(self._operator, self._rate * share, self._model,
                                     1 + share * (self._scv - 1))  # fmt: skip


class EpochCurve:
    """Micro-batches: every processor is a slot of every epoch."""

    __slots__ = ("_operator", "_rate", "k", "least", "time")

    def __init__(self, operator: Operator, rate: float) -> None:
        self._operator, self._rate = operator, rate
        self.least = epoch_time(operator, rate, _PLENTY)
        keyed = operator.form == "keyed"
        fewest = fewest_keyed(operator, rate) if keyed else enough_for(rate / operator.service_rate)
        self.k = fewest - 1
        self.add()

    def add(self) -> None:
        """One processor more."""
        self.k += 1
        self.time = epoch_time(self._operator, self._rate, self.k)


def epoch_time(operator: Operator, rate: float, k: int) -> float:
    """From a record's arrival until its results can be seen, with micro-batches of ``k`` slots."""
    if operator.epochs is None:
        raise ValueError(f"operator {operator.name!r} makes no micro-batches")
    keyed = operator.form == "keyed"
    work = SlotWork(
        rate, k, 1 / operator.service_rate, operator.service_scv,
        shares_of(operator, k)[0] if keyed else None, dealt=not keyed,
    )  # fmt: skip
    delay = epoch_delay(work, operator.epochs)
    return math.inf if delay is None else delay.total


def one_processor(operator: Operator, rate: float, model: Model, arrival_scv: float) -> float:
    """Mean sojourn time at one processor that gets ``rate`` tuples a second, in seconds."""
    load = rate / operator.service_rate
    if load >= 1:
        return math.inf
    factor = 1.0
    if model == "gigk":
        factor = equation_5(arrival_scv, operator.service_scv)
    elif model == "whitt":
        factor = whitt(arrival_scv, operator.service_scv, 1, load)
    return (factor * load / (1 - load) + 1) / operator.service_rate


def shares_of(operator: Operator, k: int) -> tuple[float, float]:
    """The share of the busiest of ``k`` processors of a keyed operator, and that of any other.

    >>> shares_of(Operator("a", 1.0, form="keyed", heaviest=0.2), 4)
    (0.4, 0.2)
    """
    light = (1 - operator.heaviest) / k
    return operator.heaviest + light, light


def fewest_keyed(operator: Operator, rate: float) -> int:
    """The fewest processors of which none is overrun; the heaviest key may make it impossible: then
    so many as the rest needs."""
    left = operator.service_rate - rate * operator.heaviest
    spread = rate * (1 - operator.heaviest)
    if left <= 0 or spread == 0:
        return math.floor(spread / operator.service_rate) + 1
    return math.floor(spread / left) + 1


def curve_of(
    operator: Operator, rate: float, model: Model = "mmk", arrival_scv: float = 1.0
) -> Curve:
    """The curve of an operator at which ``rate`` tuples a second arrive, from its fewest processors
    on."""
    if operator.epochs is not None:
        return EpochCurve(operator, rate)
    made = KeyedCurve if operator.form == "keyed" else SharedCurve
    return made(operator, rate, model, arrival_scv)
