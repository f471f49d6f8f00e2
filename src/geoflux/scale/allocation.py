"""The two questions of DRS: the best assignment of K processors, and the fewest for a target.

Both walk the same greedy. Where arrivals and services are not exponential, how variable arrivals
are depends on the assignment itself: it is found, the variability taken from it, and found again.
Where tuples fork, an operator counts as far as the whole tree waits for it: its weight is what
the time of the tree gains per second gained there, and targets are held against that time.

Source: DRS, problems 6 and 8, algorithms 1 and 2. The lower bound counts visits, a target equal to
it is not reached, and the number of processors has a cap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from geoflux.errors import InfeasibleError
from geoflux.scale.critical import weights_of
from geoflux.scale.curves import curve_of
from geoflux.scale.forms import Model
from geoflux.scale.greedy import Greedy, fewest_of
from geoflux.scale.network import Network
from geoflux.scale.sojourn import Prediction, predict
from geoflux.scale.variability import arrival_scvs

_ROUNDS = 4
MOST = 100_000
"""Processors that are never exceeded."""


@dataclass(frozen=True)
class Allocation:
    """Processors by operator, and what they come to."""

    counts: Mapping[str, int]
    prediction: Prediction

    @property
    def processors(self) -> int:
        """All together."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Wanted:
    """How an allocation is looked for: the model of waiting, and processors that operators get at
    least (to catch up with what has piled up)."""

    model: Model = "gigk"
    floors: Mapping[str, int] | None = None

    def floors_of(self, network: Network) -> list[int]:
        """Per operator."""
        return [(self.floors or {}).get(o.name, 0) for o in network.operators]


PLAIN = Wanted()
"""With the default model, and nobody preferred."""


def assign(network: Network, processors: int, wanted: Wanted = PLAIN) -> Allocation:
    """The assignment of so many processors with the least expected total sojourn time.

    Guarantee: optimal for tuples that go one way at a time with the model ``mmk``, and with
    ``gigk`` as far as the variability of arrivals stays what it is.

    >>> from geoflux.scale.network import Edge, Operator
    >>> chain = Network((Operator("a", 1.0, 2.5), Operator("b", 3.0)), (Edge("a", "b", 1.0),))
    >>> assign(chain, 6, Wanted("mmk")).counts
    {'a': 4, 'b': 2}
    """
    _enough(network, processors, wanted)
    found: dict[tuple[int, ...], Allocation] = {}
    counts: Sequence[int] = _even(network, processors)
    for _ in range(1 if _settled(network, wanted) else _ROUNDS):
        greedy = _greedy(network, counts, wanted)
        while greedy.processors < processors:
            greedy.add()
        counts = tuple(greedy.counts)
        if counts in found:
            break
        found[counts] = _of(network, counts, wanted.model)
    return min(found.values(), key=lambda allocation: allocation.prediction.total)


def fewest_for(
    network: Network, target: float, wanted: Wanted = PLAIN, most: int = MOST
) -> Allocation:  # fmt: skip
    """The fewest processors with an expected total sojourn time of ``target`` seconds at most.

    >>> from geoflux.scale.network import Operator
    >>> one = Network((Operator("a", 1.0, 2.5),))
    >>> fewest_for(one, 1.5).counts, fewest_for(one, 1.02).counts
    ({'a': 4}, {'a': 6})
    """
    bound = least_time(network, wanted.model)
    if bound >= target:
        raise InfeasibleError(
            f"{target:.4g} s cannot be reached: without any waiting an input takes {bound:.4g} s "
            f"({_parts(network)}); allow more than that, or make services shorter",
            {"seconds": bound - target},
        )
    _enough(network, most, wanted)
    if _settled(network, wanted):
        return _walked(network, target, wanted, most)
    return _searched(network, target, wanted, most)


def least_time(network: Network, model: Model = "gigk") -> float:
    """What an input takes if nothing ever waits: the bound that no number of processors breaks."""
    if not network.forks:
        return sum(_least(network))
    plenty = [20 * k + 200 for k in fewest_of(network)]
    return _of(network, plenty, model).prediction.total


def _walked(network: Network, target: float, wanted: Wanted, most: int) -> Allocation:
    """Equation 4 along the greedy, until it meets the target."""
    greedy = _greedy(network, fewest_of(network), wanted)
    while greedy.summed > target * (1 - 1e-9) and greedy.exact() > target:
        for _ in range(64):  # sums one by one drift: they are made anew now and then
            _below(greedy.processors, most, target)
            greedy.add()
            if greedy.summed <= target * (1 + 1e-9):
                break
    return _of(network, greedy.counts, wanted.model)


def _searched(network: Network, target: float, wanted: Wanted, most: int) -> Allocation:
    """The time of the tree, or with variability that moves along: by bisection over K."""
    low = sum(max(a, b) for a, b in zip(fewest_of(network), wanted.floors_of(network), strict=True))
    high = low
    found = assign(network, high, wanted)
    while found.prediction.total > target:
        _below(high, most, target)
        low, high = high + 1, min(2 * high, most)
        found = assign(network, high, wanted)
    while low < high:
        middle = (low + high) // 2
        tried = assign(network, middle, wanted)
        if tried.prediction.total <= target:
            high, found = middle, tried
        else:
            low = middle + 1
    return found


def _below(processors: int, most: int, target: float) -> None:
    if processors >= most:
        raise InfeasibleError(
            f"{target:.4g} s needs more than {most} processors; allow more of them, or more time",
            {"processors": 1},
        )


def _greedy(network: Network, counts: Sequence[int], wanted: Wanted) -> Greedy:
    """The greedy as things are with this assignment."""
    scvs = None if wanted.model == "mmk" else arrival_scvs(network, counts).tolist()
    weights = weights_of(network, counts, wanted.model)
    return Greedy(network, weights, wanted.model, scvs, wanted.floors_of(network))


def _settled(network: Network, wanted: Wanted) -> bool:
    """Whether the greedy depends on no assignment: then one walk is enough."""
    if network.forks:
        return False
    return wanted.model == "mmk" or all(
        o.service_scv == 1 and (o.arrival_scv == 1 or o.arrivals == 0) for o in network.operators
    )


def _of(network: Network, counts: Sequence[int], model: Model) -> Allocation:
    named = {o.name: k for o, k in zip(network.operators, counts, strict=True)}
    return Allocation(named, predict(network, named, model))


def _enough(network: Network, processors: int, wanted: Wanted) -> None:
    least = [max(a, b) for a, b in zip(fewest_of(network), wanted.floors_of(network), strict=True)]
    if sum(least) > processors:
        needs = ", ".join(f"{o.name} {k}" for o, k in zip(network.operators, least, strict=True))
        raise InfeasibleError(
            f"{processors} processors are too few to keep up: needed are {sum(least)} ({needs}); "
            f"give {sum(least) - processors} more, or let less come in",
            {"processors": sum(least) - processors},
        )


def _even(network: Network, processors: int) -> list[int]:
    """In proportion to what operators need: where the search for variability begins."""
    least = np.array(fewest_of(network))
    return [int(k) for k in np.maximum(least, least * processors // max(int(least.sum()), 1))]


def _least(network: Network) -> list[float]:
    """Per operator, what an input takes there without waiting, each visit counted."""
    return [
        float(visits) * curve_of(o, float(rate)).least
        for o, visits, rate in zip(network.operators, network.visits, network.rates, strict=True)
    ]


def _parts(network: Network) -> str:
    taken = zip(network.operators, _least(network), strict=True)
    return ", ".join(f"{o.name} {seconds:.4g} s" for o, seconds in taken)
