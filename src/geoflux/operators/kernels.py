"""The inner loops of matching, compiled; written for memory order.

Events arrive sorted by cell, so that a cell's rectangles are read once for all its events. Ticks
are compared first: an event strictly between two ticks is inside for certain, an event on a tick
is compared again with the exact coordinates. Nothing here allocates per event. Indices of the
innermost loops are unsigned: a signed one could count from the end, and the test for it keeps the
loop from being vectorised.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from geoflux.operators.runs import by_rank

EASTERN_PART = -3
"""Lower tick that marks the part of a wrapping box which lies east of the antimeridian."""
_FEW_EVENTS = 12
"""With fewer events in a cell the loop runs over the cell's rectangles instead."""


@numba.njit(cache=True)
def sort_by_cell(cells: Any, cell_count: int) -> Any:
    """Counting sort: the order of events by cell, and where each non-empty cell starts.

    Returns ``order``, ``group_cells`` and ``group_offsets`` (one longer than ``group_cells``).
    """
    return by_rank(np.arange(cells.size, dtype=np.int32), cells, cell_count)


@numba.njit(cache=True, inline="always")
def _exactly_inside(x: Any, y: Any, q: Any, x0_tick: Any, exact: Any) -> bool:
    """The comparison with the coordinates as given; a box with west > east has two parts."""
    west, south, east, north = exact[0][q], exact[1][q], exact[2][q], exact[3][q]
    if y < south or y > north:
        return False
    if west <= east:
        return west <= x <= east
    return x <= east if x0_tick == EASTERN_PART else x >= west


@numba.njit(cache=True)
def add_checks(groups: Any, levels: Any, offsets: Any, weight: float, checks: Any) -> None:
    """Add to each cell that has events how many boxes they are compared with altogether."""
    group_cells, group_offsets, width = groups
    for g in range(group_cells.size):
        row, column = group_cells[g] // width, group_cells[g] % width
        boxes = np.int64(0)
        for level in range(levels.shape[0]):
            shift = levels[level, 2]
            bucket = levels[level, 0] + (row >> shift) * levels[level, 1] + (column >> shift)
            boxes += offsets[bucket + 1] - offsets[bucket]
        checks[g] += weight * boxes * (group_offsets[g + 1] - group_offsets[g])


@numba.njit(cache=True)
def count_matches(
    groups: Any, events: Any, levels: Any, offsets: Any, boxes: Any, exact: Any, counts: Any
) -> Any:
    """Add the matches of every query to ``counts``; returns how many boxes were compared.

    ``groups`` = (group_cells, group_offsets, columns of the partition), ``events`` = (tick x,
    tick y, x, y) in cell order, ``levels`` = (first bucket, columns, shift) per level, ``boxes`` =
    (x0, y0, x1, y1, query) in bucket order, ``exact`` = coordinates per query.
    """
    group_cells, group_offsets, width = groups
    tx, ty, px, py = events
    bx0, by0, bx1, by1, bq = boxes
    checks = np.int64(0)
    buffer = np.zeros(1024, np.int32)
    for g in range(group_cells.size):
        row, column = group_cells[g] // width, group_cells[g] % width
        first, last = group_offsets[g], group_offsets[g + 1]
        for level in range(levels.shape[0]):
            shift = levels[level, 2]
            bucket = levels[level, 0] + (row >> shift) * levels[level, 1] + (column >> shift)
            start, stop = offsets[bucket], offsets[bucket + 1]
            if start == stop:
                continue
            checks += np.int64(stop - start) * np.int64(last - first)
            if last - first >= _FEW_EVENTS:
                for entry in range(start, stop):
                    box = np.uint32(entry)
                    x0, y0, x1, y1 = bx0[box], by0[box], bx1[box], by1[box]
                    sure = np.int32(0)
                    maybe = np.int32(0)
                    for event in range(first, last):
                        at = np.uint32(event)
                        x, y = tx[at], ty[at]
                        sure += np.int32((x0 < x) & (x < x1) & (y0 < y) & (y < y1))
                        maybe += np.int32((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1))
                    if maybe != sure:
                        sure = np.int32(0)
                        for i in range(first, last):
                            x, y = tx[i], ty[i]
                            if (x0 < x) & (x < x1) & (y0 < y) & (y < y1):
                                sure += np.int32(1)
                            elif (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1):
                                sure += np.int32(_exactly_inside(px[i], py[i], bq[box], x0, exact))
                    counts[bq[box]] += sure
            else:
                size = stop - start
                if buffer.size < size:
                    buffer = np.zeros(2 * size, np.int32)
                for i in range(first, last):
                    x, y = tx[i], ty[i]
                    doubt = np.int32(0)
                    for j in range(size):
                        at = np.uint32(start + j)
                        x0, y0, x1, y1 = bx0[at], by0[at], bx1[at], by1[at]
                        sure = np.int32((x0 < x) & (x < x1) & (y0 < y) & (y < y1))
                        maybe = np.int32((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1))
                        buffer[j] += sure
                        doubt |= sure ^ maybe
                    if doubt != 0:
                        for j in range(size):
                            k = start + j
                            x0, y0, x1, y1 = bx0[k], by0[k], bx1[k], by1[k]
                            if (
                                (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
                                and not ((x0 < x) & (x < x1) & (y0 < y) & (y < y1))
                                and _exactly_inside(px[i], py[i], bq[k], x0, exact)
                            ):  # fmt: skip
                                buffer[j] += np.int32(1)
                for j in range(size):
                    counts[bq[start + j]] += buffer[j]
                    buffer[j] = 0
    return checks


@numba.njit(cache=True)
def list_matches(
    groups: Any, events: Any, levels: Any, offsets: Any, boxes: Any, exact: Any,
    cursor: Any, out_event: Any, out_query: Any, out_entry: Any,
) -> Any:  # fmt: skip
    """List (event, query) pairs from ``cursor`` (group, event) on until the room is used up.

    Returns (pairs, boxes compared, next group, next event, room needed): the next group is the
    number of groups when all is done. ``out_entry`` gets the place in ``boxes`` when it has room
    for it, so that the caller can look up what else is known of the entry.
    """
    group_cells, group_offsets, width = groups
    tx, ty, px, py = events
    bx0, by0, bx1, by1, bq = boxes
    checks = np.int64(0)
    room = out_event.size
    note_entries = out_entry.size > 0
    k = 0
    for g in range(cursor[0], group_cells.size):
        row, column = group_cells[g] // width, group_cells[g] % width
        first, last = group_offsets[g], group_offsets[g + 1]
        if g == cursor[0] and cursor[1] > first:
            first = cursor[1]
        need = 0
        for level in range(levels.shape[0]):
            shift = levels[level, 2]
            bucket = levels[level, 0] + (row >> shift) * levels[level, 1] + (column >> shift)
            need += offsets[bucket + 1] - offsets[bucket]
        if need == 0:
            continue
        for i in range(first, last):
            if k + need > room:
                return k, checks, g, i, need
            x, y = tx[i], ty[i]
            checks += need
            for level in range(levels.shape[0]):
                shift = levels[level, 2]
                bucket = levels[level, 0] + (row >> shift) * levels[level, 1] + (column >> shift)
                for entry in range(offsets[bucket], offsets[bucket + 1]):
                    j = np.uint32(entry)
                    maybe = (bx0[j] <= x) & (x <= bx1[j]) & (by0[j] <= y) & (y <= by1[j])
                    sure = (bx0[j] < x) & (x < bx1[j]) & (by0[j] < y) & (y < by1[j])
                    if maybe != sure:
                        maybe = _exactly_inside(px[i], py[i], bq[j], bx0[j], exact)
                    out_event[np.uint64(k)] = i
                    out_query[np.uint64(k)] = bq[j]
                    if note_entries:
                        out_entry[k] = j
                    k += int(maybe)
    return k, checks, group_cells.size, 0, 0
