"""Who was part of a hotspot, held against what is normal there.

Enough of what a user placed lately must lie in it: more than a floor, more than the factor times
what is usual, more than chance, and not where they have always been; and those who did so must be
a part of the partition that matters.

Source: Guard 5.4, lines 12 to 14 of Algorithm 4; the floors are ours (trap 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.guard.clusters import Divided
from geoflux.guard.evidence import Evidence
from geoflux.guard.features import X6, Features
from geoflux.guard.gathering import Gathered
from geoflux.guard.places import Place, outside, place_of
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_NEARLY = 0.75
_ERRORS = 4.0
"""Standard errors by which a rate must exceed the usual one: a few queries may lie anywhere."""
_LEAST_CHANCE = 0.02


@dataclass(frozen=True, eq=False)
class Population:
    """How many users there are, how many are active, and the rows of those who are normal."""

    users: int
    active: int
    normal: Rows


def population_of(features: Features, found: Divided, tuning: GuardTuning) -> Population:
    """Normal are the active users outside the suspicious cluster; all active ones if that cluster
    is most of them, for then it is no group apart."""
    active = features.values[:, X6] >= 1
    count = int(active.sum())
    normal = found.normal[active[found.normal]]
    if len(normal) < max(tuning.least_users, count // 4):
        normal = np.flatnonzero(active)
    return Population(len(active), count, normal)


def limits(
    seen: Sighting, row: Mapping[str, int], population: Population, tuning: GuardTuning
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


def parts(
    one: Gathered, row: Mapping[str, int], population: Population, judged: int,
    tuning: GuardTuning,
) -> list[tuple[str, Evidence]]:  # fmt: skip
    """Who was part of a hotspot, and weakly who nearly was; nobody if nobody was for sure.
    ``judged`` is the newest hotspot that is judged now."""
    seen = one.sighting
    columns = seen.columns
    rate, recent = columns["rate"], columns["recent"]
    usual, limit = limits(seen, row, population, tuning)
    chance = max(usual, _LEAST_CHANCE)
    error = np.sqrt(chance * (1 - chance) / np.maximum(columns["placed"], 1.0))
    known = columns["older"] > tuning.familiar * recent
    out = (recent >= tuning.evidence_floor) & (rate >= limit) & ~known
    out &= rate >= np.minimum(chance + _ERRORS * error, 1.0)
    who = np.flatnonzero(out)
    made = who if seen.kind == "plan" else who[_risen(seen, who, tuning)]
    share = float(recent[made].sum()) / max(seen.total, 1)
    if not len(who) or share < tuning.least_share:
        return []
    place = seen.box if seen.places is None else place_of(seen.places[who], recent[who])
    moved = np.zeros(len(rate), np.bool_)
    many = min(tuning.crowd_share * population.active, tuning.crowd_users)
    if len(who) < many and recent[who].sum() * 2 >= recent.sum():
        moved[who] = moving_in(seen, who, place, tuning)
    weak = (recent >= tuning.evidence_floor / 2) & (rate >= limit / 2) & ~known
    return [
        (
            seen.users[i],
            Evidence(
                one.hotspots, seen.kind, one.donors, seen.round, judged, float(recent[i]),
                float(rate[i]), usual, share, place, bool(out[i]), bool(moved[i]),
                float(columns["net"][i]), float(columns["low"][i]),
            ),
        )
        for i in np.flatnonzero(out | weak)
    ]  # fmt: skip


def _risen(seen: Sighting, who: Rows, tuning: GuardTuning) -> Flags:
    """Who has come, or come back, with most of what is recent since they were last seen in a
    hotspot. A decision to scale is about everybody; but who was there all along has not caused
    it."""
    of = {name: column[who] for name, column in seen.columns.items()}
    return np.asarray(of["net"] - of["low"] >= tuning.withdrawn * of["recent"])


def is_entered(seen: Sighting, tuning: GuardTuning) -> bool:
    """Whether some are moving into a hotspot so that it is worth judging at once: the same as
    evidence, without what takes the round's features."""
    of = seen.columns
    out = (of["recent"] >= tuning.evidence_floor) & (of["rate"] >= tuning.least_rate)
    who = np.flatnonzero(out & (of["older"] <= tuning.familiar * of["recent"]))
    few = float(of["recent"][who].sum()) < tuning.least_share * max(seen.total, 1)
    if seen.kind != "plan" or seen.places is None or few:
        return False
    place = place_of(seen.places[who], of["recent"][who])
    return bool(moving_in(seen, who, place, tuning).any())


def moving_in(
    seen: Sighting, who: Rows, place: Place | None, tuning: GuardTuning
) -> Flags:  # fmt: skip
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
    return moved & outside(seen.left_at[who], place, tuning.reach)
