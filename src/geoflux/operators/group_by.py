"""The windowed group-by: a history per group, and a statistic over it on every row.

Flux's own example of an operator whose state matters (3): it splits a stream into one stream per
group and says, on every row, what the recent history of its group comes to. Histories lie in one
array, group after group, so that a batch is one pass over memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.errors import ConfigError
from geoflux.operators import history_kernels as kernels
from geoflux.operators.keyed import ID, ROW, TIME, Operator

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Statistic = Callable[[Floats, Ints, Ints], Floats]
"""A user's own: all values, and where each row's history begins and ends (excluded) in them."""

_KNOWN: Mapping[str, Statistic] = {
    "count": kernels.counts, "mean": kernels.means, "stddev": kernels.deviations,
    "min": kernels.minima, "max": kernels.maxima,
}  # fmt: skip


@dataclass(frozen=True)
class Histories:
    """The recent rows of every group of a partition: ``values[offsets[g]:offsets[g + 1]]`` are
    those of ``keys[g]``, oldest first. ``times`` are theirs, where histories are cut by time."""

    keys: pa.Array
    offsets: Ints
    values: Floats
    times: Ints


@dataclass(frozen=True)
class WindowedGroupBy(Operator[Histories]):
    """A statistic over the last ``rows`` rows of the same group, or over those of the last
    ``seconds``, on every row, the row itself included.

    ``statistic`` is count, mean, stddev (of a sample; NaN for a single row), min, max, a quantile
    (``quantile`` between 0 and 1, interpolated), or a function of yours. A missing value counts as
    NaN. With ``seconds`` rows leave a history, in the order in which they came, once they are that
    much older than the latest time that their group has seen; a row that comes late joins the
    history as it is.

    Source: Flux 3.
    """

    key: str
    value: str
    statistic: str | Statistic = "mean"
    rows: int | None = None
    seconds: float | None = None
    quantile: float = 0.5
    needs_time = True

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.seconds is None):
            raise ConfigError("a windowed group-by needs either rows or seconds, one of them")
        if self.rows is not None and self.rows < 1:
            raise ConfigError(f"rows = {self.rows}: a history has at least one row")
        if self.seconds is not None and not 0 < self.seconds < 1e12:
            raise ConfigError(f"seconds = {self.seconds}: expected a positive number")
        known = (*_KNOWN, "quantile")
        if isinstance(self.statistic, str) and self.statistic not in known:
            raise ConfigError(f'statistic "{self.statistic}": expected {", ".join(known)}')
        if not 0 <= self.quantile <= 1:
            raise ConfigError(f"quantile = {self.quantile}: expected 0 to 1")

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The column that statistics are about."""
        return () if self.value == self.key else (self.value,)

    @property
    def output(self) -> pa.Schema:
        """Per row its id, its group and the statistic."""
        return pa.schema(
            [("id", pa.string()), ("key", pa.string()), ("value", pa.float64()), (ROW, pa.int64())]
        )

    def empty(self) -> Histories:
        """No group at all."""
        return Histories(
            pa.array([], pa.string()), np.zeros(1, np.int64), np.empty(0), np.empty(0, np.int64)
        )

    def process(self, state: Histories, rows: pa.Table) -> tuple[Histories, pa.Table]:
        """Append every row to the history of its group, and say what that comes to."""
        joined, order, fresh = self._appended(state, rows)
        starts, kept = self._windows(joined)
        ends = np.arange(1, joined.values.size + 1)
        found = np.empty(len(rows))
        found[order] = self._values(joined.values, starts[fresh], ends[fresh])
        results = pa.table(
            [pc.cast(rows.column(ID), pa.string()), _texts(rows.column(self.key)),
             pa.array(found), pa.array(np.arange(len(rows)))],
            schema=self.output,
        )  # fmt: skip
        return _cut(joined, kept), results

    def _values(self, values: Floats, starts: Ints, ends: Ints) -> Floats:
        if callable(self.statistic):
            return np.asarray(self.statistic(values, starts, ends), np.float64)
        if self.statistic == "quantile":
            return kernels.quantiles(values, starts, ends, self.quantile)
        return _KNOWN[self.statistic](values, starts, ends)

    def _appended(self, state: Histories, rows: pa.Table) -> tuple[Histories, Ints, Ints]:
        """Histories with all rows at their ends; the rows in that order, and where they are."""
        texts = _texts(rows.column(self.key))
        groups = pc.unique(pa.concat_arrays([state.keys, texts]))
        group = pc.index_in(texts, groups).to_numpy()
        order = np.argsort(group, kind="stable")
        came = np.bincount(group, minlength=len(groups))
        held = np.zeros(len(groups), np.int64)
        held[: len(state.keys)] = np.diff(state.offsets)
        offsets = np.concatenate(([0], np.cumsum(held + came))).astype(np.int64)
        old = _runs(offsets[: held.size], held)
        new = _runs(offsets[:-1] + held, came)
        values, times = np.empty(offsets[-1]), np.zeros(offsets[-1], np.int64)
        values[old], times[old] = state.values, state.times
        column = pc.cast(_whole(rows.column(self.value)), pa.float64(), safe=False)
        values[new] = column.fill_null(np.nan).to_numpy(zero_copy_only=False)[order]
        times[new] = _whole(rows.column(TIME)).to_numpy()[order]
        return Histories(groups, offsets, values, times), order, new

    def _windows(self, joined: Histories) -> tuple[Ints, Ints]:
        """Where the history of every row begins, and how many rows each group keeps."""
        if self.rows is not None:
            return kernels.last_rows(joined.offsets, self.rows)
        span = round((self.seconds or 0.0) * 1e6)
        return kernels.last_span(joined.offsets, joined.times, span)

    def extract(self, state: Histories) -> Mapping[str, Any]:
        """The four arrays."""
        return {
            "keys": state.keys, "offsets": state.offsets, "values": state.values,
            "times": state.times,
        }  # fmt: skip

    def install(self, arrays: Mapping[str, Any]) -> Histories:
        """As they were."""
        offsets, values, times = (arrays[n].to_numpy() for n in ("offsets", "values", "times"))
        return Histories(arrays["keys"], offsets, values, times)

    def size(self, state: Histories) -> int:
        """Keys and rows."""
        return int(state.keys.nbytes + state.offsets.nbytes + state.values.nbytes * 2)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """Keys as text, whatever their type."""
    return _whole(pc.cast(column, pa.string()))


def _runs(starts: Ints, lengths: Ints) -> Ints:
    """All places of runs of neighbours.

    >>> _runs(np.array([0, 7]), np.array([2, 3])).tolist()
    [0, 1, 7, 8, 9]
    """
    ends = np.cumsum(lengths)
    shift = np.repeat(starts - ends + lengths, lengths)
    return np.arange(lengths.sum()) + shift


def _cut(joined: Histories, kept: Ints) -> Histories:
    """The last rows of each group."""
    rows = _runs(joined.offsets[1:] - kept, kept)
    offsets = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
    return Histories(joined.keys, offsets, joined.values[rows], joined.times[rows])
