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
from geoflux.guard.evidence import Evidence, Suspect, moved_in, places_apart, returns
from geoflux.guard.features import X6, Features
from geoflux.guard.gathering import Gathered, gathered
from geoflux.guard.places import Place, outside, place_of
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import LISTED, Accusation, Verdict, removal_round

Rows = npt.NDArray[np.int64]
_SPLITS = 3
"""Splits of a round: who is normal shows at once, and finer clusters decide nothing here."""
_NEARLY = 0.75
_ERRORS = 4.0
"""Standard errors by which a rate must exceed the usual one: a few queries may lie anywhere."""
_LEAST_CHANCE = 0.02


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
    found = divide(features, tuning, tuning.seed + 1000 * round, _SPLITS)
    population = _population(features, found, tuning)
    if len(population.normal) < tuning.least_users:
        return Verdict(round, (), (), "no verdict: too few users to compare with", told), state
    row = {name: place for place, name in enumerate(features.users)}
    fresh: dict[str, list[Evidence]] = {}
    places = list(state.places)
    limits = [_limits(seen, row, population, tuning)[1] for seen in sightings]
    for one in gathered(sightings, limits, tuning):
        items = _parts(one, row, population, tuning)
        places += {(round, item.place) for _, item in items if item.place is not None}
        for name, item in items:
            fresh.setdefault(name, []).append(item)
    state = _noted(RobustState(state.suspects, tuple(places)), fresh, round, tuning)
    together: dict[int, list[str]] = {}
    for name, suspect in state.suspects.items():
        for hotspot in {of for item in suspect.evidence for of in item.hotspots}:
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


@dataclass(frozen=True, eq=False)
class _Population:
    """How many users there are, how many are active, and the rows of those who are normal."""

    users: int
    active: int
    normal: Rows


def _population(features: Features, found: Divided, tuning: GuardTuning) -> _Population:
    """Normal are the active users outside the suspicious cluster; all active ones if that cluster
    is most of them, for then it is no group apart."""
    active = features.values[:, X6] >= 1
    count = int(active.sum())
    normal = found.normal[active[found.normal]]
    if len(normal) < max(tuning.least_users, count // 4):
        normal = np.flatnonzero(active)
    return _Population(len(active), count, normal)


def _limits(
    seen: Sighting, row: Mapping[str, int], population: _Population, tuning: GuardTuning
) -> tuple[float, float]:  # fmt: skip
    """The rate that is usual in a hotspot, and the one that is out of the common. Where half of
    all that is placed lies in it anyway, no rate is three times that. A decision to scale is about
    all that anybody placed: no share of it is unusual."""
    if seen.kind != "plan":
        return 0.0, tuning.least_rate
    everybody = np.zeros(population.users)
    everybody[[row[name] for name in seen.users]] = seen.columns["rate"]
    usual = float(np.median(everybody[population.normal]))
    return usual, max(tuning.least_rate, min(tuning.factor * usual, (1 + usual) / 2))


def _parts(
    one: Gathered, row: Mapping[str, int], population: _Population, tuning: GuardTuning
) -> list[tuple[str, Evidence]]:  # fmt: skip
    """Who was part of a hotspot."""
    seen = one.sighting
    columns = seen.columns
    rate, recent = columns["rate"], columns["recent"]
    usual, limit = _limits(seen, row, population, tuning)
    chance = max(usual, _LEAST_CHANCE)
    error = np.sqrt(chance * (1 - chance) / np.maximum(columns["placed"], 1.0))
    part = (recent >= tuning.evidence_floor) & (rate >= limit)
    part &= rate >= np.minimum(chance + _ERRORS * error, 1.0)
    part &= columns["older"] <= tuning.familiar * recent
    who = np.flatnonzero(part)
    share = float(recent[who].sum()) / max(seen.total, 1)
    if not len(who) or share < tuning.least_share:
        return []
    place = seen.box
    if seen.places is not None:
        place = place_of(seen.places[who], recent[who])
    moved = _moved(seen, who, place, tuning)
    many = min(tuning.crowd_share * population.active, tuning.crowd_users)
    if len(who) >= many or recent[who].sum() * 2 < recent.sum():
        moved[:] = False  # a crowd, or not their hotspot
    return [
        (
            seen.users[i],
            Evidence(
                one.hotspots, seen.kind, one.donors, seen.round, float(recent[i]), float(rate[i]),
                usual, share, place, bool(moved[k]),
                float(columns["net"][i]), float(columns["low"][i]),
            ),
        )
        for k, i in enumerate(who)
    ]  # fmt: skip


def _moved(
    seen: Sighting, who: Rows, place: Place | None, tuning: GuardTuning
) -> npt.NDArray[np.bool_]:  # fmt: skip
    """Who came here with nearly all they do while ending as much elsewhere."""
    if place is None:
        return np.zeros(len(who), np.bool_)
    of = {name: column[who] for name, column in seen.columns.items()}
    error = np.sqrt(of["rate"] * (1 - of["rate"]) / np.maximum(of["placed"], 1.0))
    least = tuning.relocated_rate
    # Members of a group differ by chance: nobody is to slip through for a few queries.
    moved = (of["rate"] + 2 * error >= least) & (of["rate"] >= _NEARLY * least)
    moved &= float(of["rate"] @ of["placed"]) >= least * float(of["placed"].sum())
    moved &= of["fresh"] >= tuning.evidence_floor / 2
    moved &= 2 * of["left"] >= of["placed"]
    return moved & outside(seen.left_at[who], place, tuning.place_margin)


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


def _against(
    evidence: Sequence[Evidence], known: Sequence[Place], tuning: GuardTuning
) -> tuple[list[Evidence], str]:  # fmt: skip
    """The evidence that is enough, and what it shows; none if it is not enough."""
    items = places_apart(evidence, known, tuning)
    if len(items) >= tuning.hotspots:
        return items, f"part of hotspots at {len(items)} places apart"
    items = moved_in(evidence)
    if len(items) >= tuning.hotspots:
        return items, "moved into a hotspot what was elsewhere"
    items = returns(evidence, tuning)
    if len(items) > tuning.returns:
        return items, f"withdrew from a hotspot and came back {len(items) - 1} times"
    return [], ""


def _accused(
    name: str, state: RobustState, context: _Context, tuning: GuardTuning
) -> Accusation | None:  # fmt: skip
    evidence = state.suspects[name].evidence
    against, reason = _against(evidence, [place for _, place in state.places], tuning)
    if not against:
        return None
    rounds = tuple(sorted({item.round for item in against}))
    company = {other for item in against for of in item.hotspots for other in context.together[of]}
    return Accusation(
        name,
        f"{reason}, in rounds {rounds[0]} to {rounds[-1]}, with up to "
        f"{max(item.rate for item in against):.0%} of their recent queries in one",
        context.features.of(context.row[name]), tuple(sorted(company)[:LISTED]), len(company),
        tuple(item.to_dict() for item in against), rounds,
        {"normal_rate": max(item.normal_rate for item in against),
         "least_rate": tuning.least_rate, "factor": tuning.factor,
         "cluster_rate": context.found.suspicious_rate,
         "rest_rate": context.found.normal_rate},
    )  # fmt: skip
