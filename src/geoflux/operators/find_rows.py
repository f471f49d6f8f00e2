"""Which rows of a retained segment lie in a part of an area: the inner loop of snapshots, compiled.

Rows are sorted by cell, row by row of the grid, so the cells of one grid row within the part are
one run of rows: two binary searches find it. Only rows of blocks at the edge are compared.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from geoflux.operators.area import SKIP, TEST


@numba.njit(cache=True)
def find_rows(
    index: Any, cells: Any, shift: int, verdict: Any, box: Any, points: Any, times: Any
) -> Any:
    """Rows in the part, which of them are in doubt, and how many rows were in its cells.

    ``index`` = (key of each non-empty cell, offsets, columns of the grid), ``cells`` = the part's
    columns and rows clipped to the segment's rectangle and the corner that blocks count from,
    ``points`` = (x, y), ``times`` = (time, from, to); an empty ``time`` is not looked at.
    """
    keys, offsets, width = index
    col0, row0, col1, row1, corner_col, corner_row = cells
    x0, y0, x1, y1 = box
    x, y = points
    time, start, stop = times
    count = max(row1 - row0 + 1, 0)
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    total = 0
    place = 0
    for r in range(count):
        key = (row0 + r) * width
        place += np.searchsorted(keys[place:], key + col0)
        first[r] = place
        place += np.searchsorted(keys[place:], key + col1 + 1)
        last[r] = place
        total += offsets[last[r]] - offsets[first[r]]
    rows = np.empty(total, np.int32)
    doubt = np.empty(total, np.bool_)
    k = 0
    for r in range(count):
        key = (row0 + r) * width
        block_row = ((row0 + r) >> shift) - (corner_row >> shift)
        for g in range(first[r], last[r]):
            block = ((keys[g] - key) >> shift) - (corner_col >> shift)
            found = verdict[block_row, block]
            if found == SKIP:
                continue
            edge = found == TEST
            for i in range(offsets[g], offsets[g + 1]):
                if edge and not (x0 <= x[i] <= x1 and y0 <= y[i] <= y1):
                    continue
                if time.size > 0 and not start <= time[i] <= stop:
                    continue
                rows[k] = i
                doubt[k] = edge
                k += 1
    return rows[:k], doubt[:k], total
