"""The set structures against the libraries whose they are, and against their stated errors."""

from __future__ import annotations

import datasketches
import numpy as np
import numpy.typing as npt
import pytest
import rbloom

from geoflux.errors import ConfigError, StateError
from geoflux.sketch.hashing import words_of
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.set_blocks import Block, Dense, bloom_filter, count_min_sketch, hll_sketch
from geoflux.sketch.set_shape import SetShape, as_is
from geoflux.sketch.sets import Scope, Sets

Floats = npt.NDArray[np.float64]
SMALL = SketchSchema(
    ("a", "b"), hll_lg_k=8, bloom_items=500, frequency_error=0.02, frequency_confidence=0.9
)


def taken(values: Floats, schema: SketchSchema = SMALL, tree: int = 0, time: int = 0) -> Sets:
    size = len(values)
    return Sets.empty(schema).updated(np.full(size, tree), np.full(size, time), values)


def only_block(sets: Sets) -> Block:
    (block,) = sets.settled().blocks.values()
    return block


def structures(sets: Sets) -> Dense:
    dense = only_block(sets).dense
    assert dense is not None
    return dense


def signed(item: int) -> int:
    return item - 2**64 if item >> 63 else item


@pytest.mark.parametrize("digits", [6, 9])
def test_the_structures_are_bit_by_bit_those_of_the_libraries(digits: int) -> None:
    schema = SketchSchema(
        ("a", "b", "c"), bloom_items=3000, frequency_confidence=0.999, set_decimals=digits
    )
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=(8000, 3)), 1)
    values[rng.random(values.shape) < 0.1] = np.nan
    sets = taken(values, schema)
    shape, dense = sets.shape, structures(sets)
    hll = datasketches.hll_sketch(schema.hll_lg_k, datasketches.tgt_hll_type.HLL_8)
    counts = datasketches.count_min_sketch(shape.hashes, shape.buckets)
    bloom = rbloom.Bloom(schema.bloom_items, schema.bloom_error, as_is)
    for row in values:
        items = [shape.combination(row).hashed]
        hll.update(signed(items[0]))
        items += [shape.value(f, v).hashed for f, v in enumerate(row) if v == v]
        for item in items:
            counts.update(signed(item))
        bloom.update(items)
    assert hll.serialize_updatable()[40:] == dense.registers.tobytes()
    assert count_min_sketch(dense).serialize() == counts.serialize()
    assert bloom_filter(dense, shape) == bloom
    union = datasketches.hll_union(schema.hll_lg_k)
    union.update(hll)
    item = shape.combination(values[0])
    assert count_min_sketch(dense).get_estimate(signed(item.hashed)) == sets.frequency(item).value
    assert item.hashed in bloom
    assert sets.cardinality().value == pytest.approx(hll.get_estimate(), rel=0.03)


def test_merges_are_those_of_the_libraries() -> None:
    rng = np.random.default_rng(2)
    halves = [taken(rng.integers(0, 400, (3000, 2)).astype(float)) for _ in range(2)]
    a, b = (structures(half) for half in halves)
    both = structures(halves[0].joined(halves[1]))
    counts = count_min_sketch(a)
    counts.merge(count_min_sketch(b))
    assert counts.serialize() == count_min_sketch(both).serialize()
    shape = halves[0].shape
    assert bloom_filter(a, shape) | bloom_filter(b, shape) == bloom_filter(both, shape)
    union = datasketches.hll_union(8)
    union.update(hll_sketch(a.registers))
    union.update(hll_sketch(b.registers))
    estimate = union.get_result(datasketches.tgt_hll_type.HLL_8).get_estimate()
    assert hll_sketch(both.registers).get_estimate() == pytest.approx(estimate, rel=1e-12)


@pytest.mark.parametrize("size", [40, 900, 20_000])
def test_cardinality_is_within_its_bounds_in_95_of_100(size: int) -> None:
    right = 0
    for seed in range(200):
        values = np.random.default_rng(seed).permutation(2 * size).reshape(-1, 2) + 1e5 * (seed % 9)
        answer = taken(np.repeat(values[: size // 2], 2, axis=0)).cardinality()
        assert answer.confidence == 0.95
        right += (
            answer.low <= len(np.unique(words_of(values[: size // 2], 6), axis=0)) <= answer.high
        )
    assert right >= 190


def test_frequency_is_never_too_low_and_rarely_higher_than_stated() -> None:
    late = asked = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        values = np.minimum(rng.zipf(1.3, (3000, 2)), 10**5).astype(float)
        sets = taken(values)
        words = words_of(values, 6)
        for row in rng.integers(0, len(values), 20):
            item = sets.shape.combination(values[row])
            truth = int((words == words[row]).all(axis=1).sum())
            answer = sets.frequency(item)
            assert truth <= answer.value == answer.high
            assert answer.low == max(
                0.0, answer.value - sets.shape.frequency_error * structures(sets).items
            )
            late += truth < answer.low
            asked += 1
    assert late <= (1 - SMALL.frequency_confidence) * asked


@pytest.mark.parametrize("rows", [300, 1500])
def test_the_stated_chance_of_a_false_yes_is_that_of_the_filter_as_full_as_it_is(rows: int) -> None:
    """500 items were planned for; with 1500 rows there are far more."""
    false = asked = 0
    stated = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sets = taken(rng.integers(0, 10**5, (rows, 2)) / 8)
        if only_block(sets).dense is None:
            sets = Sets(
                sets.shape,
                {
                    (0, 0, 86400): Block(
                        rows,
                        (),
                        Dense.empty(sets.shape).with_rows(*only_block(sets).together, sets.shape),
                    )
                },
            )
        stated.append(only_block(sets).false_positive(sets.shape))
        for row in rng.integers(10**5, 10**6, (1000, 2)) / 8:
            answer = sets.member(sets.shape.combination(row))
            assert answer.false_positive == (pytest.approx(stated[-1]) if answer.found else 0.0)
            false += answer.found
            asked += 1
    assert stated[0] > 0.005
    assert np.mean(stated) / 1.5 <= false / asked <= np.mean(stated) * 1.5


def test_few_rows_are_kept_as_they_are_and_answers_are_exact() -> None:
    values = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan], [-0.0, 5.0]])
    sets = taken(values)
    assert only_block(sets).dense is None
    assert sets.bytes_resident == 4 * (2 * 4 + 4)
    shape = sets.shape
    assert sets.frequency(shape.combination(np.array([1.0, 2.0]))).value == 2
    assert sets.frequency(shape.combination(np.array([1.0, np.nan]))).low == 1
    assert sets.frequency(shape.combination(np.array([1.0, np.nan]))).confidence == 1.0
    assert sets.frequency(shape.value(0, 1.0)).value == 3
    assert sets.member(shape.combination(np.array([0.0, 5.0]))).found
    assert not sets.member(shape.combination(np.array([0.0, np.nan]))).found
    assert not sets.member(shape.value(1, 1.0)).found
    assert sets.cardinality().value == pytest.approx(3, abs=0.1)


def test_values_are_the_same_to_the_digits_asked_for() -> None:
    sets = taken(np.array([[287.12304, 101325.4]]))
    assert sets.member(sets.shape.combination(np.array([287.123, 101325.0]))).found
    assert not sets.member(sets.shape.combination(np.array([287.124, 101325.0]))).found
    fine = taken(np.array([[287.12304, 1.0]]), SketchSchema(("a", "b"), set_decimals=9))
    assert not fine.member(fine.shape.value(0, 287.123)).found


def test_items_stay_what_they_are_for_ever() -> None:
    """Stored sets hold these: another number here means that they cannot be read any more."""
    shape = SetShape.of(SketchSchema(("a", "b")))
    assert shape.combination(np.array([1.5, np.nan])).hashed == 0x61DD54BF53927680
    assert shape.value(1, -2.25).hashed == 0xDAF2C24F5BA57402
    assert shape.seeds[:2].tolist() == [0x3E2F341AA14FC70C, 0x5C069E43FCE813CE]


def test_scopes_take_whole_trees_and_bounds() -> None:
    day = 86400
    one = np.array([[1.0, 1.0]])
    sets = (
        taken(one, tree=3, time=0)
        .joined(taken(one, tree=3, time=day))
        .joined(taken(one, tree=4, time=day))
    )
    item = sets.shape.combination(one[0])
    assert sets.frequency(item).value == 3
    assert sets.frequency(item, Scope(np.array([3]))).value == 2
    assert sets.frequency(item, Scope(first=day)).value == 2
    assert sets.frequency(item, Scope(first=0, last=day)).value == 1
    assert sets.frequency(item, Scope(np.array([4]), 0, day)).value == 0
    assert sorted(sets.folded(before=2 * day, seconds=7 * day).blocks) == [
        (3, 0, 7 * day),
        (4, 0, 7 * day),
    ]
    assert sorted(sets.folded(before=day, seconds=2 * day).blocks) == [
        (3, 0, 2 * day), (3, day, 2 * day), (4, day, 2 * day)]  # fmt: skip
    with pytest.raises(ConfigError, match="multiples of their 86400 seconds"):
        sets.folded(0, 100)


def test_sets_that_do_not_fit_are_refused() -> None:
    sets = taken(np.array([[1.0, 2.0]]))
    other = Sets.empty(SketchSchema(("a", "b"), hll_lg_k=9))
    with pytest.raises(ConfigError, match="cannot be merged"):
        sets.joined(other)
    with pytest.raises(StateError, match="restore the settings"):
        Sets.from_arrays(SketchSchema(("a", "b")), sets.to_arrays())
    data = sets.to_bytes()
    for cut in (5, 100, len(data) - 1):
        with pytest.raises(StateError, match="cut short"):
            Sets.from_bytes(data[:cut])
    with pytest.raises(StateError, match="no sets of version"):
        Sets.from_bytes(b"\x07" + data[1:])
