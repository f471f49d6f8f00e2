"""The patterns application: whenever nothing is on its way, it says what trying everything says."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps_by_hand import ByHand
from geoflux.errors import ConfigError
from patterns.detector import Detector
from patterns.generator import Generator
from patterns.itemsets import Bags
from patterns.miner import maximal, supports
from patterns.reporter import Reporter
from patterns.sentences import SENTENCE, Sentences

LONGEST = 4
READS = {
    "generator": [("", "sentences")],
    "detector": [("generator", "results"), ("detector", "around")],
    "reporter": [("detector", "maximal")],
}
texts = st.lists(st.sampled_from("abcdeA"), max_size=6).map(" ".join)
batches = st.lists(st.lists(texts, min_size=1, max_size=6), min_size=1, max_size=5)


def _app(threshold: int, seed: int, partitions: int, longest: int = LONGEST) -> ByHand:
    operators = {
        "generator": Generator(longest),
        "detector": Detector(threshold),
        "reporter": Reporter(),
    }
    return ByHand(operators, READS, random.Random(seed), partitions)


def _rows(first: int, given: list[str], window: int) -> pa.Table:
    numbers = np.arange(first, first + len(given))
    return pa.table([numbers, numbers % window, given], schema=SENTENCE)


def _current(app: ByHand) -> set[str]:
    """By the last row of each pattern, as a reader of the results takes them."""
    last = {row["itemset"]: row["is_maximal"] for row in app.results("reporter").to_pylist()}
    return {itemset for itemset, is_maximal in last.items() if is_maximal}


def _agrees(app: ByHand, window: list[str], threshold: int, longest: int = LONGEST) -> None:
    expected = maximal(window, threshold, longest)
    if ("reporter", "results") in app.written:
        assert _current(app) == set(expected)
    else:
        assert not expected
    counts: Counter[str] = Counter()
    for state in app.states("detector"):
        assert ((state.seen > 0) | (state.covered > 0)).all(), "nothing is kept for ever"
        counts.update(dict(zip(state.itemsets.to_pylist(), state.seen.tolist(), strict=True)))
    assert counts == supports(window, longest)
    held = [name for state in app.states("reporter") for name in state["itemset"]]
    assert sorted(held) == sorted(expected)


@settings(max_examples=20, deadline=None)
@given(batches, st.integers(1, 8), st.integers(1, 4), st.integers(0, 999), st.integers(1, 3))
def test_at_rest_it_equals_the_brute_force(
    batches: list[list[str]], window: int, threshold: int, seed: int, partitions: int
) -> None:
    app, said = _app(threshold, seed, partitions), list[str]()
    for batch in batches:
        app.feed("sentences", _rows(len(said), batch, window))
        said += batch
        app.settle()
        _agrees(app, said[-window:], threshold)


@settings(max_examples=20, deadline=None)
@given(batches, st.integers(1, 8), st.integers(1, 4), st.integers(0, 999))
def test_what_comes_while_things_go_round_is_not_lost(
    batches: list[list[str]], window: int, threshold: int, seed: int
) -> None:
    app, said, draw = _app(threshold, seed, 3), list[str](), random.Random(seed)
    for batch in batches:
        app.feed("sentences", _rows(len(said), batch, window))
        said += batch
        for _ in range(draw.randrange(4)):
            app.step()
    app.settle()
    _agrees(app, said[-window:], threshold)


changes = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a b", "a b c"]), st.booleans(), st.booleans()),
    min_size=1, max_size=30,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(changes, st.integers(1, 3), st.integers(1, 7))
def test_the_detector_gives_the_same_in_any_batches(
    changes: list[tuple[str, bool, bool]], threshold: int, size: int
) -> None:
    rows = pa.table(
        {
            "itemset": [itemset for itemset, _, _ in changes],
            "seen": [(1 if up else -1) * around for _, up, around in changes],
            "covered": [(1 if up else -1) * (not around) for _, up, around in changes],
            "at": list(range(len(changes))),
        }
    )
    _same_in_batches(Detector(threshold), rows, size)


def test_generator_and_reporter_give_the_same_in_any_batches() -> None:
    rows = Sentences(20, share=0.5).table(0, 90)
    for size in (1, 13):
        _same_in_batches(Generator(5), rows, size)
    app = _app(4, 3, 2)
    app.feed("sentences", rows)
    app.settle()
    changes = app.results("detector", "maximal")
    assert len(changes) > 10
    for size in (1, 7):
        _same_in_batches(Reporter(), changes, size)


def _same_in_batches(operator: Any, rows: pa.Table, size: int) -> None:
    _, whole = operator.process(operator.empty(), rows)
    state, parts = operator.empty(), []
    for at in range(0, len(rows), size):
        state, part = operator.process(state, rows.slice(at, size))
        state = operator.install({n: pa.array(a) for n, a in operator.extract(state).items()})
        parts += [{**row, "@row": row["@row"] + at} for row in part.to_pylist()]
    assert Counter(map(_key, parts)) == Counter(map(_key, whole.to_pylist()))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.items())


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("aBé東 \t\u2003\x85"), max_size=12), max_size=8),
    st.integers(1, 5),
)
def test_subsets_are_all_combinations(texts: list[str], longest: int) -> None:
    sets, rows = Bags.of_sentences(pa.array(texts, pa.string()), longest).subsets()
    found = Counter(zip(rows.tolist(), sets.to_pylist(), strict=True))
    assert found == Counter((i, s) for i, t in enumerate(texts) for s in supports([t], longest))


def test_the_stream_is_the_same_however_it_is_made() -> None:
    stream = Sentences(30)
    assert stream.table(40, 5).equals(stream.table(0, 60).slice(40, 5))
    assert stream.table(40, 5).column("lane").to_pylist() == [10, 11, 12, 13, 14]


def test_phrases_in_fashion_are_found_and_go_again() -> None:
    stream, app = Sentences(150, fashion=200), _app(8, 1, 2, longest=8)
    for first in (0, 200):
        app.feed("sentences", stream.table(first, 200))
        app.settle()
        window = stream.table(first + 50, 150).column("text").to_pylist()
        _agrees(app, window, 8, longest=8)
        assert max(len(itemset.split()) for itemset in _current(app)) >= 3
    ended = [row for row in app.results("reporter").to_pylist() if not row["is_maximal"]]
    assert any(row["at"] - row["since"] > 50 for row in ended), "a fashion lasted, and ended"


@pytest.mark.parametrize("longest", [0, 13])
def test_longest_must_be_feasible(longest: int) -> None:
    with pytest.raises(ConfigError, match=rf"longest = {longest}: .* from 1 to 12"):
        Generator(longest)


def test_the_threshold_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="threshold = 0: give the fewest sentences, at least 1"):
        Detector(0)
