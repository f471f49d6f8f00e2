"""The language of queries by example: what each text means, and where each mistake is."""

from __future__ import annotations

import re
import time
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


# Text, what the sentence begins with, line and column.
MISTAKES = [
    (
        "SELECT mean(temp)",
        "unknown feature 'temp'; did you mean 'tp_m'? features: t2m_k, u10_ms",
        1,
        13,
    ),
    ("SELECT count(*)\nWHERE t2m > 1", "unknown feature 't2m'; did you mean 't2m_k'?", 2, 7),
    (
        "SELECT count(*) WHERE\n  tp_m > 1 AND\n  xx IS NULL",
        "unknown feature 'xx'; features:",
        3,
        3,
    ),
    ("SELECT meen(tp_m)", "unknown function 'meen'; did you mean 'mean'?", 1, 8),
    ("SELECT mean(tp_m, t2m_k)", "mean takes one feature, it was given 2", 1, 8),
    ("SELECT corr(tp_m)", "corr takes two features, it was given 1", 1, 8),
    (
        "SELECT count(*) GROUP BY geohash(9)",
        "GROUP BY geohash(9): regions of this sketch have 4 letters",
        1,
        26,
    ),
    (
        "SELECT count(*) GROUP BY minute",
        "GROUP BY minute: the finest time bin of this sketch is the hour",
        1,
        26,
    ),
    ("SELECT count(*) GROUP BY tp_m", "'tp_m' is nothing to group by; possible are region", 1, 26),
    ("SELECT count(*) GROUP BY hour, day", "GROUP BY takes one time bin", 1, 8),
    ("SELECT tp_m", "'tp_m' stands alone; ask a function of it", 1, 8),
    ("SELECT count(*), region", "region is selected but not grouped by", 1, 18),
    ("SELECT count(*) WHERE tp_m > 1 OR t2m_k > 1", "OR combines 'tp_m' and 't2m_k'", 1, 23),
    (
        "SELECT count(*) WHERE tp_m > 1 AND tp_m < 1",
        "no value of 'tp_m' can meet this condition",
        1,
        23,
    ),
    (
        "SELECT count(*) WHERE time > 'soon'",
        "'soon' is no time; expected such as '2026-03-26'",
        1,
        30,
    ),
    ("SELECT count(*) WHERE time > '2026-02-30'", "'2026-02-30' is no time", 1, 30),
    ("SELECT count(*) WHERE time > 5", "5 is no time; write it as text", 1, 30),
    ("SELECT count(*) WHERE hour BETWEEN 22 AND 3", "no hour of the day (0 to 23) can meet", 1, 23),
    (
        "SELECT count(*) WHERE region IN bbox(1, 2, 3)",
        "bbox takes 4 numbers, it was given 3",
        1,
        33,
    ),
    ("SELECT count(*) WHERE region IN bbox(1, 9, 3, 2)", "bbox: south 9 is above north 2", 1, 33),
    ("SELECT count(*) WHERE region IN geohash('ul')", "geohash 'ul' has the letter 'l'", 1, 41),
    ("SELECT count(*) WHERE region NOT IN geohash('u')", "regions cannot be excluded", 1, 23),
    (
        "SELECT count(*) WHERE tp_m > t2m_k",
        "t2m_k is no number; a feature is compared with a number",
        1,
        30,
    ),
    ("SELECT count(*) WHERE tp_m = NULL", "NULL is no number; write IS NULL", 1, 23),
    ("SELECT count(*) WHERE tp_m LIKE 'x'", "tp_m LIKE 'x' is no condition; possible are", 1, 23),
    (
        "SELECT count(*) HAVING count(*) > 1",
        "SELECT with HAVING is not part of this language",
        1,
        24,
    ),
    ("SELECT DISTINCT mean(tp_m)", "SELECT DISTINCT is not possible", 1, 17),
    (
        "SELECT count(*), distinct()",
        "the query is no SQL: 'distinct' was not expected here; to count",
        1,
        18,
    ),
    (
        "SELECT mean(tp_m) FILTER (WHERE tp_m > 1)",
        "FILTER and OVER are not possible; compare parts with contrast",
        1,
        8,
    ),
    ("SELECT mean(tp_m) FROM weather", "FROM weather: expected FROM sketch", 1, 24),
    ("SELECT mean(tp_m) ORDER BY x", "ORDER BY x: no such column; columns: mean(tp_m)", 1, 28),
    ("SELECT mean(tp_m) ORDER BY 2", "ORDER BY 2: 1 columns are selected", 1, 28),
    ("SELECT density(tp_m) AS d ORDER BY d", "ORDER BY d: it is not a single number", 1, 36),
    ("SELECT * ORDER BY x", "unknown column 'x'; columns: region, time, count, t2m_k", 1, 19),
    ("SELECT *, count(*)", "leaves stands alone in a query", 1, 8),
    ("SELECT quantile(tp_m, 90)", "quantile: q is 90; expected 0 to 1", 1, 8),
    ("SELECT outliers(tp_m, 1)", "outliers: k is 1; expected more than 1", 1, 8),
    ("SELECT contrast(mean(tp_m), TRUE)", "contrast takes a function and two conditions", 1, 8),
    ("SELECT contrast(deciles(tp_m), TRUE, TRUE)", "contrast compares single numbers", 1, 8),
    ("SELECT mean(tp_m) - deciles(tp_m)", "deciles(tp_m) is not a single number", 1, 8),
    ("SELECT 1 + 1", "1 + 1 asks nothing of the sketch", 1, 8),
    ("SELECT synthetic('ten')", "'ten' is no share; expected such as '10%'", 1, 18),
    (
        "SELECT mean('tp_m')",
        "'tp_m' is not the name of a feature; names stand without quotes",
        1,
        13,
    ),
    ("SELECT count(DISTINCT tp_m)", "distinct values are counted of whole observations only", 1, 8),
    ("SELECT mean(tp_m) AS t ORDER BY t LIMIT 0", "LIMIT is 0", 1, 41),
    ("SELECT mean(tp_m) LIMIT 0", "LIMIT is 0; expected 1 or more", 1, 25),
    ("SELECT mean(tp_m) WHERE 'abc", "a ' is opened here and not closed", 1, 25),
    ("SELECT mean(tp_m", "the query is no SQL: Expecting )", 1, 13),
    ("DELETE FROM sketch", "a query begins with SELECT; this one begins with 'DELETE'", 1, 1),
    (
        "SELECT a.n FROM (SELECT count(*) AS n GROUP BY day) a LEFT JOIN (SELECT count(*) GROUP BY day) b USING (day)",
        "LEFT JOIN is not possible",
        1,
        73,
    ),
    (
        "SELECT a.x FROM (SELECT count(*) AS n GROUP BY day) a JOIN (SELECT count(*) GROUP BY day) b USING (day)",
        "a has no column 'x'; columns: day, n",
        1,
        8,
    ),
    (
        "SELECT a.n FROM (SELECT count(*) AS n GROUP BY day) a JOIN (SELECT count(*) GROUP BY month) b ON a.day = b.month",
        "a.day and b.month are not the same key",
        1,
        98,
    ),
]


@pytest.mark.parametrize(("text", "sentence", "line", "column"), MISTAKES)
def test_a_mistake_says_where_and_what_would_be_valid(
    text: str, sentence: str, line: int, column: int
) -> None:
    with pytest.raises(QueryError) as caught:
        parse_sql(text, NAMES)
    assert caught.value.sentence.startswith(sentence)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_message_shows_the_line_with_a_caret() -> None:
    with pytest.raises(QueryError) as caught:
        parse_sql("SELECT count(*)\nWHERE t2m > 1", NAMES)
    assert str(caught.value).splitlines()[1:] == [
        "line 2, column 7:",
        "  WHERE t2m > 1",
        "        ^^^",
    ]


@pytest.mark.parametrize(
    ("given", "sentence", "path"),
    [
        ({}, "a query needs 'select'", "query"),
        ({"selekt": []}, "unknown name 'selekt'; did you mean 'select'?", "query"),
        ({"select": [{"mean": ["temp"]}]}, "unknown feature 'temp'", "query.select[0].mean"),
        ({"select": [{"mean": ["tp_m", "t2m_k"]}]}, "mean takes one feature", "query.select[0].mean"),
        ({"select": [{"mean": ["tp_m"]}], "limit": 1.5}, "1.5 is no whole number", "query.limit"),
        ({"select": [{"quantile": ["tp_m", 10**400]}]}, "1000000000", "query.select[0].quantile"),
        ({"select": [{"count": [], "as": 5}]}, "5 was given; expected a text", "query.select[0].as"),
        ({"select": ["hours"]}, "'hours' is nothing to group by; did you mean 'hour'?", "query.select[0]"),
        ({"select": [{"count": []}], "where": {"times": [{">": "x"}]}}, "'x' is no time", "query.where.times[0]"),
        ({"select": [{"count": []}], "where": {"features": {"tp_m": [{">": "x"}]}}}, "'x' is no finite number", "query.where.features.tp_m"),
        ({"select": [{"count": []}], "where": {"features": {"xx": {">": 1}}}}, "unknown feature 'xx'", "query.where.features.xx"),
        ({"select": [{"count": []}], "where": {"regions": [{"bbox": [1, 2, 3]}]}}, "[1, 2, 3] was given; expected a list of 4", "query.where.regions[0]"),
        ({"select": [{"count": []}], "group_by": [{"geohash": 9}]}, "GROUP BY geohash(9): regions", "query.group_by[0]"),
    ],
)  # fmt: skip
def test_a_mistake_in_json_says_its_path(
    given: dict[str, object], sentence: str, path: str
) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(given, NAMES)
    assert caught.value.sentence.startswith(sentence)
    assert caught.value.path == path


def test_json_text_is_checked_too() -> None:
    with pytest.raises(QueryError, match="the query is no JSON") as caught:
        parse_query('{"select": [\n  oops]}')
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(QueryError, match="stands twice"):
        parse_query('{"select": [{"count": []}], "select": []}')
    with pytest.raises(QueryError, match="NaN is no number"):
        parse_query('{"select": [{"quantile": ["x", NaN]}]}')


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "a" * 1_000_000,
        "(" * 10_000,
        "SELECT " + "(" * 10_000 + ")" * 5_000,
        "SELECT " + "mean(" * 24 + "a" + ")" * 24,
        "SELECT " + "decimal(" * 23 + "1" + ")" * 23,
        "SELECT a::" + "struct(" * 23 + "int" + ")" * 23,
        "SELECT " + "not " * 4_000 + "a",
        "SELECT " + "- " * 9_000 + "a",
        "SELECT count(*)" + " + count(*)" * 1_500,
        "SELECT count(*) WHERE " + " AND ".join(f"f{i} > 1" for i in range(900)),
        "SELECT count(*) WHERE a IN (" + ", ".join(str(i) for i in range(2_500)) + ")",
        "SELECT count(*) FROM a" + " JOIN b" * 2_500,
        "SELECT count(*)" + " UNION SELECT 1" * 1_200,
        '{"select": ' + "[" * 90_000,
        '{"select": [' + '{"-": [' * 900 + "1" + "]}" * 900 + "]}",
        '{"limit": ' + "9" * 90_000 + "}",
    ],
)
def test_a_hostile_query_ends_quickly_with_a_sentence(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert time.process_time() - begin < 2
    assert len(caught.value.sentence) < 400


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
