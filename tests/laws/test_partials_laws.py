"""Partial aggregates: merging is associative and commutative, and gives what all rows give."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geoflux.operators.aggregates import Aggregate, parse_aggregate
from geoflux.operators.collecting import collected
from geoflux.operators.evaluate import value_of
from geoflux.operators.exact_sum import Terms, rounded, unit_exponent, whole
from geoflux.operators.partials import Partials, from_segment, merged, to_arrays
from geoflux.state.segments import read_segment, write_segment
from geoflux.state.store import Store

FUNCTIONS = ["count", "sum(v)", "avg(v)", "min(v)", "max(v)", "stddev(v)", "stddev_pop(v)",
             "distinct(v)", "distinct(w)", "median(v)", "quantile(v, 0.9)"]  # fmt: skip
ASKED: Aggregate = parse_aggregate({"functions": FUNCTIONS}, needs_window=False)
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1e-9, -0.0, 5e-324, 1e308, -1e308, 2.0**-1022]),
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.one_of(st.none(), FLOATS),
        st.one_of(st.none(), st.sampled_from(["a", "b", "", "é"])),
    ),
    max_size=25,
)


def partials_of(rows: list[tuple[int, Any, Any]]) -> Partials:
    """Rows (key, v, w) as partials."""
    keys, group = np.unique([key for key, _, _ in rows], return_inverse=True)
    columns = {
        "v": pa.array([v for _, v, _ in rows], pa.float64()),
        "w": pa.array([w for _, _, w in rows], pa.string()),
    }
    return collected(ASKED, keys.astype(np.int64), group.astype(np.int32), columns)


def values(partials: Partials) -> dict[tuple[int, str], tuple[int, Any]]:
    """Everything that can be asked, by key and function; floats as they are, bit for bit."""
    found = {}
    rows = np.arange(len(partials))
    for function in ASKED.functions:
        numbers, known = value_of(function, partials, rows)
        for k in rows:
            value = float(numbers[k]).hex() if known[k] else None
            found[int(partials.key[k]), function.text] = int(partials.count[k]), value
    return found


@settings(max_examples=150)
@given(st.lists(ROWS, min_size=1, max_size=5), st.randoms(use_true_random=False))
@example([[(0, 1e16, "a")], [(0, 1.0, None)], [(0, -1e16, "a")]], __import__("random").Random(1))
def test_merging_in_any_order_and_grouping_is_as_if_never_split(
    pieces: list[list[tuple[int, Any, Any]]], draw: Any
) -> None:
    straight = values(partials_of([row for piece in pieces for row in piece]))
    parts = [partials_of(piece) for piece in pieces]
    draw.shuffle(parts)
    while len(parts) > 1:
        first = draw.randrange(len(parts) - 1)
        parts[first : first + 2] = [merged(parts[first : first + 2])]
    assert values(merged(parts)) == straight
    assert values(merged([partials_of(piece) for piece in pieces])) == straight


@settings(max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=3))
def test_a_segment_gives_back_what_was_put_in(pieces: list[list[tuple[int, Any, Any]]]) -> None:
    parts = [partials_of(piece) for piece in pieces]
    with tempfile.TemporaryDirectory() as folder:
        arrays, about = to_arrays(parts)
        write_segment(Store(folder), "s.arrow", arrays, about)
        segment = read_segment(Store(folder), "s.arrow")
        again = [from_segment(segment, place) for place in range(len(parts))]
    assert [values(part) for part in again] == [values(part) for part in parts]
    assert values(merged(again)) == values(merged(parts))
    half = [part.taken(np.arange(len(part) // 2, len(part))).pruned() for part in again]
    assert [values(part) for part in half] == [
        {k: v for k, v in values(part).items() if k[0] in part.key[len(part) // 2 :]}
        for part in parts
    ]


@settings(max_examples=300)
@given(st.lists(FLOATS, min_size=1, max_size=30))
def test_sums_are_exact_and_rounded_once(numbers: list[float]) -> None:
    terms, squares = Terms.of(np.array(numbers)), Terms.squares_of(np.array(numbers))
    sums = np.zeros((1, terms.limbs), np.int64)
    both = np.zeros((1, squares.limbs), np.int64)
    for row in range(len(numbers)):
        for total, part in ((sums, terms), (both, squares)):
            if part.limbs:
                first = part.first[row]
                total[0, first : first + part.parts.shape[1]] += part.parts[row]
    exact = sum(map(Fraction, numbers))
    assert whole(sums, 0) * Fraction(2) ** unit_exponent(terms.base) == exact
    square = sum(Fraction(v) ** 2 for v in numbers)
    assert whole(both, 0) * Fraction(2) ** unit_exponent(squares.base, True) == square
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    assert rounded(sums, terms.base)[0] == expected
