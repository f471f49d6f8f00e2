"""Aggregates over events that are all at hand, as snapshots ask for them.

The same panes, windows, exact sums and roundings as for standing queries.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from geoflux.operators.aggregates import Aggregate
from geoflux.operators.clock import BEGINNING, END
from geoflux.operators.collecting import Asked, collected
from geoflux.operators.count_windows import in_order, windows_of
from geoflux.operators.evaluate import results
from geoflux.operators.partials import Longs
from geoflux.operators.windows import Homed, closed


def aggregate_rows(
    aggregate: Aggregate, time: Longs, ids: pa.Array, columns: Mapping[str, pa.Array]
) -> pa.Table:
    """window_start, window_end (microseconds, null without a window), function, value, count."""
    given = {name: columns[name] for name in aggregate.columns}
    if aggregate.window_events is not None:
        order = in_order(aggregate, time, ids, given)
        sorted_columns = {name: column.take(pa.array(order)) for name, column in given.items()}
        table, _ = windows_of(aggregate, time[order], sorted_columns)
    elif aggregate.window_micros is not None:
        table = _by_time(aggregate, aggregate.window_micros, time, given)
    else:
        zero = np.zeros(1, np.int64)
        partials = collected(aggregate, zero, np.zeros(time.size, np.int32), given)
        table = results(aggregate, partials, np.zeros(1, np.int64), ([None], [None]))
    return table.drop_columns(["number"])


def _by_time(
    aggregate: Aggregate, window: int, time: Longs, columns: dict[str, pa.Array]
) -> pa.Table:
    first = (time // aggregate.slide) * aggregate.slide
    cut = window % aggregate.slide
    pane = np.where((cut > 0) & (time - first >= cut), first + cut, first)
    keys, group = np.unique(pane, return_inverse=True)
    partials = collected(aggregate, keys, group.astype(np.int32), columns)
    zero = np.zeros(1, np.int64)
    low, high = (int(time.min()), int(time.max())) if time.size else (END, BEGINNING)
    every = Homed(
        Asked(zero, np.zeros(1, np.int32), (aggregate,)), pa.array([""]),
        zero + BEGINNING, zero + END, zero + low, zero + high, BEGINNING, BEGINNING,
    )  # fmt: skip
    return closed(every, [partials], [np.zeros(keys.size, np.int64)])
