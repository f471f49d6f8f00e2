"""The standing queries of Guard's simulated cluster, as columns; and the snapshots of late."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from geoflux.workload.requests import REGISTER, SNAPSHOT, TERMINATE, Asked

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_OFFSET = (1 << 40) - 1
_NONE = -1


class QueryStore:
    """Queries by row: whose, with what number, where (in cells). Rows of ended ones are used again.

    Guarantee: :meth:`take` changes ``per_cell`` by exactly what came and went.
    """

    def __init__(self, side: int) -> None:
        self.side = side
        self.names: dict[str, int] = {}
        self.number = 0
        """That the next query gets."""
        self.per_cell = np.zeros(side * side)
        self.user = np.zeros(0, np.int64)
        self.numbers = np.zeros(0, np.int64)
        self.at = np.zeros((2, 0))
        self.alive = np.zeros(0, np.bool_)
        self._free = np.zeros(0, np.int64)
        self._row: dict[int, Rows] = {}
        """By population: the row of each key."""
        self._asked: list[tuple[Rows, Rows, npt.NDArray[np.float64]]] = []

    def cells(self, at: npt.NDArray[np.float64]) -> Rows:
        """The cell of each position in cells."""
        column, row = at.astype(np.int64)
        return np.asarray(row * self.side + column)

    def codes(self, names: tuple[str, ...]) -> Rows:
        """The number of each user; new ones get one."""
        return np.array([self.names.setdefault(n, len(self.names)) for n in names], np.int64)

    def located(self, asked: Asked) -> npt.NDArray[np.float64]:
        """Where every request is, in cells; of one that ends a query, where that lies."""
        at = np.array([asked.x, asked.y]) * self.side
        ends = np.flatnonzero(asked.op == TERMINATE)
        rows = self.rows_of(asked.key[ends])
        at[:, ends[rows >= 0]] = self.at[:, rows[rows >= 0]]
        new = np.flatnonzero(asked.op == REGISTER)
        unknown = ends[rows < 0]
        if len(unknown) and len(new):  # registered in this very batch, or refused some time ago
            order = new[np.argsort(asked.key[new])]
            found = np.searchsorted(asked.key[order], asked.key[unknown])
            at[:, unknown] = at[:, order[np.minimum(found, len(order) - 1)]]
        return at

    def rows_of(self, keys: Rows) -> Rows:
        """The row of each key, or -1."""
        rows = np.full(len(keys), _NONE, np.int64)
        for population in np.unique(keys >> 40).tolist():
            known = self._row.get(population, np.zeros(0, np.int64))
            mine = np.flatnonzero(keys >> 40 == population)
            offsets = keys[mine] & _OFFSET
            inside = offsets < len(known)
            rows[mine[inside]] = known[offsets[inside]]
        return rows

    def take(self, asked: Asked, refused: Flags) -> tuple[Rows, Rows, Rows]:
        """Carry out what is not refused; gives the cells of what was registered, terminated and
        asked once."""
        at, codes = np.array([asked.x, asked.y]) * self.side, self.codes(asked.names)
        new = np.flatnonzero((asked.op == REGISTER) & ~refused)
        rows = self._rows(len(new))
        self.user[rows] = codes[asked.user[new]]
        self.numbers[rows] = self.number + np.arange(len(new))
        self.number += len(new)
        self.at[:, rows] = at[:, new]
        self.alive[rows] = True
        self._know(asked.key[new], rows)
        came = self.cells(at[:, new])
        ended = self.rows_of(asked.key[(asked.op == TERMINATE) & ~refused])
        ended = ended[ended >= 0]
        ended = ended[self.alive[ended]]
        self.alive[ended] = False
        self._free = np.concatenate((self._free, ended))
        went = self.cells(self.at[:, ended])
        size = len(self.per_cell)
        self.per_cell += np.bincount(came, minlength=size) - np.bincount(went, minlength=size)
        once = np.flatnonzero((asked.op == SNAPSHOT) & ~refused)
        if len(once):
            numbers = np.full(len(once), self.number, np.int64)
            self._asked.append((codes[asked.user[once]], numbers, at[:, once]))
        return came, went, self.cells(at[:, once])

    def remove(self, names: Collection[str]) -> npt.NDArray[np.float64]:
        """End all that these users have; gives how many in each cell."""
        theirs = [code for name, code in self.names.items() if name in names]
        ended = np.flatnonzero(self.alive & np.isin(self.user, theirs))
        self.alive[ended] = False
        self._free = np.concatenate((self._free, ended))
        for known in self._row.values():  # whoever gets the row is not ended by them
            known[np.isin(known, ended)] = _NONE
        went = np.bincount(self.cells(self.at[:, ended]), minlength=len(self.per_cell))
        self.per_cell -= went
        return went.astype(np.float64)

    def inside(self, box: tuple[int, int, int, int]) -> tuple[Rows, Rows, npt.NDArray[np.float64]]:
        """User, number and position of all that is in a box of cells, snapshots of late with it."""
        found = []
        standing = (self.user, self.numbers, self.at, self.alive)
        once = ((*asked, np.ones(len(asked[0]), np.bool_)) for asked in self._asked)
        for user, numbers, at, alive in (standing, *once):
            here = alive & (at[0] >= box[0]) & (at[0] < box[2])
            rows = np.flatnonzero(here & (at[1] >= box[1]) & (at[1] < box[3]))
            found.append((user[rows], numbers[rows], at[:, rows]))
        return (
            np.concatenate([part[0] for part in found]),
            np.concatenate([part[1] for part in found]),
            np.hstack([part[2] for part in found]),
        )

    def forget_snapshots(self, before: int) -> None:
        """Those that were asked when numbers were lower."""
        self._asked = [asked for asked in self._asked if asked[1][0] >= before]

    def _rows(self, count: int) -> Rows:
        short = count - len(self._free)
        if short > 0:
            old = len(self.user)
            extra = max(short, old // 2)
            grown = np.zeros(extra, np.int64)
            self.user = np.concatenate((self.user, grown))
            self.numbers = np.concatenate((self.numbers, grown))
            self.at = np.hstack((self.at, np.zeros((2, extra))))
            self.alive = np.concatenate((self.alive, grown.astype(np.bool_)))
            self._free = np.concatenate((self._free, np.arange(old, old + extra)))
        taken, self._free = np.split(self._free, [count])
        return taken

    def _know(self, keys: Rows, rows: Rows) -> None:
        for population in np.unique(keys >> 40).tolist():
            mine = keys >> 40 == population
            offsets = keys[mine] & _OFFSET
            known = self._row.get(population, np.zeros(0, np.int64))
            short = int(offsets.max()) + 1 - len(known)
            if short > 0:
                extra = np.full(max(short, len(known) // 2), _NONE, np.int64)
                known = np.concatenate((known, extra))
            known[offsets] = rows[mine]
            self._row[population] = known
