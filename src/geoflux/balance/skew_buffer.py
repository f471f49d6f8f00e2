"""The transient-skew buffer: first-in first-out queues, one per partition, sharing one budget.

A producer that meets a slow or moving partition goes on with the others: space is given to whoever
needs it, instead of being dealt out beforehand. Order within a partition is always kept.

Source: Flux 4; keyed by partition (5.1), so that a partition can be held while its state moves.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from geoflux.errors import IntegrityError

T = TypeVar("T")


class SkewBuffer(Generic[T]):
    """Items that wait for their partition, ``limit`` bytes in all.

    Every operation takes constant time; going through the waiting partitions costs one comparison
    or so per partition, whatever the number of items.

    >>> buffer = SkewBuffer[str](limit=100)
    >>> buffer.insert(7, "a", 40), buffer.insert(2, "b", 40), buffer.insert(7, "c", 20)
    (None, None, None)
    >>> buffer.has_room(1), list(buffer.waiting())
    (False, [7, 2])
    >>> buffer.retrieve(7), buffer.bytes, list(buffer.waiting())
    ('a', 60, [2, 7])
    """

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"a budget of {limit} bytes: expected 0 or more")
        self.limit = limit
        self._queues: dict[int, deque[tuple[int, T, int]]] = {}
        self._bytes = 0
        self._items = 0
        self._next = 0

    @property
    def bytes(self) -> int:
        """Bytes of all items; never above the limit."""
        return self._bytes

    @property
    def items(self) -> int:
        """How many items there are."""
        return self._items

    def has_room(self, size: int) -> bool:
        """Whether an item of so many bytes may be inserted."""
        return self._bytes + size <= self.limit

    def insert(self, partition: int, item: T, size: int) -> None:
        """Queue an item up for its partition; whoever inserts asks for room first."""
        if size < 0:
            raise ValueError(f"an item of {size} bytes: expected 0 or more")
        if not self.has_room(size):
            raise IntegrityError(
                f"{size} bytes do not fit: {self._bytes} of {self.limit} are taken; "
                "ask has_room first"
            )
        self._queues.setdefault(partition, deque()).append((self._next, item, size))
        self._next += 1
        self._bytes += size
        self._items += 1

    def retrieve(self, partition: int) -> T | None:
        """Take the oldest item of a partition, or ``None``."""
        queue = self._queues.get(partition)
        if queue is None:
            return None
        _, item, size = queue.popleft()
        if not queue:
            del self._queues[partition]
        self._bytes -= size
        self._items -= 1
        return item

    def peek(self, partition: int) -> T | None:
        """The oldest item of a partition, which stays, or ``None``."""
        queue = self._queues.get(partition)
        return queue[0][1] if queue else None

    def waiting(self) -> Iterator[int]:
        """The partitions with items, as of now, in the order of their oldest item."""
        heads = [(queue[0][0], partition) for partition, queue in self._queues.items()]
        heapq.heapify(heads)
        while heads:
            yield heapq.heappop(heads)[1]
