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
from typing import Any, Protocol

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
    """The queries that users have standing, oldest first; writes the requests of a step. What a
    user ends in a step they had at its beginning, or registered before in it."""

    def __init__(self, names: Sequence[str], population: int) -> None:
        self.names = tuple(names)
        self._held: list[deque[Indices]] = [deque() for _ in names]
        self._count = np.zeros(len(self.names), np.int64)
        self._next = population * _KEYS
        self._parts: list[Asked] = []

    def held(self, user: int) -> int:
        """How many queries a user has."""
        return int(self._count[user])

    def register(self, user: Any, x: Any, y: Any) -> None:
        """Users register queries, one each."""
        who = np.atleast_1d(np.asarray(user, np.int64))
        keys = self._write(REGISTER, who, x, y)
        order = np.argsort(who, kind="stable")
        of = who[order]
        for start, stop in _runs(of):
            self._held[of[start]].append(keys[order[start:stop]])
        self._count += np.bincount(who, minlength=len(self.names))

    def ask(self, user: Any, x: Any, y: Any) -> None:
        """Users ask once."""
        self._write(SNAPSHOT, np.atleast_1d(np.asarray(user, np.int64)), x, y)

    def keep(self, most: Any) -> None:
        """Everybody terminates their oldest queries until they have no more than ``most``, a number
        or one of each user."""
        surplus = np.maximum(self._count - most, 0)
        for user in np.flatnonzero(surplus).tolist():
            self.end_oldest(user, int(surplus[user]))

    def end_oldest(self, user: int, count: int = 1) -> None:
        """A user terminates so many of their oldest queries, as far as they have any."""
        count = min(count, self.held(user))
        self._count[user] -= count
        held, ended = self._held[user], []
        while count:
            first = held.popleft()
            if len(first) > count:
                held.appendleft(first[count:])
                first = first[:count]
            ended.append(first)
            count -= len(first)
        if ended:
            keys = np.concatenate(ended)
            none = np.zeros(len(keys))
            who = np.full(len(keys), user, np.int64)
            self._parts.append(Asked(self.names, _ops(TERMINATE, keys), who, keys, none, none))

    def written(self) -> Asked:
        """The requests since the last call."""
        parts, self._parts = self._parts, []
        if not parts:
            none = np.zeros(0)
            parts = [
                Asked(self.names, _ops(0, none), none.astype(int), none.astype(int), none, none)
            ]
        columns = ("op", "user", "key", "x", "y")
        return Asked(
            self.names, *(np.concatenate([getattr(p, name) for p in parts]) for name in columns)
        )

    def _write(self, op: int, who: Indices, x: Any, y: Any) -> Indices:
        keys = self._next + np.arange(len(who))
        self._next += len(who)
        at = (np.atleast_1d(np.asarray(values, np.float64)) for values in (x, y))
        self._parts.append(Asked(self.names, _ops(op, keys), who, keys, *at))
        return keys


def _ops(op: int, like: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.full(len(like), op, np.uint8)


def _runs(values: Indices) -> list[tuple[int, int]]:
    """Start and end of each run of equal values."""
    if not len(values):
        return []
    starts = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=True))


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
        self._standing.register(who, *sample(count))
        self._standing.keep(self._keep)
        return self._standing.written()
