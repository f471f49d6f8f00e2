"""Some rows of several retained segments, their columns gathered only when asked for.

A column goes by the name that the user gave it. What every event has (place, time, id) is stored
once; :class:`Naming` tells under which of the user's names it is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.retained import RetainedEvents, concatenated
from geoflux.spatial.space import FloatArray, IntArray

Mask = npt.NDArray[np.bool_]
Own = Literal["x", "y", "time", "id"]

_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Naming:
    """``stored``: the further columns that are retained; ``own``: the user's names for what every
    event has; ``schema``: all columns that can be asked about; ``id_type``: the type of ids."""

    stored: tuple[str, ...]
    own: Mapping[str, Own]
    schema: pa.Schema
    id_type: pa.DataType


@dataclass(frozen=True)
class Selection:
    """Rows of segments, in their order; ``None`` stands for all rows of a segment."""

    pieces: tuple[tuple[RetainedEvents, IntArray | None], ...]
    naming: Naming

    @cached_property
    def lengths(self) -> list[int]:
        """Rows of each piece."""
        return [len(events) if rows is None else int(rows.size) for events, rows in self.pieces]

    def __len__(self) -> int:
        return sum(self.lengths)

    def number(self, name: Literal["x", "y", "time"]) -> npt.NDArray[Any]:
        """One of the columns that every event has, as an array."""
        if not self.pieces:
            return np.empty(0, np.int64 if name == "time" else np.float64)
        parts = []
        for events, rows in self.pieces:
            values: npt.NDArray[Any] = getattr(events, name)
            parts.append(values if rows is None else values[rows])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def place(self) -> tuple[FloatArray, FloatArray]:
        """x and y."""
        return self.number("x"), self.number("y")

    def ids(self) -> pa.Array:
        """The ids of the events."""
        return self._gathered([events.id for events, _ in self.pieces], self.naming.id_type)

    def column(self, name: str) -> pa.Array:
        """A column by the user's name; nulls where a segment does not have it."""
        kind = self._type(name)
        if name in self.naming.stored or name not in self.naming.own:
            arrays = [e.columns.get(name) for e, _ in self.pieces]
            return self._gathered(arrays, kind)
        own = self.naming.own[name]
        if own == "id":
            return self.ids()
        values = pa.array(self.number(own))
        return values.cast(_INSTANT).cast(kind) if own == "time" else values

    def _type(self, name: str) -> pa.DataType:
        schema = self.naming.schema
        kind = schema.field(name).type if name in schema.names else pa.null()
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def _gathered(self, arrays: Sequence[pa.Array | None], kind: pa.DataType) -> pa.Array:
        parts = []
        for (events, rows), values in zip(self.pieces, arrays, strict=True):
            if values is None:
                parts.append(pa.nulls(len(events) if rows is None else rows.size, kind))
            elif rows is None:
                parts.append(values)
            elif rows.size:
                parts.append(_taken(values, rows))
        return concatenated(parts) if parts else pa.nulls(0, kind)

    def filtered(self, keep: Mask) -> Selection:
        """The rows for which a mask over all of them holds."""
        pieces = []
        first = 0
        for (events, rows), length in zip(self.pieces, self.lengths, strict=True):
            part = keep[first : first + length]
            first += length
            kept = np.flatnonzero(part).astype(np.int32) if rows is None else rows[part]
            if kept.size:
                pieces.append((events, kept))
        return Selection(tuple(pieces), self.naming)

    def table(self) -> pa.Table:
        """The events: id, x, y, time, and the further columns by their names, but for those that
        are called like one of the former (or ``distance``)."""
        columns = {
            "id": self.ids(), "x": pa.array(self.number("x")), "y": pa.array(self.number("y")),
            "time": pa.array(self.number("time")).cast(_INSTANT),
        }  # fmt: skip
        taken = {*columns, "distance"}
        further = {name: self.column(name) for name in self.naming.stored if name not in taken}
        arrays, names = [*columns.values(), *further.values()], [*columns, *further]
        return pa.Table.from_arrays(arrays, names)


def _taken(values: pa.Array, rows: IntArray) -> pa.Array:
    """Some rows of an array; NumPy is faster where it can do it."""
    kind = values.type
    if values.null_count == 0 and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return pa.array(values.to_numpy()[rows])
    return values.take(pa.array(rows))
