"""The default detector: every user by their own evidence, held against what is normal.

The clusters of Algorithm 4 tell who is normal. A user is part of a hotspot if enough of what they
placed lately lies in it: more than a floor, more than the factor times what is normal there, more
than chance, and not where they have always been. Two such hotspots at places apart, while the first
is not forgotten, and the user is accused. Which weakness each rule closes is in ``docs/guard.md``.

Source: Guard 5.4; the rules per user, the floors and the places are ours (traps 10 to 12).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.guard.clusters import Divided, divide
from geoflux.guard.evidence import Evidence, Suspect, places_apart, returns
from geoflux.guard.features import X6, Features
from geoflux.guard.places import Place, place_of
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import LISTED, Accusation, Verdict, removal_round

_ERRORS = 2.0
"""Standard errors by which a rate must exceed its limit: a few queries may lie anywhere."""


@dataclass(frozen=True)
class RobustState:
    """Suspects by name, and the places of hotspots of late, with their rounds."""

    suspects: Mapping[str, Suspect] = field(default_factory=dict)
    places: tuple[tuple[int, Place], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "suspects": {name: suspect.to_dict() for name, suspect in self.suspects.items()},
            "places": [[round, list(place)] for round, place in self.places],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RobustState:
        """What :meth:`to_dict` gave, also by way of JSON."""
        return cls(
            {name: Suspect.from_dict(known) for name, known in values["suspects"].items()},
            tuple((round, (p[0], p[1], p[2], p[3])) for round, p in values["places"]),
        )

    def since(self, round: int, tuning: GuardTuning) -> RobustState:
        """Without what has lapsed."""
        oldest = round - tuning.removal_rounds[1]
        return RobustState(
            {name: known for name, known in self.suspects.items() if known.until >= round},
            tuple(item for item in self.places if item[0] >= oldest),
        )

    def without(self, users: Iterable[str]) -> RobustState:
        """As if these had never been suspected."""
        gone = set(users)
        return replace(self, suspects={n: s for n, s in self.suspects.items() if n not in gone})


def judge_robust(
    features: Features, sightings: Sequence[Sighting], state: RobustState,
    round: int, tuning: GuardTuning,
) -> tuple[Verdict, RobustState]:  # fmt: skip
    """The verdict at the end of a round, and the state from now on."""
    state = state.since(round, tuning)
    told = tuple(s.hotspot for s in sightings)
    if round < tuning.warm_up_rounds:
        return Verdict(round, (), (), "warming up: everything is new", told), state
    if not sightings:
        return Verdict(round, (), (), "no attack: nothing was rebalanced", told), state
    found = divide(features, tuning, tuning.seed + 1000 * round)
    normal = _normal(features, found, tuning)
    if len(normal) < tuning.least_users:
        return Verdict(round, (), (), "no verdict: too few users to compare with", told), state
    row = {name: place for place, name in enumerate(features.users)}
    fresh: dict[str, list[Evidence]] = {}
    places = list(state.places)
    for sighting in sightings:
        rows = np.array([row[name] for name in sighting.users], np.int64)
        for name, item in _parts(sighting, (rows, normal, len(row)), tuning):
            fresh.setdefault(name, []).append(item)
            if item.place is not None and (round, item.place) not in places[-1:]:
                places.append((round, item.place))
    state = _noted(RobustState(state.suspects, tuple(places)), fresh, round, tuning)
    together: dict[int, list[str]] = {}
    for name, suspect in state.suspects.items():
        for hotspot in {item.hotspot for item in suspect.evidence}:
            together.setdefault(hotspot, []).append(name)
    context = _Context(features, row, found, together)
    accused = tuple(
        accusation
        for name in fresh
        if (accusation := _accused(name, state, context, tuning)) is not None
    )
    names = tuple(sorted(fresh))
    reason = f"{len(accused)} accused, {len(names)} with evidence" if names else (
        "no attack: nobody's part in a hotspot was out of the common"
    )  # fmt: skip
    return Verdict(round, names, accused, reason, told), state


def _normal(
    features: Features, found: Divided, tuning: GuardTuning
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Users who are active and not in the suspicious cluster; all active ones if that cluster is
    most of them, for then it is no group apart."""
    active = features.values[:, X6] >= 1
    normal = found.normal[active[found.normal]]
    if len(normal) >= max(tuning.least_users, int(active.sum()) // 4):
        return normal
    return np.flatnonzero(active)


def _parts(
    seen: Sighting, population: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int],
    tuning: GuardTuning,
) -> list[tuple[str, Evidence]]:  # fmt: skip
    """Who was part of a hotspot."""
    rows, normal, users = population
    columns = seen.columns
    rate, recent = columns["rate"], columns["recent"]
    if seen.kind == "scale_in" or not len(rate):
        return []
    everybody = np.zeros(users)
    everybody[rows] = rate
    usual = float(np.median(everybody[normal]))
    limit = max(tuning.least_rate, min(tuning.factor * usual, (1 + usual) / 2))
    error = np.sqrt(rate * (1 - rate) / np.maximum(columns["placed"], 1.0))
    part = recent >= tuning.evidence_floor
    part &= rate - _ERRORS * error >= limit
    part &= columns["older"] <= tuning.familiar * recent
    who = np.flatnonzero(part)
    share = float(recent[who].sum()) / max(seen.total, 1)
    if not len(who) or share < tuning.least_share:
        return []
    place = seen.box
    if seen.places is not None:
        place = place_of(seen.places[who], recent[who])
    return [
        (
            seen.users[i],
            Evidence(
                seen.hotspot, seen.kind, seen.donor, seen.round, float(recent[i]), float(rate[i]),
                usual, share, place, float(columns["net"][i]), float(columns["low"][i]),
            ),
        )
        for i in who
    ]  # fmt: skip


def _noted(
    state: RobustState, fresh: Mapping[str, list[Evidence]], round: int, tuning: GuardTuning
) -> RobustState:  # fmt: skip
    """With new evidence; a suspicion that is renewed gets a new time."""
    suspects = dict(state.suspects)
    for name, items in fresh.items():
        known = suspects[name].evidence if name in suspects else ()
        oldest = round - tuning.removal_rounds[1]
        kept = tuple(item for item in known if item.round >= oldest)
        until = removal_round(
            tuning.seed, round, zlib.crc32(name.encode()), tuning.removal_rounds
        )  # fmt: skip
        suspects[name] = Suspect((*kept, *items), until)
    return replace(state, suspects=suspects)


@dataclass(frozen=True, eq=False)
class _Context:
    """What an accusation quotes: features with the row of each user, the clusters, and who has
    evidence from each hotspot."""

    features: Features
    row: Mapping[str, int]
    found: Divided
    together: Mapping[int, list[str]]


def _accused(
    name: str, state: RobustState, context: _Context, tuning: GuardTuning
) -> Accusation | None:  # fmt: skip
    evidence = state.suspects[name].evidence
    against = places_apart(evidence, [place for _, place in state.places], tuning)
    reason = f"part of hotspots at {len(against)} places apart"
    if len(against) < tuning.hotspots:
        against = returns(evidence, tuning)
        reason = f"withdrew and came back {len(against) - 1} times"
        if len(against) <= tuning.returns:
            return None
    rounds = tuple(sorted({item.round for item in against}))
    company = {other for item in against for other in context.together[item.hotspot]}
    return Accusation(
        name,
        f"{reason} in rounds {rounds[0]} to {rounds[-1]}, with up to "
        f"{max(item.rate for item in against):.0%} of their recent queries in one",
        context.features.of(context.row[name]), tuple(sorted(company)[:LISTED]), len(company),
        tuple(item.to_dict() for item in against), rounds,
        {"normal_rate": max(item.normal_rate for item in against),
         "least_rate": tuning.least_rate, "factor": tuning.factor,
         "cluster_rate": context.found.suspicious_rate,
         "rest_rate": context.found.normal_rate},
    )  # fmt: skip
