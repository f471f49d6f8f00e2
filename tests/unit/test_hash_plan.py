"""The hash plan, and hashes that must never change."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from geoflux.errors import IntegrityError
from geoflux.plan import HashPlan, Merge, MiniPartition, Move, Resize, plan_from_dict, stable_hash

NOON = datetime(2020, 1, 2, 12, tzinfo=UTC)

INTEGERS = [16294208416658607535, 10451216379200822465, 16490336266968443936, 2296115805719413641]
STRINGS = [16294208416658607535, 6774081908283191102, 7556188158530206751, 14853076891832367767]
FLOATS = [16294208416658607535, 15481881892811333770, 14351126860892846918]
NULL = [11160318154034397263]


def hashed(array: object) -> list[int]:
    return [int(value) for value in stable_hash(array)]


def test_hashes_are_these_for_ever() -> None:
    assert hashed(np.array([0, 1, -1, 2**40])) == INTEGERS
    assert hashed(pa.array(["", "a", "Oslo", "a key longer than eight"])) == STRINGS
    assert hashed(np.array([0.0, 1.5, np.nan])) == FLOATS
    assert hashed(pa.array([None], pa.int64())) == hashed(pa.array([None], pa.string())) == NULL


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
def test_integers_of_every_width_hash_like_64_bits(kind: pa.DataType) -> None:
    wide = pa.array([0, 1, 100, None, 7])
    assert hashed(wide.cast(kind)) == hashed(wide)
    if not pa.types.is_unsigned_integer(kind):
        assert hashed(pa.array([-1], kind)) == hashed(pa.array([-1]))


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
)
def test_text_hashes_like_its_bytes_however_it_is_stored(kind: pa.DataType) -> None:
    words = pa.array(["", "Oslo", None, "São Paulo", "Oslo"])
    stored = (
        words.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else words.cast(kind)
    )
    assert hashed(stored) == hashed(words)
    assert hashed(stored[1:4]) == hashed(words)[1:4]


def test_other_ways_to_hold_the_same_keys() -> None:
    assert hashed(np.array(["Oslo", "Rom"])) == hashed(pa.array(["Oslo", "Rom"]))
    assert hashed(np.array(["Oslo", None], object)) == hashed(pa.array(["Oslo", None]))
    assert hashed(pa.array([b"abc"], pa.binary(3))) == hashed(pa.array(["abc"]))
    assert hashed(pa.chunked_array([[1], [2, 3]])) == hashed(np.arange(1, 4))
    assert (
        hashed(pa.array([True, False]))
        == hashed(np.array([True, False]))
        == hashed(np.array([1, 0]))
    )
    assert hashed(np.array([0.5, -0.0], np.float32)) == hashed(np.array([0.5, 0.0]))
    assert hashed(np.array([-np.nan])) == hashed(np.array([np.nan]))
    assert hashed(pa.nulls(2)) == NULL * 2
    assert hashed(pa.array([], pa.string())) == []
    assert hashed(pa.array([None, None], pa.string()).dictionary_encode()) == NULL * 2
    nulls_in_the_dictionary = pa.DictionaryArray.from_arrays(
        pa.array([0, 1]), pa.array(["a", None])
    )
    assert hashed(nulls_in_the_dictionary) == hashed(pa.array(["a", None]))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_points_in_time_hash_alike_in_every_unit(unit: str) -> None:
    expected = hashed(np.array([int(NOON.timestamp() * 1_000_000)]))
    assert hashed(pa.array([NOON], pa.timestamp(unit, "UTC"))) == expected
    assert hashed(pa.array([NOON], pa.timestamp(unit, "Europe/Oslo"))) == expected
    assert hashed(np.array(["2020-01-02T12:00"], f"datetime64[{unit}]")) == expected


def test_days_are_points_in_time_and_durations_and_times_are_numbers() -> None:
    day = date(2020, 1, 2)
    midnight = hashed(pa.array([datetime(2020, 1, 2)], pa.timestamp("s")))
    assert hashed(pa.array([day])) == hashed(pa.array([day], pa.date64())) == midnight
    assert (
        hashed(pa.array([5], pa.duration("ms")))
        == hashed(pa.array([5], pa.time32("s")))
        == hashed(np.array([5]))
    )


def test_keys_that_cannot_be_hashed_are_named() -> None:
    with pytest.raises(TypeError, match="list"):
        stable_hash(pa.array([[1], [2]]))


def test_a_new_plan_deals_the_partitions_out_evenly() -> None:
    plan = HashPlan.initial(slots=3)
    assert np.bincount(plan.owners).tolist() == [64, 64, 64]
    assert plan.version == 1


def test_a_move_changes_the_owner_and_nothing_else() -> None:
    plan = HashPlan.initial(slots=3, per_slot=2)
    moved = plan.apply(Move(4, to=0))
    assert moved.partition(4) == MiniPartition(4, slot=0, previous_slot=1)
    assert moved.version == 2
    assert [p for p in moved.partitions if p.id != 4] == [p for p in plan.partitions if p.id != 4]
    assert moved.owners.tolist() == [0, 1, 2, 0, 0, 2]


def test_what_a_hash_plan_refuses() -> None:
    plan = HashPlan.initial(slots=2, per_slot=2)
    with pytest.raises(ValueError, match="slot 2 does not exist"):
        plan.apply(Move(0, to=2))
    with pytest.raises(KeyError):
        plan.apply(Move(4, to=0))
    with pytest.raises(KeyError):
        plan.partition(-1)
    with pytest.raises(ValueError, match="can only move"):
        plan.apply(Merge(0, 1, 0))
    with pytest.raises(ValueError, match="5 slots for 4 partitions"):
        plan.apply(Resize(5))
    with pytest.raises(ValueError, match="0 slots"):
        HashPlan.initial(slots=0)
    with pytest.raises(IntegrityError, match="numbered"):
        HashPlan(1, (MiniPartition(1, 0),))


def test_a_plan_travels_without_what_can_be_made_again() -> None:
    plan = HashPlan.initial(slots=2, per_slot=2)
    bare = len(pickle.dumps(plan))
    assert plan.owners.size == 4
    assert len(pickle.dumps(plan)) == bare
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
