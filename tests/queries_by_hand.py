"""Random queries of a sketch, of all kinds: what the language must be able to say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from geoflux.sketch.expressions import (
    KEYS,
    TIME_BINS,
    Call,
    Contrast,
    Key,
    Matching,
    Math,
    Number,
    Ref,
    Synthetic,
)
from geoflux.sketch.functions import FUNCTIONS
from geoflux.sketch.query import Column, Join, Order, Query
from geoflux.sketch.ranges import EARLIEST, FIRST_SECOND, LAST_SECOND, LATEST, Range, Span
from geoflux.sketch.scope import LETTERS, Box, Circle, Condition, Prefix, Scope


@dataclass(frozen=True)
class WeatherNames:
    """What of a weather sketch's schema a query must fit."""

    features: tuple[str, ...] = ("t2m_k", "u10_ms", "v10_ms", "msl_pa", "tp_m")
    region_bits: int = 20
    finest: str = "hour"


# Words of the language and of SQL are names of features too, and so is anything that can be typed.
_odd_names = st.sampled_from(
    [
        *KEYS,
        "time",
        "select",
        "Order",
        "count",
        "leaves",
        "graph",
        "true",
        "null",
        "a b",
        'a"b',
        "1",
    ]
)
names = st.one_of(
    st.sampled_from(WeatherNames().features),
    _odd_names,
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=3),
)
numbers = st.one_of(
    st.integers(-1000, 1000).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)
_longitudes, _latitudes = st.floats(-180, 180), st.floats(-90, 90)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    south, north = sorted((draw(_latitudes), draw(_latitudes)))
    return Box(draw(_longitudes), south, draw(_longitudes), north)


regions = st.one_of(
    boxes(),
    st.text(LETTERS, min_size=1, max_size=12).map(Prefix),
    st.builds(Circle, _longitudes, _latitudes, st.floats(1e-9, 20_000)),
)
_seconds = st.integers(FIRST_SECOND + 1, LAST_SECOND - 1)


@st.composite
def spans(draw: st.DrawFn, seconds: Any = _seconds, most: int = 10**9) -> Span:
    start = draw(seconds)
    end = min(start + draw(st.integers(1, most)), LAST_SECOND)
    return Span(
        draw(st.sampled_from([start, start, start, EARLIEST])),
        draw(st.sampled_from([end, end, LATEST])),
    )


@st.composite
def ranges(draw: st.DrawFn, values: Any = numbers) -> Range:
    low, high = sorted((draw(values), draw(values)))
    closed = (True, True) if low == high else (draw(st.booleans()), draw(st.booleans()))
    low = draw(st.sampled_from([low, -math.inf]))
    high = draw(st.sampled_from([high, math.inf]))
    return Range(low, high, *closed)


def _hours(bits: int) -> frozenset[int]:
    return frozenset(hour for hour in range(24) if bits >> hour & 1)


conditions = st.builds(
    Condition, names, st.lists(ranges(), min_size=1, max_size=2).map(tuple), st.booleans()
) | names.map(lambda name: Condition(name, (), True))
scopes = st.builds(
    Scope,
    st.none() | st.lists(regions, min_size=1, max_size=2).map(tuple),
    st.none() | st.lists(spans(), min_size=1, max_size=2).map(tuple),
    st.none() | st.integers(1, 2**24 - 1).map(_hours),
    st.lists(conditions, max_size=2, unique_by=lambda c: c.feature).map(tuple),
)
# Numbers that the function takes, where it does not take any.
_TAKEN: dict[str, Any] = {
    "outliers": st.floats(1.001, 100),
    "density": st.integers(2, 10_000).map(float),
    "quantile": st.floats(0, 1),
}


@st.composite
def calls(draw: st.DrawFn, scalar: bool = False) -> Call:
    made = draw(st.sampled_from([f for f in FUNCTIONS.values() if f.scalar or not scalar]))
    fewest, most = made.features
    size = {"min_size": fewest, "max_size": min(most, 3), "unique": made.pairs}
    features = draw(st.lists(names, **size))
    count = len(features) if made.pairs else draw(st.integers(*made.numbers))
    given = [draw(_TAKEN.get(made.name, numbers)) for _ in range(count)]
    if made.name == "forecast" and count == 2:
        given[1] = draw(st.floats(0.001, 0.999))
    if made.name == "probability":
        given.sort()
    return Call(made.name, tuple(features), tuple(given))


_operators = st.sampled_from("+-*/")
_sums = st.builds(Math, _operators, calls(scalar=True), st.builds(Number, numbers))
calculations = st.one_of(
    _sums,
    st.builds(Math, _operators, st.builds(Number, numbers), _sums),
    st.builds(Math, _operators, _sums, _sums | calls(scalar=True)),
)
contrasts = st.builds(Contrast, calls(scalar=True), scopes, calls(scalar=True), scopes)


@st.composite
def keys(draw: st.DrawFn) -> tuple[Key, ...]:
    place = st.just(Key("region")) | st.integers(1, 12).map(lambda n: Key("geohash", n))
    found = [*draw(st.lists(place, max_size=1))]
    found += draw(st.lists(st.sampled_from(TIME_BINS).map(Key), max_size=1))
    found += draw(st.lists(st.just(Key("hour_of_day")), max_size=1))
    return tuple(draw(st.permutations(found)))


@st.composite
def rows_queries(draw: st.DrawFn, grouped: bool = False) -> Query:
    """A query with columns and perhaps keys; ``grouped``: at least one key."""
    group_by = draw(keys().filter(len) if grouped else keys())
    values = draw(
        st.lists(st.one_of(calls(), calls(), contrasts, calculations), min_size=1, max_size=3)
    )
    values += draw(st.lists(st.sampled_from(group_by), max_size=2)) if group_by else []
    aliases = draw(st.lists(names, unique=True, min_size=len(values), max_size=len(values)))
    columns = {}
    for value, alias in zip(values, aliases, strict=True):
        column = Column(value, draw(st.sampled_from(["", alias])))
        columns.setdefault(column.name, column)
    # Keys that are not selected come under their titles, which no other column may have.
    keyed = {key.title: Column(key) for key in group_by}
    select = tuple(c for c in columns.values() if c == keyed.get(c.name, c))
    if not set(select) - set(keyed.values()):
        select = (Column(Call("count")),)
    return draw(_sorted(Query(select, draw(scopes), group_by)))


@st.composite
def _sorted(draw: st.DrawFn, query: Query) -> Query:
    sortable = [c.name for c in query.columns if c.scalar]
    order = draw(st.lists(st.sampled_from(sortable), max_size=2, unique=True)) if sortable else []
    return Query(
        query.select,
        query.where,
        query.group_by,
        tuple(Order(name, draw(st.booleans())) for name in order),
        draw(st.none() | st.integers(1, 10**9)),
        query.join,
    )


@st.composite
def joins(draw: st.DrawFn) -> Query:
    left, right = draw(rows_queries(grouped=True)), draw(rows_queries())
    right = Query(right.select, right.where, right.group_by)
    shared = left.group_by
    if set(right.group_by) != set(shared):
        right = Query((Column(Call("count"), "n"),), right.where, shared)
    sides = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    on = []
    for key in draw(st.lists(st.sampled_from(shared), min_size=1, unique=True)):
        both = [next(c.name for c in side.columns if c.value == key) for side in (left, right)]
        on.append((both[0], both[1]))
    refs = [Ref(sides[i], c.name) for i, side in enumerate((left, right)) for c in side.columns]
    select = draw(st.lists(st.sampled_from(refs), min_size=1, max_size=3, unique=True))
    columns = {column.name: column for column in map(Column, select)}
    join = Join(left, right, tuple(on), *sides)
    numeric = [r for r in refs if _numeric(join.column(r.table, r.column))]
    if numeric:
        pair = st.sampled_from(numeric) | st.builds(Number, numbers)
        made = Math(draw(st.sampled_from("+-*/")), draw(st.sampled_from(numeric)), draw(pair))
        columns.setdefault("made", Column(made, "made"))
    order = draw(st.sampled_from([(), (Order("made", True),)])) if "made" in columns else ()
    limit = draw(st.none() | st.just(5))
    return Query(tuple(columns.values()), order_by=order, limit=limit, join=join)


def _numeric(column: Column) -> bool:
    return column.scalar and not isinstance(column.value, Key)


relational = st.builds(
    Query,
    st.just((Column(Matching("leaves")),)),
    scopes,
    order_by=st.lists(st.builds(Order, names, st.booleans()), max_size=2).map(tuple),
    limit=st.none() | st.integers(1, 1000),
) | st.builds(Query, st.just((Column(Matching("graph")),)), scopes)
_seeds = st.none() | st.integers(0, 2**63 - 1)
synthetic = st.builds(
    Query,
    st.one_of(
        st.builds(Synthetic, st.integers(1, 10**8), st.none(), _seeds),
        st.builds(Synthetic, st.none(), st.floats(1e-300, 1000), _seeds),
    ).map(lambda value: (Column(value),)),
    scopes,
)
queries = st.one_of(rows_queries(), rows_queries(), joins(), relational, synthetic)
