"""A producer's turn: what waits is forwarded where there is room, and new tuples are made.

With a buffer, a tuple is made as long as the buffer has room for it, and is then forwarded or
kept. Without, as in an Exchange, the producer blocks on the first tuple whose connection is full:
head-of-line blocking.

Source: Flux 2.3 (Exchange), 4 (buffer).
"""

from __future__ import annotations

from typing import Any

import numba

from geoflux.sim import columns as c
from geoflux.sim.skew_queues import insert, retrieve


@numba.njit(cache=True)
def produce(state: Any, fixed: Any, draws: Any, s: int) -> int:
    """The tuples made; they need their time of the CPU."""
    if fixed.exchange:
        return _exchange(state, fixed, draws, s)
    for d in range(fixed.sites):
        while state.lists[s, d, c.FIRST] != c.NONE and has_room(state, fixed, s, d):
            send(state, fixed, s, d, retrieve(state, s, d), 0)
    made = 0
    while state.site[s, c.USED] < fixed.buffer_tuples:
        p = _draw(state, draws)
        made += 1
        d = state.dest[s, p]
        if d != c.NONE and state.lists[s, d, c.FIRST] == c.NONE and has_room(state, fixed, s, d):
            # The same as putting it in and taking it out again.
            send(state, fixed, s, d, p, made)
        else:
            insert(state, s, p)
    state.totals[c.PRODUCED] += made
    return made


@numba.njit(cache=True)
def _exchange(state: Any, fixed: Any, draws: Any, s: int) -> int:
    made = 0
    while True:
        p = state.site[s, c.HAND]
        if p == c.NONE:
            p = _draw(state, draws)
            made += 1
        d = state.dest[s, p]
        if not has_room(state, fixed, s, d):
            state.site[s, c.HAND] = p
            break
        state.site[s, c.HAND] = c.NONE
        send(state, fixed, s, d, p, made)
    state.totals[c.PRODUCED] += made
    return made


@numba.njit(cache=True)
def wants(state: Any, fixed: Any, s: int, d: int) -> bool:
    """Whether room in the connection to ``d`` is of use to the producer now."""
    if not fixed.exchange:
        return state.lists[s, d, c.FIRST] != c.NONE
    return state.site[s, c.HAND] != c.NONE and state.dest[s, state.site[s, c.HAND]] == d


@numba.njit(cache=True)
def has_room(state: Any, fixed: Any, s: int, d: int) -> bool:
    """Whether the connection takes another tuple."""
    return state.conn[d, s, c.CONN_TUPLES] < fixed.connection_tuples


@numba.njit(cache=True)
def send(state: Any, fixed: Any, s: int, d: int, entry: int, made: int) -> None:
    """Put a tuple, or an acknowledgement (below 0), into a connection."""
    there = state.clock[c.NOW] + fixed.latency + int(made * fixed.produce)
    ring = state.ring.shape[2]
    place = (state.conn[d, s, c.CONN_HEAD] + state.conn[d, s, c.CONN_LEN]) % ring
    state.ring[d, s, place, c.ENTRY] = entry
    state.ring[d, s, place, c.WHEN] = there
    state.conn[d, s, c.CONN_LEN] += 1
    if entry >= 0:
        state.conn[d, s, c.CONN_TUPLES] += 1
    if state.site[d, c.IDLE_SINCE] != c.NEVER:
        wake(state, d, there)


@numba.njit(cache=True)
def wake(state: Any, s: int, time: int) -> None:
    """Let a site act at this time, or as soon as its CPU is free."""
    time = max(time, state.site[s, c.BUSY_UNTIL])
    if time < state.site[s, c.NEXT]:
        state.site[s, c.NEXT] = time


@numba.njit(cache=True)
def _draw(state: Any, draws: Any) -> int:
    at = draws.random() * state.alias_cut.size
    place = int(at)
    return place if at - place < state.alias_cut[place] else state.alias_other[place]
