"""Detection rounds by the clock, and which round a query was placed in by its number.

Queries are numbered in the order of their registration, so the first number of each of the last
rounds tells the round of any query: nothing has to be stored with it, and nothing goes stale when
it moves.

Source: Guard 5.2 (RoundID).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.guard.tuning import ROUNDS_SEEN

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rounds:
    """The round under way, since when, and the first query numbers of the last rounds, the newest
    last.

    >>> rounds = Rounds().started(0.0, 0).next(60.0, 100).next(120.0, 250)
    >>> rounds.of(np.array([0, 99, 100, 250, 251])).tolist()
    [0, 0, 1, 2, 2]
    """

    current: int = 0
    opened_at: float | None = None
    """In seconds of the clock that is handed in; ``None`` before the first request."""
    marks: tuple[int, ...] = (0,)

    def started(self, now: float, next_number: int) -> Rounds:
        """With the first round begun, if there was none."""
        if self.opened_at is not None:
            return self
        return replace(self, opened_at=now, marks=(next_number,))

    def is_due(self, now: float, round_seconds: float) -> bool:
        """Whether the round is to be closed; never before :meth:`started`."""
        return self.opened_at is not None and now - self.opened_at >= round_seconds

    def next(self, now: float, next_number: int) -> Rounds:
        """The round after, whose first query will have that number."""
        marks = (*self.marks, next_number)[-ROUNDS_SEEN:]
        return Rounds(self.current + 1, now, marks)

    def of(self, numbers: Numbers) -> Numbers:
        """The round of each query; what is older than the marks counts as just too old to matter,
        also what was there before Guard was."""
        places = np.searchsorted(np.array(self.marks, np.int64), numbers, side="right")
        known = self.current - len(self.marks) + places
        return np.asarray(np.where(places > 0, known, self.current - ROUNDS_SEEN), np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest or for the slots' orders."""
        return {"current": self.current, "opened_at": self.opened_at, "marks": list(self.marks)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Rounds:
        """What :meth:`to_dict` gave, also by way of JSON."""
        return cls(values["current"], values["opened_at"], tuple(values["marks"]))
