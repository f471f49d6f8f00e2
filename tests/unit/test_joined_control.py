"""Control records of two sources: both go on, whichever of them has something new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from geoflux.engine.joined_control import JoinedControl


class Numbered:
    """Says how far it is under a name of its own; where nothing is new, what it was told."""

    def __init__(self, name: str, whole: bool) -> None:
        self.name, self.whole, self.end = name, whole, 0

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        if self.whole and self.end <= after.get(self.name, 0):
            return after
        return {self.name: max(self.end, after.get(self.name, 0))}

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[list[bytes]]:
        for number in range(after.get(self.name, 0), upto.get(self.name, 0)):
            yield [f"{self.name}{number}".encode()]


@pytest.mark.parametrize("whole", [(True, True), (True, False), (False, True)])
def test_neither_takes_back_what_the_other_has_found(whole: tuple[bool, bool]) -> None:
    one, other = Numbered("a", whole[0]), Numbered("b", whole[1])
    joined, after, seen = JoinedControl(one, other), dict[str, Any](), list[bytes]()
    for ends in ((2, 0), (2, 1), (5, 1), (5, 1), (6, 3)):
        one.end, other.end = ends
        upto = joined.poll(after)
        seen += [line for lines in joined.read(after, upto) for line in lines]
        assert (upto.get("a", 0), upto.get("b", 0)) == ends
        after = upto
    assert sorted(seen) == sorted([f"a{n}".encode() for n in range(6)] + [b"b0", b"b1", b"b2"])
