"""Laws of the hash plan: every key has one place for ever, hashes agree and spread."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.plan import HashPlan, Move, Resize, plan_from_dict, stable_hash

PARTITIONS = 256
KEYS = 100_000


@st.composite
def plans(draw: st.DrawFn) -> HashPlan:
    """A hash plan after random moves and resizes."""
    plan = HashPlan.initial(draw(st.integers(1, 5)), draw(st.integers(1, 9)))
    for _ in range(draw(st.integers(0, 10))):
        if draw(st.integers(0, 2)) == 0:
            plan = plan.apply(Resize(draw(st.integers(1, min(plan.most_slots, 9)))))
            continue
        partition = draw(st.integers(0, len(plan.partitions) - 1))
        plan = plan.apply(Move(partition, draw(st.integers(0, plan.slots - 1))))
    return plan


words = st.lists(st.none() | st.text(max_size=20), max_size=30)
integers = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=30)


@given(plans(), words)
def test_every_key_has_exactly_one_place_and_moves_do_not_change_it(
    plan: HashPlan, keys: list[str | None]
) -> None:
    array = pa.array(keys, pa.string())
    places = plan.locate(array)
    first = HashPlan.initial(1, len(plan.partitions))
    assert places.tolist() == first.locate(array).tolist()
    assert all(0 <= place < len(plan.partitions) for place in places)
    place_of = dict(zip(keys, places.tolist(), strict=True))
    assert [place_of[key] for key in keys] == places.tolist()
    assert [plan.partitions[place].slot for place in places] == plan.owners[places].tolist()


@given(plans(), st.data())
def test_a_move_gives_one_partition_to_one_slot(plan: HashPlan, data: st.DataObject) -> None:
    partition = data.draw(st.integers(0, len(plan.partitions) - 1))
    to = data.draw(st.integers(0, plan.slots - 1))
    after = plan.apply(Move(partition, to))
    expected = plan.owners.copy()
    expected[partition] = to
    assert after.owners.tolist() == expected.tolist()
    assert after.partition(partition).previous_slot == plan.partition(partition).slot
    assert after.version == plan.version + 1
    assert [p.id for p in after.partitions] == list(range(len(plan.partitions)))


@given(plans(), st.data())
def test_a_resize_moves_what_goes_and_an_equal_share(plan: HashPlan, data: st.DataObject) -> None:
    """From slots that go, everything and nothing else; to slots that come, up to an equal share,
    from those that have more."""
    slots = data.draw(st.integers(1, min(plan.most_slots, 9)))
    after = plan.apply(Resize(slots))
    moved = [p for p in after.partitions if p.slot != plan.partition(p.id).slot]
    assert after.slots == slots
    assert after.version == plan.version + 1
    assert all(p.previous_slot == plan.partition(p.id).slot for p in moved)
    before, counts = counted(plan), counted(after)
    if slots <= plan.slots:
        assert {p.id for p in moved} == {p.id for p in plan.partitions if p.slot >= slots}
        given_to = [slot for slot in range(slots) if counts[slot] > before[slot]]
        assert all(counts[slot] <= min(counts) + 1 for slot in given_to)
        return
    assert all(p.slot >= plan.slots for p in moved)
    share = len(plan.partitions) / slots
    assert all(int(share) <= count <= -(-share // 1) for count in counts[plan.slots :])
    givers = [slot for slot in range(plan.slots) if counts[slot] < before[slot]]
    assert all(counts[slot] >= max(counts[: plan.slots]) - 1 for slot in givers)


@given(
    st.integers(1, 6),
    st.integers(1, 9),
    st.lists(st.integers(1, 9), max_size=6),
)
def test_a_plan_that_only_resizes_stays_even_with_the_fewest_moves(
    slots: int, each: int, numbers: list[int]
) -> None:
    plan = HashPlan.initial(slots, each)
    for number in numbers:
        after = plan.apply(Resize(min(number, plan.most_slots)))
        before, counts = counted(plan), counted(after)
        assert max(counts) - min(counts) <= 1
        # Whoever stays keeps at most what it may have: the full shares go to those with most.
        floor, full = divmod(plan.most_slots, after.slots)
        stays = sorted(before[: after.slots], reverse=True)
        keeps = sum(min(c, floor + (place < full)) for place, c in enumerate(stays))
        moved = sum(p.slot != plan.partition(p.id).slot for p in after.partitions)
        assert moved == plan.most_slots - keeps
        plan = after


def counted(plan: HashPlan) -> list[int]:
    """Partitions of each slot."""
    return np.bincount(plan.owners, minlength=plan.slots).tolist()  # type: ignore[no-any-return]


@given(plans())
def test_a_plan_survives_the_log(plan: HashPlan) -> None:
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@given(words, st.integers(0, 5), st.integers(0, 5))
def test_text_hashes_alike_however_it_is_stored_and_sliced(
    keys: list[str | None], skip: int, drop: int
) -> None:
    plain = pa.array(keys, pa.string())
    expected = [int(stable_hash(pa.array([key], pa.string()))[0]) for key in keys]
    part = slice(skip, max(skip, len(keys) - drop))
    for stored in (
        plain, plain.cast(pa.large_string()), plain.cast(pa.binary()), plain.cast(pa.string_view()),
        plain.dictionary_encode(),
    ):  # fmt: skip
        assert stable_hash(stored).tolist() == expected
        assert stable_hash(stored[part]).tolist() == expected[part]
    assert len(set(expected)) == len(set(keys))


@given(integers)
def test_integers_hash_alike_in_every_width_that_holds_them(keys: list[int | None]) -> None:
    wide = pa.array(keys, pa.int64())
    expected = stable_hash(wide).tolist()
    assert len(set(expected)) == len(set(keys))
    assert stable_hash(wide.dictionary_encode()).tolist() == expected
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint64()):
        try:
            narrow = wide.cast(kind)
        except pa.ArrowInvalid:
            continue
        assert stable_hash(narrow).tolist() == expected


@pytest.mark.parametrize(
    "keys",
    [
        np.arange(KEYS),
        np.arange(KEYS) * 4096,
        -(np.arange(KEYS) ** 2),
        np.arange(KEYS) / 8,
        pa.array([f"sensor-{i}" for i in range(KEYS)]),
        pa.array([i.to_bytes(8, "big") for i in range(KEYS)]),
        pa.array([" " * (i % 100) + str(i // 100) for i in range(KEYS)]),
    ],
    ids=["counter", "strided", "squares", "floats", "names", "bytes", "padded"],
)
def test_keys_spread_evenly(keys: object) -> None:
    counts = np.bincount(HashPlan.initial(4, PARTITIONS // 4).locate(keys), minlength=PARTITIONS)
    mean = KEYS / PARTITIONS
    chi_square = float(((counts - mean) ** 2 / mean).sum())
    # 255 degrees of freedom: mean 255, deviation 22.6; five deviations on either side.
    assert 142 < chi_square < 368


def test_hashes_are_the_same_in_another_process() -> None:
    code = (
        "import pyarrow as pa; from geoflux.plan import stable_hash;"
        "print(stable_hash(pa.array(['a', None, 'Oslo'])).tolist())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == stable_hash(pa.array(["a", None, "Oslo"])).tolist()
