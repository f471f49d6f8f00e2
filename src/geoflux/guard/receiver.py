"""The receiver: every request of a batch gets its user and its round, in columns.

Requests without a user cannot be told apart and are nobody's: they are neither counted nor blocked.
A blocked user may still terminate, never register or ask.

Source: Guard 5.2 (Query Receiver, Query Forwarder) and 5.5.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

REGISTER, TERMINATE, SNAPSHOT = 0, 1, 2
"""The first two are the codes of control records."""
NOBODY = -1


@dataclass(frozen=True)
class Requests:
    """A batch of requests of one round: ``op`` and ``user`` of each, the latter as its place in
    ``users``, which names everybody once; ``NOBODY`` where there is none."""

    round: int
    op: npt.NDArray[np.uint8]
    user: npt.NDArray[np.int64]
    users: tuple[str, ...]
    x: npt.NDArray[np.float64] | None = None
    y: npt.NDArray[np.float64] | None = None
    """Middle of the query in cells, also of one that ends, if that is known."""

    def placed(self) -> npt.NDArray[np.int64]:
        """Queries that each of ``users`` asked for: registered ones and snapshots."""
        return self._count(self.op != TERMINATE)

    def registered(self) -> npt.NDArray[np.int64]:
        """Standing queries that each of ``users`` registered."""
        return self._count(self.op == REGISTER)

    def terminated(self) -> npt.NDArray[np.int64]:
        """Standing queries that each of ``users`` terminated."""
        return self._count(self.op == TERMINATE)

    def left(self) -> npt.NDArray[np.float64]:
        """Where each of ``users`` ended queries: how many, the sums of x and y, and of their
        squares. All 0 where places are not known."""
        out = np.zeros((len(self.users), 5))
        if self.x is not None and self.y is not None:
            ended = (self.op == TERMINATE) & (self.user >= 0)
            of, x, y = self.user[ended], self.x[ended], self.y[ended]
            for column, weight in enumerate((None, x, y, x * x, y * y)):
                out[:, column] = np.bincount(of, weight, minlength=len(self.users))
        return out

    def _count(self, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        of = self.user[wanted & (self.user >= 0)]
        return np.bincount(of, minlength=len(self.users)).astype(np.int64)

    def refused(self, blocked: Collection[str]) -> npt.NDArray[np.bool_]:
        """Which requests are not to be forwarded.

        >>> batch = stamp([REGISTER, TERMINATE, REGISTER], ["a", "a", "b"], round=3)
        >>> batch.refused({"a"}).tolist()
        [True, False, False]
        """
        barred = np.array([name in blocked for name in self.users] + [False], np.bool_)
        return barred[self.user] & (self.op != TERMINATE)

    def only(self, wanted: npt.NDArray[np.bool_]) -> Requests:
        """The requests that are wanted."""
        x, y = (None if at is None else at[wanted] for at in (self.x, self.y))
        return Requests(self.round, self.op[wanted], self.user[wanted], self.users, x, y)


def stamp(op: Any, users: Any, round: int, at: Any = None) -> Requests:
    """A batch with its round and users. ``users`` is an Arrow column or a list of texts or nulls;
    of a termination it is the user of the query that ends. ``at`` is x and y in cells, if known."""
    column = (
        users if isinstance(users, pa.ChunkedArray | pa.Array) else pa.array(users, pa.string())
    )
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    codes = column.indices.fill_null(NOBODY).to_numpy(zero_copy_only=False).astype(np.int64)
    ops = np.asarray(op, np.uint8)
    if ops.shape != codes.shape:
        raise ValueError(f"{ops.size} operations of {codes.size} users; expected one each")
    x, y = (None, None) if at is None else (np.asarray(values, np.float64) for values in at)
    return Requests(round, ops, codes, tuple(column.dictionary.to_pylist()), x, y)
