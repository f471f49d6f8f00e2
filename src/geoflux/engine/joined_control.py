"""Control records of two sources as one: those that are simulated, and those that users place.

Each source keeps its own name in the offset, so a run that had only one of them goes on with both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from geoflux.engine.source import ControlSource


@dataclass(frozen=True)
class JoinedControl:
    """The records of ``first``, then those of ``second``, range by range; their offsets have
    different names."""

    first: ControlSource
    second: ControlSource

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        """The offsets of all that is there now."""
        found = {**after, **self.first.poll(after)}
        return {**found, **self.second.poll(found)}  # who has nothing new tells what it was told

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[pa.Table | list[bytes]]:
        """The records between two offsets."""
        yield from self.first.read(after, upto)
        yield from self.second.read(after, upto)
