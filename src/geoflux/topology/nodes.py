"""The operators of an application and the streams that they write and read, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from geoflux.operators.group_by import WindowedGroupBy
from geoflux.operators.keyed import Operator

SOURCE = "source"
"""What an operator reads that reads from outside: the events that ``[source]`` names."""


@dataclass(frozen=True)
class Stream:
    """A stream of an application: who writes it, and what it is called there.

    >>> str(Stream("detector", "again"))
    'detector.again'
    """

    operator: str
    name: str

    def __str__(self) -> str:
        return f"{self.operator}.{self.name}"


@dataclass(frozen=True)
class Ingest:
    """Brings the rows of the outside source in: judged, and written on as they are.

    Rows with the same ``key`` (a column) keep their order; without one they are dealt out by id.
    """

    key: str = ""

    @property
    def streams(self) -> tuple[str, ...]:
        """All rows are one stream."""
        return ("results",)


@dataclass(frozen=True)
class Queries:
    """Standing queries; ``[control]`` says where they come from."""

    @property
    def streams(self) -> tuple[str, ...]:
        """Matches (or counts, as ``output.matches`` says), and windows that closed."""
        return ("matches", "counts", "aggregates")


Work = Ingest | Queries | Operator[Any]


@dataclass(frozen=True)
class Node:
    """One operator of an application.

    ``reads`` names what it reads: ``source`` for events from outside, otherwise operators, or
    streams of operators that have several, as in ``detector.again``. ``slots`` is how many it
    begins with (``[engine]`` if none), ``settings`` are its own where they differ from those of
    all, by section.

    >>> Node("speeds", WindowedGroupBy("car", "speed", rows=100), reads="ingest", slots=2).kind
    'group-by'
    """

    name: str
    work: Work
    reads: str | tuple[str, ...] = SOURCE
    slots: int | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def reading(self) -> tuple[str, ...]:
        """What is read, as it was written."""
        return (self.reads,) if isinstance(self.reads, str) else tuple(self.reads)

    @property
    def is_outer(self) -> bool:
        """Whether it reads events from outside."""
        return self.reading == (SOURCE,)

    @property
    def kind(self) -> str:
        """``ingest``, ``queries``, ``group-by`` or ``own``."""
        if isinstance(self.work, Ingest):
            return "ingest"
        if isinstance(self.work, Queries):
            return "queries"
        return "group-by" if type(self.work) is WindowedGroupBy else "own"
