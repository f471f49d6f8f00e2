"""Snapshot records: from JSON to a validated query; what cannot be accepted is rejected by code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geoflux.engine.record_rules import RecordRules, identifier, instant
from geoflux.errors import RejectedRecord
from geoflux.operators.aggregates import Aggregate, check_aggregate, parse_aggregate
from geoflux.operators.snapshot import Nearest, SnapshotQuery
from geoflux.spatial.shapes import Shape, finite_number, outside, parse_shape
from geoflux.spatial.space import Space

MOST_NEAREST = 100_000


def parse_snapshot(record: Any, rules: RecordRules) -> SnapshotQuery:
    """A query from its record; ``rules.events`` are the columns that can be asked about.

    >>> import pyarrow as pa
    >>> rules = RecordRules(Space("planar", 0.0, 0.0, 9.0, 9.0), pa.schema([]), 1000)
    >>> parse_snapshot({"op": "snapshot", "id": 7, "from": 1}, rules).start
    1000000
    """
    if not isinstance(record, Mapping):
        raise RejectedRecord("malformed_json", "the record is no object; expected {...}")
    user = record.get("user")
    start, stop = instant(record.get("from"), "from"), instant(record.get("to"), "to")
    if start is not None and stop is not None and start > stop:
        raise RejectedRecord(
            "bad_time", f"from {record['from']} is after to {record['to']}; expected it before"
        )
    return SnapshotQuery(
        identifier(record.get("id")),
        None if user is None else str(user),
        _shape(record.get("shape"), rules.space),
        _where(record.get("where"), rules),
        start,
        stop,
        _aggregate(record.get("aggregate"), rules),
        _nearest(record.get("nearest"), rules.space),
    )


def _shape(given: Any, space: Space) -> Shape | None:
    if given is None:
        return None
    shape = parse_shape(given, space)
    if outside(space, shape.box):
        raise RejectedRecord("outside_space", "the shape lies outside the space")
    return shape


def _where(given: Any, rules: RecordRules) -> str | None:
    if given is None or given == "":
        return None
    if not isinstance(given, str):
        raise RejectedRecord("bad_where", f"where is {given!r}; expected a text")
    rules.check_where(given)
    return given


def _aggregate(given: Any, rules: RecordRules) -> Aggregate | None:
    if given is None:
        return None
    aggregate = parse_aggregate(given, needs_window=False)
    if len(rules.events):
        check_aggregate(aggregate, rules.events)
    return aggregate


def _nearest(given: Any, space: Space) -> Nearest | None:
    if given is None:
        return None
    names = ("lon", "lat") if space.is_lonlat else ("x", "y")
    if not isinstance(given, Mapping):
        raise _bad(f"nearest is {str(given)[:80]!r}; expected {names[0]}, {names[1]} and k")
    place = [finite_number(given, name, "bad_nearest") for name in names]
    if space.is_lonlat and not (-180 <= place[0] <= 180 and -90 <= place[1] <= 90):
        raise _bad(
            f"lon {place[0]:g}, lat {place[1]:g} is no place; expected -180 to 180, -90 to 90"
        )
    k = given.get("k")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_NEAREST:
        raise _bad(f"k is {str(k)[:80]!r}; expected a whole number from 1 to {MOST_NEAREST:,}")
    return Nearest(place[0], place[1], k)


def _bad(detail: str) -> RejectedRecord:
    return RejectedRecord("bad_nearest", detail)
