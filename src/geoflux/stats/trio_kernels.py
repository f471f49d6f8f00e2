"""The inner loops of the statistics, compiled, and the layout of the array that they work on.

One row of the array per row of the partition, then one per column; what is known of a row lies
side by side. The first five numbers and the three collectors are TrioStat's (3.2.1, 3.2.2); the
others are ours: work, the points of the last round by themselves, and collectors of what left.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

N = 0
"""Points, cumulative from the first row to this one, as are the next two."""
Q = 1
"""Queries, each counted in the first row that it touches."""
R = 2
"""Points and queries received in the last round."""
SPAN = 3
"""Queries that reach into this row from the one before; always 0 in the first."""
PRE_SPAN = 4
"""Those of them that were received in the last round."""
WORK = 5
"""Work done, cumulative."""
LAST_N = 6
"""The part of R that is points, cumulative: what is left of R comes from query boxes."""
N_IN = 7
"""Collectors of this round, per row, not cumulative: points, queries, spans, work."""
Q_IN = 8
SPAN_IN = 9
WORK_IN = 10
N_OUT = 11
"""Collectors of what left in this round: expired points, ended queries, their spans."""
Q_OUT = 12
SPAN_OUT = 13
FIELDS = 14


@numba.njit(cache=True)
def receive(table: Any, area: Any, columns: Any, rows: Any, work: Any) -> None:
    """Count events: two numbers each, and their work; one entry of ``work`` stands for all."""
    col0, row0, height = area
    same = work.size == 1
    for i in range(columns.size):
        row = rows[i] - row0
        column = height + columns[i] - col0
        done = work[0] if same else work[i]
        table[row, N_IN] += 1.0
        table[column, N_IN] += 1.0
        table[row, WORK_IN] += done
        table[column, WORK_IN] += done


@numba.njit(cache=True)
def receive_cells(
    table: Any, height: int, width: int, cells: Any, counts: Any, work: Any
) -> None:  # fmt: skip
    """Count events that are counted per cell already; cells row by row within the partition."""
    for i in range(cells.size):
        row = cells[i] // width
        column = height + cells[i] % width
        table[row, N_IN] += counts[i]
        table[column, N_IN] += counts[i]
        table[row, WORK_IN] += work[i]
        table[column, WORK_IN] += work[i]


@numba.njit(cache=True)
def answer(table: Any, height: int, work: float) -> None:
    """Share work out over the queries, by the rows (and the columns) in which they begin."""
    for first, last in ((0, height), (height, table.shape[0])):
        total = table[last - 1, Q]
        for i in range(first, last):
            total += table[i, Q_IN]
        if total <= 0.0:
            continue
        before, share = 0.0, work / total
        for i in range(first, last):
            table[i, WORK_IN] += (table[i, Q] - before + table[i, Q_IN]) * share
            before = table[i, Q]


@numba.njit(cache=True)
def expire(table: Any, box: Any, columns: Any, rows: Any, counts: Any) -> None:
    """Count points that go; those outside the partition are somebody else's."""
    col0, row0, col1, row1 = box
    height = row1 - row0
    for i in range(columns.size):
        if col0 <= columns[i] < col1 and row0 <= rows[i] < row1:
            table[rows[i] - row0, N_OUT] += counts[i]
            table[height + columns[i] - col0, N_OUT] += counts[i]


@numba.njit(cache=True)
def spread(table: Any, box: Any, ranges: Any, start: int, span: int) -> None:
    """Clip queries to the partition and count each in the field ``start`` of the first row that
    it touches and in the field ``span`` of the others; the same for columns."""
    col0, row0, col1, row1 = box
    q_col0, q_row0, q_col1, q_row1 = ranges
    height, width = row1 - row0, col1 - col0
    begins = np.zeros(height + width + 2)
    for q in range(q_col0.size):
        left, right = max(q_col0[q], col0) - col0, min(q_col1[q], col1 - 1) - col0
        low, high = max(q_row0[q], row0) - row0, min(q_row1[q], row1 - 1) - row0
        if left > right or low > high or q_col1[q] < q_col0[q]:
            continue
        table[low, start] += 1.0
        table[height + left, start] += 1.0
        begins[low + 1] += 1.0
        begins[high + 1] -= 1.0
        begins[height + 1 + left + 1] += 1.0
        begins[height + 1 + right + 1] -= 1.0
    spans = 0.0
    for i in range(height):
        spans += begins[i]
        table[i, span] += spans
    spans = 0.0
    for i in range(width):
        spans += begins[height + 1 + i]
        table[height + i, span] += spans


@numba.njit(cache=True)
def take_up(table: Any, box: Any, ranges: Any, work: float) -> int:
    """Work for each query that touches the partition, in the first row and column that it touches;
    how many do."""
    col0, row0, col1, row1 = box
    q_col0, q_row0, q_col1, q_row1 = ranges
    height, count = row1 - row0, 0
    for q in range(q_col0.size):
        left, low = max(q_col0[q], col0), max(q_row0[q], row0)
        if left <= min(q_col1[q], col1 - 1) and low <= min(q_row1[q], row1 - 1):
            table[low - row0, WORK_IN] += work
            table[height + left - col0, WORK_IN] += work
            count += 1
    return count


@numba.njit(cache=True)
def close(table: Any, height: int, retained: bool, memory: float) -> None:
    """End a round in one pass: statistics from collectors, which start again at 0."""
    fade = 1.0 if retained else 0.5
    points = queries = left_points = left_queries = work = 0.0
    for i in range(table.shape[0]):
        if i == height:
            points = queries = left_points = left_queries = work = 0.0
        row = table[i]
        points += row[N_IN]
        queries += row[Q_IN]
        left_queries += row[Q_OUT]
        work += row[WORK_IN]
        if retained:
            left_points += row[N_OUT]
        row[N] = row[N] * fade + points - left_points
        row[Q] += queries - left_queries
        row[R] = points + queries
        row[LAST_N] = points
        row[SPAN] += row[SPAN_IN] - row[SPAN_OUT]
        row[PRE_SPAN] = row[SPAN_IN]
        row[WORK] = memory * row[WORK] + (1.0 - memory) * work
        for field in range(N_IN, FIELDS):
            row[field] = 0.0
