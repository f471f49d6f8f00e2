"""How long a tuple stays at an operator, as a distribution on a grid of times.

A share of tuples waits, and for those the waiting time is taken as exponential with the mean that
the model says; services follow two moments (Erlang mixtures below 1, two phases above). That is
exact for M/M/k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_MOST_PHASES = 40


@dataclass(frozen=True)
class Stay:
    """A tuple's stay: with chance ``delayed`` it waits, then ``wait / delayed`` seconds on average;
    its service takes ``service`` seconds. Where the chance is 0, the wait is part of the service.
    ``weight`` is the share of tuples that it holds for."""

    delayed: float
    wait: float
    service: float
    service_scv: float = 1.0
    weight: float = 1.0


def distribution(stays: tuple[Stay, ...], step: float, size: int) -> Floats:
    """The chance that a tuple has left after 0, 1, 2, … steps.

    >>> from math import exp
    >>> one = distribution((Stay(0.5, 1.0, 1.0),), 0.01, 400)
    >>> abs(float(one[200]) - (1 - exp(-1.0))) < 1e-4
    True
    """
    return sum((s.weight * _one(s, step, size) for s in stays), np.zeros(size))


def convolved(chances: Floats, masses: Floats) -> Floats:
    """The distribution of the sum of two times: ``chances`` of the one, and what of the other lies
    in each step, taken to lie in its middle."""
    size = len(chances)
    middle = np.empty(size)
    middle[0] = chances[0] / 2
    middle[1:] = (chances[1:] + chances[:-1]) / 2
    length = 2 * size
    product = np.fft.rfft(middle, length) * np.fft.rfft(masses, length)
    return np.clip(np.fft.irfft(product, length)[:size], 0.0, 1.0)


def masses_of(chances: Floats) -> Floats:
    """What lies in each step ``[i, i + 1)``; what lies at 0 is put into the first."""
    return (
        np.diff(chances, prepend=0.0, append=chances[-1])[1:]
        + np.eye(1, len(chances))[0] * chances[0]
    )


def _one(stay: Stay, step: float, size: int) -> Floats:
    times: Floats = np.arange(size, dtype=np.float64) * step
    if stay.delayed <= 0:
        return _service(times / (stay.wait + stay.service), stay.service_scv)
    service = _service(times / stay.service, stay.service_scv)
    if stay.wait <= 0:
        return service
    waited = 1 - np.exp(-times * stay.delayed / stay.wait)
    both = convolved(service, masses_of(waited))
    return (1 - stay.delayed) * service + stay.delayed * both


def _service(x: Floats, scv: float) -> Floats:
    """The chance that a service is over after ``x`` mean services."""
    if scv == 1:
        return -np.expm1(-x)
    if scv > 1:
        share = 0.5 * (1 + math.sqrt((scv - 1) / (scv + 1)))
        return 1 - share * np.exp(-2 * share * x) - (1 - share) * np.exp(-2 * (1 - share) * x)
    phases = min(max(math.ceil(1 / scv), 2), _MOST_PHASES) if scv > 0 else _MOST_PHASES
    scv = max(scv, 1 / phases)
    fewer = (phases * scv - math.sqrt(phases * (1 + scv) - phases**2 * scv)) / (1 + scv)
    rate = phases - fewer
    term = np.exp(-rate * x)
    tail = term.copy()
    for n in range(1, phases - 1):
        term = term * (rate * x) / n
        tail += term
    last = term * (rate * x) / (phases - 1)
    return 1 - tail - (1 - fewer) * last
