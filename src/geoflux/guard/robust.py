"""The default detector: every user by their own evidence, held against what is normal.

The clusters of Algorithm 4 tell who is normal. A user is part of a hotspot if enough of what they
placed lately lies in it: more than a floor, more than the factor times what is normal there, more
than chance, and not where they have always been. Two such hotspots at places apart, while the first
is not forgotten, and the user is accused. Which weakness each rule closes is in ``docs/guard.md``.

Source: Guard 5.4; the rules per user, the floors and the places are ours (traps 10 to 12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from geoflux.guard.accusing import Trial, accusations
from geoflux.guard.clusters import divide
from geoflux.guard.evidence import (
    Evidence,
    Suspect,
    newest,
    suspects_from_dict,
    suspects_to_dict,
)
from geoflux.guard.features import Features
from geoflux.guard.gathering import gathered
from geoflux.guard.parts import limits, parts, population_of
from geoflux.guard.places import Place
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import Verdict, removal_round

_SPLITS = 3
"""Splits of a round: who is normal shows at once, and finer clusters decide nothing here."""
_KEPT = 3
"""Evidence that is kept of a user, as a multiple of what is needed: who has clear evidence from
places apart is accused at once, so what is older is of the same place and tells nothing new."""


@dataclass(frozen=True)
class RobustState:
    """Suspects by name, and the places of hotspots of late, with their rounds."""

    suspects: Mapping[str, Suspect] = field(default_factory=dict)
    places: tuple[tuple[int, Place], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "suspects": suspects_to_dict(self.suspects),
            "places": [[round, list(place)] for round, place in self.places],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RobustState:
        """What :meth:`to_dict` gave, also by way of JSON."""
        return cls(
            suspects_from_dict(values["suspects"]),
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
    population = population_of(features, found, tuning)
    if len(population.normal) < tuning.least_users:
        return Verdict(round, (), (), "no verdict: too few users to compare with", told), state
    row = {name: place for place, name in enumerate(features.users)}
    fresh: dict[str, list[Evidence]] = {}
    places = list(state.places)
    rates = [limits(seen, row, population, tuning)[1] for seen in sightings]
    for one in gathered(sightings, rates, tuning):
        items = parts(one, row, population, sightings[-1].hotspot, tuning)
        if items and items[0][1].place is not None:
            places.append((round, items[0][1].place))
        for name, item in items:
            fresh.setdefault(name, []).append(item)
    state = _noted(RobustState(state.suspects, tuple(places)), fresh, round, tuning)
    evidence = {name: suspect.evidence for name, suspect in state.suspects.items()}
    trial = Trial(features, row, found, evidence, [place for _, place in places])
    accused = accusations(trial, list(fresh), tuning)
    names = tuple(sorted(name for name in fresh if any(item.clear for item in fresh[name])))
    reason = f"{len(accused)} accused, {len(names)} with evidence" if names else (
        "no attack: nobody's part in a hotspot was out of the common"
    )  # fmt: skip
    return Verdict(round, names, accused, reason, told), state


def _noted(
    state: RobustState, fresh: Mapping[str, list[Evidence]], round: int, tuning: GuardTuning
) -> RobustState:  # fmt: skip
    """With new evidence; a suspicion that is renewed gets a new time."""
    suspects = dict(state.suspects)
    oldest = round - tuning.removal_rounds[1]
    most = _KEPT * max(tuning.hotspots, tuning.returns)
    for name, items in fresh.items():
        known = suspects[name].evidence if name in suspects else ()
        kept = [item for item in known if item.round >= oldest] + items
        if len(kept) > most:
            kept = newest(kept, most)
        until = removal_round(tuning.seed, round, name, tuning.removal_rounds)
        suspects[name] = Suspect(tuple(kept), until)
    return replace(state, suspects=suspects)
