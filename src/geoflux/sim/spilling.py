"""Partitions that do not fit in memory: written to disk, and rotated through memory in turn.

Every operation is synchronous: the consumer is blocked, the producer of the site is not. Input of
a partition on disk is set aside in pages and processed when the partition is read again. Who has
been longest in memory goes first, who has been longest on disk comes back first. Swapping takes at
most its share of the time, so that input is never shut out (ours; the text has no such detail).

Source: Flux 6, 6.2.
"""

from __future__ import annotations

from typing import Any

import numba

from geoflux.sim import columns as c
from geoflux.sim.consuming import begin_tuples, run, service


@numba.njit(cache=True)
def use_disk(state: Any, fixed: Any, draws: Any, s: int, start: int) -> bool:
    """Begin with what the consumer must do on disk, if anything; whether there was something."""
    if state.site[s, c.PAGE] >= fixed.page_tuples:
        state.site[s, c.PAGE] -= fixed.page_tuples
        page = _transfer(state, fixed, draws, fixed.page_tuples * fixed.tuple_bytes)
        state.site[s, c.BLOCKED_UNTIL] = start + page
        return True
    if state.site[s, c.RESIDENT] > state.site[s, c.CAPACITY]:
        victim = _longest(state, s, False)
        if victim != c.NONE:
            state.site[s, c.BLOCKED_UNTIL] = start + _write(state, fixed, draws, victim)
            return True
    if state.site[s, c.DISK_COUNT]:
        p = _longest(state, s, True)
        room = state.site[s, c.RESIDENT] + fixed.partition_bytes <= state.site[s, c.CAPACITY]
        if p != c.NONE and (room or start >= state.site[s, c.SWAP_AT]):
            _swap(state, fixed, draws, s, p, start)
            return True
    return False


@numba.njit(cache=True)
def read_in(state: Any, fixed: Any, draws: Any, s: int, p: int, start: int) -> None:
    """Read a partition and what was set aside for it, which is then processed."""
    lasts = _transfer(state, fixed, draws, fixed.partition_bytes) + int(fixed.move_work)
    if state.part[p, c.SPOOL]:
        lasts += _transfer(state, fixed, draws, state.part[p, c.SPOOL] * fixed.tuple_bytes)
        state.site[s, c.BACKLOG] = p
    state.part[p, c.ON_DISK] = False
    state.site[s, c.DISK_COUNT] -= 1
    _stamp(state, p)
    state.site[s, c.RESIDENT] += fixed.partition_bytes
    state.site[s, c.BLOCKED_UNTIL] = max(start, state.site[s, c.BLOCKED_UNTIL]) + lasts


@numba.njit(cache=True)
def work_off(state: Any, fixed: Any, draws: Any, s: int, start: int) -> bool:
    """Process a packet of what was set aside for the partition just read; whether there was one.
    Nothing else is processed before, so that the order of its input is kept."""
    p = state.site[s, c.BACKLOG]
    if p == c.NONE:
        return False
    count = min(fixed.packet_tuples, state.part[p, c.SPOOL])
    end = start + run(state, fixed, draws, s, service(fixed, draws, count))
    entered = state.part[p, c.SPOOL_ENTRY] / state.part[p, c.SPOOL]
    state.part[p, c.SPOOL_ENTRY] -= entered * count
    state.part[p, c.SPOOL] -= count
    state.part[p, c.COUNTED] += count
    begin_tuples(state, s, count, end, count * (end - entered))
    if state.part[p, c.SPOOL] == 0:
        state.site[s, c.BACKLOG] = c.NONE
    return True


@numba.njit(cache=True)
def next_swap(state: Any, s: int) -> int:
    """When a consumer without input would swap; NEVER when it could already, but has nothing."""
    later = state.site[s, c.DISK_COUNT] and state.site[s, c.SWAP_AT] > state.clock[c.NOW]
    return state.site[s, c.SWAP_AT] if later else c.NEVER


@numba.njit(cache=True)
def _swap(state: Any, fixed: Any, draws: Any, s: int, p: int, start: int) -> None:
    state.site[s, c.BLOCKED_UNTIL] = start
    if state.site[s, c.RESIDENT] + fixed.partition_bytes > state.site[s, c.CAPACITY]:
        victim = _longest(state, s, False)
        if victim != c.NONE:
            state.site[s, c.BLOCKED_UNTIL] = start + _write(state, fixed, draws, victim)
    read_in(state, fixed, draws, s, p, start)
    end = state.site[s, c.BLOCKED_UNTIL]
    state.site[s, c.SWAP_AT] = end + int((end - start) * fixed.swap_rest)


@numba.njit(cache=True)
def _write(state: Any, fixed: Any, draws: Any, p: int) -> int:
    s = state.part[p, c.OWNER]
    state.part[p, c.ON_DISK] = True
    state.site[s, c.DISK_COUNT] += 1
    _stamp(state, p)
    state.site[s, c.RESIDENT] -= fixed.partition_bytes
    return int(fixed.move_work) + _transfer(state, fixed, draws, fixed.partition_bytes)


@numba.njit(cache=True)
def _transfer(state: Any, fixed: Any, draws: Any, size: int) -> int:
    state.totals[c.DISK_OPERATIONS] += 1
    return int(max(draws.normal(fixed.seek, fixed.seek_sd), 0.0) + size * fixed.disk_byte)


@numba.njit(cache=True)
def _stamp(state: Any, p: int) -> None:
    state.part[p, c.SINCE] = state.totals[c.DISK_TURN]
    state.totals[c.DISK_TURN] += 1


@numba.njit(cache=True)
def _longest(state: Any, s: int, on_disk: bool) -> int:
    """Which of a site's partitions has been longest on disk, or in memory; none that moves."""
    found = c.NONE
    for p in range(state.part.shape[0]):
        owned = state.part[p, c.OWNER] == s and not state.part[p, c.MOVING]
        if not owned or state.part[p, c.ON_DISK] != on_disk:
            continue
        if found == c.NONE or state.part[p, c.SINCE] < state.part[found, c.SINCE]:
            found = p
    return found
