"""TrioStat: what a slot keeps of one partition, to say what any part of it costs.

Numbers per row and per column, never per cell. While a round lasts only collectors change; when it
is closed, one pass makes statistics of them, after which the cost of the partition, of both halves
of every split, and of any strip of rows or columns takes a handful of additions. Invariant: all
statistics are as of the last closed round, and both axes add up to the same totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from geoflux.plan import Partition
from geoflux.spatial.grid import CellRanges
from geoflux.spatial.space import FloatArray, IntArray
from geoflux.stats import trio_kernels as k

Axis = Literal["columns", "rows"]
CostModel = Literal["published", "work"]


class Trio(NamedTuple):
    """What a partition or a part of it has: points, queries, arrivals of the last round; and the
    work that it took."""

    points: float
    queries: float
    received: float
    work: float

    def cost(self, model: CostModel) -> float:
        """``published``: N x Q x R, which shrinks when a partition is split and grows when two are
        merged. ``work``: what was done, which simply adds up.

        >>> Trio(10, 7, 5, 12.5).cost("published"), Trio(10, 7, 5, 12.5).cost("work")
        (350.0, 12.5)
        """
        if model == "work":
            return max(0.0, float(self.work))
        return max(0.0, float(self.points)) * float(self.queries) * float(self.received)


@dataclass(frozen=True, eq=False)
class TrioStat:
    """The statistics of one partition. The area is fixed, the numbers change in place.

    Row 0 is the southernmost as everywhere in geoflux (the document counts from the top), so a
    query is counted in the row and column of its lower left corner. A query that begins outside is
    clipped first, and counts in the first row that it touches.

    Guarantee: queries are counted exactly, also after they ended; points exactly on each axis,
    except where a split shared them out (see :mod:`geoflux.stats.inheritance`).

    Source: TrioStat 3.2 and 3.3. Ours: work, and collectors of what left, which the document does
    not treat. What left lowers N and Q but never R: it is no load received.

    >>> stat = TrioStat.empty(Partition(1, 0, 0, 2, 4, slot=0))
    >>> stat.receive(np.array([0, 1], np.int32), np.array([2, 2], np.int32), np.array([5.0, 7.0]))
    >>> one = np.array([1], np.int32)
    >>> stat.register(CellRanges(one, one - 1, one, one + 1))
    >>> stat.close_round()
    >>> stat.total
    Trio(points=2.0, queries=1.0, received=3.0, work=12.0)
    >>> stat.strip("rows", 2, 4)
    Trio(points=2.0, queries=1.0, received=3.0, work=12.0)
    """

    col0: int
    row0: int
    col1: int
    row1: int
    table: FloatArray

    @classmethod
    def empty(cls, partition: Partition) -> TrioStat:
        """Of a partition that has seen nothing."""
        p = partition
        table = np.zeros((p.rows + p.columns, k.FIELDS))
        return cls(p.col0, p.row0, p.col1, p.row1, table)

    def copy(self) -> TrioStat:
        """One that can be changed without changing this one."""
        return TrioStat(*self.box, self.table.copy())

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Its cells: columns and rows, the upper ends excluded."""
        return self.col0, self.row0, self.col1, self.row1

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.row1 - self.row0

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.col1 - self.col0

    def receive(self, columns: IntArray, rows: IntArray, work: FloatArray) -> None:
        """Events of this partition by their cells of the grid, and the work that each took; an
        array of one number holds for all of them."""
        k.receive(self.table, (self.col0, self.row0, self.height), columns, rows, work)

    def receive_cells(self, cells: IntArray, counts: npt.NDArray[Any], work: FloatArray) -> None:
        """Events that are counted per cell already, with the work of each cell. Cells are numbered
        row by row within the partition."""
        k.receive_cells(self.table, self.height, self.width, cells, counts, work)

    def answer(self, work: float) -> None:
        """Work that goes with queries rather than with events, such as writing their results;
        shared out by where queries begin."""
        k.answer(self.table, self.height, work)

    def register(self, ranges: CellRanges) -> None:
        """Queries that came; such as do not touch the partition are left out."""
        k.spread(self.table, self.box, _edges(ranges), k.Q_IN, k.SPAN_IN)

    def take_up(self, ranges: CellRanges, work: float) -> float:
        """The work of indexing queries that came, so much for each; what it comes to."""
        return work * k.take_up(self.table, self.box, _edges(ranges), work)

    def end(self, ranges: CellRanges) -> None:
        """Queries that ended, with the very boxes that they were registered with."""
        k.spread(self.table, self.box, _edges(ranges), k.Q_OUT, k.SPAN_OUT)

    def ask(self, ranges: CellRanges) -> None:
        """Snapshot queries: received in this round, and gone with it."""
        self.register(ranges)
        self.end(ranges)

    def expire(self, columns: IntArray, rows: IntArray, counts: npt.NDArray[Any]) -> None:
        """Retained events that expired, by cells of the grid; those of other partitions are left
        out, since a segment may be older than the partition."""
        k.expire(self.table, self.box, columns, rows, counts)

    def close_round(self, retained: bool = False, memory: float = 0.0) -> None:
        """Make the statistics of what was collected, in one pass.

        Without ``retained`` points fade: N is halved before each round's are added, and expiry is
        not looked at, since to halve *and* to subtract would make N negative. With it N is the
        number of retained points. ``memory`` (0 to below 1) is the weight of earlier rounds in the
        work.
        """
        k.close(self.table, self.height, retained, memory)

    def along(self, axis: Axis) -> FloatArray:
        """The numbers of each row, or of each column."""
        return self.table[: self.height] if axis == "rows" else self.table[self.height :]

    def bounds(self, axis: Axis) -> tuple[int, int]:
        """First and last (excluded) row or column, in the grid."""
        return (self.row0, self.row1) if axis == "rows" else (self.col0, self.col1)

    @property
    def total(self) -> Trio:
        """Of the whole partition: what the last row says."""
        last = self.table[self.height - 1]
        return Trio(*(float(last[field]) for field in (k.N, k.Q, k.R, k.WORK)))

    def strip(self, axis: Axis, first: int, last: int) -> Trio:
        """Of some neighbouring rows or columns of the grid, ``last`` excluded, in O(1).

        A strip from the first row on is the document's p_a, one up to the last row its p_b; Q and
        R of a strip that begins further on need what spans into it.
        """
        table, origin = self.along(axis), self.bounds(axis)[0]
        end = table[last - 1 - origin]
        n, q, r, work = (float(end[field]) for field in (k.N, k.Q, k.R, k.WORK))
        if first == origin:
            return Trio(n, q, r, work)
        start, before = table[first - origin], table[first - 1 - origin]
        return Trio(
            n - float(before[k.N]),
            q - float(before[k.Q]) + float(start[k.SPAN]),
            r - float(before[k.R]) + float(start[k.PRE_SPAN]),
            work - float(before[k.WORK]),
        )

    def halves(self, axis: Axis, at: int) -> tuple[Trio, Trio]:
        """Of both halves of a split before row or column ``at`` of the grid."""
        low, high = self.bounds(axis)
        return self.strip(axis, low, at), self.strip(axis, at, high)


def _edges(ranges: CellRanges) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    return ranges.col0, ranges.row0, ranges.col1, ranges.row1
