"""Ports for what comes in: events in slices, control records in ranges.

A source names its rows by *position*: a number that never changes its meaning, so that a range of
positions can be read again after a crash, on any worker, and gives the same rows. Only positions
travel through Spark; the rows are read where they are used. Sources are small picklable values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.marks import Marks


@dataclass(frozen=True)
class Slice:
    """A range of rows of one stream of a source (a file, or the simulator's only stream)."""

    stream: int
    start: int
    stop: int


@dataclass(frozen=True)
class Rejected:
    """A row that cannot be used: why, in a code and a sentence, and the row as it came."""

    code: str
    detail: str
    row: str


@dataclass(frozen=True)
class RawBatch:
    """Rows as the source has them, with the position of each; and lines that were no rows."""

    table: pa.Table
    positions: npt.NDArray[np.int64]
    """Ascending."""
    rejected: Sequence[Rejected] = field(default=())
    marks: Marks = field(default_factory=Marks)
    """Of a stream: its rows that derive from followed inputs, with the ids of their records."""


class EventSource(Protocol):
    """Where events come from. Positions start at 0 and only grow."""

    def schema(self) -> pa.Schema:
        """Columns and types of the rows, as the user named them."""
        ...

    def latest(self, start: int, limit: int | None) -> int:
        """The end of what can be read now from ``start``, at most about ``limit`` rows further.

        Called in one process only; durably notes whatever a later :meth:`slices` needs.
        """
        ...

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        """The rows of a range of positions in about ``parts`` slices of equal size, in order."""
        ...

    def span(self, pieces: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        """The range of positions that slices (stream, start, stop) cover, from first to last."""
        ...

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        """The rows of a slice in batches; only the named columns where that saves work."""
        ...

    def arrivals(self, start: int, stop: int) -> tuple[float, float] | None:
        """When the first and the last row of a range were there to be read, in seconds since 1970;
        ``None`` where a source does not pace its rows."""
        ...

    def total(self) -> int | None:
        """Rows (or bytes) that will ever come, in positions; ``None`` where nobody knows."""
        ...


class ControlSource(Protocol):
    """Where registrations and terminations come from, in one order that never changes."""

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        """The offset of all that is there now, ``after`` or further; ``{}`` is the beginning."""
        ...

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[pa.Table | list[bytes]]:
        """The records between two offsets in order: columnar where the source is columnar,
        otherwise raw lines of JSON."""
        ...
