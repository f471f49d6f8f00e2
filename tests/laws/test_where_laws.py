"""Laws of the ``where`` predicate: any tree, any rows, any text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.errors import RejectedRecord
from geoflux.operators.where import Predicate, check, compiled, evaluate_rows, parse
from geoflux.operators.where_parse import tree
from geoflux.operators.where_tree import write

Row = dict[str, object]
Truth = bool | None

SCHEMA = pa.schema(
    [
        ("speed", pa.float64()),
        ("count", pa.int64()),
        ("kind", pa.string()),
        ("my zone", pa.dictionary(pa.int32(), pa.string())),
        ("occupied", pa.bool_()),
        ("seen", pa.timestamp("us", tz="UTC")),
    ]
)
COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Said(NamedTuple):
    """A condition as text, its binding strength (or 0, and 1, not 2, leaf 3) and its meaning."""

    text: str
    strength: int
    means: Callable[[Row], Truth]


class Value(NamedTuple):
    text: str
    of: Callable[[Row], object]


def column(name: str) -> Value:
    return Value(name, lambda row: row[name.strip('"')])


def literal(value: object) -> Value:
    if isinstance(value, datetime):
        return Value(f"'{value.isoformat()}'", lambda row: value)
    if isinstance(value, bool):
        return Value(str(value).upper(), lambda row: value)
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return Value(f"'{quoted}'", lambda row: value)
    return Value(repr(value), lambda row: value)


# Few distinct values, so that equality is met; integers that float64 cannot tell apart.
NUMBERS = st.sampled_from([-1.5, 0.0, 1.0, 2.5, float("nan")])
INTEGERS = st.sampled_from([-1, 0, 1])
BIG_INTEGERS = st.sampled_from([2**53, 2**53 + 1])
TEXTS = st.sampled_from(["", "a", "b'", "é", "?i"])
TIMES = st.sampled_from([datetime(2024, 5, day, 12, 0, 0, 1, tzinfo=UTC) for day in (1, 2, 3)])

number_literals = (NUMBERS.filter(lambda x: x == x) | INTEGERS).map(literal)
FAMILIES: list[tuple[st.SearchStrategy[Value], st.SearchStrategy[Value]]] = [
    (st.sampled_from(["speed"]).map(column), number_literals | st.just(column("count"))),
    (st.just(column("count")), (INTEGERS | BIG_INTEGERS).map(literal) | st.just(column("count"))),
    (
        st.sampled_from(["kind", '"my zone"']).map(column),
        TEXTS.map(literal) | st.just(column("kind")),
    ),
    (st.just(column("seen")), TIMES.map(literal)),
]


def either(truths: list[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def both(truths: list[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def negative(truth: Truth) -> Truth:
    return None if truth is None else not truth


def compared(op: str, left: Value, right: Value) -> Callable[[Row], Truth]:
    def means(row: Row) -> Truth:
        one, other = left.of(row), right.of(row)
        if one is None or other is None:
            return None
        if isinstance(one, float) or isinstance(other, float):
            one, other = float(one), float(other)  # type: ignore[arg-type]
        return COMPARISONS[op](one, other)

    return means


@st.composite
def conditions(draw: st.DrawFn) -> Said:
    form = draw(st.sampled_from(["compare", "in", "null", "between", "bare", "truth"]))
    negated = draw(st.booleans())
    word = draw(st.sampled_from(["not", "NOT"])) + " " if negated else ""
    if form == "bare":
        return Said("occupied", 3, lambda row: row["occupied"])  # type: ignore[return-value]
    if form == "truth":
        op, value = draw(st.sampled_from(["=", "!="])), literal(draw(st.booleans()))
        return Said(f"occupied {op} {value.text}", 3, compared(op, column("occupied"), value))
    columns, values = draw(st.sampled_from(FAMILIES))
    left = draw(columns)
    if form == "compare":
        op, right = draw(st.sampled_from(sorted(COMPARISONS))), draw(values)
        one, other = (left, right) if draw(st.booleans()) else (right, left)
        return Said(f"{one.text}{op}{other.text}", 3, compared(op, one, other))
    if form == "null":
        return Said(
            f"{left.text} is {word}null", 3, lambda row: (left.of(row) is None) is not negated
        )
    if form == "in":
        items = draw(st.lists(values, min_size=1, max_size=3))
        tests = [compared("=", left, item) for item in items]
        text = f"{left.text} {word}in ({', '.join(item.text for item in items)})"
        joined = either
    else:
        low, high = draw(values), draw(values)
        tests = [compared(">=", left, low), compared("<=", left, high)]
        text = f"{left.text} {word}between {low.text} AND {high.text}"
        joined = both
    return Said(
        text,
        3,
        lambda row: (negative if negated else lambda t: t)(joined([test(row) for test in tests])),
    )


def bracketed(said: Said, at_least: int) -> str:
    return said.text if said.strength >= at_least else f"( {said.text} )"


def joined(word: str, strength: int, parts: list[Said]) -> Said:
    join = either if word == "or" else both
    text = f" {word} ".join(bracketed(part, strength) for part in parts)
    return Said(text, strength, lambda row: join([part.means(row) for part in parts]))


def composed(parts: st.SearchStrategy[Said]) -> st.SearchStrategy[Said]:
    several = st.lists(parts, min_size=2, max_size=3)
    return (
        several.map(lambda said: joined("or", 0, said))
        | several.map(lambda said: joined("and", 1, said))
        | parts.map(
            lambda said: Said(f"not {bracketed(said, 2)}", 2, lambda row: negative(said.means(row)))
        )
    )


PREDICATES = st.recursive(conditions(), composed, max_leaves=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "speed": st.none() | NUMBERS,
            "count": st.none() | INTEGERS | BIG_INTEGERS,
            "kind": st.none() | TEXTS,
            "my zone": st.none() | TEXTS,
            "occupied": st.none() | st.booleans(),
            "seen": st.none() | TIMES,
        }
    ),
    min_size=1,
    max_size=12,
)


def columns_of_rows(rows: list[Row]) -> dict[str, pa.Array]:
    return {field.name: pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA}


@settings(max_examples=600, deadline=None)
@given(PREDICATES, ROWS)
def test_arrays_rows_and_the_meaning_of_the_text_agree(said: Said, rows: list[Row]) -> None:
    predicate = parse(said.text)
    check(predicate, SCHEMA)
    pair_filter = compiled(predicate.template)
    meant = [said.means(row) is True for row in rows]
    assert [evaluate_rows(predicate, row) for row in rows] == meant
    typed = list(zip(predicate.params, pair_filter.param_types, strict=True))
    scalars = [pa.scalar(value, type_) for value, type_ in typed]
    arrays = [pa.array([value] * len(rows), type_) for value, type_ in typed]
    columns = columns_of_rows(rows)
    assert pair_filter.evaluate(columns, scalars).tolist() == meant
    assert pair_filter.evaluate(columns, arrays).tolist() == meant


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NUMBERS.filter(lambda x: x == x), TEXTS), min_size=1, max_size=8), ROWS)
def test_queries_of_one_template_are_evaluated_together_as_if_alone(
    literals: list[tuple[float, str]], rows: list[Row]
) -> None:
    predicates = [
        parse(f"not speed <= {number!r} or kind in ({literal(text).text}, 'a')")
        for number, text in literals
    ]
    assert len({predicate.template for predicate in predicates}) == 1
    pairs = [(row, predicate) for row in rows for predicate in predicates]
    pair_filter = compiled(predicates[0].template)
    params = [
        pa.array([predicate.params[slot] for _, predicate in pairs], type_)
        for slot, type_ in enumerate(pair_filter.param_types)
    ]
    found = pair_filter.evaluate(columns_of_rows([row for row, _ in pairs]), params)
    assert found.tolist() == [evaluate_rows(predicate, row) for row, predicate in pairs]


@settings(max_examples=200, deadline=None)
@given(PREDICATES)
def test_a_template_read_back_is_itself(said: Said) -> None:
    predicate = parse(said.text)
    order: list[int] = []
    assert write(tree(predicate.template), order) == predicate.template
    assert order == list(range(len(predicate.params)))


TOKENS = [
    "(",
    ")",
    ",",
    "=",
    "!=",
    "<",
    ">=",
    "and",
    "or",
    "not",
    "in",
    "is",
    "null",
    "between",
    "true",
    "a",
    "'x'",
    "1",
    "-2.5e3",
    "?i",
    "'",
    "é",
]
TOKENS += ['"b c"', '"', "\ud800", "\u00a0"]


@settings(max_examples=400, deadline=None)
@given(st.text() | st.lists(st.sampled_from(TOKENS), max_size=15).map(" ".join))
def test_any_text_is_a_predicate_or_a_rejected_record(text: str) -> None:
    predicate: Predicate | None = None
    code = ""
    try:
        predicate = parse(text)
    except RejectedRecord as refused:
        code = refused.code
    if predicate is None:
        assert code == "bad_where"
    else:
        assert len(predicate.params) == len(compiled(predicate.template).param_types)
        assert predicate.columns
