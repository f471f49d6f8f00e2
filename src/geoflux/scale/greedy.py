"""Processors one at a time, each to the operator that gains most: exact where curves are convex.

One heap serves both problems of DRS: the best assignment of K processors is the state after handing
out K, the fewest for a target the first state that meets it. A processor costs O(log N), so all of
it is linear in K; the published algorithms hand out one too many, and start anew for every K.

Source: DRS, algorithms 1 and 2, theorem 1.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from geoflux.errors import InfeasibleError
from geoflux.scale.curves import Curve, curve_of
from geoflux.scale.forms import Model, fewest_processors
from geoflux.scale.network import Network


class Greedy:
    """Hands out processors; ``counts`` is the best assignment of as many as it has handed out, and
    ``summed`` what equation 4 says of it.

    >>> from geoflux.scale.network import Operator
    >>> greedy = Greedy(Network((Operator("a", 1.0, 2.5), Operator("b", 3.0, 2.5))), (0.5, 0.5))
    >>> greedy.add(), greedy.counts, greedy.processors
    (1, [3, 2], 5)
    """

    def __init__(
        self, network: Network, weights: Sequence[float], model: Model = "mmk",
        scvs: Sequence[float] | None = None, floors: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        reachable(network)
        self._weights = list(weights)
        self._curves: list[Curve] = []
        self._heap: list[tuple[float, int]] = []
        self.counts: list[int] = []
        self._times: list[float] = []
        for i, operator in enumerate(network.operators):
            curve = curve_of(
                operator, float(network.rates[i]), model, scvs[i] if scvs is not None else 1.0
            )
            floor = floors[i] if floors is not None else 0
            self._take(curve, floor)
        heapq.heapify(self._heap)
        self.summed = math.fsum(w * t for w, t in zip(self._weights, self._times, strict=True))
        self.processors = sum(self.counts)

    def _take(self, curve: Curve, floor: int) -> None:
        while curve.k < floor:
            curve.add()
        i = len(self._curves)
        self.counts.append(curve.k)
        self._times.append(curve.time)
        self._curves.append(curve)
        curve.add()  # it is one ahead from here on
        self._heap.append((self._weights[i] * (curve.time - self._times[i]), i))

    def add(self) -> int:
        """Hand out one processor; which operator got it."""
        loss, i = self._heap[0]
        curve = self._curves[i]
        self.counts[i] = curve.k
        self.processors += 1
        self.summed += loss
        now = curve.time
        self._times[i] = now
        curve.add()
        heapq.heapreplace(self._heap, (self._weights[i] * (curve.time - now), i))
        return i

    def exact(self) -> float:
        """``summed`` without what additions one by one have lost."""
        self.summed = math.fsum(w * t for w, t in zip(self._weights, self._times, strict=True))
        return self.summed


def reachable(network: Network) -> None:
    """Whether some number of processors keeps up with everything."""
    for i, operator in enumerate(network.operators):
        rate = float(network.rates[i])
        heavy, served = rate * operator.heaviest, operator.rates(1)[0]
        if operator.form == "keyed" and heavy >= served:
            raise InfeasibleError(
                f"operator {operator.name!r}: its heaviest key brings {heavy:.4g} tuples a second, "
                f"one processor serves {served:.4g}, and a key is not divided: no "
                "number of processors helps; split that key, or serve its tuples faster",
                {operator.name: math.inf},
            )


def fewest_of(network: Network) -> list[int]:
    """With how many processors each operator just keeps up."""
    return [
        fewest_processors(operator, float(rate))
        for operator, rate in zip(network.operators, network.rates, strict=True)
    ]
