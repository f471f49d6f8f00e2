"""Evidence against one user: being part of a hotspot, as its round was judged.

A user is accused by what they did, not by the company they were seen in: who is together with whom
can be changed at will. Evidence adds up when the hotspots were made at places apart, or when the
user has withdrawn from a place and come back.
"""

from __future__ import annotations

from collections import Counter
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
    share of the partitions that all suspects had. ``judged`` is the newest hotspot when it was
    judged: what was judged together has the same. What is not ``clear`` only nearly was a part: it
    counts where others are accused for the same. ``moved`` is whether they were moving in, few
    against many. ``net`` are the user's standing queries as counted, ``low`` the fewest since they
    were last seen in a hotspot of this kind."""

    hotspots: tuple[int, ...]
    kind: str
    donors: tuple[int, ...]
    round: int
    judged: int
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


@dataclass(frozen=True)
class Suspect:
    """A user with evidence, oldest first, and the last round in which it counts."""

    evidence: tuple[Evidence, ...]
    until: int


_SHARED = ("hotspots", "kind", "donors", "round", "judged", "normal_rate", "share", "place")
_OWN = ("queries", "rate", "clear", "moved", "net", "low")


def suspects_to_dict(suspects: Mapping[str, Suspect]) -> dict[str, Any]:
    """Plain values, short: what everybody in a hotspot shares is written once.

    >>> one = Evidence((1,), "plan", (0,), 5, 1, 9.0, 0.5, 0.1, 0.2, None, True, False, 9.0, 0.0)
    >>> suspects = {"a": Suspect((one,), 12)}
    >>> suspects_from_dict(suspects_to_dict(suspects)) == suspects
    True
    """
    places: dict[tuple[Any, ...], int] = {}
    users = {}
    for name, suspect in suspects.items():
        items = []
        for item in suspect.evidence:
            shared = tuple(getattr(item, field) for field in _SHARED)
            at = places.setdefault(shared, len(places))
            items.append([at, *(getattr(item, field) for field in _OWN)])
        users[name] = [suspect.until, items]
    return {"shared": [_plain(shared) for shared in places], "users": users}


def suspects_from_dict(values: Mapping[str, Any]) -> dict[str, Suspect]:
    """What :func:`suspects_to_dict` gave, also by way of JSON."""
    shared = []
    for row in values["shared"]:
        known = dict(zip(_SHARED, row, strict=True))
        for field in ("hotspots", "donors", "place"):
            known[field] = None if known[field] is None else tuple(known[field])
        shared.append(known)
    return {
        name: Suspect(
            tuple(
                Evidence(**shared[at], **dict(zip(_OWN, own, strict=True))) for at, *own in items
            ),
            until,
        )
        for name, (until, items) in values["users"].items()
    }


def _plain(values: tuple[Any, ...]) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in values]


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
    """Evidence of moving into hotspots, one of each time that was judged."""
    return list({item.judged: item for item in evidence if item.moved}.values())


def returns(evidence: Sequence[Evidence], tuning: GuardTuning) -> list[Evidence]:
    """The evidence after which the user withdrew and came back, and the last return itself; empty
    if there was none. Who replaces queries one by one never withdraws. Changes of the plan and
    additions of slots are looked at by themselves; whichever shows more is given."""
    found: list[list[Evidence]] = [[]]
    for kind in ("plan", "scale_out"):
        items = [item for item in evidence if item.kind == kind]
        gone = [
            before for before, after in pairwise(items) if _swung(before, after, tuning.withdrawn)
        ]
        found.append([*gone, items[-1]] if gone else [])
    return max(found, key=len)


def _swung(before: Evidence, after: Evidence, withdrawn: float) -> bool:
    amount = withdrawn * min(before.queries, after.queries)
    return before.net - after.low >= amount and after.net - after.low >= amount


def newest(items: list[Evidence], most: int) -> list[Evidence]:
    """The newest clear evidence and the newest that is not, so many of each kind: what is weak must
    not push out what is clear, nor a plan that is changed all the while the additions of slots."""
    kept: list[Evidence] = []
    found: Counter[tuple[bool, str]] = Counter()
    for item in reversed(items):
        found[item.clear, item.kind] += 1
        if found[item.clear, item.kind] <= most:
            kept.append(item)
    return kept[::-1]
