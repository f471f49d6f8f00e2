"""Statistics of a partition that a change of the plan made, from those of the ones before it.

Rows and columns are marginals: when rows are cut off, what is left in each column cannot be read
off them. Queries are therefore counted anew from their boxes, exactly; points and work are shared
out in proportion on the axis that was not cut (exactly on the other one, and on both in a merge).
The same function serves splits, merges and any sequence of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.plan import Partition
from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import FloatArray
from geoflux.stats import trio_kernels as k
from geoflux.stats.trio import TrioStat

Ages = npt.NDArray[np.int8]

THIS_ROUND = 0
LAST_ROUND = 1
EARLIER = 2
NOT_YET = -1

_CUMULATIVE = (k.N, k.LAST_N, k.WORK)
_COLLECTED = (k.N_IN, k.WORK_IN, k.N_OUT)


@dataclass(frozen=True)
class KnownQueries:
    """Boxes of queries, and in which round each came and went: 0 the one that is under way, 1 the
    last one that was closed, 2 an earlier one; -1 for a query that has not ended.

    Those alive are enough for Q. Queries that came in the last two rounds and have ended count in
    R as well: give them where they are still known.

    >>> one = np.zeros(2, np.int32)
    >>> KnownQueries.alive(CellRanges(one, one, one, one), np.array([3, 9]), (5, 12)).came
    array([2, 1], dtype=int8)
    """

    ranges: CellRanges
    came: Ages
    went: Ages

    @classmethod
    def alive(
        cls, ranges: CellRanges, numbers: npt.NDArray[np.int64], marks: tuple[int, int]
    ) -> KnownQueries:
        """Live queries by their numbers, which grow; ``marks`` are the first numbers of the last
        closed round and of the one that is under way."""
        came = EARLIER - (numbers >= marks[0]).astype(np.int8) - (numbers >= marks[1])
        return cls(ranges, came.astype(np.int8), np.full(numbers.size, NOT_YET, np.int8))

    @classmethod
    def none(cls) -> KnownQueries:
        """No queries."""
        nothing = np.empty(0, np.int32)
        ages = np.empty(0, np.int8)
        return cls(CellRanges(nothing, nothing, nothing, nothing), ages, ages)


def inherited(
    partition: Partition, sources: Iterable[TrioStat], known: KnownQueries
) -> TrioStat:  # fmt: skip
    """The statistics of ``partition`` from those of the partitions that had its cells.

    Guarantee: Q, spanQ, preSpanQ' and their collectors equal a count of ``known``; points and work
    are exact per row when no source was cut between columns, and per column when none was cut
    between rows; both axes add up to the same.

    Source: TrioStat 3.2.1 gives the statistics of halves on the axis of the split; the rest is
    ours.

    >>> parent = TrioStat.empty(Partition(1, 0, 0, 2, 2, slot=0))
    >>> cells = np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32)
    >>> parent.receive(*cells, np.ones(1))
    >>> parent.close_round()
    >>> lower = Partition(2, 0, 0, 2, 1, slot=0)
    >>> child = inherited(lower, [parent], KnownQueries.none())
    >>> child.total.points, round(child.strip("columns", 0, 1).points, 3)
    (1.0, 0.667)
    """
    stat = TrioStat.empty(partition)
    for source in sources:
        _take_share(stat, source)
    for field in _CUMULATIVE:
        for part in (stat.along("rows"), stat.along("columns")):
            part[:, field] = np.cumsum(part[:, field])
    _count_queries(stat, known)
    return stat


def _take_share(stat: TrioStat, source: TrioStat) -> None:
    """Add a source's points and work, row by row and column by column."""
    col0, col1 = max(stat.col0, source.col0), min(stat.col1, source.col1)
    row0, row1 = max(stat.row0, source.row0), min(stat.row1, source.row1)
    if col0 >= col1 or row0 >= row1:
        return
    rows = slice(row0 - source.row0, row1 - source.row0)
    columns = slice(col0 - source.col0, col1 - source.col0)
    to_rows = slice(row0 - stat.row0, row1 - stat.row0)
    to_columns = slice(col0 - stat.col0, col1 - stat.col0)
    for field in (*_CUMULATIVE, *_COLLECTED):
        by_row = _per_line(source.along("rows")[:, field], field)
        by_column = _per_line(source.along("columns")[:, field], field)
        in_rows, in_columns = by_row[rows], by_column[columns]
        total = float(in_rows.sum())
        if in_columns.size < by_column.size:
            total = float(in_columns.sum()) * _share(by_row, rows)
            in_rows = _scaled(in_rows, total)
        if in_rows.size < by_row.size:
            in_columns = _scaled(in_columns, total)
        stat.along("rows")[to_rows, field] += in_rows
        stat.along("columns")[to_columns, field] += in_columns


def _per_line(values: FloatArray, field: int) -> FloatArray:
    return np.diff(values, prepend=0.0) if field in _CUMULATIVE else values


def _share(values: FloatArray, part: slice) -> float:
    """How much of the whole a part has: exactly 1 where it is the whole. An estimate may have
    fallen below 0 by what expired since; it then counts as nothing."""
    if part.start == 0 and part.stop == values.size:
        return 1.0
    positive = np.maximum(values, 0.0)
    whole = float(positive.sum())
    return float(positive[part].sum()) / whole if whole else (part.stop - part.start) / values.size


def _scaled(values: FloatArray, total: float) -> FloatArray:
    """Values in the same proportion that add up to a total."""
    positive = np.maximum(values, 0.0)
    whole = float(positive.sum())
    return positive / whole * total if whole else np.full(values.size, total / values.size)


def _count_queries(stat: TrioStat, known: KnownQueries) -> None:
    """Q, spanQ, R, preSpanQ' and collectors from boxes."""
    came, went = known.came, known.went
    _spread(stat, known, (came >= LAST_ROUND) & (went < LAST_ROUND), (k.Q, k.SPAN))
    _spread(stat, known, came == LAST_ROUND, (k.R, k.PRE_SPAN))
    _spread(stat, known, came == THIS_ROUND, (k.Q_IN, k.SPAN_IN))
    _spread(stat, known, went == THIS_ROUND, (k.Q_OUT, k.SPAN_OUT))
    for part in (stat.along("rows"), stat.along("columns")):
        part[:, k.Q] = np.cumsum(part[:, k.Q])
        part[:, k.R] = np.cumsum(part[:, k.R]) + part[:, k.LAST_N]


def _spread(
    stat: TrioStat, known: KnownQueries, which: npt.NDArray[np.bool_], fields: tuple[int, int]
) -> None:
    ranges = known.ranges.take(np.flatnonzero(which))
    edges = (ranges.col0, ranges.row0, ranges.col1, ranges.row1)
    k.spread(stat.table, stat.box, edges, *fields)
