"""Laws of the language of queries: what is written reads back as the same, whatever is asked; what
cannot be read is a sentence, never another error."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geoflux.errors import QueryError
from geoflux.sketch.expressions import Call
from geoflux.sketch.language import parse_query
from geoflux.sketch.language_json import from_json, to_json
from geoflux.sketch.language_sql import MAX_CHARACTERS, parse_sql
from geoflux.sketch.query import Column, Query
from geoflux.sketch.ranges import (
    Range,
    Span,
    both,
    both_times,
    other_times,
    others,
    union,
    union_of_times,
)
from geoflux.sketch.scope import Scope
from geoflux.sketch.sql_writer import to_sql
from queries_by_hand import WeatherNames, queries, ranges, scopes, spans

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
few = settings(max_examples=60, suppress_health_check=_CHECKS)
many = settings(max_examples=250, suppress_health_check=_CHECKS)

_SPEECH = (
    "SELECT FROM WHERE GROUP BY ORDER LIMIT AND OR NOT IN BETWEEN IS NULL JOIN ON AS ( ) , . * + - "
    "/ = < > <> ' \" ; :: [ ] { } -> => := CASE WHEN THEN END CAST INTERVAL DATE DISTINCT UNION "
    "WITH region time hour day leaves graph mean count t2m_k msl_pa 1 -1.5 1e400 0x1F 'u0' "
    "'2026-03-26' bbox(1,2,3,4) geohash( circle( contrast( synthetic( OVER FILTER HAVING PIVOT "
    "LATERAL VALUES EXISTS ANY LIKE USING LEFT ARRAY STRUCT $1 ? :x @x # % /* */ -- ~ ! ^ & |"
)
_WORDS = st.sampled_from(_SPEECH.split())
_GOOD = st.sampled_from(
    [
        "SELECT mean(t2m_k), corr(t2m_k, msl_pa) WHERE region IN bbox(-10,35,30,60) AND time BETWEEN "
        "'2026-03-26' AND '2026-03-28' AND u10_ms > 5 GROUP BY geohash(3)",
        "SELECT count(DISTINCT *), contains(t2m_k = 281.5, tp_m = -2e-05) FROM sketch WHERE region IN "
        "geohash('u0', 'u1') OR region IN circle(1, 2, 3) ORDER BY 1 DESC LIMIT 3",
        "SELECT contrast(mean(t2m_k), hour BETWEEN 1 AND 3, time < '2026-03') GROUP BY month",
        "SELECT a.t - b.t AS d, a.region FROM (SELECT region, mean(t2m_k) AS t GROUP BY region) a JOIN "
        "(SELECT region, mean(t2m_k) AS t GROUP BY region) b ON a.region = b.region ORDER BY d",
        "SELECT * WHERE t2m_k IS NOT NULL AND NOT (tp_m > 1 OR tp_m NOT IN (1, 2)) ORDER BY time",
        "SELECT (max(t2m_k) - min(t2m_k)) / 2 AS r, synthetic('10%', 7) GROUP BY region",
        '{"select": [{"mean": ["t2m_k"]}, {"-": [{"max": ["tp_m"]}, 1]}], "where": {"times": [{">": '
        '"2026"}], "features": {"tp_m": [{">": 1}, {"missing": true}]}}, "every": 5}',
    ]
)


def sentence_or_query(given: object) -> None:
    """What must come of anything that is given: a query, or one sentence."""
    said = "a query"
    try:
        parse_query(given, WeatherNames())  # type: ignore[arg-type]
    except QueryError as error:
        said = str(error) if error.sentence else ""
    assert 0 < len(said) < 2_000


@few
@given(queries)
def test_sql_reads_back_as_the_same_query(query: Query) -> None:
    text = to_sql(query)
    if len(text) <= MAX_CHARACTERS:
        assert parse_sql(text) == query


@few
@given(queries, st.sampled_from([None, "epoch", 1.0, 60.5]))
def test_json_reads_back_as_the_same_query(query: Query, every: float | None) -> None:
    query = replace(query, every=every)
    form = to_json(query)
    assert from_json(form) == query
    assert from_json(json.dumps(form)) == query
    assert hash(from_json(form)) == hash(query)


@many
@given(scopes)
def test_a_scope_reads_back_as_the_same(scope: Scope) -> None:
    query = Query((Column(Call("count")),), scope)
    assert parse_sql(to_sql(query)) == query
    assert from_json(to_json(query)) == query


@many
@given(_GOOD, st.data())
def test_a_query_with_changes_is_a_query_or_a_sentence(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + data.draw(_WORDS | st.text(max_size=3)) + text[end:]
    sentence_or_query(text)


@many
@given(st.lists(_WORDS, max_size=20).map(lambda words: "SELECT " + " ".join(words)) | st.text())
def test_garbage_is_a_sentence(text: str) -> None:
    sentence_or_query(text)


_COUNT: dict[str, Any] = {"count": []}
_KEYED = {"select": [{"mean": ["t2m_k"], "as": "t"}], "group_by": ["region"]}
_FORMS = st.sampled_from(
    [
        {
            "select": [{"quantile": ["t2m_k", 0.9], "as": "q"}, {"-": [{"max": ["tp_m"]}, 1]}],
            "where": {
                "regions": [{"bbox": [1, 2, 3, 4]}, {"geohash": "u"}, {"circle": [1, 2, 3]}],
                "times": [{">=": "2026-03-26", "<": "2026-03-28"}],
                "hours": [14, 15],
                "features": {"u10_ms": {">": 5}, "tp_m": [{"=": 0}, {"missing": True}]},
            },
            "group_by": [{"geohash": 3}, "month"],
            "order_by": [{"column": "q", "descending": True}],
            "limit": 10,
            "every": 5,
        },
        {"select": [{"contrast": [{"value": _COUNT, "where": {"hours": [1]}}, {"value": _COUNT}]}]},
        {"select": [{"contains": {"t2m_k": 1.5}}, {"synthetic": {"percent": 10, "seed": 1}}]},
        {
            "select": [{"column": ["a", "t"]}],
            "join": {
                "left": _KEYED,
                "right": _KEYED,
                "names": ["a", "b"],
                "on": [["region", "region"]],
            },
        },
    ]
)
_anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.floats(),
    st.sampled_from([10**400, "", "t2m_k", "region", "leaves", [], {}, [[]], {"mean": 1}, _KEYED]),
)


def changed(draw: st.DrawFn, form: Any) -> Any:
    """The form with something in it replaced, named otherwise or left out."""
    keys = list(form) if isinstance(form, dict) else list(range(len(form)))
    if not keys or draw(st.integers(0, 5)) == 0:
        return draw(_anything)
    key = draw(st.sampled_from(keys))
    inner = form[key]
    if isinstance(inner, dict | list) and draw(st.integers(0, 5)):
        inner = changed(draw, inner)
    else:
        inner = draw(_anything)
    if isinstance(form, list):
        return [*form[:key], inner, *form[key + draw(st.integers(0, 1)) :]]
    name = draw(st.sampled_from([key, key, key, "where", "x", "="]))
    return {**{k: v for k, v in form.items() if k != key}, name: inner}


@many
@given(st.composite(lambda draw: changed(draw, draw(_FORMS)))())
def test_values_of_any_form_are_a_query_or_a_sentence(form: Any) -> None:
    sentence_or_query(form)


_close = st.lists(ranges(st.integers(0, 4).map(float)), max_size=4)
_near = st.lists(spans(st.integers(0, 9), 5), max_size=4)


@many
@given(_close, _close)
def test_unions_of_ranges_hold_the_same_values(first: list[Range], second: list[Range]) -> None:
    for value in (half / 2 for half in range(-1, 10)):
        a, b = (any(r.holds(value) for r in side) for side in (first, second))
        assert any(r.holds(value) for r in union([*first, *second])) == (a or b)
        assert any(r.holds(value) for r in both(first, second)) == (a and b)
        assert any(r.holds(value) for r in others(first)) == (not a)
    assert union(union(first)) == union(first)
    assert others(others(first)) == union(first)


@many
@given(_near, _near)
def test_unions_of_times_hold_the_same_seconds(first: list[Span], second: list[Span]) -> None:
    for second_of in range(-1, 16):
        a, b = (any(s.start <= second_of < s.end for s in side) for side in (first, second))
        found = (union_of_times([*first, *second]), both_times(first, second), other_times(first))
        held = [any(s.start <= second_of < s.end for s in side) for side in found]
        assert held == [a or b, a and b, not a]
    assert other_times(other_times(first)) == union_of_times(first)
    assert all(a.end < b.start for a, b in pairwise(union_of_times([*first, *second])))
