"""The inner loops of histories, compiled: where each row's history begins, and statistics over it.

Every statistic is computed from the values of the history alone, never from an earlier result: it
does not depend on how rows were cut into batches, and errors do not add up.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def last_rows(offsets: Any, most: int) -> tuple[Any, Any]:
    """For every row where the ``most`` last rows of its group begin; and the rows to keep."""
    starts = np.empty(offsets[-1], np.int64)
    kept = np.empty(offsets.size - 1, np.int64)
    for group in range(offsets.size - 1):
        first, last = offsets[group], offsets[group + 1]
        for row in range(first, last):
            starts[row] = max(first, row + 1 - most)
        kept[group] = min(most, last - first)
    return starts, kept


@numba.njit(cache=True)
def last_span(offsets: Any, times: Any, span: int) -> tuple[Any, Any]:
    """The same for histories that end where a row is ``span`` older than the latest that its group
    has seen; rows leave in the order in which they came."""
    starts = np.empty(offsets[-1], np.int64)
    kept = np.empty(offsets.size - 1, np.int64)
    for group in range(offsets.size - 1):
        first, last = offsets[group], offsets[group + 1]
        start, latest = first, np.int64(-(2**63))
        for row in range(first, last):
            latest = max(latest, times[row])
            while times[start] <= latest - span:
                start += 1
            starts[row] = start
        kept[group] = last - start
    return starts, kept


@numba.njit(cache=True)
def counts(values: Any, starts: Any, ends: Any) -> Any:
    """How many rows."""
    return (ends - starts).astype(np.float64)


@numba.njit(cache=True)
def means(values: Any, starts: Any, ends: Any) -> Any:
    """Their mean."""
    out = np.empty(starts.size)
    for i in range(starts.size):
        total = 0.0
        for k in range(starts[i], ends[i]):
            total += values[k]
        out[i] = total / (ends[i] - starts[i])
    return out


@numba.njit(cache=True)
def deviations(values: Any, starts: Any, ends: Any) -> Any:
    """The standard deviation of a sample, in two passes."""
    out = np.empty(starts.size)
    for i in range(starts.size):
        count = ends[i] - starts[i]
        total = 0.0
        for k in range(starts[i], ends[i]):
            total += values[k]
        mean, squares = total / count, 0.0
        for k in range(starts[i], ends[i]):
            squares += (values[k] - mean) ** 2
        out[i] = np.sqrt(squares / (count - 1)) if count > 1 else np.nan
    return out


@numba.njit(cache=True)
def minima(values: Any, starts: Any, ends: Any) -> Any:
    """The smallest; NaN where any is."""
    out = np.empty(starts.size)
    for i in range(starts.size):
        out[i] = values[starts[i] : ends[i]].min()
    return out


@numba.njit(cache=True)
def maxima(values: Any, starts: Any, ends: Any) -> Any:
    """The largest; NaN where any is."""
    out = np.empty(starts.size)
    for i in range(starts.size):
        out[i] = values[starts[i] : ends[i]].max()
    return out


@numba.njit(cache=True)
def quantiles(values: Any, starts: Any, ends: Any, share: float) -> Any:
    """The quantile, interpolated between neighbours; NaN where any value is."""
    out = np.empty(starts.size)
    for i in range(starts.size):
        ordered = np.sort(values[starts[i] : ends[i]])
        place = share * (ordered.size - 1)
        low = int(np.floor(place))
        high = min(low + 1, ordered.size - 1)
        if np.isnan(ordered[-1]):
            out[i] = np.nan
        else:
            out[i] = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return out
