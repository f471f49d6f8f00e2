"""Answers: a table of keys and measures, each number with its error; or a table of the sketch.

An answer is made once and not changed. ``to_table`` gives Arrow, ``to_dict`` plain values that JSON
can hold (no NaN, no infinity). A column ``t`` becomes ``t``, ``t_error``, ``t_low``, ``t_high`` and
``t_kind``; one of several parts (a regression) has them for each part, ``t_slope`` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.errors import QueryError
from geoflux.sketch.measures import KINDS, Measure
from geoflux.sketch.query import Order

_KINDS = pa.array(KINDS, pa.string())


@dataclass(frozen=True, eq=False, slots=True)
class KeyColumn:
    """What the rows are grouped by: texts of regions, times or hours."""

    name: str
    values: npt.NDArray[Any]


@dataclass(frozen=True, eq=False, slots=True)
class Values:
    """A column of numbers: one measure under "", or several under their names."""

    name: str
    measures: Mapping[str, Measure]

    @property
    def only(self) -> Measure:
        """The measure of a column that has one."""
        return self.measures[""]

    def parts(self) -> Iterator[tuple[str, Measure]]:
        """The names as columns of a table, and the measures."""
        for part, measure in self.measures.items():
            yield f"{self.name}_{part}" if part else self.name, measure


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What a query was answered with. ``notes`` say what the numbers are of where that is not just
    what was asked. Queries for the sketch itself, and synthetic rows, answer with ``table`` (the
    leaves, the rows, or the vertices of a graph, whose pairs of vertices are ``edges``)."""

    columns: tuple[KeyColumn | Values, ...] = ()
    notes: tuple[str, ...] = ()
    table: pa.Table | None = None
    edges: pa.Table | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, as the query has them."""
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        if self.table is not None:
            return int(self.table.num_rows)
        first = self.columns[0]
        if isinstance(first, KeyColumn):
            return len(first.values)
        return len(next(iter(first.measures.values())).value)

    def column(self, name: str) -> KeyColumn | Values:
        """A column by its name."""
        if name not in self.names:
            raise QueryError(f"the answer has no column {name!r}; columns: {', '.join(self.names)}")
        return self.columns[self.names.index(name)]

    def __getitem__(self, name: str) -> Measure:
        """The numbers of a column, or of a part of one (``"r_slope"``)."""
        for column in self.columns:
            if isinstance(column, Values):
                for title, measure in column.parts():
                    if title == name:
                        return measure
        raise QueryError(f"the answer has no numbers {name!r}; columns: {', '.join(self.names)}")

    def sorted(self, order: tuple[Order, ...], limit: int | None) -> Answer:
        """In another order, and at most so many rows."""
        if not order and limit is None:
            return self
        rows = np.arange(len(self))
        for by in reversed(order):
            keys = self._sortable(by)
            rows = rows[np.argsort(keys[rows], kind="stable")]
        rows = rows[:limit]
        return replace(self, columns=tuple(_taken(column, rows) for column in self.columns))

    def _sortable(self, by: Order) -> npt.NDArray[Any]:
        column = self.column(by.column)
        values = column.values if isinstance(column, KeyColumn) else column.only.value
        if values.dtype.kind == "f":
            return -values if by.descending else values  # NaN is last either way
        ranks = np.unique(values, return_inverse=True)[1]
        return -ranks if by.descending else ranks

    def to_table(self) -> pa.Table:
        """All of it as an Arrow table; no value is null."""
        if self.table is not None:
            return self.table
        arrays: dict[str, pa.Array] = {}
        for column in self.columns:
            if isinstance(column, KeyColumn):
                arrays[column.name] = _key_array(column.values)
                continue
            for title, measure in column.parts():
                arrays |= _measure_arrays(title, measure)
        return pa.table(arrays)

    def to_pandas(self) -> Any:
        """The same as a pandas DataFrame."""
        return self.to_table().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Plain values: rows by name, and the notes."""
        result: dict[str, Any] = {"rows": _plain(self.to_table())}
        if self.edges is not None:
            result = {"vertices": result["rows"], "edges": _plain(self.edges)}
        if self.notes:
            result["notes"] = list(self.notes)
        return result


def _taken(column: KeyColumn | Values, rows: Any) -> KeyColumn | Values:
    if isinstance(column, KeyColumn):
        return KeyColumn(column.name, column.values[rows])
    return Values(column.name, {k: m.taken(rows) for k, m in column.measures.items()})


def _key_array(values: npt.NDArray[Any]) -> pa.Array:
    if values.dtype.kind == "M":
        return pa.array(values, pa.timestamp("s", "UTC"))
    return pa.array(values)


def _measure_arrays(title: str, measure: Measure) -> dict[str, pa.Array]:
    value: Any = measure.value
    if measure.truth:
        value = np.where(np.isnan(value), False, value > 0)
    kind = _KINDS.take(pa.array(measure.kind.ravel()))
    return {
        title: _numbers(value, np.isnan(measure.value)),
        f"{title}_error": _numbers(measure.error, np.isnan(measure.error)),
        f"{title}_low": _numbers(measure.low, np.isnan(measure.low)),
        f"{title}_high": _numbers(measure.high, np.isnan(measure.high)),
        f"{title}_kind": _nested(kind, measure.kind.shape),
    }


def _numbers(values: npt.NDArray[Any], gone: npt.NDArray[np.bool_]) -> pa.Array:
    return _nested(pa.array(values.ravel(), mask=gone.ravel()), values.shape)


def _nested(flat: pa.Array, shape: tuple[int, ...]) -> pa.Array:
    if len(shape) == 1:
        return flat
    return pa.FixedSizeListArray.from_arrays(flat, shape[1])


def _plain(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: _safe(value) for name, value in row.items()} for row in table.to_pylist()]


def _safe(value: Any) -> Any:
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, list):
        return [_safe(v) for v in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value
