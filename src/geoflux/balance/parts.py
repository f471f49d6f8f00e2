"""What a slot tells of the parts of its partitions: longer prefixes, with rows and bytes of each.

Source: Synopsis 3.6 (the metadata that nodes keep of their subregions).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from geoflux.plan.prefixes import Bits

DEEPER = 5
"""Parts of a partition have so many more bits than it has, as far as codes go: at most 32."""


class Part(NamedTuple):
    """A part of a partition: its prefix, the rows that came in an epoch or several, the bytes that
    it holds.

    ``bytes`` are ``None`` where the operator does not tell, or the state was not opened.
    """

    code: int
    bits: int
    rows: int
    bytes: int | None = None

    @property
    def area(self) -> Bits:
        """Its prefix."""
        return self.code, self.bits


def added(known: Iterable[Part], told: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of a partition after one more epoch: rows add up, bytes are those told last. An
    epoch that tells no bytes (the state was not opened) leaves those that are known.

    >>> added([Part(4, 3, 5, 10)], [Part(4, 3, 1), Part(7, 3, 2)])
    (Part(code=4, bits=3, rows=6, bytes=10), Part(code=7, bits=3, rows=2, bytes=0))
    >>> added([Part(4, 3, 5)], [Part(7, 3, 2, 30)])
    (Part(code=4, bits=3, rows=5, bytes=0), Part(code=7, bits=3, rows=2, bytes=30))
    """
    before, now = ({part.area: part for part in some} for some in (known, told))
    last = now if any(part.bytes is not None for part in told) else before
    held = {area: part.bytes for area, part in last.items()}
    otherwise = 0 if any(size is not None for size in held.values()) else None
    return tuple(
        Part(*area, sum(some[area].rows for some in (before, now) if area in some),
             held.get(area, otherwise))
        for area in sorted({*before, *now})
    )  # fmt: skip
