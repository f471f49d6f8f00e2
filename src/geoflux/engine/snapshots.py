"""Snapshots: questions asked once about the events that are retained, answered from their segments.

The area asked for is turned into cells, the cells into the partitions that own them now and those
that they descend from, and only the segments of these whose times fit are opened. Every segment is
read once however many chains lead to it, so every event is found exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.answers import Answer
from geoflux.engine.nearest import distances, first_radius, search_box, wider
from geoflux.errors import RejectedRecord
from geoflux.operators.aggregate_rows import aggregate_rows
from geoflux.operators.area import Area, covers
from geoflux.operators.retained import open_retained
from geoflux.operators.selection import Naming, Selection
from geoflux.operators.snapshot import Nearest, SnapshotQuery
from geoflux.operators.where import compiled
from geoflux.operators.where_parse import parse
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import FloatArray
from geoflux.state.held import Held, Retained
from geoflux.state.lineage import AnyPlan, holders
from geoflux.state.store import Store

Mask = npt.NDArray[np.bool_]

_BEGINNING, _END = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class View:
    """What a snapshot sees: the retained events of a plan; those before ``cut`` have expired."""

    store: Store
    grid: Grid
    plan: AnyPlan
    retained: Retained
    cut: int | None
    naming: Naming


@dataclass(frozen=True)
class _Read:
    """The events that match, and what it took to find them."""

    events: Selection
    partitions: int
    segments: int
    rows: int


def answered(view: View, query: SnapshotQuery) -> Answer:
    """The answer to a query; :class:`StateError` where a segment is gone."""
    if query.nearest is None:
        read = _matching(view, query, Area.of(view.grid, query.shape))
        table = None if query.aggregate else read.events.table()
    else:
        read, table = _nearest(view, query, query.nearest)
    matched = len(read.events)
    if query.aggregate is not None:
        table = _aggregated(read.events, query)
    assert table is not None
    return Answer(
        query.id, table, query.aggregate is not None, matched,
        read.partitions, len(view.retained.by_partition),
        read.segments, len(view.retained), read.rows,
    )  # fmt: skip


def _matching(view: View, query: SnapshotQuery, area: Area) -> _Read:
    """The events of an area that fulfil the query's conditions."""
    start, stop = _span(view, query)
    partitions: set[int] = set()
    pieces, doubts, rows, segments = [], [], 0, 0
    for held in _candidates(view, area, start, stop):
        found = open_retained(view.store, held.segment).find(area, start, stop)
        partitions.add(held.partition)
        segments, rows = segments + 1, rows + found.read
        if found.rows is None or found.rows.size:
            pieces.append((open_retained(view.store, held.segment), found.rows))
            doubts.append(found.doubt)
    events = Selection(tuple(pieces), view.naming)
    if any(doubt is not None for doubt in doubts):
        events = _exact(events, area, doubts)
    if query.where is not None and len(events):
        events = events.filtered(_where(query.where, events))
    return _Read(events, len(partitions), segments, rows)


def _span(view: View, query: SnapshotQuery) -> tuple[int, int]:
    """The times that are asked for and have not expired, both ends included."""
    start = _BEGINNING if query.start is None else query.start
    cut = _BEGINNING if view.cut is None else view.cut
    return max(start, cut), _END if query.stop is None else query.stop


def _candidates(view: View, area: Area, start: int, stop: int) -> list[Held]:
    """The segments that may hold such events."""
    if not area.parts:
        return []
    by_partition = view.retained.by_partition
    return [
        held
        for partition in holders(view.plan, view.retained, area.ranges)
        for held in by_partition[partition.id]
        if held.last_time >= start and held.first_time <= stop
    ]


def _exact(events: Selection, area: Area, doubts: list[Mask | None]) -> Selection:
    """Without the events in doubt that do not lie in the shape."""
    masks = [
        np.zeros(length, np.bool_) if doubt is None else doubt
        for doubt, length in zip(doubts, events.lengths, strict=True)
    ]
    doubt = np.concatenate(masks)
    keep = ~doubt
    keep[doubt] = area.holds(*events.filtered(doubt).place)
    return events.filtered(keep)


def _where(text: str, events: Selection) -> Mask:
    predicate = parse(text)
    condition = compiled(predicate.template)
    columns = {name: events.column(name) for name in condition.columns}
    kinds = zip(predicate.params, condition.param_types, strict=True)
    try:
        return condition.evaluate(columns, [pa.scalar(value, kind) for value, kind in kinds])
    except RejectedRecord:  # accepted before any event told the columns: no event can match
        return np.zeros(len(events), np.bool_)


def _nearest(view: View, query: SnapshotQuery, point: Nearest) -> tuple[_Read, pa.Table]:
    """The k nearest matches and their table, by widening a search around the point."""
    space = view.grid.space
    asked = None if query.shape is None else query.shape.box
    radius = first_radius(view.grid, point, view.retained.rows, asked)
    looked = 0
    while True:
        box = search_box(space, point, radius)
        everything = covers(space, box, asked)
        read = _matching(view, query, Area.of(view.grid, query.shape, None if everything else box))
        looked += read.rows
        distance = distances(space, point, *read.events.place)
        if everything or int((distance <= radius).sum()) >= point.k:
            break
        radius = wider(radius, distance, point.k)
    events, distance = _first(read.events, distance, point.k)
    table = events.table()
    order = _order(events, distance)
    table = table.add_column(4, "distance", pa.array(distance)).take(pa.array(order, pa.int64()))
    return _Read(events, read.partitions, read.segments, looked), table


def _first(events: Selection, distance: FloatArray, k: int) -> tuple[Selection, FloatArray]:
    """The first k by distance, then the newest, then by id."""
    if distance.size <= k:
        return events, distance
    keep = distance <= np.partition(distance, k - 1)[k - 1]
    events, distance = events.filtered(keep), distance[keep]
    chosen = np.zeros(distance.size, np.bool_)
    chosen[_order(events, distance)[:k]] = True
    return events.filtered(chosen), distance[chosen]


def _order(events: Selection, distance: FloatArray) -> list[int]:
    newest = (-events.number("time")).tolist()
    keys = list(zip(distance.tolist(), newest, events.ids().to_pylist(), strict=True))
    return sorted(range(len(keys)), key=keys.__getitem__)


def _aggregated(events: Selection, query: SnapshotQuery) -> pa.Table:
    aggregate = query.aggregate
    assert aggregate is not None
    columns = {name: events.column(name) for name in aggregate.columns}
    ids = events.ids() if aggregate.window_events else pa.nulls(len(events), events.naming.id_type)
    table = aggregate_rows(aggregate, events.number("time"), ids, columns)
    for name in ("window_start", "window_end"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(name).cast(_INSTANT))
    return table
