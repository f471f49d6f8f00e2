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

    def placed(self) -> npt.NDArray[np.int64]:
        """Queries that each of ``users`` asked for: registered ones and snapshots."""
        return self._count(self.op != TERMINATE)

    def registered(self) -> npt.NDArray[np.int64]:
        """Standing queries that each of ``users`` registered."""
        return self._count(self.op == REGISTER)

    def terminated(self) -> npt.NDArray[np.int64]:
        """Standing queries that each of ``users`` terminated."""
        return self._count(self.op == TERMINATE)

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
        return Requests(self.round, self.op[wanted], self.user[wanted], self.users)


def stamp(op: Any, users: Any, round: int) -> Requests:
    """A batch with its round and users. ``users`` is an Arrow column or a list of texts or nulls;
    of a termination it is the user of the query that ends."""
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
    return Requests(round, ops, codes, tuple(column.dictionary.to_pylist()))
