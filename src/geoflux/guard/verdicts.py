"""What a detector says after a round: who is suspected, who is to be blocked, on what evidence.

"Nobody" is a verdict too, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

LISTED = 100
"""Members of a cluster that a record names; the others are counted."""


def removal_round(seed: int, round: int, who: str, limits: tuple[int, int]) -> int:
    """The last round in which a suspicion that is raised now still counts; drawn, so that nobody
    can wait for it, but the same whenever it is drawn again."""
    low, high = limits
    drawn = blake2b(f"{seed}/{round}/{who}".encode(), digest_size=8).digest()
    return round + low + int.from_bytes(drawn, "little") % (high + 1 - low)


@dataclass(frozen=True)
class Accusation:
    """A user to be blocked, in one sentence, and all that speaks against them: ``features`` raw by
    name, the ``cluster`` found with them, the ``hotspots`` they were part of, the ``rounds``."""

    user: str
    reason: str
    features: Mapping[str, float]
    cluster: tuple[str, ...]
    cluster_size: int
    hotspots: tuple[Mapping[str, Any], ...]
    rounds: tuple[int, ...]
    compared: Mapping[str, float] = field(default_factory=dict)
    """What the rates were held against."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "user": self.user, "reason": self.reason, "features": dict(self.features),
            "cluster": list(self.cluster), "cluster_size": self.cluster_size,
            "hotspots": [dict(hotspot) for hotspot in self.hotspots],
            "rounds": list(self.rounds), "compared": dict(self.compared),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Accusation:
        """What :meth:`to_dict` gave, also by way of JSON."""
        return cls(
            values["user"], values["reason"], values["features"], tuple(values["cluster"]),
            values["cluster_size"], tuple(values["hotspots"]), tuple(values["rounds"]),
            values["compared"],
        )  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What a round showed: its number, who is newly or again suspected, who is accused, and why."""

    round: int
    suspected: tuple[str, ...]
    accused: tuple[Accusation, ...]
    reason: str
    hotspots: tuple[int, ...] = ()
