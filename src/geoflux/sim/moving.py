"""Partitions that move: ordered, paused at every producer, extracted, transferred, installed,
restarted. All other partitions go on meanwhile; the input of those that move waits in the buffers.

A producer acknowledges a pause through its connection, behind what it sent before. So once every
acknowledgement is there, nothing of the partition is under way.

Source: Flux 5.2; bandwidth for movement from 5.4.
"""

from __future__ import annotations

from typing import Any

import numba

from geoflux.sim import columns as c
from geoflux.sim.consuming import run
from geoflux.sim.producing import send, wake
from geoflux.sim.skew_queues import restart, stall
from geoflux.sim.spilling import read_in

DONE, ORDERED, PAUSING, EXTRACTING, TRANSFER, ARRIVED, INSTALLING, RESTARTING = range(8)
_STALLED, _RESTARTED = 1, 2
_ACKS, _RESTARTS = 0, 1


@numba.njit(cache=True)
def order(state: Any, fixed: Any, partitions: Any, targets: Any) -> None:
    """The controller sends out the moves of a round."""
    now = state.clock[c.NOW]
    for m in range(partitions.size):
        p = partitions[m]
        state.move[m, c.PART] = p
        state.move[m, c.FROM] = state.part[p, c.OWNER]
        state.move[m, c.TO] = targets[m]
        state.move[m, c.PHASE] = ORDERED
        state.move[m, c.TIME] = now + fixed.latency
        state.seen[m] = 0
        state.move[m, c.ACKS] = state.move[m, c.RESTARTS] = 0
        state.part[p, c.MOVING] = True
        wake(state, state.part[p, c.OWNER], state.move[m, c.TIME])
    state.clock[c.MOVES] = partitions.size


@numba.njit(cache=True)
def attend(state: Any, fixed: Any, s: int, free: bool) -> None:
    """What a site does about messages that are there; ``free``: its consumer is not blocked."""
    now = state.clock[c.NOW]
    for m in range(state.move.shape[0]):
        if state.move[m, c.PHASE] == DONE or now < state.move[m, c.TIME]:
            continue
        p = state.move[m, c.PART]
        if state.move[m, c.PHASE] == ORDERED and free and state.move[m, c.FROM] == s:
            _broadcast(state, fixed, m, PAUSING)
        elif state.move[m, c.PHASE] == PAUSING and state.seen[m, s] < _STALLED:
            state.seen[m, s] = _STALLED
            stall(state, s, p)
            send(state, fixed, s, state.move[m, c.FROM], -1 - m, 0)
        elif state.move[m, c.PHASE] == RESTARTING and state.seen[m, s] < _RESTARTED:
            state.seen[m, s] = _RESTARTED
            restart(state, s, p, state.move[m, c.TO])
            state.move[m, c.RESTARTS] += 1
            if state.move[m, c.RESTARTS] == fixed.sites:
                state.move[m, c.PHASE] = DONE
                state.part[p, c.MOVING] = False
                state.clock[c.MOVES] -= 1


@numba.njit(cache=True)
def next_message(state: Any, s: int) -> int:
    """When a message that the site has not attended to will be there."""
    earliest, now = c.NEVER, state.clock[c.NOW]
    for m in range(state.move.shape[0]):
        phase, time = state.move[m, c.PHASE], state.move[m, c.TIME]
        mine = phase in (PAUSING, RESTARTING) or (phase == ORDERED and state.move[m, c.FROM] == s)
        if mine and now < time < earliest:
            earliest = time
    return earliest


@numba.njit(cache=True)
def is_pausing(state: Any, s: int) -> bool:
    """Whether a partition that leaves the site waits for acknowledgements."""
    if state.clock[c.MOVES]:
        for m in range(state.move.shape[0]):
            if state.move[m, c.FROM] == s and state.move[m, c.PHASE] == PAUSING:
                return True
    return False


@numba.njit(cache=True)
def begin_move_work(state: Any, fixed: Any, draws: Any, s: int, start: int) -> bool:
    """Extract or install a partition, if one is ready; whether there was one."""
    for m in range(state.move.shape[0]):
        phase = state.move[m, c.PHASE]
        if phase == PAUSING and state.move[m, c.FROM] == s and state.move[m, c.ACKS] == fixed.sites:
            p = state.move[m, c.PART]
            if state.part[p, c.ON_DISK]:
                # Its input that was set aside is processed before it leaves.
                read_in(state, fixed, draws, s, p, start)
                return True
            state.move[m, c.PHASE] = EXTRACTING
            _work(state, fixed, draws, s, c.EXTRACT, m, start)
            return True
        if phase == ARRIVED and state.move[m, c.TO] == s:
            state.move[m, c.PHASE] = INSTALLING
            _work(state, fixed, draws, s, c.INSTALL, m, start)
            return True
    return False


@numba.njit(cache=True)
def end_move_work(state: Any, fixed: Any, s: int, kind: int, m: int) -> None:
    """A partition was extracted and leaves, or was installed and restarts."""
    if kind == c.EXTRACT:
        state.site[s, c.RESIDENT] -= fixed.partition_bytes
        advance_transfers(state, fixed)
        state.move[m, c.PHASE] = TRANSFER
        state.move[m, c.LEFT] = fixed.partition_bytes
        _plan_transfers(state, fixed)
    elif kind == c.INSTALL:
        p = state.move[m, c.PART]
        state.part[p, c.OWNER] = s
        state.site[s, c.RESIDENT] += fixed.partition_bytes
        _broadcast(state, fixed, m, RESTARTING)


@numba.njit(cache=True)
def advance_transfers(state: Any, fixed: Any) -> None:
    """Let the transfers go on until now; tell the sites of those that have ended."""
    now = state.clock[c.NOW]
    sent = _rate(state, fixed) * (now - state.clock[c.NET_TIME])
    for m in range(state.move.shape[0]):
        if state.move[m, c.PHASE] == TRANSFER:
            state.move[m, c.LEFT] -= sent
            if state.move[m, c.LEFT] < 1.0:
                state.move[m, c.PHASE] = ARRIVED
                wake(state, state.move[m, c.TO], now)
    state.clock[c.NET_TIME] = now
    _plan_transfers(state, fixed)


@numba.njit(cache=True)
def _plan_transfers(state: Any, fixed: Any) -> None:
    least = -1.0
    for m in range(state.move.shape[0]):
        if state.move[m, c.PHASE] == TRANSFER and (least < 0 or state.move[m, c.LEFT] < least):
            least = state.move[m, c.LEFT]
    rate = _rate(state, fixed)
    state.clock[c.NET_NEXT] = c.NEVER if least < 0 else state.clock[c.NOW] + int(least / rate) + 1


@numba.njit(cache=True)
def _rate(state: Any, fixed: Any) -> float:
    """Bytes per nanosecond of each transfer: its own bound, or its share of the cross-section."""
    count = 0
    for m in range(state.move.shape[0]):
        count += state.move[m, c.PHASE] == TRANSFER
    return min(fixed.point_to_point, fixed.cross_section / max(count, 1))


@numba.njit(cache=True)
def _broadcast(state: Any, fixed: Any, m: int, phase: int) -> None:
    state.move[m, c.PHASE] = phase
    state.move[m, c.TIME] = state.clock[c.NOW] + fixed.latency
    for s in range(fixed.sites):
        wake(state, s, state.move[m, c.TIME])


@numba.njit(cache=True)
def _work(state: Any, fixed: Any, draws: Any, s: int, kind: int, m: int, start: int) -> None:
    state.site[s, c.TURN_KIND] = kind
    state.site[s, c.TURN_COUNT] = m
    state.site[s, c.BUSY_UNTIL] = start + run(state, fixed, draws, s, fixed.move_work)
