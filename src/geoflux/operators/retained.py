"""Retained segments: the events that a partition received in some epochs, sorted by cell.

Next to the events lies a small index: the non-empty cells in ascending order (row by row of the
grid) and where the events of each begin. A segment is immutable and is mapped, not read; opened
ones are kept, since the next question is likely to ask for the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.area import TAKE, Area, Part
from geoflux.operators.events import Events
from geoflux.operators.find_rows import find_rows
from geoflux.operators.kernels import sort_by_cell
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import FloatArray, IntArray
from geoflux.state.held import Held
from geoflux.state.segments import read_segment, unique_name, write_segment
from geoflux.state.store import Store

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_COLUMN = "column."
_SPARSE = 16
"""With this many times more cells than events a counting sort would mostly count zeros."""
_CACHED = 4096
_cache: OrderedDict[tuple[str, str], RetainedEvents] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class Found:
    """Rows of a segment (``None``: all of them), which of them are in doubt (``None``: none is),
    and how many rows the cells asked for hold."""

    rows: IntArray | None
    doubt: Mask | None
    read: int


@dataclass(frozen=True)
class RetainedEvents:
    """An opened segment; ``keys`` are row x ``grid_columns`` + column of the non-empty cells."""

    x: FloatArray
    y: FloatArray
    time: Times
    id: pa.Array
    columns: Mapping[str, pa.Array]
    keys: Times
    offsets: Times
    grid_columns: int
    rectangle: tuple[int, int, int, int]
    times: tuple[int, int]

    def __len__(self) -> int:
        return int(self.x.size)

    def find(self, area: Area, start: int, stop: int) -> Found:
        """The rows in the boxes of an area with a time from ``start`` to ``stop``."""
        timely = start <= self.times[0] and self.times[1] <= stop
        if timely and len(area.parts) == 1 and self._lies_in(area.parts[0]):
            return Found(None, None, len(self))
        time = self.time[:0] if timely else self.time
        found = [self._find(part, (time, start, stop)) for part in area.parts]
        if len(found) == 1:
            rows, doubt, read = found[0]
        else:
            rows = np.concatenate([f[0] for f in found])
            doubt = np.concatenate([f[1] for f in found])
            read = sum(f[2] for f in found)
        return Found(rows, None if area.is_box else doubt, int(read))

    def _find(self, part: Part, times: tuple[Times, int, int]) -> tuple[IntArray, Mask, int]:
        col0, row0, col1, row1 = self.rectangle
        low_col, low_row, high_col, high_row = part.cells
        cells = (
            max(low_col, col0), max(low_row, row0), min(high_col, col1 - 1),
            min(high_row, row1 - 1) if high_col >= col0 and low_col < col1 else -1,
            low_col, low_row,
        )  # fmt: skip
        found: tuple[IntArray, Mask, int] = find_rows(
            (self.keys, self.offsets, self.grid_columns), cells, part.shift, part.verdict,
            part.box, (self.x, self.y), times,
        )  # fmt: skip
        return found

    def _lies_in(self, part: Part) -> bool:
        """Whether all cells of the segment's rectangle are taken as they are."""
        col0, row0, col1, row1 = self.rectangle
        low_col, low_row, high_col, high_row = part.cells
        if not (low_col <= col0 and col1 - 1 <= high_col):
            return False
        if not (low_row <= row0 and row1 - 1 <= high_row):
            return False
        rows = slice((row0 >> part.shift) - (low_row >> part.shift), None)
        columns = slice((col0 >> part.shift) - (low_col >> part.shift), None)
        blocks = part.verdict[rows, columns][
            : (row1 - 1 >> part.shift) - (row0 >> part.shift) + 1,
            : (col1 - 1 >> part.shift) - (col0 >> part.shift) + 1,
        ]
        return bool((blocks == TAKE).all())


def write_retained(
    store: Store, grid: Grid, partition: Partition, events: Events, epochs: tuple[int, int]
) -> Held:
    """Write events of a partition, which came in some epochs (first, last), as a new segment."""
    assert events.id is not None, "events that are retained carry their ids"
    order, keys, offsets = _by_cell(grid, partition, events)
    rows = pa.array(order)
    arrays: dict[str, Any] = {
        "x": events.x[order], "y": events.y[order], "time": events.time[order],
        "id": events.id.take(rows), "keys": keys, "offsets": offsets,
    }  # fmt: skip
    for name, column in events.columns.items():
        arrays[_COLUMN + name] = _plain(column).take(rows)
    times = int(events.time.min()), int(events.time.max())
    name = unique_name("state", f"kept-p{partition.id}")
    about = {
        "kind": "retained", "partition": partition.id, "grid_columns": grid.columns,
        "rectangle": [partition.col0, partition.row0, partition.col1, partition.row1],
        "times": times, "epochs": epochs,
    }  # fmt: skip
    size = write_segment(store, name, arrays, about)
    return Held(name, partition.id, len(events), size, *times, *epochs)


def _by_cell(
    grid: Grid, partition: Partition, events: Events
) -> tuple[IntArray, Times, Times]:  # fmt: skip
    """The order of events by cell, the keys of the non-empty cells, where each begins."""
    column = grid.columns_of(events.x) - np.int32(partition.col0)
    row = grid.rows_of(events.y) - np.int32(partition.row0)
    local = row * np.int32(partition.columns) + column
    if partition.cells > _SPARSE * len(events):
        order = np.argsort(local, kind="stable").astype(np.int32)
        used, starts = np.unique(local[order], return_index=True)
        offsets = np.append(starts, len(events))
    else:
        order, used, offsets = sort_by_cell(local, partition.cells)
    rows, columns = np.divmod(used.astype(np.int64), partition.columns)
    keys = (rows + partition.row0) * grid.columns + columns + partition.col0
    return order, keys, offsets.astype(np.int64)


def open_retained(store: Store, name: str) -> RetainedEvents:
    """Open a segment, or find it open; :class:`StateError` where it is gone."""
    if store.is_sealed(name):  # in memory, not mapped: how many are kept is decided there
        return _opened(store, name)
    home = (store.root, name)
    with _lock:
        known = _cache.get(home)
        if known is not None:
            _cache.move_to_end(home)
            return known
    opened = _opened(store, name)
    with _lock:
        _cache[home] = opened
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
    return opened


def _opened(store: Store, name: str) -> RetainedEvents:
    segment = read_segment(store, name)
    about = segment.about
    further = {
        key.removeprefix(_COLUMN): values
        for key, values in segment.columns.items()
        if key.startswith(_COLUMN)
    }
    return RetainedEvents(
        segment.array("x"), segment.array("y"), segment.array("time"), segment.columns["id"],
        further, segment.array("keys"), segment.array("offsets"), about["grid_columns"],
        tuple(about["rectangle"]), tuple(about["times"]),
    )  # fmt: skip


def merged_events(parts: Sequence[RetainedEvents | Events]) -> Events:
    """Events of several segments, or not yet in any, as one batch."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    return Events(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.time for part in parts]),
        concatenated([part.id for part in parts]),
        {
            name: concatenated([p.columns.get(name, pa.nulls(len(p))) for p in parts])
            for name in names
        },
    )


def concatenated(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays as one, in a type that holds them all; as text where there is no such type."""
    if len(arrays) == 1:
        return arrays[0]
    arrays = [_plain(array) for array in arrays]
    if any(array.type != arrays[0].type for array in arrays):
        try:
            tables = [pa.table({"": array}) for array in arrays]
            column = pa.concat_tables(tables, promote_options="permissive").column(0)
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            column = pa.chunked_array([array.cast(pa.string()) for array in arrays])
        arrays = column.chunks
    return pa.concat_arrays(arrays)


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
