"""The event loop: who acts next, until something needs the controller.

A site is one entry of the calendar: its CPU goes from turn to turn, first the producer's, then the
consumer's. With tens of sites the earliest entry is found by looking at all of them, without a
heap to keep in order.
"""

from __future__ import annotations

from typing import Any

import numba

from geoflux.sim import columns as c
from geoflux.sim.consuming import (
    begin_idle,
    end_idle,
    finish_turn,
    next_arrival,
    run,
    take_packet,
)
from geoflux.sim.moving import (
    advance_transfers,
    attend,
    begin_move_work,
    end_move_work,
    is_pausing,
    next_message,
)
from geoflux.sim.producing import produce, wake
from geoflux.sim.spilling import next_swap, use_disk, work_off
from geoflux.sim.state import uncounted

ENDED, REPORTED, MOVED = range(3)


@numba.njit(cache=True)
def advance(state: Any, fixed: Any, draws: Any, until: int) -> int:
    """Go on until this time, or until the reports of a phase or all moves of a round are there."""
    return _advance(uncounted(state), fixed, draws, until)


@numba.njit(cache=True)
def _advance(state: Any, fixed: Any, draws: Any, until: int) -> int:
    clock = state.clock
    while True:
        s = _earliest(state)
        change = state.changes[clock[c.NEXT_CHANGE], c.CHANGE_TIME]
        event = min(min(clock[c.PHASE_END], change), clock[c.NET_NEXT])
        if min(event, state.site[s, c.NEXT]) >= until:
            clock[c.NOW] = until
            return ENDED
        reports, moves = clock[c.REPORTS_DUE], clock[c.MOVES]
        if event <= state.site[s, c.NEXT]:
            clock[c.NOW] = event
            if event == clock[c.PHASE_END]:
                if _end_phase(state, fixed) == 0:
                    return REPORTED
            elif event == change:
                _change_load(state)
            else:
                advance_transfers(state, fixed)
            continue
        clock[c.NOW] = state.site[s, c.NEXT]
        _act(state, fixed, draws, s)
        if reports and clock[c.REPORTS_DUE] == 0:
            return REPORTED
        if moves and clock[c.MOVES] == 0:
            return MOVED


@numba.njit(cache=True)
def _earliest(state: Any) -> int:
    """The site that acts next. By itself, so that it is a number to the compiler: a 0 in the loop
    would have everything that takes a site compiled twice, for "0" and for any number."""
    s = 0
    for other in range(1, state.site.shape[0]):
        if state.site[other, c.NEXT] < state.site[s, c.NEXT]:
            s = other
    return s


@numba.njit(cache=True)
def begin_phase(state: Any, fixed: Any, lasts: int) -> None:
    """Begin to collect what sites will report."""
    now = state.clock[c.NOW]
    state.clock[c.PHASE_END] = now + lasts
    _settle_idle(state, fixed)
    state.site[:, c.IDLE] = 0
    state.part[:, c.COUNTED] = 0


@numba.njit(cache=True)
def _end_phase(state: Any, fixed: Any) -> int:
    """Note what is to be reported; how many sites can report only later."""
    now = state.clock[c.NOW]
    state.clock[c.PHASE_END] = c.NEVER
    _settle_idle(state, fixed)
    for p in range(state.part.shape[0]):
        state.part[p, c.COUNTED_SEEN] = state.part[p, c.COUNTED]
    due = 0
    for s in range(fixed.sites):
        state.site[s, c.IDLE_SEEN] = state.site[s, c.IDLE]
        state.site[s, c.OWES] = state.site[s, c.BLOCKED_UNTIL] > now
        due += state.site[s, c.OWES]
    state.clock[c.REPORTS_DUE] = due
    return due


@numba.njit(cache=True)
def _settle_idle(state: Any, fixed: Any) -> None:
    now = state.clock[c.NOW]
    for s in range(fixed.sites):
        since = state.site[s, c.IDLE_SINCE]
        if since < now:
            state.site[s, c.IDLE] += now - since
            state.site[s, c.SITE_IDLE] += now - since
            state.site[s, c.IDLE_SINCE] = now


@numba.njit(cache=True)
def _change_load(state: Any) -> None:
    place = state.clock[c.NEXT_CHANGE]
    s, kind = state.changes[place, c.CHANGE_SITE], state.changes[place, c.CHANGE_KIND]
    if kind == c.CPU_ON:
        state.pace[s, c.LOADED] = 1.0
    elif kind == c.CPU_OFF:
        state.pace[s, c.LOADED] = 0.0
    elif kind == c.MEMORY:
        state.site[s, c.CAPACITY] = state.changes[place, c.CHANGE_VALUE]
        wake(state, s, state.clock[c.NOW])
    state.clock[c.NEXT_CHANGE] = place + 1


@numba.njit(cache=True)
def _act(state: Any, fixed: Any, draws: Any, s: int) -> None:
    """The CPU of a site is free: the producer's turn, then the consumer's."""
    now = state.clock[c.NOW]
    m = state.site[s, c.TURN_COUNT]
    kind = finish_turn(state, s)
    if kind in (c.EXTRACT, c.INSTALL):
        end_move_work(state, fixed, s, kind, m)
    free = state.site[s, c.BLOCKED_UNTIL] <= now
    if free and state.site[s, c.OWES]:
        state.site[s, c.OWES] = False
        state.clock[c.REPORTS_DUE] -= 1
    if state.clock[c.MOVES]:
        attend(state, fixed, s, free)
    made = produce(state, fixed, draws, s)
    start = now + run(state, fixed, draws, s, made * fixed.produce)
    state.site[s, c.BUSY_UNTIL] = start
    if free:
        _consume(state, fixed, draws, s, start)
    if state.site[s, c.TURN_KIND] != c.NOTHING:
        state.site[s, c.NEXT] = state.site[s, c.BUSY_UNTIL]
        return
    wakes = state.site[s, c.BLOCKED_UNTIL]
    if wakes <= now:
        wakes = min(next_arrival(state, fixed, s), next_swap(state, s))
    if state.clock[c.MOVES]:
        wakes = min(wakes, next_message(state, s))
    state.site[s, c.NEXT] = max(wakes, start)


@numba.njit(cache=True)
def _consume(state: Any, fixed: Any, draws: Any, s: int, start: int) -> None:
    """What the consumer does next; nothing: it waits for input."""
    if work_off(state, fixed, draws, s, start):
        return
    if begin_move_work(state, fixed, draws, s, start):
        end_idle(state, fixed, draws, s, start)
        return
    # What is on its way to a partition that leaves is behind other input: that goes first.
    if not is_pausing(state, s) and use_disk(state, fixed, draws, s, start):
        end_idle(state, fixed, draws, s, start)
        return
    if take_packet(state, fixed, draws, s, start):
        return
    if begin_move_work(state, fixed, draws, s, start):
        # The last acknowledgement was just taken.
        end_idle(state, fixed, draws, s, start)
        return
    begin_idle(state, s, start)
