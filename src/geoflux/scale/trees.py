"""When the whole tree of an input is done: the fork-join correction.

With one tuple a tree is done when the tuple has been served and all that derives from it is done.
As distributions on a grid of times: what waits is added by convolution, what runs side by side is a
product. Loops make this an equation, which is solved by going round it until nothing changes.

Branches are not independent: tuples that leave a fork at the same time find the same rush before
them. Of two M/M/1 queues behind a fork the mean of the longer time is known: ``(12 - rho) / 8``
times ``1 / (mu - lambda)``. A mixture of independent branches and branches that go together, in
which the second has the weight ``rho / 4``, gives just that. For any branches we take a quarter of
the share that waiting at the first operator has in their time (the geometric mean over branches).
Copies for the same shared queue wait together, and then for one another.

Source: Flatto and Hahn (1984), Nelson and Tantawi (1988) for two queues; the rest is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geoflux.scale.lasting import Stay, convolved, distribution, masses_of
from geoflux.scale.network import Network
from geoflux.scale.parts import Part

Floats = npt.NDArray[np.float64]
_POINTS = 2048
_REACH = 12.0
"""The grid reaches so many times equation 4."""
_TOGETHER = 0.25
_MOST_ROUNDS = 2000


def completion(network: Network, parts: Sequence[Part], summed: float) -> float:
    """Mean time until a tree is done; ``summed`` is what equation 4 says."""
    found = _Grid(network, parts, _REACH * summed / _POINTS).mean()
    while found < summed / 2:
        # Of many tuples side by side equation 4 is a multiple: the grid was too coarse for that.
        summed = max(found, summed / 8)
        found = _Grid(network, parts, _REACH * summed / _POINTS).mean()
    return found


class _Grid:
    """The distributions of a tree on one grid."""

    def __init__(self, network: Network, parts: Sequence[Part], step: float) -> None:
        self._network, self._parts, self._step = network, parts, step
        self._stay = [masses_of(distribution(p.stays, step, _POINTS)) for p in parts]
        self._service = [
            masses_of(distribution(tuple(_served(s) for s in p.stays), step, _POINTS))
            for p in parts
        ]
        self._wait = [_waited(p.stays, step) for p in parts]
        self._batches = [parts[network.index[e.target]].batch(e) for e in network.edges]
        self._after = [
            [(n, e, network.index[e.target]) for n, e in enumerate(network.edges)
             if e.source == operator.name and e.mean > 0]
            for operator in network.operators
        ]  # fmt: skip

    def mean(self) -> float:
        """Of the trees of all inputs, in proportion."""
        operators = self._network.operators
        done = self._solved()
        outside = self._network.outside
        return sum(
            o.arrivals / outside * self._mean_of(convolved(done[i], self._stay[i]))
            for i, o in enumerate(operators)
            if o.arrivals > 0
        )

    def _solved(self) -> list[Floats]:
        """Per operator: the chance that all derived from a tuple is done so long after it."""
        done = [np.ones(_POINTS) for _ in self._stay]
        order = range(len(done) - 1, -1, -1)
        for _ in range(_MOST_ROUNDS):
            most = 0.0
            for i in order:
                new = self._derived(i, done)
                most = max(most, float(np.abs(new - done[i]).max()))
                done[i] = new
            if most < 1e-7:
                break
        return done

    def _derived(self, i: int, done: list[Floats]) -> Floats:
        ways = self._after[i]
        if not ways:
            return np.ones(_POINTS)
        if not self._network.operators[i].everything:
            out = np.full(_POINTS, 1 - sum(e.mean for _, e, _ in ways))
            for _, e, j in ways:
                out += e.mean * convolved(done[j], self._stay[j])
            return out
        branches = [self._branch(n, j, done[j]) for n, _, j in ways]
        product = np.prod(branches, axis=0)
        if len(branches) == 1:
            return product
        waiting = [
            min(self._parts[j].wait / max(self._mean_of(b), 1e-300), 1.0)
            for b, (_, _, j) in zip(branches, ways, strict=True)
        ]  # fmt: skip
        together = _TOGETHER * math.prod(waiting) ** (1 / len(waiting))
        return (1 - together) * product + together * np.min(branches, axis=0)

    def _branch(self, n: int, j: int, done: Floats) -> Floats:
        """All that comes along one edge at once, with what derives from it."""
        batch = self._batches[n]
        if len(batch.chances) <= 2:
            some = batch.chances[-1] if len(batch.chances) == 2 else 0.0
            return 1 - some + some * convolved(done, self._stay[j])
        if self._network.operators[j].epochs is not None:
            return self._in_one_epoch(batch.chances, j, done)
        keyed = self._network.operators[j].form == "keyed"
        one = convolved(done, self._stay[j] if keyed else self._service[j])
        starts = np.zeros(len(batch.chances)) if keyed else batch.starts()
        out, all_done = np.full(_POINTS, batch.chances[0]), np.ones(_POINTS)
        for chance, start in zip(batch.chances[1:], starts, strict=False):
            all_done = all_done * _later(one, start / self._step)
            if chance > 0:
                out += chance * (all_done if keyed else convolved(all_done, self._wait[j]))
        return out

    def _in_one_epoch(self, chances: Floats, j: int, done: Floats) -> Floats:
        """What comes together goes through the same epoch, and is committed together."""
        out, all_done = np.full(_POINTS, chances[0]), np.ones(_POINTS)
        for chance in chances[1:]:
            all_done = all_done * done
            if chance > 0:
                out += chance * convolved(all_done, self._stay[j])
        return out

    def _mean_of(self, chances: Floats) -> float:
        """By the trapezoid, and an exponential tail beyond the grid."""
        left = 1 - chances
        mean = self._step * float(left.sum() - left[0] / 2 - left[-1] / 2)
        end, before = float(left[-1]), float(left[-1 - _POINTS // 8])
        if 0 < end < before:
            mean += end * self._step * (_POINTS // 8) / math.log(before / end)
        return mean


def _served(stay: Stay) -> Stay:
    return Stay(0.0, 0.0, stay.service, stay.service_scv, stay.weight)


def _waited(stays: tuple[Stay, ...], step: float) -> Floats:
    """What of the waiting time lies in each step; 0 lies before the first, so it is kept there."""
    times = np.arange(_POINTS) * step
    out = np.zeros(_POINTS)
    for s in stays:
        if s.wait <= 0 or s.delayed <= 0:
            out += s.weight
        else:
            out += s.weight * (1 - s.delayed * np.exp(-times * s.delayed / s.wait))
    return masses_of(out)


def _later(chances: Floats, steps: float) -> Floats:
    """The same so many steps later."""
    if steps <= 0:
        return chances
    return np.interp(np.arange(len(chances)) - steps, np.arange(len(chances)), chances, left=0.0)
