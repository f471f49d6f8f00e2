"""The transient-skew buffer in arrays: the rules of `balance.skew_buffer.SkewBuffer`, compiled.

One budget for all tuples of a producer. A destination gets the oldest tuple of its partitions that
are not stalled; per partition the order is always kept. Lists of a destination are kept in order
of age, so that each step is O(1); only stalling and restarting a partition walk a list. A law
drives this and `SkewBuffer` with the same operations.

Source: Flux 4, 5.2.
"""

from __future__ import annotations

from typing import Any

import numba

from geoflux.sim import columns as c


@numba.njit(cache=True)
def insert(state: Any, s: int, p: int) -> None:
    """Put a tuple into the buffer of producer ``s``; the caller has seen that there is room."""
    node = state.site[s, c.FREE_NODE]
    state.site[s, c.FREE_NODE] = state.node[s, node, c.NODE_NEXT]
    state.node[s, node, c.NODE_PART] = p
    state.node[s, node, c.NODE_SEQ] = state.site[s, c.SEQUENCE]
    state.site[s, c.SEQUENCE] += 1
    state.site[s, c.USED] += 1
    d = state.dest[s, p]
    if d == c.NONE:
        _append(state, s, state.lists[s, state.site.shape[0] + p], node)
    else:
        _append(state, s, state.lists[s, d], node)


@numba.njit(cache=True)
def retrieve(state: Any, s: int, d: int) -> int:
    """Take the partition of the oldest tuple for ``d``, or NONE."""
    ends = state.lists[s, d]
    node = ends[c.FIRST]
    if node == c.NONE:
        return c.NONE
    ends[c.FIRST] = state.node[s, node, c.NODE_NEXT]
    if ends[c.FIRST] == c.NONE:
        ends[c.LAST] = c.NONE
    state.node[s, node, c.NODE_NEXT] = state.site[s, c.FREE_NODE]
    state.site[s, c.FREE_NODE] = node
    state.site[s, c.USED] -= 1
    return state.node[s, node, c.NODE_PART]


@numba.njit(cache=True)
def stall(state: Any, s: int, p: int) -> None:
    """Hold a partition's tuples back; those of others keep their order."""
    ends, held = state.lists[s, state.dest[s, p]], state.lists[s, state.site.shape[0] + p]
    node = ends[c.FIRST]
    ends[c.FIRST] = ends[c.LAST] = c.NONE
    while node != c.NONE:
        following = state.node[s, node, c.NODE_NEXT]
        if state.node[s, node, c.NODE_PART] == p:
            _append(state, s, held, node)
        else:
            _append(state, s, ends, node)
        node = following
    state.dest[s, p] = c.NONE


@numba.njit(cache=True)
def restart(state: Any, s: int, p: int, d: int) -> None:
    """Send a stalled partition's tuples to ``d`` from now on, the oldest of all first."""
    ends, held = state.lists[s, d], state.lists[s, state.site.shape[0] + p]
    one, two = ends[c.FIRST], held[c.FIRST]
    ends[c.FIRST] = ends[c.LAST] = held[c.FIRST] = held[c.LAST] = c.NONE
    while one != c.NONE or two != c.NONE:
        first = two == c.NONE
        if one != c.NONE and two != c.NONE:
            first = state.node[s, one, c.NODE_SEQ] < state.node[s, two, c.NODE_SEQ]
        if first:
            following = state.node[s, one, c.NODE_NEXT]
            _append(state, s, ends, one)
            one = following
        else:
            following = state.node[s, two, c.NODE_NEXT]
            _append(state, s, ends, two)
            two = following
    state.dest[s, p] = d


@numba.njit(cache=True)
def _append(state: Any, s: int, ends: Any, node: int) -> None:
    state.node[s, node, c.NODE_NEXT] = c.NONE
    if ends[c.FIRST] == c.NONE:
        ends[c.FIRST] = node
    else:
        state.node[s, ends[c.LAST], c.NODE_NEXT] = node
    ends[c.LAST] = node
