"""Prefixes of codes: which lies in which, what two have in common, what is left of one.

A prefix is the pair (code, bits): all codes that begin with these bits, the highest first. Two
prefixes are apart, or one lies in the other. Nothing here knows how many bits codes have.
"""

from __future__ import annotations

from collections.abc import Iterable

Bits = tuple[int, int]
"""A prefix: its bits as a number, and how many they are; (0, 0) is everything."""


def inside(a: Bits, b: Bits) -> bool:
    """Whether ``a`` lies in ``b``, or is ``b``.

    >>> inside((0b101, 3), (0b10, 2)), inside((0b10, 2), (0b101, 3))
    (True, False)
    """
    return a[1] >= b[1] and a[0] >> (a[1] - b[1]) == b[0]


def both(a: Bits, b: Bits) -> Bits | None:
    """What lies in both: the longer prefix, or nothing."""
    if inside(a, b):
        return a
    return b if inside(b, a) else None


def shared(a: Bits, b: Bits) -> int:
    """How many bits two prefixes begin with in common.

    >>> shared((0b1011, 4), (0b100, 3)), shared((1, 1), (0, 1))
    (2, 0)
    """
    short = min(a[1], b[1])
    differ = (a[0] >> (a[1] - short)) ^ (b[0] >> (b[1] - short))
    return short - differ.bit_length()


def upward(a: Bits, bits: int) -> Bits:
    """The prefix of so many bits that ``a`` lies in."""
    return a[0] >> (a[1] - bits), bits


def fused(areas: Iterable[Bits]) -> tuple[Bits, ...]:
    """The fewest prefixes for areas that are apart, in the order of their codes.

    >>> fused([(0b00, 2), (0b01, 2), (0b11, 2)])
    ((0, 1), (3, 2))
    """
    stack: list[Bits] = []
    for area in in_order(areas):
        stack.append(area)
        while len(stack) > 1 and _siblings(stack[-2], stack[-1]):
            code, bits = stack.pop()
            stack[-1] = (code >> 1, bits - 1)
    return tuple(stack)


def rest(whole: Bits, pieces: Iterable[Bits]) -> tuple[Bits, ...]:
    """The fewest prefixes that are left of ``whole`` without some pieces of it.

    >>> rest((1, 1), [(0b110, 3)])
    ((2, 2), (7, 3))
    """
    left: list[Bits] = [whole]
    for piece in pieces:
        after: list[Bits] = []
        for area in left:
            if not inside(piece, area):
                after.append(area)
                continue
            after += [
                ((piece[0] >> (piece[1] - b)) ^ 1, b) for b in range(area[1] + 1, piece[1] + 1)
            ]  # fmt: skip
        left = after
    return in_order(left)


def in_order(areas: Iterable[Bits]) -> tuple[Bits, ...]:
    """Prefixes in the order of their codes, a shorter one before those that lie in it."""
    known = list(areas)
    deepest = max((bits for _, bits in known), default=0)
    return tuple(sorted(known, key=lambda a: (a[0] << (deepest - a[1]), a[1])))


def named(a: Bits) -> str:
    """For people: its bits.

    >>> named((0b0110, 4)), named((0, 0))
    ('0110', 'everything')
    """
    return f"{a[0]:0{a[1]}b}" if a[1] else "everything"


def _siblings(a: Bits, b: Bits) -> bool:
    return a[1] == b[1] > 0 and a[0] ^ 1 == b[0]
