"""Erlang's formulas by the recursion that neither overflows nor loses digits.

``B(k) = a B(k-1) / (k + a B(k-1))`` with ``B(0) = 1`` is the share of calls that a system of ``k``
processors without a queue turns away; the share that waits where there is a queue follows from it.
Every step lessens the relative error of the one before, so values are good to some 1e-15 times the
square root of ``k``; what is below 1e-308 becomes 0. Factorials overflow near ``k = 170``.

Source: DRS, equations 2 and 3.
"""

from __future__ import annotations

import math


class Erlang:
    """``k`` processors under the offered load ``load`` (arrival rate over the service rate of one);
    one more in constant time.

    >>> one = Erlang(0.5, 1)
    >>> one.delayed, one.wait
    (0.5, 1.0)
    >>> one.add()
    >>> one.k, round(one.wait, 6)
    (2, 0.066667)
    """

    __slots__ = ("_blocked", "k", "load")

    def __init__(self, load: float, k: int = 0) -> None:
        if not (load >= 0 and math.isfinite(load)) or k < 0:
            raise ValueError(f"offered load {load!r}, k = {k!r}: expected both at least 0, finite")
        self.load = load
        self.k = 0
        self._blocked = 1.0
        for _ in range(k):
            self.add()

    def add(self) -> None:
        """One processor more."""
        self.k += 1
        offered = self.load * self._blocked
        self._blocked = offered / (self.k + offered)

    @property
    def blocked(self) -> float:
        """Erlang B: the share that would be turned away if there were no queue."""
        return self._blocked

    @property
    def delayed(self) -> float:
        """Erlang C: the share that has to wait; 1 where the processors cannot keep up."""
        k, load, blocked = self.k, self.load, self._blocked
        return k * blocked / (k - load * (1.0 - blocked)) if load < k else 1.0

    @property
    def wait(self) -> float:
        """Mean waiting time of M/M/k in mean service times; infinite if they cannot keep up."""
        k, load, blocked = self.k, self.load, self._blocked
        if load >= k:
            return math.inf
        return k * blocked / ((k - load * (1.0 - blocked)) * (k - load))


def blocked(load: float, k: int) -> float:
    """Erlang B of ``k`` processors under ``load``.

    >>> round(blocked(2.0, 3), 6)
    0.210526
    """
    return Erlang(load, k).blocked


def delayed(load: float, k: int) -> float:
    """Erlang C of ``k`` processors under ``load``: the share of tuples that wait."""
    return Erlang(load, k).delayed


def enough_for(load: float) -> int:
    """The fewest processors that keep up with ``load``: more than it, and at least one.

    >>> enough_for(2.0), enough_for(2.5), enough_for(0.0)
    (3, 3, 1)
    """
    return math.floor(load) + 1
