"""How an operator's mean sojourn time falls with its processors, one processor at a time.

A curve knows the time with as many processors as it has now and with one more, and gets one more in
constant time: allocation is made of nothing else. The curves fall and are convex, as long as the
two squared coefficients of variation stay what they are, which makes the greedy exact; only Whitt's
refinement and micro-batches may bend a little the other way.

Source: DRS, equations 1, 2 and 5; Dyer and Proll (1977) for the convexity of M/M/k.
"""

from __future__ import annotations

import math
from typing import Protocol

from geoflux.scale.epochs import SlotWork, epoch_delay
from geoflux.scale.erlang import Erlang
from geoflux.scale.forms import (
    Model,
    fewest_keyed,
    fewest_processors,
    lengthened,
    one_processor,
    shares_of,
)
from geoflux.scale.network import Operator
from geoflux.scale.uneven import uneven_stays

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
        if wait < math.inf:
            scvs = self._scv, self._operator.service_scv
            wait *= lengthened(self._model, scvs, k, erlang.load / k)
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
        self.k = fewest_processors(operator, rate) - 1
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


class UnevenCurve:
    """Processors of unequal speed, in the order in which the operator would get them."""

    __slots__ = ("_how", "_operator", "_rate", "k", "least", "time")

    def __init__(
        self, operator: Operator, rate: float, model: Model = "mmk", arrival_scv: float = 1.0
    ) -> None:
        self._operator, self._rate, self._how = operator, rate, (model, arrival_scv)
        self.least = 1 / (operator.service_rate * max(1.0, *operator.speeds))
        self.k = fewest_processors(operator, rate) - 1
        self.add()

    def add(self) -> None:
        """One processor more."""
        self.k += 1
        _, stays = uneven_stays(self._operator, self._rate, self.k, self._how)
        self.time = sum(s.weight * (s.wait + s.service) for s in stays)


def curve_of(
    operator: Operator, rate: float, model: Model = "mmk", arrival_scv: float = 1.0
) -> Curve:
    """The curve of an operator at which ``rate`` tuples a second arrive, from its fewest processors
    on."""
    if operator.epochs is not None:
        return EpochCurve(operator, rate)
    if operator.speeds:
        return UnevenCurve(operator, rate, model, arrival_scv)
    made = KeyedCurve if operator.form == "keyed" else SharedCurve
    return made(operator, rate, model, arrival_scv)
