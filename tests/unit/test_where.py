"""The ``where`` predicate: each construct, each refusal, and the logic of nulls."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from geoflux.errors import RejectedRecord
from geoflux.operators.where import PairFilter, check, compiled, evaluate_rows, parse
from geoflux.operators.where_parse import MAX_CHARACTERS, MAX_DEPTH, MAX_LIST

SCHEMA = pa.schema(
    [
        ("speed", pa.float64()),
        ("count", pa.int64()),
        ("kind", pa.string()),
        ("zone", pa.dictionary(pa.int32(), pa.string())),
        ("occupied", pa.bool_()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("shape", pa.list_(pa.int8())),
        ("void", pa.null()),
    ]
)


def matches(text: str, columns: dict[str, pa.Array]) -> list[bool]:
    predicate = parse(text)
    pair_filter = compiled(predicate.template)
    params = [
        pa.scalar(value, type_)
        for value, type_ in zip(predicate.params, pair_filter.param_types, strict=True)
    ]
    return pair_filter.evaluate(columns, params).tolist()


@pytest.mark.parametrize(
    ("text", "template", "params"),
    [
        ("speed > 10", "speed > ?i", (10,)),
        ("10 < speed", "speed > ?i", (10,)),
        ("speed == -1.5e3", "speed = ?n", (-1500.0,)),
        ("speed <> .5", "speed != ?n", (0.5,)),
        ("speed <= count", "speed <= count", ()),
        ("kind = 'it''s'", "kind = ?s", ("it's",)),
        ("occupied", "occupied", ()),
        ("NOT occupied", "not occupied", ()),
        ("not not occupied", "occupied", ()),
        ("occupied = TRUE", "occupied = ?b", (True,)),
        ("kind in ('a', 'b')", "kind in (?s, ?s)", ("a", "b")),
        ("kind NOT IN ('a')", "not (kind in (?s))", ("a",)),
        ("kind is null", "kind is null", ()),
        ("kind IS NOT NULL", "not (kind is null)", ()),
        ("speed between 1 and 2.5", "(speed >= ?i) and (speed <= ?n)", (1, 2.5)),
        ("speed not between 1 and 2", "not ((speed >= ?i) and (speed <= ?i))", (1, 2)),
        ("5 between count and speed", "(count <= ?i) and (speed >= ?i)", (5, 5)),
        ('"my ""col""" = 1', '"my ""col""" = ?i', (1,)),
        ('"and" = 1', '"and" = ?i', (1,)),
        ('"speed" = 1', "speed = ?i", (1,)),
        ("speed > 10 and kind = 'taxi'", "(speed > ?i) and (kind = ?s)", (10, "taxi")),
        ("(a and b) and (c)", "a and b and c", ()),
        ("count = 9223372036854775807", "count = ?i", (2**63 - 1,)),
        ("count = 9223372036854775808", "count = ?n", (2.0**63,)),
    ],
)
def test_parse_lifts_literals(text: str, template: str, params: tuple[object, ...]) -> None:
    predicate = parse(text)
    assert predicate.template == template
    assert predicate.params == params
    assert [type(param) for param in predicate.params] == [type(param) for param in params]


def test_the_columns_of_a_predicate() -> None:
    assert parse("speed > 1 or not (kind in ('a') and \"x y\")").columns == {"speed", "kind", "x y"}


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("a or b and c", "a or b and c"),
        ("(a or b) and c", "(a or b) and c"),
        ("not a and b", "not a and b"),
        ("not (a and b)", "not (a and b)"),
        ("not a = 1 or b", "not (a = ?i) or b"),
        ("x between 1 and 2 and b", "(x >= ?i) and (x <= ?i) and b"),
    ],
)
def test_precedence(text: str, template: str) -> None:
    assert parse(text).template == template


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, "a column or a value, found the end"),
        ("speed >", 8, "a column or a value, found the end"),
        ("speed > 1 kind", 11, "'and', 'or' or the end, found 'kind'"),
        ("(speed > 1", 11, "'and', 'or' or ')', found the end"),
        ("speed > 12abc", 9, "found '12abc'"),
        ("kind = 'taxi", 8, "a closing ' for the one here"),
        ("1 = 2", 1, "a column on one side"),
        ("1 is null", 1, "a column on one side"),
        ("true", 5, "a comparison"),
        ("kind in ()", 10, "a column or a value, found ')'"),
        ("kind in ('a' 'b')", 14, "',' or ')'"),
        ("kind in 'a'", 9, "'('"),
        ("kind not 'a'", 10, "'in' or 'between'"),
        ("kind is 5", 9, "'null'"),
        ("kind = null", 8, "is null"),
        ("speed between 1 or 2", 17, "'and'"),
        ("speed > 1e999", 9, "fits in float64"),
        ("speed > ?i", 9, "found '?i'"),
        ("speed\u00a0> 1", 6, "a column, a value or an operator"),
        ("kind = '\ud800'", 9, "surrogate"),
    ],
)
def test_a_refusal_says_where_and_what_was_expected(
    text: str, position: int, expected: str
) -> None:
    with pytest.raises(RejectedRecord) as caught:
        parse(text)
    assert caught.value.code == "bad_where"
    assert caught.value.detail.startswith(f"at character {position}: expected ")
    assert expected in caught.value.detail


def test_hostile_texts_are_refused_quickly_and_the_limits_themselves_pass() -> None:
    deepest = "(" * MAX_DEPTH + "not x not between 1 and 2 or y" + ")" * MAX_DEPTH
    tower = "not (a or b and " * MAX_DEPTH + "x not between 1 and 2" + ")" * MAX_DEPTH
    chain = " or ".join(["a"] * (MAX_CHARACTERS // 5))
    longest = f"a in ({', '.join(['1'] * MAX_LIST)})"
    for text in (deepest, tower, chain, "not " * 2000 + "a", longest):
        predicate = parse(text)
        assert compiled(predicate.template).columns == predicate.columns
    for text in (
        f"({deepest})",
        "a" * (MAX_CHARACTERS + 1),
        "1" * 9000 + "x",
        longest[:-1] + ", 1)",
    ):
        with pytest.raises(RejectedRecord, match="bad_where"):
            parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "speed > count",
        "speed = 5 and count = 5.5",
        "kind < 'm' and zone = kind",
        "occupied = true and not occupied",
        "seen >= '2024-05-01' and seen in ('2024-05-01T12:00:00+02:00')",
        "shape is null and void = 3 and void",
    ],
)
def test_check_accepts(text: str) -> None:
    check(parse(text), SCHEMA)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("sped > 1", "unknown_column", "did you mean 'speed'? available: speed, count"),
        ("q > 1", "unknown_column", "no column 'q'; available: speed, count"),
        ("speed = 'fast'", "bad_where", "column 'speed' (double) cannot be compared with a text"),
        ("kind > 5", "bad_where", "column 'kind' (string) cannot be compared with a number"),
        ("kind in ('a', 5)", "bad_where", "with a number"),
        ("zone = true", "bad_where", "with a boolean"),
        ("occupied < true", "bad_where", "no order for '<'"),
        ("occupied = 1", "bad_where", "with a number"),
        ("kind", "bad_where", "stands alone"),
        ("seen > 'yesterday'", "bad_where", "'yesterday' is not an ISO-8601 time"),
        ("seen > kind", "bad_where", "cannot be compared with column 'kind'"),
        ("shape = 5", "bad_where", "column 'shape'"),
    ],
)
def test_check_refuses(text: str, code: str, said: str) -> None:
    with pytest.raises(RejectedRecord) as caught:
        check(parse(text), SCHEMA)
    assert caught.value.code == code
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        #                        p: True   False  None
        ("p", [True, False, False]),
        ("not p", [False, True, False]),
        ("p is null", [False, False, True]),
        ("p is not null", [True, True, False]),
        ("p = true", [True, False, False]),
        ("p != true", [False, True, False]),
        ("not (p = true)", [False, True, False]),
        ("p or p is null", [True, False, True]),
        ("p and one = 1", [True, False, False]),
        ("p or one = 1", [True, True, True]),
        ("not (p and one = 2)", [True, True, True]),
        ("p in (true)", [True, False, False]),
        ("p not in (true)", [False, True, False]),
        ("one in (1, nothing)", [True, True, True]),
        ("one not in (2, nothing)", [False, False, False]),
        ("nothing = 1 or nothing != 1 or not nothing", [False, False, False]),
    ],
)
def test_null_logic(text: str, expected: list[bool]) -> None:
    columns = {
        "p": pa.array([True, False, None]),
        "one": pa.array([1, 1, 1]),
        "nothing": pa.nulls(3),
    }
    assert matches(text, columns) == expected
    rows = pa.table(columns).to_pylist()
    assert [evaluate_rows(parse(text), row) for row in rows] == expected


def test_params_differ_by_pair() -> None:
    pair_filter = PairFilter("(speed > ?n) and (kind in (?s, ?s))")
    columns = {"speed": pa.array([5.0, 5.0, 5.0]), "kind": pa.array(["a", "b", "c"])}
    params = [pa.array([1.0, 9.0, 1.0]), pa.array(["a", "b", "x"]), pa.scalar("c")]
    assert pair_filter.evaluate(columns, params).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="takes 3 parameters, got 1"):
        pair_filter.evaluate(columns, params[:1])


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "b"]),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", None, "b"])),
        pa.chunked_array([["a"], [None, "b"]]),
    ],
    ids=lambda values: f"{type(values).__name__}-{values.type}",
)
def test_every_layout_of_text(values: pa.Array) -> None:
    assert matches("k = 'a'", {"k": values}) == [True, False, False]
    assert matches("k > 'a'", {"k": values}) == [False, False, True]
    assert matches("k is null", {"k": values}) == [False, True, False]
    encoded = pa.array(["a", "a", "b"]).dictionary_encode()
    assert PairFilter("k = ?s").evaluate({"k": values}, [encoded]).tolist() == [True, False, True]


def test_large_integers_compare_exactly_and_never_overflow() -> None:
    big = 2**53 + 1
    assert matches(f"n = {big}", {"n": pa.array([big - 1, big, big + 1])}) == [False, True, False]
    assert matches("n > 1.5", {"n": pa.array([big, 1])}) == [True, False]
    assert matches(f"n < {big}", {"n": pa.array([1.0, math.nan])}) == [True, False]
    unsigned = pa.array([2**64 - 1, 0], pa.uint64())
    assert matches("n > -1", {"n": unsigned}) == [True, True]
    assert matches(f"n = {big}", {"n": pa.array([big - 1, big], pa.uint64())}) == [False, True]
    assert matches("n > m", {"n": unsigned, "m": pa.array([5, 5], pa.int8())}) == [True, False]


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.uint32(), pa.float16(), pa.float32(), pa.decimal128(10, 2)], ids=str
)
def test_every_width_of_number(type_: pa.DataType) -> None:
    values = [Decimal(1), Decimal(2)] if pa.types.is_decimal(type_) else [1, 2]
    columns = {"n": pa.array([*values, None], type_)}
    assert matches("n >= 2", columns) == [False, True, False]
    assert matches("n < 1.5", columns) == [True, False, False]
    assert matches("n = n", columns) == [True, True, False]


def test_nan_compares_as_ieee() -> None:
    columns = {"x": pa.array([math.nan])}
    assert matches("x = x or x < 1 or x >= 1 or x is null", columns) == [False]
    assert matches("x != 1", columns) == [True]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Vienna"])
def test_times_meet_iso_texts_as_instants(unit: str, zone: str | None) -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    columns = {
        "t": pa.array([noon, None], pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"))
    }
    columns["t"] = columns["t"].cast(pa.int64()).cast(pa.timestamp(unit, zone))
    columns["day"] = pa.array([date(2024, 5, 1), None])
    assert matches("t = '2024-05-01T12:00:00'", columns) == [True, False]
    assert matches("t = '2024-05-01T14:00:00+02:00'", columns) == [True, False]
    assert matches("t < '2024-05-01T12:00:00.000001Z'", columns) == [True, False]
    assert matches("t < '9999-12-31' and t > '0001-01-01'", columns) == [True, False]
    assert matches("t > day and day = '2024-05-01'", columns) == [True, False]
    assert matches("t in ('2024-05-01T12:00:00Z', '2024-05-02')", columns) == [True, False]
    limits = pa.array(["2024-05-02", "2024-05-02"])
    assert PairFilter("t < ?s").evaluate(columns, [limits]).tolist() == [True, False]


def test_a_batch_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RejectedRecord, match="cannot be compared"):
        matches("k = 'a'", {"k": pa.array([1])})
    with pytest.raises(RejectedRecord, match="stands alone"):
        matches("k", {"k": pa.array([1])})


def test_an_empty_batch() -> None:
    assert (
        matches("speed > 1 and k = 'a'", {"speed": pa.array([], pa.float64()), "k": pa.nulls(0)})
        == []
    )
