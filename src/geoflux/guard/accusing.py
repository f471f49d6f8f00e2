"""Who is accused on their evidence, and who with them.

Two hotspots at places apart; or moving into one that was relieved twice, few against many and the
same both times; or withdrawing from a place and coming back again and again. Members of a group
differ by chance, and who is left over would go on alone: who was in all the hotspots that another
is accused for, clearly in some and nearly in the others, is accused with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from geoflux.guard.clusters import Divided
from geoflux.guard.evidence import Evidence, moved_in, places_apart, returns
from geoflux.guard.features import Features
from geoflux.guard.places import Place, apart
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import LISTED, Accusation

_SAME = 0.8
"""Share of those who are moving in that was doing so before."""
Charge = tuple[list[Evidence], str]
"""Evidence that is enough, and what it shows."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What a round is judged by: features with the row of each user, the clusters, everybody's
    evidence, and the places of hotspots of late."""

    features: Features
    row: Mapping[str, int]
    found: Divided
    evidence: Mapping[str, Sequence[Evidence]]
    places: Sequence[Place]


def accusations(trial: Trial, names: Sequence[str], tuning: GuardTuning) -> tuple[Accusation, ...]:
    """Accusations against those of ``names`` whose evidence is enough, or who were with them."""

    @cache
    def are_apart(one: Place, other: Place) -> bool:
        return apart(one, other, trial.places, tuning.reach)

    movers: dict[int, set[str]] = {}
    for name, items in trial.evidence.items():
        for item in moved_in(items):
            movers.setdefault(item.judged, set()).add(name)
    charges = {}
    for name in names:
        charge = _charge(trial.evidence[name], are_apart, movers, tuning)
        if charge is not None:
            charges[name] = charge
    if not charges:
        return ()
    for name in names:
        if name not in charges:
            joined = _accomplice(trial.evidence[name], list(charges.values()))
            if joined is not None:
                charges[name] = joined
    together: dict[int, list[str]] = {}
    for name, items in trial.evidence.items():
        for hotspot in {of for item in items if item.clear for of in item.hotspots}:
            together.setdefault(hotspot, []).append(name)
    return tuple(_accusation(name, charges[name], trial, together, tuning) for name in charges)


def _charge(
    evidence: Sequence[Evidence], are_apart: Callable[[Place, Place], bool],
    movers: Mapping[int, set[str]], tuning: GuardTuning,
) -> Charge | None:  # fmt: skip
    clear = [item for item in evidence if item.clear]
    items = places_apart(clear, are_apart, tuning.hotspots)
    if len(items) >= tuning.hotspots:
        return items, f"part of hotspots at {len(items)} places apart"
    items = _steady(moved_in(clear), movers)
    if len(items) >= tuning.hotspots:
        return items, "moved into a hotspot what was elsewhere"
    items = returns(clear, tuning)
    if len(items) > tuning.returns:
        what = "from a hotspot" if items[0].kind == "plan" else "what slots were added for"
        return items, f"withdrew {what} and came back {len(items) - 1} times"
    return None


def _steady(items: list[Evidence], movers: Mapping[int, set[str]]) -> list[Evidence]:
    """The last evidence of moving in, and what was before it with nearly the same users. A crowd
    gathers: others keep coming, and who was first has arrived meanwhile."""
    if not items:
        return items
    now = movers[items[-1].judged]
    return [item for item in items if len(now & movers[item.judged]) >= _SAME * len(now)]


def _accomplice(evidence: Sequence[Evidence], charges: Sequence[Charge]) -> Charge | None:
    """Of who was in all hotspots of a charge: clearly in one, or seen to move into one where that
    is the charge."""
    mine = {item.hotspots: item for item in evidence}
    for items, reason in charges:
        same = [mine[item.hotspots] for item in items if item.hotspots in mine]
        moving = all(item.moved for item in items)
        sure = any(item.moved if moving else item.clear for item in same)
        if sure and len(same) == len(items) and not reason.startswith("withdrew"):
            return same, f"with others {reason}"
    return None


def _accusation(
    name: str, charge: Charge, trial: Trial, together: Mapping[int, list[str]], tuning: GuardTuning
) -> Accusation:  # fmt: skip
    against, reason = charge
    rounds = tuple(sorted({item.round for item in against}))
    company = {o for item in against for of in item.hotspots for o in together.get(of, ())} | {name}
    return Accusation(
        name,
        f"{reason}, in rounds {rounds[0]} to {rounds[-1]}, with up to "
        f"{max(item.rate for item in against):.0%} of their recent queries in one",
        trial.features.of(trial.row[name]), tuple(sorted(company)[:LISTED]), len(company),
        tuple(item.to_dict() for item in against), rounds,
        {"normal_rate": max(item.normal_rate for item in against),
         "least_rate": tuning.least_rate, "factor": tuning.factor,
         "cluster_rate": trial.found.suspicious_rate, "rest_rate": trial.found.normal_rate},
    )  # fmt: skip
