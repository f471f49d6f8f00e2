"""The language of queries by example: what each text means, and where each mistake is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from geoflux.errors import QueryError
from geoflux.sketch.expressions import Call, Contrast, Key, Matching, Math, Number, Ref, Synthetic
from geoflux.sketch.functions import FUNCTIONS
from geoflux.sketch.language import parse_query
from geoflux.sketch.language_json import from_json, to_json
from geoflux.sketch.language_sql import parse_sql
from geoflux.sketch.moments import moment
from geoflux.sketch.query import Column, Order, Query
from geoflux.sketch.ranges import EARLIEST, EVERYTHING, LATEST, Range, Span
from geoflux.sketch.scope import Box, Circle, Condition, Prefix, Scope
from geoflux.sketch.sql_writer import to_sql
from queries_by_hand import WeatherNames

NAMES = WeatherNames()
INF = float("inf")
DAY = 86_400
MARCH_26 = 1_774_483_200


def where(condition: str) -> Scope:
    return parse_sql(f"SELECT count(*) WHERE {condition}", NAMES).where


def selected(text: str) -> list[object]:
    return [column.value for column in parse_sql(f"SELECT {text}", NAMES).select]


def test_the_example_of_the_documents() -> None:
    query = parse_sql(
        "SELECT mean(t2m_k), stddev(t2m_k), corr(t2m_k, msl_pa) WHERE region IN bbox(-10,35,30,60) "
        "AND time BETWEEN '2026-03-26' AND '2026-03-28' AND u10_ms > 5 GROUP BY geohash(3)",
        NAMES,
    )
    assert query == Query(
        (
            Column(Call("mean", ("t2m_k",))),
            Column(Call("stddev", ("t2m_k",))),
            Column(Call("corr", ("t2m_k", "msl_pa"))),
        ),
        Scope(
            (Box(-10, 35, 30, 60),),
            (Span(MARCH_26, MARCH_26 + 3 * DAY),),
            None,
            (Condition("u10_ms", (Range(5, INF, False, False),)),),
        ),
        (Key("geohash", 3),),
    )
    assert next(column.name for column in query.columns) == "geohash(3)"
    assert query.kind == "statistical"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("count(*)", Call("count")),
        ("COUNT(t2m_k)", Call("count", ("t2m_k",))),
        ("avg(t2m_k)", Call("mean", ("t2m_k",))),
        ("outliers(t2m_k, 2.5)", Call("outliers", ("t2m_k",), (2.5,))),
        ("probability(t2m_k, -1, 2e2)", Call("probability", ("t2m_k",), (-1, 200))),
        ("contains(t2m_k = 1.5, tp_m = -2)", Call("contains", ("t2m_k", "tp_m"), (1.5, -2))),
        ("frequency(t2m_k, 1.5, tp_m, 2)", Call("frequency", ("t2m_k", "tp_m"), (1.5, 2))),
        ("count(DISTINCT *)", Call("distinct")),
        ("cardinality()", Call("distinct")),
        ("forecast(t2m_k, tp_m, 3)", Call("forecast", ("t2m_k", "tp_m"), (3,))),
        ("*", Matching("leaves")),
        ("leaves", Matching("leaves")),
        ("graph", Matching("graph")),
        ("synthetic(1000, 42)", Synthetic(rows=1000, seed=42)),
        ("synthetic('10%')", Synthetic(percent=10)),
        (
            "max(tp_m) - min(tp_m) / 2",
            Math(
                "-",
                Call("max", ("tp_m",)),
                Math("/", Call("min", ("tp_m",)), Number(2)),
            ),
        ),
        (
            "contrast(mean(tp_m), hour < 1, TRUE)",
            Contrast(
                Call("mean", ("tp_m",)),
                Scope(hours=frozenset([0])),
                Call("mean", ("tp_m",)),
                Scope(),
            ),
        ),
        (
            "contrast(mean(tp_m), hour < 1, max(tp_m), hour < 1)",
            Contrast(
                Call("mean", ("tp_m",)),
                Scope(hours=frozenset([0])),
                Call("max", ("tp_m",)),
                Scope(hours=frozenset([0])),
            ),
        ),
    ],
)
def test_columns(text: str, value: object) -> None:
    assert selected(text) == [value]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        # A day alone is all of it; with a clock time it is that instant.
        ("time = '2026-03-26'", MARCH_26, MARCH_26 + DAY),
        ("time BETWEEN '2026-03-26' AND '2026-03-26'", MARCH_26, MARCH_26 + DAY),
        ("time BETWEEN '2026-03-26T00:00' AND '2026-03-26T01:00'", MARCH_26, MARCH_26 + 3601),
        ("time >= '2026-03-26'", MARCH_26, LATEST),
        ("time > '2026-03-26'", MARCH_26 + DAY, LATEST),
        ("time < '2026-03-26'", EARLIEST, MARCH_26),
        ("time <= '2026-03-26'", EARLIEST, MARCH_26 + DAY),
        ("time > '2026-03-26T00:00:00Z'", MARCH_26 + 1, LATEST),
        ("time >= '2026-03-26 02:00:00+02:00'", MARCH_26, LATEST),
        ("time > '2026-03-26T00:00:00.5'", MARCH_26 + 1, LATEST),
        ("time < '2026-03-26T00:00:00.5'", EARLIEST, MARCH_26 + 1),
        ("'2026-03-26' <= time AND time < DATE '2026-03-27'", MARCH_26, MARCH_26 + DAY),
        ("time = '2026-03'", MARCH_26 - 25 * DAY, MARCH_26 + 6 * DAY),
        ("time >= '2026-01-01' AND time <= '9999-12-31'", MARCH_26 - 84 * DAY, LATEST),
    ],
)
def test_times(text: str, start: int, end: int) -> None:
    assert where(text).times == (Span(start, end),)


def test_times_apart_are_a_union_and_everything_is_no_condition() -> None:
    apart = where("time IN ('2026-03-26', '2026-03-28') OR time = '2026-03-27'")
    assert apart.times == (Span(MARCH_26, MARCH_26 + 3 * DAY),)
    without = where("time <> '2026-03-26'")
    assert without.times == (Span(EARLIEST, MARCH_26), Span(MARCH_26 + DAY, LATEST))
    assert where("time < '2026' OR time >= '2026'").times is None


@pytest.mark.parametrize(
    ("text", "ranges", "missing"),
    [
        ("tp_m > 5", [(5, INF, False, False)], False),
        ("5 >= tp_m", [(-INF, 5, False, True)], False),
        ("tp_m BETWEEN 1 AND 2", [(1, 2, True, True)], False),
        ("tp_m >= 1 AND tp_m < 2", [(1, 2, True, False)], False),
        ("tp_m = -1.5", [(-1.5, -1.5, True, True)], False),
        ("tp_m IN (2, 1)", [(1, 1, True, True), (2, 2, True, True)], False),
        ("tp_m <> 1", [(-INF, 1, False, False), (1, INF, False, False)], False),
        ("tp_m NOT BETWEEN 1 AND 2", [(-INF, 1, False, False), (2, INF, False, False)], False),
        ("NOT (tp_m < 1 OR tp_m > 2)", [(1, 2, True, True)], False),
        ("tp_m IS NULL", [], True),
        ("tp_m IS NOT NULL", [tuple(EVERYTHING)], False),
        ("NOT (tp_m IS NOT NULL)", [], True),
        ("tp_m < 1 OR tp_m IS NULL", [(-INF, 1, False, False)], True),
        ("(tp_m < 1 OR tp_m IS NULL) AND tp_m > 0", [(0, 1, False, False)], False),
    ],
)
def test_ranges_of_a_feature(
    text: str, ranges: list[tuple[float, float, bool, bool]], missing: bool
) -> None:
    assert where(text).conditions == (Condition("tp_m", tuple(Range(*r) for r in ranges), missing),)


def test_regions_and_hours() -> None:
    places = where("region IN bbox(170, -5, -170, 5) OR region IN circle(1.5, 2, 300)")
    assert places.regions == (Box(170, -5, -170, 5), Circle(1.5, 2, 300))
    cells = where("region IN geohash('u0', 'U1') OR region = 's'")
    assert cells.regions == (Prefix("u0"), Prefix("u1"), Prefix("s"))
    assert Prefix("u0").code == 26 << 5
    assert where("hour BETWEEN 14 AND 16").hours == frozenset([14, 15, 16])
    assert where("hour_of_day >= 22 OR hour < 2").hours == frozenset([22, 23, 0, 1])
    assert where("hour >= 0").hours is None


def test_a_quoted_name_is_a_feature() -> None:
    query = parse_sql('SELECT mean("hour") WHERE "time" > 1 AND "Region" < 2')
    assert query.select[0].value == Call("mean", ("hour",))
    assert [c.feature for c in query.where.conditions] == ["Region", "time"]


def test_keys_and_order() -> None:
    query = parse_sql(
        "SELECT geohash(2) AS cell, mean(tp_m) AS m, max(tp_m) GROUP BY cell, month, hour_of_day "
        "ORDER BY m DESC, max(tp_m), month, 1 LIMIT 7",
        NAMES,
    )
    assert query.group_by == (Key("geohash", 2), Key("month"), Key("hour_of_day"))
    assert [c.name for c in query.columns] == ["month", "hour_of_day", "cell", "m", "max(tp_m)"]
    expected = (Order("m", True), Order("max(tp_m)"), Order("month"), Order("cell"))
    assert (query.order_by, query.limit) == (expected, 7)


def test_a_join() -> None:
    query = parse_sql(
        "SELECT region, a.t - b.t AS diff, a.max(t2m_k) FROM "
        "(SELECT region, mean(t2m_k) AS t, max(t2m_k) WHERE time = '2026-03-26' GROUP BY region) a "
        "JOIN (SELECT mean(t2m_k) AS t WHERE time = '2026-03-27' GROUP BY region) b "
        "ON b.region = a.region ORDER BY diff",
        NAMES,
    )
    assert query.join is not None
    assert query.join.on == (("region", "region"),)
    assert [column.value for column in query.select] == [
        Ref("a", "region"),
        Math("-", Ref("a", "t"), Ref("b", "t")),
        Ref("a", "max(t2m_k)"),
    ]
    assert query.join.right.where.times == (Span(MARCH_26 + DAY, MARCH_26 + 2 * DAY),)
    using = parse_sql(
        "SELECT a.n FROM (SELECT count(*) AS n GROUP BY day) a "
        "JOIN (SELECT count(*) GROUP BY day) b USING (day)"
    )
    assert using.join is not None
    assert using.join.on == (("day", "day"),)


def test_continuous_queries() -> None:
    assert parse_sql("SELECT count(*)", every="epoch").every == "epoch"
    assert parse_query({"select": [{"count": []}], "every": 60}).every == 60
    with pytest.raises(QueryError, match="expected more than 0"):
        parse_sql("SELECT count(*)", every=0)


def test_moments_outside_the_calendar() -> None:
    assert moment("9999-12-31").end == 253_402_300_800
    for text in ("0000-01-01", "2026-13", "2026-03-26T25:00", "20260326", "2026-W13", "٢٠٢٦"):
        with pytest.raises(QueryError, match="is no time"):
            moment(text)


def test_the_examples_of_the_page_are_queries() -> None:
    page = (Path(__file__).parents[2] / "docs" / "queries-of-sketches.md").read_text("utf-8")
    examples = re.findall(r"```(?:sql|json)\n(.*?)```", page, re.DOTALL)
    kinds = {parse_query(example, NAMES).kind for example in examples}
    assert kinds >= {"relational", "statistical", "density", "set", "inferential", "synthetic"}
    for example in examples:
        query = parse_query(example, NAMES)
        assert from_json(to_json(query)) == query
        assert parse_sql(to_sql(query), every=query.every) == query
    for function in FUNCTIONS.values():
        assert f"`{function.usage.split('(')[0]}(" in page
