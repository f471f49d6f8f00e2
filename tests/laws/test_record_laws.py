"""Laws of control records: no line is lost, none stops the stream, and neighbours do not matter."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.engine.records import (
    RecordRules,
    Records,
    _decoded,
    _fast_table,
    _from_columns,
    _one_by_one,
    parse_lines,
    parse_table,
)
from geoflux.spatial.space import Space

SPACE = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
SCHEMA = pa.schema([("speed", pa.float64()), ("kind", pa.string())])
RULES = RecordRules(SPACE, SCHEMA, 10_000)
IDS = st.text(min_size=1, max_size=8)


@st.composite
def rectangles(draw: st.DrawFn) -> dict[str, Any]:
    number = st.one_of(st.floats(-90, 90), st.integers(-90, 90))
    west, east = sorted([draw(number), draw(number)])
    south, north = sorted([draw(number), draw(number)])
    return {"type": "rectangle", "west": west, "south": south, "east": east, "north": north}


@st.composite
def plain_records(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.integers(0, 3)) == 0:
        return {"op": "terminate", "id": draw(IDS)}
    record = {"op": "register", "id": draw(IDS), "shape": draw(rectangles())}
    if draw(st.booleans()):
        record["user"] = draw(st.one_of(st.none(), st.text(max_size=5)))
    if draw(st.booleans()):
        record["where"] = draw(st.sampled_from(["speed > 10", "kind = 'bus'", "not (speed < 3)"]))
    return record


def lines_of(records: list[Any]) -> list[bytes]:
    return [
        json.dumps(r, ensure_ascii=bool(i % 2)).encode("utf-8", "surrogatepass")
        for i, r in enumerate(records)
    ]


def same(one: Records, other: Records) -> bool:
    return (
        one.op.tolist() == other.op.tolist()
        and one.rows.equals(other.rows)
        and one.rejected == other.rejected
    )


@given(st.lists(plain_records(), min_size=1, max_size=12))
def test_columns_give_what_single_records_give(records: list[dict[str, Any]]) -> None:
    lines = lines_of(records)
    table = _fast_table(b"\n".join(lines), len(lines))
    assert table is not None
    fast = _from_columns(table, RULES)
    assert fast is not None
    assert same(fast, _one_by_one([_decoded(line, RULES.max_bytes) for line in lines], RULES))
    assert same(fast, parse_lines(lines, RULES))


@given(st.lists(plain_records(), min_size=1, max_size=8))
def test_parquet_gives_what_lines_give(records: list[dict[str, Any]]) -> None:
    rows = [dict.fromkeys(("op", "id", "user", "shape", "where")) | r for r in records]
    for row in rows:
        if row["shape"] is not None:
            row["shape"] = {k: v if k == "type" else float(v) for k, v in row["shape"].items()}
    table = pa.Table.from_pylist(rows)
    shapes = [None if row["shape"] is None else json.dumps(row["shape"]) for row in rows]
    texts = table.set_column(table.schema.get_field_index("shape"), "shape", [shapes])
    from_lines = parse_lines(lines_of(records), RULES)
    assert same(parse_table(table, RULES), from_lines)
    assert same(parse_table(texts, RULES), from_lines)


EVIL = st.sampled_from(
    [10**400, -(10**400), 1e305, -1e303, "\ud800", "", None, True, 1.5, [], {}, "2020-13-01"]
)
ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=6),
        st.sampled_from(["register", "Polygon", "circle"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "west", "coordinates", "a"]), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@st.composite
def spoilt_records(draw: st.DrawFn) -> Any:
    """A good record with one thing replaced by anything."""
    record = draw(plain_records())
    name = draw(st.sampled_from(["op", "id", "user", "shape", "where", "valid_from", "new"]))
    if name == "shape" and "shape" in record and draw(st.booleans()):
        shape = {
            "rectangle": record["shape"],
            "circle": {"type": "circle", "lon": 1, "lat": 1, "radius_m": 1},
            "Polygon": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]},
        }[draw(st.sampled_from(["rectangle", "circle", "Polygon"]))]
        return record | {
            "shape": shape | {draw(st.sampled_from(sorted(shape))): draw(EVIL | ANYTHING)}
        }
    return record | {name: draw(EVIL | ANYTHING)}


def usable(line: bytes) -> bool:
    """One line, and not ``null``: that may end the process, so a test of its own looks at it."""
    return b"\n" not in line and line.strip() != b"" and b"null" not in line[:12]


LINES = st.one_of(
    st.builds(lambda r: lines_of([r])[0], plain_records()),
    st.builds(lambda r: lines_of([r])[0], spoilt_records()),
    st.builds(lambda r: lines_of([r])[0], ANYTHING),
    st.binary(min_size=1, max_size=20),
    st.builds(
        lambda r, cut: lines_of([r])[0][: max(cut, 1)], plain_records(), st.integers(1, 60)
    ),
    st.builds(lambda r, bad: lines_of([r])[0].replace(b'"', b'"' + bad, 4), plain_records(),
              st.binary(min_size=1, max_size=2)),
).filter(usable)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(LINES, min_size=1, max_size=6))
def test_every_line_is_accepted_or_rejected_whatever_stands_beside_it(lines: list[bytes]) -> None:
    together = parse_lines(lines, RULES)
    assert len(together.op) == len(together.rows)
    assert len(together.rows) + len(together.rejected) == len(lines)
    together.rows.validate(full=True)
    for bad in together.rejected:  # they go to the quarantine as text
        pa.array([bad.code, bad.detail, bad.row], pa.string())
    singly = [parse_lines([line], RULES) for line in lines]
    assert together.op.tolist() == [op for one in singly for op in one.op]
    assert together.rows.to_pylist() == [row for one in singly for row in one.rows.to_pylist()]
    assert together.rejected == [bad for one in singly for bad in one.rejected]
