"""What TrioStat stores and sends against AQWA's statistics, and the document's figures of both.

TrioStat keeps numbers per row and column of a partition and sends two per slot. AQWA collects five
numbers per cell where the cell is (one for points, four for queries, as an Euler histogram does),
sends all of them to one machine at the end of every round, and keeps five more per cell there.
Ours is the size of tables that are really made, AQWA's follows from the numbers per cell; both at
8 bytes a number.

Source: dissertation 6.2, figures 6.2 to 6.4. Their values are lost with the pictures; the text
says how they come about, which is what the dashed lines are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np

from geoflux.balance.reduction import Holding, slot_cost, slot_received
from geoflux.balance.swarm import SlotRound
from geoflux.bench.figures import Curve, Words, draw_curves
from geoflux.plan import Partition
from geoflux.stats import TrioStat

NUMBER_BYTES = np.dtype(np.float64).itemsize
AQWA_STORED = 10
"""Numbers per cell: five where the cell is, five in the middle."""
AQWA_SENT = 5
PUBLISHED_STORED = 8
"""Numbers per row and column as published; ours are more, for work and for what ended."""
PUBLISHED_SENT = 2
_NOTE = "8 bytes a number; dashed: as the document's text gives it (6.2)"


@dataclass(frozen=True)
class Footprint:
    """Bytes that all slots together keep, and send at the end of a round."""

    side: int
    partitions: int
    slots: int
    stored: int
    sent: int

    @classmethod
    def of(cls, side: int, held: Sequence[Sequence[Holding]]) -> Footprint:
        """Measured on what slots hold."""
        reports = [
            SlotRound(slot, slot_cost(holdings, "work"), slot_received(holdings), 0.0)
            for slot, holdings in enumerate(held)
        ]
        numbers = np.array([(r.cost, r.received) for r in reports], np.float64)
        stored = sum(h.stat.table.nbytes for holdings in held for h in holdings)
        return cls(side, sum(map(len, held)), len(held), stored, numbers.nbytes)

    def against_aqwa(self) -> dict[str, float]:
        """Both sides per slot; the ratios say how many times as much AQWA needs.

        >>> Footprint(100, 1, 2, stored=22_400, sent=32).against_aqwa()["traffic_vs_aqwa"]
        12500.0
        """
        aqwa_stored = AQWA_STORED * NUMBER_BYTES * self.side**2
        aqwa_sent = AQWA_SENT * NUMBER_BYTES * self.side**2
        return {
            "stat_bytes_to_coordinator_per_slot": self.sent / self.slots,
            "storage_bytes_per_slot": self.stored / self.slots,
            "aqwa_storage_bytes_per_slot": aqwa_stored / self.slots,
            "aqwa_bytes_sent_per_slot": aqwa_sent / self.slots,
            "storage_vs_aqwa": aqwa_stored / self.stored,
            "traffic_vs_aqwa": aqwa_sent / self.sent,
        }


def table_bytes(partitions: Iterable[Partition]) -> int:
    """Bytes of the tables of partitions, each made and measured."""
    return sum(TrioStat.empty(partition).table.nbytes for partition in partitions)


def squares(side: int, count: int) -> Iterator[Partition]:
    """A grid cut into ``count`` rectangles as square as can be: what needs least.

    >>> [p.columns * p.rows for p in squares(6, 4)]
    [9, 9, 9, 9]
    """
    down = next(n for n in range(isqrt(count), 0, -1) if count % n == 0)
    rows = [side * n // down for n in range(down + 1)]
    across = count // down
    columns = [side * n // across for n in range(across + 1)]
    for row in range(down):
        for column in range(across):
            yield Partition(
                row * across + column, columns[column], rows[row], columns[column + 1],
                rows[row + 1], 0,
            )  # fmt: skip


def strips(side: int, count: int) -> Iterator[Partition]:
    """A grid cut into rows of one cell's height, and those into cells once all are: needs most.

    >>> [(p.columns, p.rows) for p in strips(4, 3)], sum(1 for _ in strips(4, 9))
    ([(4, 1), (4, 1), (4, 2)], 9)
    """
    if count <= side:
        for row in range(count - 1):
            yield Partition(row, 0, row, side, row + 1, 0)
        yield Partition(count - 1, 0, count - 1, side, side, 0)
        return
    spare = count - side
    number = 0
    for row in range(side):
        cut = min(spare, side - 1)
        spare -= cut
        for column in range(cut):
            yield Partition(number + column, column, row, column + 1, row + 1, 0)
        yield Partition(number + cut, cut, row, side, row + 1, 0)
        number += cut + 1


def least_lines(side: int, count: int) -> float:
    """Rows and columns of all partitions together when all of them are squares."""
    return 2 * side * float(np.sqrt(count))


def most_lines(side: int, count: int) -> float:
    """The same for strips: a strip more is ``side`` lines more, then a cut is one more.

    >>> most_lines(1000, 1), most_lines(1000, 1_000_000) == least_lines(1000, 1_000_000)
    (2000.0, True)
    """
    return float(side * (min(count, side) + 1) + max(count - side, 0))


def draw_traffic(folder: Path, footprints: Sequence[Footprint]) -> Path:
    """Figure 6.2, over the side of the grid."""
    sides = [footprint.side for footprint in footprints]
    slots = footprints[0].slots
    aqwa = [AQWA_SENT * NUMBER_BYTES * float(side) ** 2 for side in sides]
    published = float(PUBLISHED_SENT * NUMBER_BYTES * slots)
    return draw_curves(
        folder / "triostat-6.2-traffic.svg",
        Words("6.2: Statistics sent to one machine every round", "cells along a side of the grid",
              f"bytes, {slots} slots together", _NOTE),
        [
            Curve("AQWA: 5 numbers per cell", sides, aqwa, "orange", published=True),
            Curve("TrioStat as published: 2 per slot", sides, [published] * len(sides), "green",
                  published=True),
            Curve("geoflux, measured", sides, [f.sent for f in footprints]),
        ],
        log="xy",
    )  # fmt: skip


def draw_storage_by_partitions(folder: Path, counts: Sequence[int], run: Footprint) -> Path:
    """Figure 6.3: one grid, ever more partitions; and the plan that the benchmark ran with."""
    side = run.side
    x = [float(count) for count in counts]
    ends = np.unique(np.geomspace(1, side * side, 200).round()).astype(int)
    aqwa = float(AQWA_STORED * NUMBER_BYTES * side * side)
    return draw_curves(
        folder / "triostat-6.3-storage-by-partitions.svg",
        Words(f"6.3: Storage of all statistics, {side} x {side} cells", "partitions", "bytes",
              _NOTE),
        [
            Curve("AQWA: 10 numbers per cell", [1, side * side], [aqwa, aqwa], "orange", True),
            *_published(ends.tolist(), [(side, int(n)) for n in ends]),
            Curve("geoflux, squares, measured", x, [table_bytes(squares(side, n)) for n in counts]),
            Curve("geoflux, strips, measured", x, [table_bytes(strips(side, n)) for n in counts],
                  "purple"),
            Curve(f"geoflux, plan for {run.slots} slots, measured", [run.partitions], [run.stored],
                  "green"),
        ],
        log="xy",
    )  # fmt: skip


def draw_storage_by_grid(folder: Path, sides: Sequence[int], count: int) -> Path:
    """Figure 6.4: one number of partitions, ever finer grids."""
    x = [float(side) for side in sides]
    aqwa = [AQWA_STORED * NUMBER_BYTES * side * side for side in x]
    return draw_curves(
        folder / "triostat-6.4-storage-by-grid.svg",
        Words(f"6.4: Storage of all statistics, {count:,} partitions",
              "cells along a side of the grid", "bytes", _NOTE),
        [
            Curve("AQWA: 10 numbers per cell", x, aqwa, "orange", published=True),
            *_published(x, [(side, count) for side in sides]),
            Curve("geoflux, squares, measured", x, [table_bytes(squares(s, count)) for s in sides]),
            Curve("geoflux, strips, measured", x, [table_bytes(strips(s, count)) for s in sides],
                  "purple"),
        ],
        log="xy",
    )  # fmt: skip


def _published(x: Sequence[float], grids: Sequence[tuple[int, int]]) -> list[Curve]:
    size = PUBLISHED_STORED * NUMBER_BYTES
    best = [size * least_lines(*grid) for grid in grids]
    worst = [size * most_lines(*grid) for grid in grids]
    return [
        Curve("TrioStat as published, best case", x, best, "blue", published=True),
        Curve("TrioStat as published, worst case", x, worst, "purple", published=True),
    ]
