"""The oracle: what the matches must be, by comparing every event with every live query.

Deliberately simple and shares nothing with the engine's index, plan or exchange: records are read
one by one with ``json``, ids live in a dictionary, every event meets every bounding box, then the
exact shape, the validity and the ``where`` decide pair by pair. Windows are computed again from the
events that were matched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from geoflux.engine.oracle_windows import (
    BEFORE_ALL,
    Clock,
    CountWindows,
    Kept,
    TimeWindows,
    WindowRow,
    windows_of,
)
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import Records, parse_lines, parse_table
from geoflux.operators.aggregates import aggregate_of
from geoflux.operators.events import Events
from geoflux.operators.where_parse import parse
from geoflux.operators.where_rows import evaluate_rows
from geoflux.spatial.shapes import CIRCLE, POLYGON, RECTANGLE, circle_of, within_circle
from geoflux.spatial.space import FloatArray, Space

_BLOCK = 256


@dataclass(frozen=True)
class Barred:
    """Whose requests an epoch refused, whether those that name nobody, and whose queries it
    removed first."""

    users: Collection[str] = ()
    nameless: bool = False
    removed: Collection[str] = ()

    def refuses(self, user: str | None) -> bool:
        """Whether a registration is turned away."""
        return self.nameless if user is None else user in self.users


@dataclass
class Oracle:
    """Keeps the live queries and says what an epoch's events match and which windows it reports.

    For each epoch: :meth:`control` once, :meth:`matches` for each batch, :meth:`windows` once.
    """

    rules: RecordRules
    lateness_micros: int | None = None
    refused: int = 0
    clock: Clock = field(init=False)
    _live: dict[str, dict[str, Any]] = field(default_factory=dict)
    _windows: dict[str, TimeWindows | CountWindows] = field(default_factory=dict)
    _reported: list[WindowRow] = field(default_factory=list)
    _barred: Barred = field(default_factory=Barred)

    def __post_init__(self) -> None:
        self.clock = Clock(self.lateness_micros)

    def control(
        self,
        parts: Iterable[pa.Table | list[bytes]],
        silence: int = 0,
        barred: Barred | None = None,
    ) -> None:
        """Open an epoch: windows close, queries end that the watermark has passed (the source had
        been silent for so many microseconds) or that are removed, and the epoch's control records
        are applied, but for those of users who are ``barred``."""
        self._barred = barred or Barred()
        self.clock.open(silence)
        for windows in self._windows.values():
            self._reported += windows.opened(self.clock)
        watermark = BEFORE_ALL if self.clock.watermark is None else self.clock.watermark
        for name, query in list(self._live.items()):
            until = query["valid_until"]
            if until is not None and until < watermark:
                del self._live[name]
                if name in self._windows:
                    self._reported += self._windows.pop(name).rest(self.clock, until)
            elif query["user"] is not None and query["user"] in self._barred.removed:
                self._end(name)
        for part in parts:
            for records in self._singly(part):
                self._apply(records)

    def columns(self) -> frozenset[str]:
        """The event columns that live queries ask about."""
        asked = [parse(q["where"]).columns for q in self._live.values() if q["where"] is not None]
        counted = [frozenset(w.aggregate.columns) for w in self._windows.values()]
        return frozenset().union(*asked, *counted)

    def windows(self, final: bool = False) -> list[WindowRow]:
        """End an epoch: the windows that it must have reported. After the ``final`` one none that
        holds an event stays open."""
        if final:
            latest = BEFORE_ALL if self.clock.latest is None else self.clock.latest
            for windows in self._windows.values():
                self._reported += windows.rest(self.clock, latest)
            self.clock.finish(self._reported)
        reported, self._reported = self._reported, []
        return reported

    def _singly(self, part: pa.Table | list[bytes]) -> Iterable[Records]:
        if isinstance(part, list):
            for line in part:
                if line.strip():
                    yield parse_lines([line], self.rules)
        else:
            yield parse_table(part, self.rules)

    def _apply(self, records: Records) -> None:
        self.refused += len(records.rejected)
        for op, row in zip(records.op, records.rows.to_pylist(), strict=True):
            known = row["id"] in self._live
            if (op == 0) == known or (op == 0 and self._barred.refuses(row["user"])):
                self.refused += 1
            elif op == 0:
                self._live[row["id"]] = row
                if row.get("aggregate") is not None:
                    asked = aggregate_of(row["aggregate"])
                    self._windows[row["id"]] = windows_of(row, asked, self.clock)
            else:
                self._end(row["id"])

    def _end(self, name: str) -> None:
        del self._live[name]
        self._windows.pop(name, None)

    def matches(self, events: Events) -> tuple[pa.Array, pa.Array]:
        """(query ids, event ids) of all matches of a batch of the epoch that is open."""
        assert events.id is not None
        if len(events) == 0:
            return pa.array([], pa.string()), events.id
        self.clock.see(events.time)
        queries = list(self._live.values())
        edges = [[q[e] for q in queries] for e in ("x0", "y0", "x1", "y1")]
        boxes = np.array(edges, np.float64).reshape(4, -1)
        names = pa.array([q["id"] for q in queries], pa.string())
        event, query = _compare_all(events.x, events.y, boxes)
        kept = self._exact(events, event, query, queries)
        event, query = event[kept], query[kept]
        if self._windows:
            by_query = event[np.argsort(query, kind="stable")]
            cuts = np.cumsum(np.bincount(query, minlength=len(queries)))[:-1]
            for asked, rows in zip(queries, np.split(by_query, cuts), strict=True):
                if rows.size and asked["id"] in self._windows:
                    self._keep(self._windows[asked["id"]], events, rows)
        return names.take(pa.array(query)), events.id.take(pa.array(event))

    def _keep(
        self, windows: TimeWindows | CountWindows, events: Events, rows: npt.NDArray[np.int64]
    ) -> None:
        assert events.id is not None
        names = windows.aggregate.columns
        columns = events.take_columns(frozenset(names), rows)
        values = zip(*(columns[name].to_pylist() for name in names), strict=True)
        times, ids = events.time[rows].tolist(), events.id.take(pa.array(rows)).to_pylist()
        found = zip(times, ids, values if names else [()] * rows.size, strict=True)
        windows.take((Kept(*event) for event in found), self.clock)

    def _exact(
        self, events: Events, event: npt.NDArray[np.int64], query: npt.NDArray[np.int64],
        queries: list[dict[str, Any]],
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        kept = np.ones(event.size, np.bool_)
        asks = [
            q["kind"] != RECTANGLE
            or any(q[name] is not None for name in ("where", "valid_from", "valid_until"))
            for q in queries
        ]
        doubtful = np.flatnonzero(np.array(asks, np.bool_)[query]) if queries else query
        doubtful = doubtful[np.argsort(query[doubtful], kind="stable")]
        cuts = np.flatnonzero(np.diff(query[doubtful])) + 1
        for pairs in np.split(doubtful, cuts) if doubtful.size else ():
            asked, at = queries[query[pairs[0]]], event[pairs]
            good = _inside(self.rules.space, asked, events.x[at], events.y[at])
            if asked["valid_from"] is not None:
                good &= events.time[at] >= asked["valid_from"]
            if asked["valid_until"] is not None:
                good &= events.time[at] <= asked["valid_until"]
            if asked["where"] is not None:
                good[good] = _where(asked["where"], events, at[good])
            kept[pairs] = good
        return kept


def _where(text: str, events: Events, rows: npt.NDArray[np.int64]) -> list[bool]:
    predicate = parse(text)
    columns = events.take_columns(predicate.columns, rows)
    table = pa.Table.from_pydict(columns)
    if not columns:
        return [evaluate_rows(predicate, {})] * rows.size
    return [evaluate_rows(predicate, row) for row in table.to_pylist()]


def _inside(space: Space, query: dict[str, Any], x: Any, y: Any) -> npt.NDArray[np.bool_]:
    if query["kind"] == CIRCLE:
        circle = np.tile(np.array(circle_of(query["body"])), (x.size, 1))
        return within_circle(space, x, y, circle)
    if query["kind"] == POLYGON:
        polygon = shapely.from_wkb(query["body"])
        shapely.prepare(polygon)
        found: npt.NDArray[np.bool_] = shapely.intersects_xy(polygon, x, y)
        return found
    return np.ones(x.size, np.bool_)


def _compare_all(
    x: FloatArray, y: FloatArray, boxes: FloatArray
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All pairs (point, box that contains it), by comparing all with all."""
    west, south, east, north = (np.ascontiguousarray(edge) for edge in boxes)
    wraps = np.flatnonzero(west > east)
    plain = (west, south, np.where(west > east, -np.inf, east), north)
    counts = np.zeros(x.size, np.int64)
    nothing = np.empty(0, np.int64)
    _all_pairs(x, y, plain, True, counts, nothing, nothing)
    ends = np.cumsum(counts)
    event, query = np.empty(int(counts.sum()), np.int64), np.empty(int(counts.sum()), np.int64)
    _all_pairs(x, y, plain, False, ends - counts, event, query)
    for q in wraps:
        inside = ((x >= west[q]) | (x <= east[q])) & (y >= south[q]) & (y <= north[q])
        found = np.flatnonzero(inside)
        event = np.concatenate((event, found))
        query = np.concatenate((query, np.full(found.size, q)))
    return event, query


@numba.njit(cache=True, parallel=True)
def _all_pairs(
    x: Any, y: Any, boxes: Any, counting: bool, places: Any, event: Any, query: Any
) -> None:
    """Count the boxes of every point into ``places``, or list them from there on.

    Every point is compared with every box, a block of boxes at a time; only a block with a hit is
    gone through again for which boxes they were.
    """
    west, south, east, north = boxes
    for i in numba.prange(x.size):
        px, py = x[i], y[i]
        found = 0 if counting else places[i]
        for first in range(0, west.size, _BLOCK):
            last = min(first + _BLOCK, west.size)
            hits = 0
            for q in range(first, last):
                hits += (px >= west[q]) & (px <= east[q]) & (py >= south[q]) & (py <= north[q])
            if counting:
                found += hits
            elif hits:
                for q in range(first, last):
                    if (px >= west[q]) & (px <= east[q]) & (py >= south[q]) & (py <= north[q]):
                        event[found] = i
                        query[found] = q
                        found += 1
        if counting:
            places[i] = found
