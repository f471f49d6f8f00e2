"""A hotspot as Guard remembers it until its round is judged: who was in it, and how much.

Only users with recent queries are kept; who has none cannot have made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.guard.features import Involved
from geoflux.guard.places import Place
from geoflux.guard.sensor import Kind, Summary

Floats = npt.NDArray[np.float64]
_COLUMNS = ("fresh", "recent", "older", "rate", "placed", "net", "low", "left")


@dataclass(frozen=True, eq=False)
class Sighting:
    """One hotspot of the round. The columns are those of :class:`Involved`, by user."""

    hotspot: int
    kind: Kind
    donor: int
    round: int
    total: int
    """Queries in the partition, of whomever."""
    box: Place | None
    users: tuple[str, ...]
    columns: Mapping[str, Floats]
    places: Floats | None
    left_at: Floats

    @classmethod
    def of(cls, hotspot: int, summary: Summary, involved: Involved, round: int) -> Sighting:
        """What a summary came to."""
        kept = np.flatnonzero(involved.recent > 0)
        return cls(
            hotspot, summary.kind, summary.donor, round, summary.rows, summary.box,
            tuple(summary.users[i] for i in kept),
            {name: getattr(involved, name)[kept] for name in _COLUMNS},
            None if summary.places is None else summary.places[kept],
            involved.left_at[kept],
        )  # fmt: skip

    def only(self, kept: list[int]) -> Sighting:
        """With these of its users."""
        return replace(
            self, users=tuple(self.users[i] for i in kept),
            columns={name: column[kept] for name, column in self.columns.items()},
            places=None if self.places is None else self.places[kept],
            left_at=self.left_at[kept],
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "hotspot": self.hotspot, "kind": self.kind, "donor": self.donor, "round": self.round,
            "total": self.total, "box": None if self.box is None else list(self.box),
            "users": list(self.users),
            "columns": {name: column.tolist() for name, column in self.columns.items()},
            "places": None if self.places is None else self.places.tolist(),
            "left_at": self.left_at.tolist(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sighting:
        """What :meth:`to_dict` gave, also by way of JSON."""
        box, places = values["box"], values["places"]
        return cls(
            values["hotspot"], values["kind"], values["donor"], values["round"], values["total"],
            None if box is None else (box[0], box[1], box[2], box[3]), tuple(values["users"]),
            {name: np.array(values["columns"][name], np.float64) for name in _COLUMNS},
            None if places is None else np.array(places, np.float64).reshape(-1, 4),
            np.array(values["left_at"], np.float64).reshape(-1, 4),
        )  # fmt: skip
