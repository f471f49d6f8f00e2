"""Who asks for what, step by step: columns of requests, and normal users.

A population is made from a seed and asked for the requests of one span of time after another.
Positions are shares of the space's sides. Whoever is at work chooses from the live stream: the next
positions of events are handed in.

After the dissertation (004), section 6.4. Activity is counted in registrations; each ends an older
query of the same user once they have what they keep, so that the number of queries stays the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from geoflux.workload.draws import Floats, Indices

REGISTER, TERMINATE, SNAPSHOT = 0, 1, 2
Sample = Callable[[int], tuple[Floats, Floats]]
"""Positions of so many events of the live stream."""
_KEYS = 1 << 40


@dataclass(frozen=True, eq=False)
class Asked:
    """Requests in the order in which they come: operation, user (a place in ``names``), the key of
    the query, and where its middle is; a termination has only its key."""

    names: tuple[str, ...]
    op: npt.NDArray[np.uint8]
    user: Indices
    key: Indices
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.op)

    @classmethod
    def joined(cls, parts: Sequence[Asked]) -> Asked:
        """All of them, one after another."""
        names: list[str] = []
        users = []
        for part in parts:
            users.append(part.user + len(names))
            names += part.names
        return cls(
            tuple(names),
            np.concatenate([part.op for part in parts]),
            np.concatenate(users),
            np.concatenate([part.key for part in parts]),
            np.concatenate([part.x for part in parts]),
            np.concatenate([part.y for part in parts]),
        )


class Population(Protocol):
    """Users who ask."""

    def step(self, start: float, seconds: float, sample: Sample) -> Asked:
        """The requests of a span of time; spans follow each other."""
        ...


class Standing:
    """The queries that users have standing, oldest first; writes the requests of a step."""

    def __init__(self, names: Sequence[str], population: int) -> None:
        self.names = tuple(names)
        self._held: list[deque[int]] = [deque() for _ in names]
        self._next = population * _KEYS
        self._rows: list[tuple[int, int, int, float, float]] = []

    def held(self, user: int) -> int:
        """How many queries a user has."""
        return len(self._held[user])

    def register(self, user: int, x: float, y: float) -> None:
        """A user registers a query."""
        self._held[user].append(self._next)
        self._rows.append((REGISTER, user, self._next, x, y))
        self._next += 1

    def ask(self, user: int, x: float, y: float) -> None:
        """A user asks once."""
        self._rows.append((SNAPSHOT, user, self._next, x, y))
        self._next += 1

    def end_oldest(self, user: int, keep: int = 0) -> None:
        """A user terminates the oldest query, if there are more than ``keep``."""
        if len(self._held[user]) > keep:
            self._rows.append((TERMINATE, user, self._held[user].popleft(), 0.0, 0.0))

    def written(self) -> Asked:
        """The requests since the last call."""
        rows, self._rows = self._rows, []
        table = np.array(rows, np.float64).reshape(-1, 5)
        keys = np.array([row[2] for row in rows], np.int64)
        return Asked(
            self.names, table[:, 0].astype(np.uint8), table[:, 1].astype(np.int64), keys,
            table[:, 3], table[:, 4],
        )  # fmt: skip


class NormalUsers:
    """Users whose queries lie where the events lie, most of them placed by few (Zipf)."""

    def __init__(
        self, seed: int, users: int = 100, rate: float = 600.0, queries: int = 900_000,
        zipf: float = 1.215,
    ) -> None:  # fmt: skip
        self._rng = np.random.default_rng((seed, 1))
        shares = np.arange(1, users + 1) ** -zipf
        self._shares = shares / shares.sum()
        self._rate = rate
        self._queries = queries
        self._keep = np.round(queries * self._shares).astype(np.int64)
        self._standing = Standing([f"user-{i}" for i in range(users)], 1)
        self._begun = False

    def step(self, start: float, seconds: float, sample: Sample) -> Asked:
        """Requests of a span; the first has all that is there at the start before them."""
        count = int(self._rng.poisson(self._rate * seconds))
        count += 0 if self._begun else self._queries
        self._begun = True
        who = self._rng.choice(len(self._shares), count, p=self._shares)
        for user, x, y in zip(who.tolist(), *(v.tolist() for v in sample(count)), strict=True):
            self._standing.register(user, x, y)
            self._standing.end_oldest(user, int(self._keep[user]))
        return self._standing.written()
