"""What a slot tells of the parts of its partitions: longer prefixes, with rows and bytes of each.

Source: Synopsis 3.6 (the metadata that nodes keep of their subregions).
"""

from __future__ import annotations

from typing import NamedTuple

from geoflux.plan.prefixes import Bits

DEEPER = 5
"""Parts of a partition have so many more bits than it has, as far as codes go: at most 32."""


class Part(NamedTuple):
    """A part of a partition: its prefix, the rows that came in an epoch, the bytes that it holds.

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
