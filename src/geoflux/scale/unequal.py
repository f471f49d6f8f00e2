"""Processors of unequal speed at one queue: Gumbel's model.

A tuple that finds several processors free takes any of them with the same chance, as Spark gives
tasks to shuffled offers. Then the set of busy processors is reversible and has a product form: the
chance of ``n`` busy ones is ``a**n / n!`` times the mean over all sets of ``n`` processors of the
product of their relative service times. With Poisson arrivals and exponential services this is
exact, for a rule that prefers fast processors it is an upper bound.

Source: Gumbel, Waiting lines with heterogeneous servers (1960). DRS III-A promises unequal
processors and does not give them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Unequal:
    """A queue with unequal processors: the share of tuples that wait, and their mean times in
    seconds."""

    delayed: float
    wait: float
    sojourn: float


def gumbel(arrival_rate: float, rates: Sequence[float]) -> Unequal | None:
    """The queue of processors with these service rates; ``None`` if they cannot keep up.

    Guarantee: with equal rates it is M/M/k.

    >>> queue = gumbel(1.0, (1.0, 1.0))
    >>> round(queue.delayed, 6), round(queue.sojourn, 6)
    (0.333333, 1.333333)
    """
    speeds = np.asarray(rates, np.float64)
    total = float(speeds.sum())
    if arrival_rate >= total or not len(speeds) or (speeds <= 0).any():
        return None
    if arrival_rate <= 0:
        return Unequal(0.0, 0.0, float((1 / speeds).mean()))
    k = len(speeds)
    chances = _shares_of_busy(arrival_rate / speeds)
    load = arrival_rate / total
    # Beyond k busy ones the queue grows by the same factor for every tuple more.
    tail = chances[k] / (1 - load)
    whole = chances[:k].sum() + tail
    delayed = tail / whole
    wait = delayed / (total - arrival_rate)
    busy = (chances[:k] @ np.arange(k) + k * tail) / whole
    return Unequal(float(delayed), float(wait), float(busy / arrival_rate + wait))


def _shares_of_busy(loads: np.ndarray) -> np.ndarray:
    """For n = 0..k, up to a common factor: the mean product of n of the loads, over n!.

    In logarithms: for many processors neither products nor numbers of sets fit a float.
    """
    k = len(loads)
    logs = np.full(k + 1, -np.inf)
    logs[0] = 0.0
    with np.errstate(divide="ignore"):
        for size, load in enumerate(np.log(loads), start=1):
            # Of the sets of n out of `size`, the share n / size has the new processor.
            share = np.arange(1, size + 1) / size
            without = np.log(1 - share) + logs[1 : size + 1]
            logs[1 : size + 1] = np.logaddexp(without, np.log(share) + load + logs[:size])
    logs -= np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, k + 1)))])
    return np.exp(logs - logs.max())
