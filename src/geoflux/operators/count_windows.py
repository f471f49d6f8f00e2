"""Windows of so many events, in the order of time, then id.

A query's matches are kept until they are *sealed*: until no event before them can come any more.
Window after window is then cut off the front. What is kept is always what the next window begins
with, so nothing has to be counted from the start, and rows may come from any partition.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.operators.aggregates import Aggregate
from geoflux.operators.collecting import Asked, collected
from geoflux.operators.evaluate import RESULT_SCHEMA, results
from geoflux.operators.events import Events
from geoflux.operators.partials import Longs, Partials
from geoflux.spatial.space import IntArray

NUMBER, TIME, ID = "@number", "@time", "@id"
_ROOM = 1 << 22
"""Rows that are spread over windows at a time."""
_SORTABLE = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_timestamp, pa.types.is_date, pa.types.is_decimal,
)  # fmt: skip


def pending_rows(asked: Asked, events: Events, event: IntArray, numbers: Longs) -> pa.Table:
    """Matches to keep: number, time, id, and the columns that windows of events are about."""
    rows = pa.array(event)
    columns = {NUMBER: pa.array(numbers), TIME: pa.array(events.time[event])}
    if events.id is not None:
        columns[ID] = events.id.take(rows)
    for aggregate in asked.specs:
        if aggregate.window_events is not None:
            for name in aggregate.columns:
                columns[name] = events.columns[name].take(rows)
    return pa.table(columns)


def cut_off(
    asked: Asked, rows: pa.Table, sealed_below: Longs
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """The results of all windows that are complete, and which rows are still needed.

    ``rows`` are of queries in ``asked`` only; for the query of each rank, rows before
    ``sealed_below`` are sealed.
    """
    rank = np.searchsorted(asked.numbers, rows.column(NUMBER).to_numpy())
    time = rows.column(TIME).to_numpy()
    sealed = np.bincount(rank[time < sealed_below[rank]], minlength=len(asked))
    sizes = np.array([a.window_events or 0 for a in asked.specs], np.int64)[asked.spec]
    needed = np.ones(len(rows), np.bool_)
    tables = []
    for full in np.flatnonzero((sizes > 0) & (sealed >= sizes)):
        aggregate = asked.specs[asked.spec[full]]
        mine = np.flatnonzero(rank == full)
        some = rows.take(pa.array(mine))
        columns = {name: some.column(name).combine_chunks() for name in aggregate.columns}
        ids = some.column(ID).combine_chunks() if ID in some.schema.names else None
        order = in_order(aggregate, time[mine], ids, columns)
        mine, done = mine[order], pa.array(order[: int(sealed[full])])
        columns = {name: column.take(done) for name, column in columns.items()}
        table, used = windows_of(aggregate, time[mine[: int(sealed[full])]], columns)
        number = pa.array(np.full(len(table), asked.numbers[full], np.int64))
        tables.append(table.set_column(0, RESULT_SCHEMA.field("number"), number))
        needed[mine[:used]] = False
    return (pa.concat_tables(tables) if tables else RESULT_SCHEMA.empty_table()), needed


def in_order(
    aggregate: Aggregate, time: Longs, ids: pa.Array | None, columns: Mapping[str, pa.Array]
) -> npt.NDArray[np.int64]:
    """The order by time, then id; events that agree in both go by what is asked about them."""
    keys = [pa.array(time), *([] if ids is None else [ids])]
    for name in aggregate.columns:
        column = columns[name]
        sortable = any(test(column.type) for test in _SORTABLE)
        keys.append(column if sortable else column.cast(pa.string()))
    names = [f"k{place}" for place in range(len(keys))]
    table = pa.Table.from_arrays(keys, names)
    order = pc.sort_indices(table, [(name, "ascending") for name in names])
    found: npt.NDArray[np.int64] = order.to_numpy().astype(np.int64)
    return found


def windows_of(
    aggregate: Aggregate, time: Longs, columns: dict[str, pa.Array]
) -> tuple[pa.Table, int]:
    """The results of all complete windows over events in their order, and how many events at the
    front no later window needs."""
    size, slide = aggregate.window_events, aggregate.slide
    assert size is not None
    count = (time.size - size) // slide + 1 if time.size >= size else 0
    if count == 0:
        return RESULT_SCHEMA.empty_table(), 0
    tables = []
    at_once = max(1, _ROOM // size)
    for block in range(0, count, at_once):
        first = np.arange(block, min(block + at_once, count), dtype=np.int64) * slide
        row = (first[:, None] + np.arange(size)).ravel()
        group = np.repeat(np.arange(first.size, dtype=np.int32), size)
        taken = {name: column.take(pa.array(row)) for name, column in columns.items()}
        partials: Partials = collected(aggregate, first, group, taken)
        spans = (time[first], time[first + size - 1])
        tables.append(results(aggregate, partials, np.arange(first.size), spans))
    return pa.concat_tables(tables), int(count * slide)
