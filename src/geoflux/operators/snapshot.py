"""A snapshot query: what is asked once about the events that are retained.

A value of plain parts: it is fixed in the epoch's intent and travels to whoever answers it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geoflux.operators.aggregates import Aggregate, aggregate_of
from geoflux.spatial.shapes import Shape


@dataclass(frozen=True)
class Nearest:
    """The ``k`` events nearest to a point."""

    x: float
    y: float
    k: int


@dataclass(frozen=True)
class SnapshotQuery:
    """Which events: in a ``shape`` (``None``: anywhere), with a ``where``, with a time from
    ``start`` to ``stop`` (microseconds since 1970, both included), of those the ``nearest``; and
    whether they are listed or an ``aggregate`` of them is told.

    >>> query = SnapshotQuery("a", nearest=Nearest(1.0, 2.0, 3))
    >>> SnapshotQuery.from_dict(query.to_dict()) == query
    True
    """

    id: str
    user: str | None = None
    shape: Shape | None = None
    where: str | None = None
    start: int | None = None
    stop: int | None = None
    aggregate: Aggregate | None = None
    nearest: Nearest | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the intent; what says nothing is left out."""
        given: dict[str, Any] = {
            "id": self.id, "user": self.user, "where": self.where,
            "start": self.start, "stop": self.stop,
        }  # fmt: skip
        if self.shape is not None:
            body = self.shape.body
            text = None if body is None else base64.b64encode(body).decode()
            given["shape"] = [self.shape.kind, list(self.shape.box), text]
        if self.aggregate is not None:
            given["aggregate"] = self.aggregate.to_text()
        if self.nearest is not None:
            given["nearest"] = [self.nearest.x, self.nearest.y, self.nearest.k]
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SnapshotQuery:
        """The query that :meth:`to_dict` wrote."""
        given = dict(values)
        if "shape" in given:
            kind, box, text = given["shape"]
            body = None if text is None else base64.b64decode(text)
            given["shape"] = Shape(kind, tuple(box), body)
        if "aggregate" in given:
            given["aggregate"] = aggregate_of(given["aggregate"])
        if "nearest" in given:
            given["nearest"] = Nearest(*given["nearest"])
        return cls(**given)
