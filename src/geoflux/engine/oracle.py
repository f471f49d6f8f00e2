"""The oracle: what the matches must be, by comparing every event with every live query.

Deliberately simple and shares nothing with the engine's index, plan or exchange: records are read
one by one with ``json``, ids live in a dictionary, every event meets every bounding box, then the
exact shape, the validity and the ``where`` decide pair by pair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from geoflux.engine.records import RecordRules, Records, parse_lines, parse_table
from geoflux.operators.events import Events
from geoflux.operators.where_parse import parse
from geoflux.operators.where_rows import evaluate_rows
from geoflux.spatial.shapes import CIRCLE, POLYGON, circle_of, within_circle
from geoflux.spatial.space import Space

_PAIRS_AT_ONCE = 1 << 24


@dataclass
class Oracle:
    """Keeps the live queries and says what an epoch's events match."""

    rules: RecordRules
    lateness_micros: int | None = None
    max_time: int | None = None
    refused: int = 0
    _live: dict[str, dict[str, Any]] = field(default_factory=dict)

    def control(self, parts: Iterable[pa.Table | list[bytes]]) -> None:
        """Apply an epoch's control records, after the queries that the watermark has ended."""
        if self.lateness_micros is not None and self.max_time is not None:
            watermark = self.max_time - self.lateness_micros
            ended = [
                name
                for name, q in self._live.items()
                if q["valid_until"] is not None and q["valid_until"] < watermark
            ]
            for name in ended:
                del self._live[name]
        for part in parts:
            for records in self._singly(part):
                self._apply(records)

    def filtered(self) -> list[dict[str, Any]]:
        """The live queries that have a ``where``."""
        return [q for q in self._live.values() if q["where"] is not None]

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
            if (op == 0) == known:
                self.refused += 1
            elif op == 0:
                self._live[row["id"]] = row
            else:
                del self._live[row["id"]]

    def matches(self, events: Events) -> tuple[pa.Array, pa.Array]:
        """(query ids, event ids) of all matches of a batch; updates the largest event time."""
        if len(events) == 0:
            return pa.array([], pa.string()), pa.array([], pa.string())
        latest = int(events.time.max())
        self.max_time = latest if self.max_time is None else max(self.max_time, latest)
        queries = list(self._live.values())
        boxes = np.array([[q[e] for e in ("x0", "y0", "x1", "y1")] for q in queries], np.float64)
        names = pa.array([q["id"] for q in queries], pa.string())
        assert events.id is not None
        found_queries, found_events = [], []
        step = max(1, _PAIRS_AT_ONCE // max(1, len(queries)))
        for first in range(0, len(events), step):
            x, y = events.x[first : first + step], events.y[first : first + step]
            event, query = _compare_all(x, y, boxes.reshape(-1, 4))
            event = event + first
            kept = self._exact(events, event, query, queries)
            found_events.append(events.id.take(pa.array(event[kept])))
            found_queries.append(names.take(pa.array(query[kept])))
        return pa.concat_arrays(found_queries), pa.concat_arrays(found_events)

    def _exact(
        self, events: Events, event: npt.NDArray[np.int64], query: npt.NDArray[np.int64],
        queries: list[dict[str, Any]],
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        kept = np.ones(event.size, np.bool_)
        for number in np.unique(query):
            asked = queries[number]
            if asked["kind"] == 0 and all(
                asked[name] is None for name in ("where", "valid_from", "valid_until")
            ):
                continue
            pairs = np.flatnonzero(query == number)
            at = event[pairs]
            kept[pairs] = _inside(self.rules.space, asked, events.x[at], events.y[at])
            if asked["valid_from"] is not None:
                kept[pairs] &= events.time[at] >= asked["valid_from"]
            if asked["valid_until"] is not None:
                kept[pairs] &= events.time[at] <= asked["valid_until"]
            if asked["where"] is not None:
                predicate = parse(asked["where"])
                for pair in pairs[kept[pairs]]:
                    row = {n: events.columns[n][int(event[pair])].as_py() for n in predicate.columns}
                    kept[pair] = evaluate_rows(predicate, row)
        return kept


def _inside(space: Space, query: dict[str, Any], x: Any, y: Any) -> npt.NDArray[np.bool_]:
    if query["kind"] == CIRCLE:
        circle = np.tile(np.array(circle_of(query["body"])), (x.size, 1))
        return within_circle(space, x, y, circle)
    if query["kind"] == POLYGON:
        found: npt.NDArray[np.bool_] = shapely.intersects(
            shapely.from_wkb(query["body"]), shapely.points(x, y)
        )
        return found
    return np.ones(x.size, np.bool_)


@numba.njit(cache=True)
def _compare_all(x: Any, y: Any, boxes: Any) -> Any:
    """All pairs of points and boxes that contain them; a box with west > east wraps."""
    room = 1024
    event, query = np.empty(room, np.int64), np.empty(room, np.int64)
    found = 0
    for i in range(x.size):
        for q in range(boxes.shape[0]):
            west, south, east, north = boxes[q, 0], boxes[q, 1], boxes[q, 2], boxes[q, 3]
            if y[i] < south or y[i] > north:
                continue
            across = x[i] >= west or x[i] <= east if west > east else west <= x[i] <= east
            if not across:
                continue
            if found == room:
                event = np.concatenate((event, np.empty(room, np.int64)))
                query = np.concatenate((query, np.empty(room, np.int64)))
                room *= 2
            event[found], query[found] = i, q
            found += 1
    return event[:found], query[:found]


def as_text(record: dict[str, Any]) -> bytes:
    """A control record as its line; for tests and tools that write control files."""
    return json.dumps(record).encode()
