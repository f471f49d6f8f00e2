"""A consumer's turn: packets from its connections in round robin, one packet at a time.

The service time of a packet is the normal sum of its tuples'. An external process takes the CPU
in turns: it computes, sleeps, and then waits until the operator's tuple is done, which it finds at
any point of its service. With the paper's times the operator keeps 72.5 of 172.5 microseconds: it
loses 58 % (the paper measured 57 %; ideal fair sharing would cost 40 %, strict priority 67 %).

Source: Flux 3, 4; latency as in 6.2: from when Flux-Cons takes a tuple to when it is processed.
"""

from __future__ import annotations

from typing import Any

import numba

from geoflux.sim import columns as c
from geoflux.sim.producing import wake, wants


@numba.njit(cache=True)
def finish_turn(state: Any, s: int) -> int:
    """Count what the turn that ended has processed; what kind of turn it was."""
    kind = state.site[s, c.TURN_KIND]
    if kind == c.TUPLES:
        count = state.site[s, c.TURN_COUNT]
        second = min(state.site[s, c.BUSY_UNTIL] // c.SECOND, state.per_second.shape[0] - 1)
        state.per_second[second, c.DONE_TUPLES] += count
        state.per_second[second, c.LATENCIES] += state.site[s, c.TURN_LATENCY]
        state.totals[c.PROCESSED] += count
        state.site[s, c.SITE_DONE] += count
    state.site[s, c.TURN_KIND] = c.NOTHING
    state.site[s, c.TURN_COUNT] = 0
    return kind


@numba.njit(cache=True)
def take_packet(state: Any, fixed: Any, draws: Any, s: int, start: int) -> bool:
    """Begin with the next packet that is there; whether there was one."""
    n = fixed.sites
    for step in range(n):
        source = (state.site[s, c.POLLED] + step) % n
        if state.conn[s, source, c.CONN_LEN] and _head_time(state, s, source) <= start:
            start = end_idle(state, fixed, draws, s, start)
            count, spooled = _take(state, fixed, s, source, start)
            if wants(state, fixed, source, s):
                wake(state, source, start)
            if count + spooled:
                state.site[s, c.POLLED] = (source + 1) % n
                work = spooled * fixed.spool_work + service(fixed, draws, count)
                end = start + run(state, fixed, draws, s, work)
                begin_tuples(state, s, count, end, float(end - start) if count else 0.0)
                return True
    return False


@numba.njit(cache=True)
def begin_tuples(state: Any, s: int, count: int, end: int, latency: float) -> None:
    """Tuples are in service until ``end``."""
    state.site[s, c.TURN_KIND] = c.TUPLES
    state.site[s, c.TURN_COUNT] = count
    state.site[s, c.TURN_LATENCY] = latency
    state.site[s, c.BUSY_UNTIL] = end


@numba.njit(cache=True)
def next_arrival(state: Any, fixed: Any, s: int) -> int:
    """When the next tuple will be there; NEVER when none is on its way."""
    earliest = c.NEVER
    for source in range(fixed.sites):
        if state.conn[s, source, c.CONN_LEN]:
            earliest = min(earliest, _head_time(state, s, source))
    return earliest


@numba.njit(cache=True)
def service(fixed: Any, draws: Any, count: int) -> float:
    """Time of the CPU for so many tuples."""
    if count == 0:
        return 0.0
    drawn = draws.normal(fixed.process * count, fixed.process_sd * count**0.5)
    return max(drawn, 0.0)


@numba.njit(cache=True)
def run(state: Any, fixed: Any, draws: Any, s: int, work: float) -> int:
    """How long so much work takes on a site, with an external process or without."""
    if state.pace[s, c.LOADED] == 0.0:
        return int(work)
    lasted = 0.0
    while work > state.pace[s, c.BEFORE_LOAD]:
        lasted += state.pace[s, c.BEFORE_LOAD] + fixed.load_compute
        work -= state.pace[s, c.BEFORE_LOAD]
        state.pace[s, c.BEFORE_LOAD] = fixed.load_sleep + draws.random() * fixed.process
    state.pace[s, c.BEFORE_LOAD] -= work
    return int(lasted + work)


@numba.njit(cache=True)
def begin_idle(state: Any, s: int, time: int) -> None:
    """The consumer begins to wait for input."""
    if state.site[s, c.IDLE_SINCE] == c.NEVER:
        state.site[s, c.IDLE_SINCE] = time


@numba.njit(cache=True)
def end_idle(state: Any, fixed: Any, draws: Any, s: int, time: int) -> int:
    """It has something to do: when it can begin. An external process went on alone meanwhile, and
    is found at any point of its cycle."""
    if state.site[s, c.IDLE_SINCE] == c.NEVER:
        return time
    waited = max(time - state.site[s, c.IDLE_SINCE], 0)
    state.site[s, c.IDLE] += waited
    state.site[s, c.SITE_IDLE] += waited
    state.site[s, c.IDLE_SINCE] = c.NEVER
    if state.pace[s, c.LOADED] == 0.0:
        return time
    phase = draws.random() * (fixed.load_compute + fixed.load_sleep)
    sleeps = max(fixed.load_sleep - phase, 0.0)
    computes = max(phase - fixed.load_sleep, 0.0)
    if computes:
        sleeps = fixed.load_sleep
    state.pace[s, c.BEFORE_LOAD] = sleeps + draws.random() * fixed.process
    return time + int(computes)


@numba.njit(cache=True)
def _take(state: Any, fixed: Any, s: int, source: int, start: int) -> tuple[int, int]:
    """A packet's tuples: those to process now, and those of partitions on disk, set aside."""
    count = spooled = 0
    ring = state.ring.shape[2]
    while state.conn[s, source, c.CONN_LEN] and count + spooled < fixed.packet_tuples:
        head = state.conn[s, source, c.CONN_HEAD]
        if state.ring[s, source, head, c.WHEN] > start:
            break
        entry = state.ring[s, source, head, c.ENTRY]
        state.conn[s, source, c.CONN_HEAD] = (head + 1) % ring
        state.conn[s, source, c.CONN_LEN] -= 1
        if entry < 0:
            state.move[-1 - entry, c.ACKS] += 1
            continue
        state.conn[s, source, c.CONN_TUPLES] -= 1
        if state.part[entry, c.ON_DISK]:
            state.part[entry, c.SPOOL] += 1
            state.part[entry, c.SPOOL_ENTRY] += start
            spooled += 1
        else:
            state.part[entry, c.COUNTED] += 1
            count += 1
    state.site[s, c.PAGE] += spooled
    state.totals[c.SPOOLED] += spooled
    return count, spooled


@numba.njit(cache=True)
def _head_time(state: Any, s: int, source: int) -> int:
    return state.ring[s, source, state.conn[s, source, c.CONN_HEAD], c.WHEN]
