"""The hotspot sensor: who has queries in the partition that is about to be relieved, and how new.

It runs inside the slot that sheds load, on its costliest partition (after a move of some others the
hotspot stayed behind), and gives one summary per donor and round of the balancer. The same summary
serves a decision to scale: then it is about all that the operator holds, and has no place.

Source: Guard 5.3.1. Older queries as one number, and where a user's recent ones lie, are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from geoflux.guard.places import Place
from geoflux.guard.tuning import ROUNDS_SEEN

Kind = Literal["plan", "scale_out", "scale_in"]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Summary:
    """What a sensor found. ``occasion`` is the number of the balancer's round (or of the scaling
    decision): with kind and donor it names the hotspot. ``counts`` has a row per user: queries
    placed in ``round``, in each of the four rounds before, and earlier. ``places`` has where the
    user's recent queries lie (middle and spread in x and y), if that is known."""

    kind: Kind
    donor: int
    occasion: int
    round: int
    users: tuple[str, ...]
    counts: Counts
    rows: int
    """Queries in the partition, of whomever."""
    box: Place | None = None
    """The partition, in cells."""
    places: npt.NDArray[np.float64] | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        """What a hotspot is known by; a summary that is sent twice names the same one."""
        return (self.kind, self.donor, self.occasion)

    def as_of(self, round: int) -> Counts:
        """The counts as seen from the true round: what has aged beyond five is older."""
        late = round - self.round
        if late < 0:
            raise ValueError(f"a summary of round {self.round} came in round {round}")
        aged = np.zeros_like(self.counts)
        kept = max(ROUNDS_SEEN - late, 0)
        aged[:, ROUNDS_SEEN - kept : ROUNDS_SEEN] = self.counts[:, :kept]
        aged[:, ROUNDS_SEEN] = self.counts[:, kept:].sum(axis=1)
        return aged

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a slot's report."""
        return {
            "kind": self.kind, "donor": self.donor, "occasion": self.occasion,
            "round": self.round, "users": list(self.users), "counts": self.counts.tolist(),
            "rows": self.rows, "box": None if self.box is None else list(self.box),
            "places": None if self.places is None else self.places.tolist(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Summary:
        """What :meth:`to_dict` gave, also by way of JSON."""
        box, places = values["box"], values["places"]
        return cls(
            values["kind"], values["donor"], values["occasion"], values["round"],
            tuple(values["users"]),
            np.array(values["counts"], np.int64).reshape(-1, ROUNDS_SEEN + 1), values["rows"],
            None if box is None else (box[0], box[1], box[2], box[3]),
            None if places is None else np.array(places, np.float64).reshape(-1, 4),
        )  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The rows of a partition as columns: whose query (its place in ``names``, or -1), the round it
    was placed in, and where its middle is, in cells, if that is known."""

    names: tuple[str, ...]
    user: npt.NDArray[np.int64]
    round: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64] | None = None
    y: npt.NDArray[np.float64] | None = None


def sense(
    found: Found, donor: int, occasion: int, *, kind: Kind = "plan", box: Place | None = None,
    round: int | None = None,
) -> Summary:  # fmt: skip
    """The summary of a partition. Without ``round`` it is told by the newest query, as the document
    has it: sensors need not be told which round it is.

    >>> found = Found(("a", "b"), np.array([0, 0, 1, -1]), np.array([7, 6, 1, 7]))
    >>> summary = sense(found, donor=3, occasion=12)
    >>> summary.users, summary.counts.tolist()
    (('a', 'b'), [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    """
    if round is None:
        round = int(found.round.max(initial=0))
    known = found.user >= 0
    user, age = found.user[known], round - found.round[known]
    age = np.minimum(np.maximum(age, 0), ROUNDS_SEEN)
    width = ROUNDS_SEEN + 1
    size = len(found.names) * width
    table = np.bincount(user * width + age, minlength=size).reshape(-1, width)
    here = np.flatnonzero(table.any(axis=1))
    places = None
    if found.x is not None and found.y is not None:
        recent = age < ROUNDS_SEEN
        at = (found.x[known][recent], found.y[known][recent])
        places = _footprints(user[recent], at, len(found.names))[here]
    return Summary(
        kind, donor, occasion, round, tuple(found.names[i] for i in here),
        table[here].astype(np.int64), len(found.user), box, places,
    )  # fmt: skip


def _footprints(
    user: npt.NDArray[np.int64], at: tuple[npt.NDArray[np.float64], ...], users: int
) -> npt.NDArray[np.float64]:
    """Middle x and y, and standard deviations of both; 0 where a user has nothing."""
    count = np.maximum(np.bincount(user, minlength=users), 1)
    out = np.zeros((users, 4))
    for axis, values in enumerate(at):
        mean = np.bincount(user, values, minlength=users) / count
        square = np.bincount(user, (values - mean[user]) ** 2, minlength=users) / count
        out[:, axis], out[:, axis + 2] = mean, np.sqrt(square)
    return out
