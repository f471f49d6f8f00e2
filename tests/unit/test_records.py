"""Control records: every reason to reject one, and every form in which one is accepted."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import REGISTER, TERMINATE, Records, parse_lines
from geoflux.spatial.shapes import CIRCLE, POLYGON, RECTANGLE
from geoflux.spatial.space import Space

LONLAT = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
EUROPE = Space("lonlat", -10.0, 35.0, 30.0, 70.0)
SCHEMA = pa.schema([("id", pa.int64()), ("speed", pa.float64()), ("kind", pa.string())])
RULES = RecordRules(LONLAT, SCHEMA, 10_000)
BOX = {"type": "rectangle", "west": 0, "south": 1, "east": 2, "north": 3}
RING = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]


def parsed(*records: Any, rules: RecordRules = RULES) -> Records:
    """Records given as values, as text or as bytes."""
    lines = []
    for record in records:
        text = record if isinstance(record, str | bytes) else json.dumps(record)
        lines.append(text.encode() if isinstance(text, str) else text)
    return parse_lines(lines, rules)


def codes(records: Records) -> list[str]:
    return [bad.code for bad in records.rejected]


def registration(**fields: Any) -> dict[str, Any]:
    return {"op": "register", "id": "q1", "shape": BOX} | fields


def row_of(**fields: Any) -> dict[str, Any]:
    found = parsed(registration(**fields))
    assert codes(found) == []
    row: dict[str, Any] = found.rows.to_pylist()[0]
    return row


@pytest.mark.parametrize(
    "line",
    [
        b'{"op": "register"',
        b"nonsense",
        b'"text"',
        b"[1, 2]",
        b"17",
        b"true",
        b"{} {}",
        b"\xff\xfe",
    ],
)
def test_what_is_no_json_object_is_malformed(line: bytes) -> None:
    assert codes(parsed(line)) == ["malformed_json"]


def test_null_is_malformed_and_ends_nothing() -> None:
    """In a process of its own: Arrow's reader takes the whole process along (its issue 47409)."""
    code = (
        "import sys; sys.path[:] = " + repr(sys.path) + "\n"
        "import test_records as t\n"
        "found = t.parsed('null', t.registration())\n"
        "assert t.codes(found) == ['malformed_json'] and len(found.rows) == 1, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


@pytest.mark.parametrize("op", [None, "Register", "delete", 3, ["register"], {"register": 1}])
def test_an_unknown_operation(op: Any) -> None:
    found = parsed({"op": op, "id": "q1", "shape": BOX})
    assert codes(found) == ["unknown_operation"]
    assert len(found.rows) == 0


def test_a_missing_operation_is_unknown() -> None:
    assert codes(parsed({"id": "q1", "shape": BOX})) == ["unknown_operation"]


BAD_SHAPES: list[Any] = [
    None,
    "POINT (1 2)",
    [0, 0, 1, 1],
    {},
    {"type": "triangle"},
    {"type": None},
    {"type": ["rectangle"]},
    {**BOX, "south": 5, "north": 4},
    {**BOX, "north": 91},
    {**BOX, "south": -90.5},
    {**BOX, "west": -181},
    {**BOX, "east": 180.0001},
    {**BOX, "west": float("nan")},
    {**BOX, "east": float("inf")},
    {**BOX, "west": "0"},
    {**BOX, "west": True},
    {**BOX, "west": None},
    {**BOX, "west": 10**400},
    {"type": "rectangle", "west": 0, "south": 0, "east": 1},
    {"type": "circle", "lon": 0, "lat": 0},
    {"type": "circle", "lon": 0, "lat": 0, "radius_m": -1},
    {"type": "circle", "lon": 0, "lat": 91, "radius_m": 1},
    {"type": "circle", "lon": 0, "lat": float("nan"), "radius_m": 1},
    {"type": "circle", "lon": 0, "lat": 0, "radius_m": 10**400},
    {"type": "circle", "x": 0, "y": 0, "radius": 1},
    {"type": "Polygon"},
    {"type": "Polygon", "coordinates": []},
    {"type": "Polygon", "coordinates": [[]]},
    {"type": "Polygon", "coordinates": "abc"},
    {"type": "Polygon", "coordinates": {"a": 1}},
    {"type": "Polygon", "coordinates": [RING[:-1]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [float("nan"), 4], [0, 0]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [10**400, 4], [0, 0]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [None, 4], [0, 0]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [8, 0], [0, 0]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 91], [0, 0]]]},
    {"type": "Polygon", "coordinates": [RING, [[9, 9], [10, 9], [10, 10], [9, 9]]]},
    {"type": "MultiPolygon", "coordinates": []},
    {"type": "MultiPolygon", "coordinates": [RING]},
    {"type": "MultiPolygon", "coordinates": [[RING], [RING]]},
]


@pytest.mark.parametrize("shape", BAD_SHAPES, ids=lambda shape: repr(shape)[:60])
def test_an_invalid_shape(shape: Any) -> None:
    found = parsed(registration(shape=shape), registration(id="good"))
    assert codes(found) == ["invalid_shape"]
    assert found.rows.column("id").to_pylist() == ["good"]
    assert found.rejected[0].detail
    assert json.loads(found.rejected[0].row)["id"] == "q1"


def test_a_polygon_nested_at_any_depth_is_rejected_not_a_crash() -> None:
    """Reading and writing JSON reach the limit of recursion at different depths."""
    for depth in [*range(880, 1010), 100_000]:
        deep = "[" * depth + "]" * depth
        line = '{"op":"register","id":"a","shape":{"type":"Polygon","coordinates":' + deep + "}}"
        rules = RecordRules(LONLAT, SCHEMA, 10**6)
        found = parsed(line, registration(id="good"), rules=rules)
        assert len(found.rejected) == 1, depth
        assert found.rows.column("id").to_pylist() == ["good"]


@pytest.mark.parametrize(
    ("space", "shape"),
    [
        (EUROPE, {"type": "rectangle", "west": 31, "south": 40, "east": 32, "north": 50}),
        (EUROPE, {"type": "rectangle", "west": 0, "south": 0, "east": 10, "north": 34.9}),
        (EUROPE, {"type": "rectangle", "west": 170, "south": 40, "east": -170, "north": 50}),
        (EUROPE, {"type": "circle", "lon": 100, "lat": 50, "radius_m": 1000}),
        (EUROPE, {"type": "Polygon", "coordinates": [[[40, 40], [50, 40], [45, 50], [40, 40]]]}),
        (Space("planar", 0.0, 0.0, 1.0, 1.0), {"type": "circle", "x": 5, "y": 0, "radius": 3.9}),
    ],
    ids=str,
)
def test_a_shape_outside_the_space(space: Space, shape: Any) -> None:
    found = parsed(registration(shape=shape), rules=RecordRules(space, SCHEMA, 10_000))
    assert codes(found) == ["outside_space"]


def test_a_shape_that_only_touches_the_space_is_accepted() -> None:
    rules = RecordRules(EUROPE, SCHEMA, 10_000)
    touching = {"type": "rectangle", "west": 30, "south": 70, "east": 31, "north": 71}
    around = {"type": "rectangle", "west": 29, "south": 40, "east": -20, "north": 50}
    found = parsed(registration(shape=touching), registration(id="w", shape=around), rules=rules)
    assert codes(found) == []


def test_a_planar_space_does_not_wrap() -> None:
    rules = RecordRules(Space("planar", 0.0, 0.0, 1000.0, 1000.0), SCHEMA, 10_000)
    wrapping = {"type": "rectangle", "west": 500, "south": 0, "east": 400, "north": 1}
    far = {"type": "rectangle", "west": 500, "south": 0, "east": 600, "north": 1}
    found = parsed(registration(shape=wrapping), registration(id="far", shape=far), rules=rules)
    assert codes(found) == ["invalid_shape"]
    assert found.rows.column("x1").to_pylist() == [600.0]


@pytest.mark.parametrize("where", ["speed >", "speed > 'fast", "(speed > 1", 5, True, ["x"]])
def test_a_bad_where(where: Any) -> None:
    assert codes(parsed(registration(where=where))) == ["bad_where"]


def test_a_where_that_names_no_column_of_the_events() -> None:
    assert codes(parsed(registration(where="weight > 3"))) == ["unknown_column"]
    nothing_known = RecordRules(LONLAT, pa.schema([]), 10_000)
    assert codes(parsed(registration(where="weight > 3"), rules=nothing_known)) == []


def test_an_empty_where_asks_for_nothing() -> None:
    assert row_of(where="")["where"] is None
    assert row_of(where=None)["where"] is None
    assert row_of(where="speed > 3")["where"] == "speed > 3"


@pytest.mark.parametrize("name", ["valid_from", "valid_until"])
@pytest.mark.parametrize(
    "time",
    [
        "yesterday", "2023-13-01", "", True, [1], float("nan"), float("inf"), 1e14, 1e303, -1e305,
        10**400, -(10**30),
    ],
    ids=lambda given: repr(given)[:20],
)  # fmt: skip
def test_a_bad_time(name: str, time: Any) -> None:
    assert codes(parsed(registration(**{name: time}))) == ["bad_time"]


@pytest.mark.parametrize(
    ("given", "micros"),
    [
        ("2023-11-14T22:18:20Z", 1_700_000_300_000_000),
        ("2023-11-14T22:18:20", 1_700_000_300_000_000),
        ("2023-11-14T23:18:20.25+01:00", 1_700_000_300_250_000),
        ("1969-12-31T23:59:59.999999Z", -1),
        (1_700_000_300, 1_700_000_300_000_000),
        (1_700_000_300.25, 1_700_000_300_250_000),
        (-1, -1_000_000),
        (0, 0),
        (None, None),
    ],
)
def test_validity_as_text_and_as_seconds(given: Any, micros: int | None) -> None:
    row = row_of(valid_from=given, valid_until=given)
    assert (row["valid_from"], row["valid_until"]) == (micros, micros)
    if isinstance(given, str) and given.endswith("Z"):
        assert micros == round(datetime.fromisoformat(given).astimezone(UTC).timestamp() * 1e6)


@pytest.mark.parametrize("name", [None, "", "x" * 1001, 1.5, True, ["a"], {"a": 1}])
@pytest.mark.parametrize("op", ["register", "terminate"])
def test_a_bad_id(op: str, name: Any) -> None:
    assert codes(parsed({"op": op, "id": name, "shape": BOX})) == ["bad_id"]


@pytest.mark.parametrize("field", ["id", "user"])
def test_half_a_surrogate_pair_is_rejected_not_a_crash(field: str) -> None:
    line = json.dumps(registration(**{field: "\ud800"}))
    found = parsed(line, registration(id="good"))
    assert len(found.rejected) == 1
    assert found.rows.column("id").to_pylist() == ["good"]


def test_bytes_that_are_no_utf8_are_malformed_not_a_crash() -> None:
    line = json.dumps(registration(id="?")).encode().replace(b"?", b"\xff")
    found = parsed(line, registration(id="good"))
    assert codes(found) == ["malformed_json"]
    assert found.rows.column("id").to_pylist() == ["good"]


@pytest.mark.parametrize("name", ["x" * 1000, "é", "a\u0000b", " ", "🌍"])
def test_odd_ids_are_kept_as_they_are(name: str) -> None:
    assert row_of(id=name)["id"] == name


def test_whole_numbers_as_ids_become_text() -> None:
    found = parsed(registration(id=7), {"op": "terminate", "id": 7}, registration(id=-(10**30)))
    assert found.rows.column("id").to_pylist() == ["7", "7", str(-(10**30))]
    assert found.op.tolist() == [REGISTER, TERMINATE, REGISTER]


def test_an_oversized_record() -> None:
    rules = RecordRules(LONLAT, SCHEMA, 200)
    fits = json.dumps(registration()).encode()
    exactly = fits[:-1] + b" " * (200 - len(fits)) + b"}"
    found = parsed(exactly, exactly[:-1] + b" }", fits, rules=rules)
    assert codes(found) == ["oversized_record"]
    assert len(found.rows) == 2
    huge = parsed(b'"' + b"x" * 5000 + b'"', rules=rules)
    assert codes(huge) == ["oversized_record"]
    assert len(huge.rejected[0].row) <= 1000


@pytest.mark.parametrize("beside", [[], ["junk"]], ids=["alone", "beside"])
def test_blanks_around_a_record_count_whatever_stands_beside_it(beside: list[str]) -> None:
    rules = RecordRules(LONLAT, SCHEMA, 200)
    wide = b" " * 100 + json.dumps(registration()).encode() + b" " * 100
    assert codes(parsed(wide, *beside, rules=rules))[:1] == ["oversized_record"]


def test_a_record_over_two_lines_is_two_malformed_lines_whatever_follows() -> None:
    lines = [
        b'{"op":"terminate",',
        b'"id":"a"}',
        b'{"op":"terminate","id":"b"}{"op":"terminate","id":"c"}',
    ]
    assert codes(parsed(*lines)) == ["malformed_json"] * 3


def test_the_last_of_two_equal_keys_counts_in_every_block() -> None:
    assert parsed('{"op":"terminate","id":"a","id":"b"}').rows.column("id").to_pylist() == ["b"]


@pytest.mark.parametrize("other", [{}, {"valid_from": 1}], ids=["fast", "slow"])
def test_a_termination_has_only_its_id(other: dict[str, Any]) -> None:
    ending = {"op": "terminate", "id": "q1", "user": "u", "shape": BOX, "where": "junk (("}
    found = parsed(ending, registration(id="q2", **other))
    assert codes(found) == []
    assert found.op.tolist() == [TERMINATE, REGISTER]
    row = found.rows.to_pylist()[0]
    assert row.pop("id") == "q1"
    assert {value for value in row.values() if value} == set()


def test_the_kinds_of_shapes() -> None:
    wrapping = {"type": "rectangle", "west": 170, "south": -5, "east": -170, "north": 5}
    circle = {"type": "circle", "lon": 10, "lat": 20, "radius_m": 1000}
    polygon = {"type": "Polygon", "coordinates": [RING, [[1, 1], [2, 1], [2, 2], [1, 1]]]}
    several = {
        "type": "MultiPolygon",
        "coordinates": [[RING], [[[9, 9], [10, 9], [9, 10], [9, 9]]]],
    }
    shapes = [BOX, wrapping, circle, polygon, several]
    found = parsed(*(registration(id=str(i), shape=s) for i, s in enumerate(shapes)))
    rows = found.rows.to_pylist()
    assert [row["kind"] for row in rows] == [RECTANGLE, RECTANGLE, CIRCLE, POLYGON, POLYGON]
    assert [row["body"] is None for row in rows] == [True, True, False, False, False]
    boxes = [tuple(row[edge] for edge in ("x0", "y0", "x1", "y1")) for row in rows]
    assert boxes[0] == (0.0, 1.0, 2.0, 3.0)
    assert boxes[1] == (170.0, -5.0, -170.0, 5.0)
    assert boxes[3] == (0.0, 0.0, 4.0, 4.0)
    assert boxes[4] == (0.0, 0.0, 10.0, 10.0)


def test_the_good_ones_keep_their_order_among_the_bad() -> None:
    found = parsed(
        registration(id="a"), "junk", {"op": "terminate", "id": "b"}, registration(op="x"),
        registration(id="c", user=5),
    )  # fmt: skip
    assert found.op.tolist() == [REGISTER, TERMINATE, REGISTER]
    assert found.rows.column("id").to_pylist() == ["a", "b", "c"]
    assert found.rows.column("user").to_pylist() == [None, None, "5"]
    assert codes(found) == ["malformed_json", "unknown_operation"]


def test_no_lines_are_no_records() -> None:
    found = parsed()
    assert (len(found.op), len(found.rows), found.rejected) == (0, 0, [])
