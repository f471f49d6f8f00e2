"""From partial aggregates to the values that were asked for.

What is correctly rounded here is rounded once, from exact sums: the value does not depend on how
the events were spread over partitions, slots or epochs.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.aggregates import Aggregate, Function
from geoflux.operators.bags import Bag
from geoflux.operators.exact_sum import rounded, unit_exponent, whole
from geoflux.operators.measures import Measure
from geoflux.operators.partials import Partials, bag_name
from geoflux.spatial.space import FloatArray

Rows = npt.NDArray[Any]

RESULT_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("function", pa.string()),
        ("value", pa.float64()),
        ("count", pa.int64()),
    ]
)


def results(
    aggregate: Aggregate, partials: Partials, rows: Rows, spans: tuple[Any, Any]
) -> pa.Table:
    """One row per function and group; ``spans`` are the starts and ends of the groups' windows."""
    tables = []
    for function in aggregate.functions:
        values, known = value_of(function, partials, rows)
        columns = [
            pa.array(partials.number[rows]),
            pa.array(spans[0], pa.int64()),
            pa.array(spans[1], pa.int64()),
            pa.array([function.text]).take(pa.array(np.zeros(rows.size, np.int8))),
            pa.array(values, mask=~known),
            pa.array(partials.count[rows]),
        ]
        tables.append(pa.Table.from_arrays(columns, schema=RESULT_SCHEMA))
    return pa.concat_tables(tables)


def value_of(
    function: Function, partials: Partials, rows: Rows
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The value for each group, and where there is one."""
    always = np.ones(rows.size, np.bool_)
    if function.kind == "count":
        return partials.count[rows].astype(np.float64), always
    assert function.column is not None
    if function.kind in ("distinct", "median", "quantile"):
        bag = partials.bags.get(bag_name(function.kind, function.column)) or Bag.empty(
            len(partials)
        )
        if function.kind == "distinct":
            return np.diff(bag.offsets)[rows].astype(np.float64), always
        return _quantiles(bag, rows, function.share)
    measure = partials.measures.get(function.column) or Measure.empty(len(partials))
    n = measure.n[rows]
    if function.kind == "min":
        return measure.low[rows], n > 0
    if function.kind == "max":
        return measure.high[rows], n > 0
    if function.kind in ("sum", "avg"):
        sums = rounded(measure.sums[rows], measure.base)
        return (sums / np.maximum(n, 1) if function.kind == "avg" else sums), n > 0
    fewest = 2 if function.kind == "stddev" else 1
    known = n >= fewest
    values = np.zeros(rows.size)
    for k in np.flatnonzero(known):
        values[k] = _deviation(measure, int(rows[k]), int(n[k]), sample=fewest == 2)
    return values, known


def _deviation(measure: Measure, row: int, n: int, sample: bool) -> float:
    """The root of (n Σx² - (Σx)²) / (n (n - 1)), or / n², with exact sums."""
    total, squares = whole(measure.sums, row), whole(measure.squares, row)
    exponent, fine = unit_exponent(measure.base), unit_exponent(measure.squares_base, True)
    lowest = min(2 * exponent, fine)
    spread = (n * squares << (fine - lowest)) - (total * total << (2 * exponent - lowest))
    below = n * (n - 1) if sample else n * n
    try:
        variance = spread / (below << -lowest) if lowest < 0 else (spread << lowest) / below
    except OverflowError:
        return math.inf
    return math.sqrt(variance)


def _quantiles(bag: Bag, rows: Rows, share: float) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """As ``numpy.quantile`` interpolates, of values with how often each occurred."""
    known = np.diff(bag.offsets)[rows] > 0
    out = np.zeros(rows.size)
    if known.any():
        values = bag.values.to_numpy(zero_copy_only=False)[bag.codes]
        _interpolate(rows.astype(np.int64), bag.offsets, values, bag.counts, share, out)
    return out, known


@numba.njit(cache=True)
def _interpolate(rows: Any, offsets: Any, values: Any, counts: Any, share: float, out: Any) -> None:
    for i in range(rows.size):
        first, last = offsets[rows[i]], offsets[rows[i] + 1]
        if first == last:
            continue
        order = np.argsort(values[first:last]) + first
        total = np.int64(0)
        for k in order:
            total += counts[k]
        place = (total - 1) * share
        below = np.int64(np.floor(place))
        above = min(below + 1, total - 1)
        part = place - below
        seen = np.int64(0)
        low, high = 0.0, 0.0
        for k in order:
            if seen <= below < seen + counts[k]:
                low = values[k]
            if seen <= above < seen + counts[k]:
                high = values[k]
                break
            seen += counts[k]
        step = high - low
        out[i] = high - step * (1.0 - part) if part >= 0.5 else low + step * part
