"""The transient-skew buffer."""

from __future__ import annotations

import pytest

from geoflux.balance.skew_buffer import SkewBuffer
from geoflux.errors import IntegrityError


def test_a_blocked_partition_does_not_hold_up_the_others() -> None:
    buffer = SkewBuffer[str](limit=10)
    for partition, item in ((1, "a"), (2, "b"), (1, "c"), (3, "d"), (2, "e")):
        buffer.insert(partition, item, 2)
    assert [buffer.retrieve(p) for p in (2, 3, 2)] == ["b", "d", "e"]
    assert list(buffer.waiting()) == [1]
    assert (buffer.items, buffer.bytes) == (2, 4)


def test_partitions_wait_in_the_order_of_their_oldest_item() -> None:
    buffer = SkewBuffer[int](limit=100)
    for at, partition in enumerate((5, 3, 5, 4, 3)):
        buffer.insert(partition, at, 1)
    assert list(buffer.waiting()) == [5, 3, 4]
    assert buffer.peek(5) == buffer.retrieve(5) == 0
    assert list(buffer.waiting()) == [3, 5, 4]


def test_one_may_retrieve_while_going_through_the_waiting_partitions() -> None:
    buffer = SkewBuffer[int](limit=100)
    for partition in (2, 1, 2):
        buffer.insert(partition, partition, 1)
    assert [buffer.retrieve(p) for p in buffer.waiting()] == [2, 1]
    assert list(buffer.waiting()) == [2]


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    buffer = SkewBuffer[str](limit=5)
    buffer.insert(1, "a", 5)
    assert not buffer.has_room(1)
    with pytest.raises(IntegrityError, match="5 of 5"):
        buffer.insert(2, "b", 1)
    assert (buffer.items, buffer.bytes, list(buffer.waiting())) == (1, 5, [1])
    buffer.insert(2, "nothing", 0)
    with pytest.raises(ValueError, match="-1"):
        buffer.insert(2, "b", -1)
    with pytest.raises(ValueError, match="-3"):
        SkewBuffer[str](limit=-3)


def test_an_unknown_partition_has_nothing() -> None:
    buffer = SkewBuffer[str](limit=5)
    assert buffer.retrieve(1) is None
    assert buffer.peek(1) is None
