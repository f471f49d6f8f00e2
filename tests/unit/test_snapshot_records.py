"""Snapshot records: what is accepted, what is rejected and why, and that nothing is lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from geoflux.config import Config
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.retained_columns import naming_of, snapshot_rules
from geoflux.engine.snapshot_records import parse_snapshot
from geoflux.errors import ConfigError, RejectedRecord
from geoflux.operators.snapshot import Nearest, SnapshotQuery
from geoflux.spatial.space import Space

SCHEMA = pa.schema(
    [("id", pa.int64()), ("lon", pa.float64()), ("lat", pa.float64()), ("time", pa.timestamp("us", "UTC")),
     ("speed", pa.float32()), ("kind", pa.string())]
)  # fmt: skip
RULES = RecordRules(Space("lonlat", -180.0, -90.0, 180.0, 90.0), SCHEMA, 10_000)
PLANAR = RecordRules(Space("planar", 0.0, 0.0, 9.0, 9.0), pa.schema([]), 10_000)
SQUARE = {"type": "rectangle", "west": 170, "south": 0, "east": -170, "north": 2}
FULL: dict[str, Any] = {
    "op": "snapshot", "id": 7, "user": "u", "shape": SQUARE, "where": "speed > 3",
    "from": "1970-01-01T00:00:01Z", "to": 2, "aggregate": {"functions": ["count", "avg(speed)"]},
    "nearest": {"lon": 179, "lat": 1.5, "k": 10}, "colour": "ignored",
}  # fmt: skip


def test_everything_that_can_be_said() -> None:
    query = parse_snapshot(FULL, RULES)
    assert (query.id, query.user, query.where) == ("7", "u", "speed > 3")
    assert (query.start, query.stop) == (1_000_000, 2_000_000)
    assert query.shape is not None
    assert query.shape.box == (170.0, 0.0, -170.0, 2.0)
    assert query.nearest == Nearest(179.0, 1.5, 10)
    assert query.aggregate is not None
    assert query.aggregate.window_micros is None


def test_nothing_but_an_id_asks_for_everything() -> None:
    assert parse_snapshot({"op": "snapshot", "id": "a"}, RULES) == SnapshotQuery("a")


@pytest.mark.parametrize(
    "left_out", [(), ("shape",), ("nearest", "aggregate"), ("from", "to", "where", "user")]
)
@pytest.mark.parametrize(
    "shape",
    [
        SQUARE,
        {"type": "circle", "lon": 1, "lat": 2, "radius_m": 5},
        {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]},
    ],
)
def test_a_query_survives_the_intent(left_out: tuple[str, ...], shape: dict[str, Any]) -> None:
    record = {
        name: value for name, value in {**FULL, "shape": shape}.items() if name not in left_out
    }
    query = parse_snapshot(record, RULES)
    assert SnapshotQuery.from_dict(json.loads(json.dumps(query.to_dict()))) == query


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"id": None}, "bad_id"),
        ({"id": ""}, "bad_id"),
        ({"shape": {"type": "square"}}, "invalid_shape"),
        ({"shape": 3}, "invalid_shape"),
        ({"where": "speed >"}, "bad_where"),
        ({"where": 3}, "bad_where"),
        ({"where": "sped > 3"}, "unknown_column"),
        ({"from": "yesterday"}, "bad_time"),
        ({"to": []}, "bad_time"),
        ({"from": 3, "to": 2}, "bad_time"),
        ({"aggregate": {"functions": ["mean(speed)"]}}, "bad_aggregate"),
        ({"aggregate": {"functions": ["avg(kind)"]}}, "bad_aggregate"),
        ({"aggregate": {"functions": ["avg(sped)"]}}, "unknown_column"),
        ({"aggregate": 3}, "bad_aggregate"),
        ({"nearest": 3}, "bad_nearest"),
        ({"nearest": {"lon": 1, "lat": 2}}, "bad_nearest"),
        ({"nearest": {"lon": 1, "lat": 2, "k": 0}}, "bad_nearest"),
        ({"nearest": {"lon": 1, "lat": 2, "k": 2.5}}, "bad_nearest"),
        ({"nearest": {"lon": 1, "lat": 2, "k": True}}, "bad_nearest"),
        ({"nearest": {"lon": 1, "lat": 95, "k": 1}}, "bad_nearest"),
        ({"nearest": {"lon": "1", "lat": 2, "k": 1}}, "bad_nearest"),
        ({"nearest": {"lon": 10**400, "lat": 2, "k": 1}}, "bad_nearest"),
        ({"nearest": {"x": 1, "y": 2, "k": 1}}, "bad_nearest"),
    ],
)
def test_what_is_wrong_is_rejected_with_its_code(more: dict[str, Any], code: str) -> None:
    with pytest.raises(RejectedRecord) as raised:
        parse_snapshot({"id": "a", **more}, RULES)
    assert raised.value.code == code
    assert "expected" in raised.value.detail or "available" in raised.value.detail


def test_a_plane_has_x_and_y_and_an_outside() -> None:
    assert parse_snapshot(
        {"id": 1, "nearest": {"x": 99, "y": 2, "k": 1}}, PLANAR
    ).nearest == Nearest(99.0, 2.0, 1)
    away = {"type": "rectangle", "west": 20, "south": 20, "east": 30, "north": 30}
    with pytest.raises(RejectedRecord, match="outside_space"):
        parse_snapshot({"id": 1, "shape": away}, PLANAR)
    with pytest.raises(RejectedRecord, match="malformed_json"):
        parse_snapshot([], PLANAR)


def config(columns: list[str]) -> Config:
    return Config.from_dict({"retention": {"time": "1h", "columns": columns}})


def test_what_every_event_has_is_not_stored_twice() -> None:
    naming = naming_of(config([]), SCHEMA)
    assert naming.stored == ("speed", "kind")
    assert naming.own == {"lon": "x", "lat": "y", "time": "time", "id": "id"}
    assert naming.schema.names == SCHEMA.names
    odd = SCHEMA.set(1, pa.field("lon", pa.float32())).set(3, pa.field("time", pa.int64()))
    assert naming_of(config([]), odd).stored == ("lon", "time", "speed", "kind")


def test_only_what_is_retained_can_be_asked_about() -> None:
    naming = naming_of(config(["speed"]), SCHEMA)
    rules = snapshot_rules(RULES, naming)
    assert parse_snapshot({"id": 1, "where": "speed > 1 and lat > 0"}, rules).where
    with pytest.raises(RejectedRecord, match="no column 'kind'"):
        parse_snapshot({"id": 1, "where": "kind = 'bus'"}, rules)
    with pytest.raises(ConfigError, match="did you mean 'speed'"):
        naming_of(config(["sped"]), SCHEMA)
