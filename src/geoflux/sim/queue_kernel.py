"""The event loop of :mod:`geoflux.sim.queue_network`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_NOBODY = -1


@njit(cache=True)
def _drawn(draw: Any, scv: float) -> float:
    """A random time of mean 1."""
    if scv <= 0.0:
        return 1.0
    if scv == 1.0:
        return draw.exponential(1.0)
    if scv < 1.0:
        return draw.gamma(1.0 / scv, scv)
    share = 0.5 * (1.0 + np.sqrt((scv - 1.0) / (scv + 1.0)))
    if draw.random() >= share:
        share = 1.0 - share
    return draw.exponential(1.0 / (2.0 * share))


@njit(cache=True)
def _push(times: Any, codes: Any, size: int, time: float, code: int) -> None:
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if times[above] <= time:
            break
        times[at], codes[at] = times[above], codes[above]
        at = above
    times[at], codes[at] = time, code


@njit(cache=True)
def _pop(times: Any, codes: Any, size: int) -> None:
    """Take the first one away; the last one finds its place from the top."""
    last = size - 1
    time, code = times[last], codes[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[at], codes[at] = times[below], codes[below]
        at = below
    times[at], codes[at] = time, code


@njit(cache=True)
def _grown(values: Any, by: int) -> Any:
    more = np.empty(values.size + by, values.dtype)
    more[: values.size] = values
    return more


@njit(cache=True)
def _picked(draw: Any, station: int, kinds: Any, idle: Any, free: int) -> int:
    """The free processor of a shared queue that takes the next tuple."""
    counts, rates, flags = kinds
    if flags[station, 2]:
        best = _NOBODY
        for s in range(counts[station]):
            if idle[station, s] and (best < 0 or rates[station, s] > rates[station, best]):
                best = s
        return best
    nth = draw.integers(0, free)
    for s in range(counts[station]):
        if idle[station, s]:
            if nth == 0:
                return s
            nth -= 1
    return _NOBODY


@njit(cache=True)
def run(servers: Any, kinds: Any, edges: Any, trees: int, draw: Any) -> Any:
    """Per tree when it began and ended and what its tuples spent together; per station what tuples
    spent there, and how many did."""
    counts, rates, cumulated = servers
    flags, numbers = kinds
    first, targets, means = edges
    stations, most = rates.shape
    began, ended, summed = np.zeros(trees), np.zeros(trees), np.zeros(trees)
    pending = np.zeros(trees, np.int64)
    spent, visits = np.zeros(stations), np.zeros(stations)
    # Tuples: the tree, when it came here, the next in its queue; unused ones are chained too.
    size = 1024
    tree, came, after = np.empty(size, np.int64), np.empty(size), np.arange(1, size + 1)
    unused = 0
    idle = np.ones((stations, most), np.bool_)
    free = counts.copy()
    serving = np.full((stations, most), _NOBODY)
    head, tail = np.full((stations, most), _NOBODY), np.full((stations, most), _NOBODY)
    times, codes = np.empty(stations * (most + 1)), np.empty(stations * (most + 1), np.int64)
    events = 0
    for i in range(stations):
        if numbers[i, 0] > 0:
            _push(times, codes, events, _drawn(draw, numbers[i, 1]) / numbers[i, 0], -1 - i)
            events += 1
    # Tuples to be put somewhere now: station and tree, and who brings them.
    waiting_station, waiting_tree = np.empty(256, np.int64), np.empty(256, np.int64)
    started = 0
    while events > 0:
        now, code = times[0], codes[0]
        _pop(times, codes, events)
        events -= 1
        arriving = 0
        if code < 0:
            station = -1 - code
            if started < trees:
                began[started] = now
                waiting_station[0], waiting_tree[0] = station, started
                arriving = 1
                started += 1
                gap = _drawn(draw, numbers[station, 1]) / numbers[station, 0]
                _push(times, codes, events, now + gap, code)
                events += 1
        else:
            station, s = code // most, code % most
            job = serving[station, s]
            root = tree[job]
            spent[station] += now - came[job]
            summed[root] += now - came[job]
            visits[station] += 1
            after[job], unused = unused, job
            pending[root] -= 1
            # The processor goes on with who waits for it.
            queue = s if flags[station, 0] else 0
            following = head[station, queue]
            if following >= 0:
                head[station, queue] = after[following]
                if after[following] < 0:
                    tail[station, queue] = _NOBODY
                serving[station, s] = following
                service = _drawn(draw, numbers[station, 2]) / rates[station, s]
                _push(times, codes, events, now + service, station * most + s)
                events += 1
            else:
                serving[station, s] = _NOBODY
                idle[station, s] = True
                free[station] += 1
            # What was derived.
            if flags[station, 1]:
                for e in range(first[station], first[station + 1]):
                    derived = int(means[e])
                    if draw.random() < means[e] - derived:
                        derived += 1
                    for _ in range(derived):
                        if arriving == waiting_tree.size:
                            waiting_tree = _grown(waiting_tree, arriving)
                            waiting_station = _grown(waiting_station, arriving)
                        waiting_station[arriving], waiting_tree[arriving] = targets[e], root
                        arriving += 1
            else:
                chance = draw.random()
                for e in range(first[station], first[station + 1]):
                    chance -= means[e]
                    if chance < 0:
                        waiting_station[0], waiting_tree[0] = targets[e], root
                        arriving = 1
                        break
            if pending[root] == 0 and arriving == 0:
                ended[root] = now
        for n in range(arriving):
            station, root = waiting_station[n], waiting_tree[n]
            pending[root] += 1
            if unused >= tree.size:
                size = tree.size
                tree, came = _grown(tree, size), _grown(came, size)
                after = _grown(after, size)
                after[size:] = np.arange(size + 1, 2 * size + 1)
            job = unused
            unused = after[job]
            tree[job], came[job], after[job] = root, now, _NOBODY
            s, queue = _NOBODY, 0
            if flags[station, 0]:
                queue = np.searchsorted(cumulated[station], draw.random(), side="right")
                if idle[station, queue]:
                    s = queue
            elif free[station] > 0:
                s = _picked(draw, station, (counts, rates, flags), idle, free[station])
            if s >= 0:
                idle[station, s] = False
                free[station] -= 1
                serving[station, s] = job
                service = _drawn(draw, numbers[station, 2]) / rates[station, s]
                _push(times, codes, events, now + service, station * most + s)
                events += 1
            else:
                if tail[station, queue] >= 0:
                    after[tail[station, queue]] = job
                else:
                    head[station, queue] = job
                tail[station, queue] = job
    return began, ended, summed, spent, visits
