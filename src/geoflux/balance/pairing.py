"""Who is asked to give to whom, from one cost per slot.

As published the slot with the highest cost gives to the one with the lowest; the next highest are
asked in the same go, in case it cannot. By default several highest are paired with several lowest:
whoever has most to give gets the next lowest, and no receiver is promised to two slots, so that
what each slot predicts by itself holds for all of them together.

Source: SWARM 4.3, figure 4.6; several pairs are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from geoflux.balance.requests import Ask, Receiver
from geoflux.balance.tuning import Tuning


def paired(
    costs: Mapping[int, float], stuck: Mapping[int, float], tuning: Tuning, settled: bool = False
) -> tuple[Ask, ...]:
    """The questions of a round, in the order in which the answers count; none when the costs are
    so even that nothing worth it could be gained, or little in a system that is ``settled``.

    ``stuck`` are slots that lately could not give anything away, with their cost then as a multiple
    of the mean: they are asked last, and their cost is no measure for the others.

    >>> paired({0: 9.0, 1: 1.0, 2: 5.0}, {}, Tuning.published())[0]
    Ask(donor=0, receivers=(Receiver(slot=1, cost=1.0),), spare=False)
    >>> paired({0: 1.0, 1: 1.02}, {}, Tuning())
    ()
    """
    order = sorted(costs, key=lambda slot: (-costs[slot], slot))
    if len(order) < 2 or costs[order[0]] <= costs[order[-1]]:
        return ()
    if not tuning.selective:
        return _highest_to_lowest(order, costs, tuning)
    mean = fmean(costs.values())
    margin = max(tuning.wake, tuning.least_gain) if settled else tuning.least_gain
    if costs[order[0]] <= (1 + margin) * mean:
        return ()
    held = [s for s in order if s in stuck and _as_before(costs[s] / mean, stuck[s], tuning)]
    loose = [s for s in order if s not in held] or order
    level = fmean(costs[s] for s in loose)
    givers = [s for s in loose if costs[s] > (1 + margin) * level]
    takers = [s for s in reversed(loose) if costs[s] < level]
    asks = _dealt({s: costs[s] - level for s in givers}, takers, (costs, level), tuning)
    first = {ask.donor for ask in asks}
    sets = [ask.receivers for ask in asks] or [
        tuple(Receiver(s, costs[s]) for s in takers[: tuning.pairs if tuning.multiway else 1])
    ]
    spares = [s for s in (*givers, *held) if s not in first][: tuning.ask_ahead]
    asks += [Ask(s, sets[i % len(sets)], spare=True) for i, s in enumerate(spares)]
    return tuple(ask for ask in asks if ask.receivers)


def _as_before(ratio: float, then: float, tuning: Tuning) -> bool:
    """Whether a slot that could not is still where it was."""
    return abs(ratio - then) <= tuning.least_gain * then


def _highest_to_lowest(
    order: list[int], costs: Mapping[int, float], tuning: Tuning
) -> tuple[Ask, ...]:
    """One or more highest with as many lowest, then those asked in case one of them cannot."""
    count = min(tuning.pairs, len(order) // 2)
    takers = [(Receiver(s, costs[s]),) for s in order[: -count - 1 : -1]]
    donors = order[: min(count + tuning.ask_ahead, len(order) - count)]
    asks = [Ask(s, takers[i % count], spare=i >= count) for i, s in enumerate(donors)]
    return tuple(ask for ask in asks if costs[ask.donor] > ask.receivers[0].cost)


def _dealt(
    excess: dict[int, float], takers: list[int], level: tuple[Mapping[int, float], float],
    tuning: Tuning,
) -> list[Ask]:  # fmt: skip
    """Give out receivers, the lowest first, each to the slot that has most left to give."""
    costs, mean = level
    dealt: dict[int, list[Receiver]] = {}
    for taker in takers[: tuning.pairs]:
        open_ = [s for s in excess if tuning.multiway or s not in dealt]
        if not open_:
            break
        donor = max(open_, key=lambda s: (excess[s], -s))
        if excess[donor] <= tuning.least_gain * mean:
            break
        dealt.setdefault(donor, []).append(Receiver(taker, costs[taker]))
        excess[donor] -= mean - costs[taker]
    order = sorted(dealt, key=lambda s: (-costs[s], s))
    return [Ask(s, tuple(dealt[s])) for s in order]
