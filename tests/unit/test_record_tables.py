"""Control records from columns: struct shapes, shapes as text, and no guess about odd types."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import Records, parse_table
from geoflux.spatial.shapes import CIRCLE, POLYGON, RECTANGLE
from geoflux.spatial.space import Space

LONLAT = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
RULES = RecordRules(LONLAT, pa.schema([("speed", pa.float64())]), 10_000)
BOX = {"type": "rectangle", "west": 0.0, "south": 1.0, "east": 2.0, "north": 3.0}
WRAPPING = {"type": "rectangle", "west": 170.0, "south": 1.0, "east": -170.0, "north": 3.0}
CIRCLE_SHAPE = {"type": "circle", "lon": 1.0, "lat": 2.0, "radius_m": 3.0}
POLYGON_SHAPE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]}


def parsed(**columns: Any) -> Records:
    given = {"op": ["register"], "id": ["q1"], "shape": [BOX]} | columns
    return parse_table(pa.table({k: v for k, v in given.items() if v is not None}), RULES)


def codes(records: Records) -> list[str]:
    return [bad.code for bad in records.rejected]


def box(records: Records, row: int = 0) -> tuple[float, ...]:
    return tuple(records.rows.column(edge)[row].as_py() for edge in ("x0", "y0", "x1", "y1"))


def test_struct_shapes() -> None:
    found = parsed(op=["register"] * 2, id=["a", "b"], shape=[BOX, WRAPPING], user=["u", None])
    assert codes(found) == []
    assert found.rows.column("id").to_pylist() == ["a", "b"]
    assert found.rows.column("user").to_pylist() == ["u", None]
    assert (box(found), box(found, 1)) == ((0.0, 1.0, 2.0, 3.0), (170.0, 1.0, -170.0, 3.0))


def test_a_struct_that_holds_the_fields_of_several_kinds() -> None:
    empty = dict.fromkeys([*BOX, *CIRCLE_SHAPE])
    shapes = [empty | BOX, empty | CIRCLE_SHAPE]
    found = parsed(op=["register"] * 2, id=["a", "b"], shape=shapes)
    assert codes(found) == []
    assert found.rows.column("kind").to_pylist() == [RECTANGLE, CIRCLE]
    alone = parsed(shape=[empty | BOX])
    assert box(alone) == box(found) == (0.0, 1.0, 2.0, 3.0)


def test_shapes_as_text() -> None:
    shapes = [json.dumps(s) for s in (BOX, WRAPPING, CIRCLE_SHAPE, POLYGON_SHAPE)]
    found = parsed(op=["register"] * 4, id=list("abcd"), shape=shapes)
    assert codes(found) == []
    assert found.rows.column("kind").to_pylist() == [RECTANGLE, RECTANGLE, CIRCLE, POLYGON]
    assert box(found, 1) == (170.0, 1.0, -170.0, 3.0)


@pytest.mark.parametrize("text", ["{nope", "", "17", '"rectangle"', "null"])
def test_a_text_that_is_no_shape(text: str) -> None:
    found = parsed(op=["register"] * 2, id=["a", "b"], shape=[text, json.dumps(BOX)])
    assert codes(found) == ["invalid_shape"]
    assert found.rows.column("id").to_pylist() == ["b"]


def test_a_text_nested_at_any_depth_is_no_crash() -> None:
    for depth in [*range(880, 1010), 100_000]:
        deep = "[" * depth + "]" * depth
        shape = '{"type": "Polygon", "coordinates": ' + deep + "}"
        found = parsed(op=["register"] * 2, id=["a", "b"], shape=[shape, json.dumps(BOX)])
        assert len(found.rejected) == 1, depth
        assert found.rows.column("id").to_pylist() == ["b"]


def test_struct_polygons() -> None:
    ring = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 0.0]]
    found = parsed(shape=[{"type": "Polygon", "coordinates": [ring]}])
    assert codes(found) == []
    assert box(found) == (0.0, 0.0, 4.0, 4.0)


def test_a_termination_needs_no_shape() -> None:
    found = parsed(op=["terminate"], shape=None)
    assert (codes(found), found.op.tolist()) == ([], [1])
    mixed = parsed(op=["register", "terminate"], id=["a", "a"], shape=[BOX, None])
    assert (codes(mixed), mixed.op.tolist()) == ([], [0, 1])


def test_whole_numbers_as_ids() -> None:
    for other in ({}, {"valid_from": [5]}):
        assert parsed(id=[12], **other).rows.column("id").to_pylist() == ["12"]


@pytest.mark.parametrize("name", [5.0, True, b"\xff"], ids=repr)
@pytest.mark.parametrize("other", [{}, {"valid_from": [5]}], ids=["fast", "slow"])
def test_an_id_that_is_neither_text_nor_whole_number(name: Any, other: dict[str, Any]) -> None:
    assert codes(parsed(id=[name], **other)) == ["bad_id"]


@pytest.mark.parametrize("edges", [("0", "1", "2", "3"), (False, False, True, True)], ids=repr)
@pytest.mark.parametrize("other", [{}, {"valid_from": [5]}], ids=["fast", "slow"])
def test_edges_that_are_no_numbers(edges: tuple[Any, ...], other: dict[str, Any]) -> None:
    shape = {"type": "rectangle"} | dict(
        zip(("west", "south", "east", "north"), edges, strict=True)
    )
    assert codes(parsed(shape=[shape], **other)) == ["invalid_shape"]


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ({"op": [None]}, "unknown_operation"),
        ({"op": None}, "unknown_operation"),
        ({"op": ["drop"]}, "unknown_operation"),
        ({"id": pa.array([None], pa.string())}, "bad_id"),
        ({"id": None}, "bad_id"),
        ({"id": ["x" * 1001]}, "bad_id"),
        ({"id": [[1]]}, "bad_id"),
        ({"shape": None}, "invalid_shape"),
        ({"shape": [7]}, "invalid_shape"),
        ({"shape": [{**BOX, "west": float("nan")}]}, "invalid_shape"),
        ({"shape": [{**BOX, "north": 91.0}]}, "invalid_shape"),
        ({"where": ["speed >"]}, "bad_where"),
        ({"where": [True]}, "bad_where"),
        ({"where": ["weight > 1"]}, "unknown_column"),
        ({"valid_until": ["soon"]}, "bad_time"),
    ],
)
def test_reasons(column: dict[str, Any], code: str) -> None:
    found = parsed(**column)
    assert codes(found) == [code]
    assert len(found.rows) == 0


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1_700_000_300_000_000], pa.timestamp("us")),
        pa.array([1_700_000_300_000], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([1_700_000_300]),
        pa.array([1_700_000_300.0]),
        pa.array(["2023-11-14T22:18:20Z"]),
    ],
    ids=lambda times: str(times.type),
)
def test_validity_in_every_type(times: pa.Array) -> None:
    found = parsed(valid_until=times)
    assert codes(found) == []
    assert found.rows.column("valid_until").to_pylist() == [1_700_000_300_000_000]
    assert found.rows.column("valid_from").to_pylist() == [None]


def test_further_columns_chunks_and_dictionaries_do_not_matter() -> None:
    plain = parsed()
    for found in (
        parsed(note=["x"]),
        parsed(id=pa.array(["q1"]).dictionary_encode()),
        parsed(op=pa.array(["register"], pa.large_string())),
    ):
        assert found.rows.equals(plain.rows)
    table = pa.table({"op": ["register"], "id": ["q1"], "shape": [BOX]})
    assert len(parse_table(pa.concat_tables([table, table]), RULES).rows) == 2
    assert len(parse_table(table.slice(0, 0), RULES).rows) == 0


def test_null_fields_are_missing_fields() -> None:
    found = parsed(where=pa.array([None], pa.string()), user=pa.array([None], pa.int64()))
    assert codes(found) == []
    assert found.rows.to_pylist()[0]["where"] is None
