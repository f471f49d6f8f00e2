"""Evidence against one user: being part of a hotspot, as its round was judged.

A user is accused by what they did, not by the company they were seen in: who is together with whom
can be changed at will. Evidence adds up when the hotspots were made at places apart, or when the
user has withdrawn from a place and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from geoflux.guard.places import Place
from geoflux.guard.tuning import GuardTuning


@dataclass(frozen=True)
class Evidence:
    """A user's part in the hotspots that were one place in one round: queries of the last rounds
    there, their share of all that the user placed lately, the rate that was normal there, and the
    share of the partitions that all suspects had. What is not ``clear`` only nearly was a part: it
    counts where others are accused for the same. ``moved`` is whether they were moving in, few
    against many. ``net`` are the user's standing queries as counted, ``low`` the fewest since they
    were last seen in a hotspot."""

    hotspots: tuple[int, ...]
    kind: str
    donors: tuple[int, ...]
    round: int
    queries: float
    rate: float
    normal_rate: float
    share: float
    place: Place | None
    clear: bool
    moved: bool
    net: float
    low: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Evidence:
        """What :meth:`to_dict` gave, also by way of JSON."""
        place = values["place"]
        known = None if place is None else (place[0], place[1], place[2], place[3])
        hotspots, donors = tuple(values["hotspots"]), tuple(values["donors"])
        return cls(**{**values, "place": known, "hotspots": hotspots, "donors": donors})


@dataclass(frozen=True)
class Suspect:
    """A user with evidence, oldest first, and the last round in which it counts."""

    evidence: tuple[Evidence, ...]
    until: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"evidence": [e.to_dict() for e in self.evidence], "until": self.until}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Suspect:
        """What :meth:`to_dict` gave, also by way of JSON."""
        return cls(tuple(Evidence.from_dict(e) for e in values["evidence"]), values["until"])


def places_apart(
    evidence: Sequence[Evidence], are_apart: Callable[[Place, Place], bool], wanted: int
) -> list[Evidence]:  # fmt: skip
    """Evidence from places of which no two are one, as many as wanted, the newest first of all."""
    chosen: list[tuple[Place, Evidence]] = []
    for item in reversed(evidence):
        place = item.place
        if place is not None and all(are_apart(place, other) for other, _ in chosen):
            chosen.append((place, item))
            if len(chosen) == wanted:
                break
    return [item for _, item in reversed(chosen)]


def moved_in(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Evidence of moving into hotspots, one of each round."""
    return list({item.round: item for item in evidence if item.moved}.values())


def returns(evidence: Sequence[Evidence], tuning: GuardTuning) -> list[Evidence]:
    """The evidence after which the user withdrew and came back, and the last return itself; empty
    if there was none. Who replaces queries one by one never withdraws."""
    gone = [
        before for before, after in pairwise(evidence) if _swung(before, after, tuning.withdrawn)
    ]
    return [*gone, evidence[-1]] if gone else []


def _swung(before: Evidence, after: Evidence, withdrawn: float) -> bool:
    amount = withdrawn * min(before.queries, after.queries)
    return before.net - after.low >= amount and after.net - after.low >= amount
