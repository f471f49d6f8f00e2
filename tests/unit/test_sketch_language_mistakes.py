"""Mistakes in queries: what each is told, and where it is; hostile texts end quickly."""

from __future__ import annotations

import time

import pytest

from geoflux.errors import QueryError
from geoflux.sketch.language import parse_query
from geoflux.sketch.language_sql import parse_sql
from queries_by_hand import WeatherNames

NAMES = WeatherNames()

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
