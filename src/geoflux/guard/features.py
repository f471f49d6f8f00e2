"""Real-time features x1 to x14 of every user, in arrays; one row per user.

Counted as requests and hotspots come, finished when a detection round is closed. What table 5.1
leaves open is read so:

- x1 counts registrations and snapshots, x2 terminations, both in the current round.
- x3 and x5 count a hotspot if any query of the user lies in it, however old; x4 counts those of the
  last five rounds, which is what a sensor tells. x11 needs one placed in the hotspot's round.
- x6 to x10 are x1 to x5 plus half of their own value of the round before.
- x12 sums over the hotspots of the round; a query in two of them counts twice, so x13 can exceed 1.
- x13 is 0 where x6 is 0; x14 is 0 until x13 has been above 0.

In robust mode a hotspot adds a secret number instead of its id to x5, x10 and x11, so that sums do
not collide and do not grow with time; x11 fades; x13 is at most 1; x14 is a fading mean over all
rounds since the user was first seen, so that one unlucky query is forgotten.

Source: Guard 5.3, table 5.1, equations 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.guard.receiver import Requests
from geoflux.guard.sensor import Kind, Summary
from geoflux.guard.tuning import ROUNDS_SEEN, GuardTuning

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

FEATURES = (
    "new_queries", "deleted_queries", "lrb_involvement", "lrb_contribution", "hotspot_seq",
    "faded_new_queries", "faded_deleted_queries", "faded_lrb_involvement",
    "faded_lrb_contribution", "faded_hotspot_seq", "hotspot_seq_new",
    "lrb_weighted_contribution", "lrb_queries_rate", "avg_lrb_queries_rate",
)  # fmt: skip
"""x1 to x14 by name, in order."""
X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14 = range(14)
_FADING = slice(X6, X10 + 1)
_SUM, _ROUNDS, _NET, _LOW, _LOW_SCALED, _LEFT = range(6)
_MORE = _LEFT + 5
"""What x14 is made of; standing queries now, and at their lowest since a plan was changed and since
slots were added; where queries were ended lately: their number, sums and sums of squares, halved
from round to round."""
_LOWS = [_LOW, _LOW_SCALED]
_WEIGHTS = 0.5 ** np.arange(ROUNDS_SEEN)
_FORGOTTEN = 0.01


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a round: ``values`` has a row per user and a column per feature, raw."""

    users: tuple[str, ...]
    values: Floats

    def normalised(self) -> Floats:
        """Min-max by column, to 0 to 1; a column that is the same for all is 0 (trap 11a).

        >>> Features(("a", "b"), np.array([[1.0, 5.0], [3.0, 5.0]])).normalised().tolist()
        [[0.0, 0.0], [1.0, 0.0]]
        """
        if not len(self.values):
            return self.values
        low = self.values.min(axis=0)
        span = self.values.max(axis=0) - low
        # A span can underflow the division where values are denormal; those are 0 as well.
        span[span < np.finfo(np.float64).tiny] = np.inf
        return np.asarray((self.values - low) / span)

    def of(self, row: int) -> dict[str, float]:
        """One user's features by name."""
        return dict(zip(FEATURES, self.values[row].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Involved:
    """What a hotspot came to for the users in it, at the moment it was sensed: their rows in the
    table, recent and older queries there, the weighted share of their recent queries that lies in
    it, the faded number of those, and standing queries as counted: now, and their lowest since
    :meth:`FeatureTable.mark_low` for its kind. ``fresh`` are the queries there of this very round,
    ``left`` the faded number of queries ended anywhere, and ``left_at`` where: middle and
    spread."""

    rows: Rows
    fresh: Floats
    recent: Floats
    older: Floats
    rate: Floats
    placed: Floats
    net: Floats
    low: Floats
    left: Floats
    left_at: Floats


class FeatureTable:
    """Features under way, by user. All that it knows is in :meth:`to_dict`.

    >>> from geoflux.guard.receiver import stamp
    >>> table = FeatureTable(GuardTuning.published())
    >>> table.count(stamp([0, 0, 1], ["a", "b", "a"], round=0))
    >>> table.close().values[:, :2].tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self, tuning: GuardTuning) -> None:
        self._robust = tuning.mode == "robust"
        self._tuning = tuning
        self._users: list[str] = []
        self._row: dict[str, int] = {}
        self._values = np.zeros((0, len(FEATURES)))
        self._more = np.zeros((0, _MORE))

    @property
    def users(self) -> Sequence[str]:
        """Who is known, by row."""
        return self._users

    def rows_of(self, users: Sequence[str]) -> Rows:
        """The row of each user; new ones get one."""
        known, rows = self._row, np.empty(len(users), np.int64)
        for place, name in enumerate(users):
            row = known.get(name)
            if row is None:
                row = known[name] = len(self._users)
                self._users.append(name)
            rows[place] = row
        self._reserve()
        return rows

    def _reserve(self) -> None:
        short = len(self._users) - len(self._values)
        if short > 0:
            extra = max(short, len(self._values) // 2)
            self._values = np.vstack((self._values, np.zeros((extra, len(FEATURES)))))
            self._more = np.vstack((self._more, np.zeros((extra, _MORE))))

    def count(self, requests: Requests) -> None:
        """Take in a batch: x1, x2, and how many queries everybody has standing."""
        rows = self.rows_of(requests.users)
        ended = requests.terminated()
        self._values[rows, X1] += requests.placed()
        self._values[rows, X2] += ended
        self._more[rows, _NET] += requests.registered() - ended
        for low in _LOWS:
            self._more[rows, low] = np.minimum(self._more[rows, low], self._more[rows, _NET])
        self._more[rows, _LEFT:] += requests.left()

    def involve(self, hotspot: int, summary: Summary, round: int) -> Involved:
        """Take in a hotspot: x3 to x5, x11 and x12; and what it came to."""
        rows = self.rows_of(summary.users)
        counts = summary.as_of(round)
        recent = counts[:, :ROUNDS_SEEN]
        weighted = recent @ _WEIGHTS
        mark = self._mark(hotspot)
        values = self._values
        values[rows, X3] += 1
        values[rows, X4] += recent.sum(axis=1)
        values[rows, X5] += mark
        values[rows, X11] += np.where(recent[:, 0] > 0, mark, 0.0)
        values[rows, X12] += weighted
        placed = values[rows, X1] + values[rows, X6] / 2
        rate = np.minimum(_quotient(weighted, placed), 1.0)
        more = self._more
        return Involved(
            rows, recent[:, 0].astype(np.float64), recent.sum(axis=1).astype(np.float64),
            counts[:, ROUNDS_SEEN].astype(np.float64), rate, placed,
            more[rows, _NET], more[rows, _low_of(summary.kind)], more[rows, _LEFT],
            _spots(more[rows, _LEFT:]),
        )  # fmt: skip

    def mark_low(self, rows: Rows, kind: Kind) -> None:
        """From now on the lowest number of standing queries is looked for anew. Plans are changed
        all the while, so what they hide must not be hidden from decisions to scale. Nobody is
        judged by slots that go: who had withdrawn before, has still."""
        if kind != "scale_in":
            self._more[rows, _low_of(kind)] = self._more[rows, _NET]

    def close(self) -> Features:
        """The features of the round; the next one begins."""
        count = len(self._users)
        values, more = self._values[:count], self._more[:count]
        values[:, _FADING] = values[:, _FADING] / 2 + values[:, : X5 + 1]
        rate = _quotient(values[:, X12], values[:, X6])
        if self._robust:
            rate = np.minimum(rate, 1.0)
            more[:, :2] *= self._tuning.memory
            more[:, _ROUNDS] += 1
        else:
            more[:, _ROUNDS] += rate != 0
        more[:, _SUM] += rate
        values[:, X13] = rate
        values[:, X14] = _quotient(more[:, _SUM], more[:, _ROUNDS])
        result = Features(tuple(self._users), values.copy())
        values[:, : X5 + 1] = 0
        values[:, X12] = 0
        more[:, _LEFT:] /= 2
        if self._robust:
            values[:, X11] *= self._tuning.memory
        return result

    def so_far(self) -> Features:
        """The features as if the round ended now; it goes on."""
        copy = FeatureTable(self._tuning)
        copy._users = self._users
        copy._values, copy._more = self._values.copy(), self._more.copy()
        return copy.close()

    def forget(self, users: Collection[str]) -> None:
        """As if these had never been seen."""
        if users:
            self._keep([row for row, name in enumerate(self._users) if name not in users])

    def forget_idle(self, needed: Collection[str]) -> None:
        """In robust mode, drop who has left no trace worth keeping and is not ``needed``; call it
        between rounds."""
        count = len(self._users)
        traces = self._values[:count, [*range(X1, X12 + 1)]].max(axis=1, initial=0.0)
        if self._robust and (traces < _FORGOTTEN).any():
            rows = np.flatnonzero(traces < _FORGOTTEN)
            idle = {self._users[row] for row in rows} - set(needed)
            self.forget(idle)

    def _keep(self, rows: list[int]) -> None:
        self._users = [self._users[row] for row in rows]
        self._row = {name: row for row, name in enumerate(self._users)}
        self._values, self._more = self._values[rows], self._more[rows]

    def _mark(self, hotspot: int) -> float:
        """What a hotspot adds to the sums: its id; in robust mode a number that is its own."""
        if not self._robust:
            return float(hotspot)
        return float(np.random.default_rng((self._tuning.seed, hotspot)).uniform(0.1, 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest: x1 to x12 and what the other two are made of."""
        count = len(self._users)
        return {
            "users": list(self._users), "values": self._values[:count, : X12 + 1].tolist(),
            "more": self._more[:count].tolist(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, tuning: GuardTuning, values: Mapping[str, Any]) -> FeatureTable:
        """What :meth:`to_dict` gave, also by way of JSON."""
        table = cls(tuning)
        table.rows_of(values["users"])
        count = len(table._users)
        table._values[:count, : X12 + 1] = np.array(values["values"]).reshape(-1, X12 + 1)
        table._more[:count] = np.array(values["more"]).reshape(-1, _MORE)
        return table


def _low_of(kind: Kind) -> int:
    return _LOW if kind == "plan" else _LOW_SCALED


def _spots(sums: Floats) -> Floats:
    """Middles and standard deviations of x and y from number, sums and sums of squares."""
    count = np.maximum(sums[:, :1], np.finfo(np.float64).tiny)
    middle = sums[:, 1:3] / count
    return np.hstack((middle, np.sqrt(np.maximum(sums[:, 3:5] / count - middle**2, 0.0))))


def _quotient(above: Floats, below: Floats) -> Floats:
    """Quotients, 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
