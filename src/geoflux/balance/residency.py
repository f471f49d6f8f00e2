"""Which partitions of a slot have room in memory, and in which order they are worked on.

Source: Flux 6 (spilling, and round-robin through what is on disk; the details are in a longer
version of the paper that is lost).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def spilled_now(
    sizes: Mapping[int, int], spilled: Iterable[int], budget: int | None
) -> frozenset[int]:
    """The partitions that are on disk from now on, given those that were.

    As few change as possible: what is in memory stays there while it fits, the largest is spilled
    first, and what is on disk comes back, smallest first, when all of it fits.

    >>> sorted(spilled_now({1: 40, 2: 30, 3: 20}, [], 60))
    [1]
    >>> sorted(spilled_now({1: 20, 2: 30, 3: 20}, [1], 60))
    [1]
    >>> sorted(spilled_now({1: 20, 2: 20, 3: 20}, [1], 60))
    []
    """
    if budget is None:
        return frozenset()
    gone = set(spilled) & set(sizes)
    used = sum(size for partition, size in sizes.items() if partition not in gone)
    by_size = sorted(sizes, key=lambda partition: (sizes[partition], partition))
    for partition in reversed(by_size):
        if used > budget and partition not in gone:
            gone.add(partition)
            used -= sizes[partition]
    for partition in by_size:
        if partition in gone and used + sizes[partition] <= budget:
            gone.remove(partition)
            used += sizes[partition]
    return frozenset(gone)


def in_turn(
    waiting: Iterable[int], spilled: Iterable[int], turns: Mapping[int, int]
) -> list[int]:  # fmt: skip
    """The order of work: what is in memory first, and in each group what waited longest.

    >>> in_turn([1, 2, 3, 4], [1, 2], {1: 9, 2: 7, 3: 8, 4: 6})
    [4, 3, 2, 1]
    """
    on_disk = frozenset(spilled)
    return sorted(waiting, key=lambda p: (p in on_disk, turns.get(p, -1), p))
