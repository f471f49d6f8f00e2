"""The hotspots of a round that are one: one place, in several partitions or several times.

A target often lies across partitions of several slots, and each sensor sees a part of it; and while
the plan chases it, it is sensed again and again. Judged by pieces, who aims at one place would look
like someone with a little here and a little there.

Not in the document, which knows one partition per hotspot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.guard.places import Place, meet, place_of
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning

Floats = npt.NDArray[np.float64]
_ADDED = ("fresh", "recent", "older", "rate")


@dataclass(frozen=True, eq=False)
class Gathered:
    """Sightings of one place in one round, as one; ``sighting`` bears the id of the first."""

    hotspots: tuple[int, ...]
    donors: tuple[int, ...]
    sighting: Sighting


def gathered(
    sightings: Sequence[Sighting], limits: Sequence[float], tuning: GuardTuning
) -> list[Gathered]:  # fmt: skip
    """The hotspots of a round, pieces put together; those that nobody can be behind are left out.
    ``limits`` are the rates that are out of the common in each."""
    groups: list[tuple[list[Place], list[Sighting]]] = []
    for sighting, limit in zip(sightings, limits, strict=True):
        who = _candidates(sighting, limit, tuning)
        if sighting.kind == "scale_in" or not who.any():
            continue
        place = sighting.box
        if sighting.places is not None:
            place = place_of(sighting.places[who], sighting.columns["recent"][who])
        mine: tuple[list[Place], list[Sighting]] = ([] if place is None else [place], [sighting])
        apart = []
        for group in groups:
            if place is not None and any(meet(place, p, tuning.reach) for p in group[0]):
                mine = (group[0] + mine[0], group[1] + mine[1])
            else:
                apart.append(group)
        groups = [*apart, mine]
    return [_as_one(pieces) for _, pieces in groups]


def _candidates(seen: Sighting, limit: float, tuning: GuardTuning) -> npt.NDArray[np.bool_]:
    """Who may turn out to be part of it once all pieces are together."""
    of = seen.columns
    few = (of["recent"] < tuning.evidence_floor / 2) | (of["rate"] < limit / 2)
    return ~few & (of["older"] <= tuning.familiar * of["recent"])


def _as_one(pieces: list[Sighting]) -> Gathered:
    """Counts and rates are added over pieces that do not overlap; of what is seen several times the
    newest counts, and never less than the largest piece alone."""
    pieces = sorted(pieces, key=lambda piece: piece.hotspot)
    hotspots = tuple(piece.hotspot for piece in pieces)
    donors = tuple(sorted({piece.donor for piece in pieces}))
    last = pieces[-1]
    if len(pieces) == 1:
        return Gathered(hotspots, donors, last)
    users = tuple(dict.fromkeys(name for piece in pieces for name in piece.users))
    row = {name: place for place, name in enumerate(users)}
    current = _current(pieces)
    columns = {name: np.zeros(len(users)) for name in last.columns}
    highest = {name: np.zeros(len(users)) for name in _ADDED}
    weight, moments = np.zeros(len(users)), np.zeros((len(users), 4))
    left_at = np.zeros((len(users), 4))
    low = np.full(len(users), np.inf)
    for piece in pieces:
        rows = np.array([row[name] for name in piece.users], np.int64)
        of = piece.columns
        for name in _ADDED:
            highest[name][rows] = np.maximum(highest[name][rows], of[name])
            if piece in current:
                columns[name][rows] += of[name]
        for name in ("net", "left", "placed"):
            columns[name][rows] = of[name]
        low[rows] = np.minimum(low[rows], of["low"])
        left_at[rows] = piece.left_at
        if piece.places is not None:
            moments[rows] += of["recent"][:, None] * _raw(piece.places)
            weight[rows] += of["recent"]
    for name in _ADDED:
        columns[name] = np.maximum(columns[name], highest[name])
    columns["rate"] = np.minimum(columns["rate"], 1.0)
    columns["low"] = low
    places = _central(moments / np.maximum(weight, 1.0)[:, None]) if weight.any() else None
    total = sum(piece.total for piece in current)
    merged = Sighting(
        hotspots[0], last.kind, last.donor, last.round, total, _around(pieces), users, columns,
        places, left_at,
    )  # fmt: skip
    return Gathered(hotspots, donors, merged)


def _current(pieces: list[Sighting]) -> list[Sighting]:
    """The newest pieces of which no two overlap: what is seen twice must not count twice."""
    chosen: list[Sighting] = []
    for piece in reversed(pieces):
        box = piece.box
        if not chosen or (
            box is not None
            and all(c.box is not None and not _overlap(box, c.box) for c in chosen)
        ):  # fmt: skip
            chosen.append(piece)
    return chosen


def _overlap(one: Place, other: Place) -> bool:
    """Whether partitions share cells; upper ends are excluded."""
    return (
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    )  # fmt: skip


def _around(pieces: list[Sighting]) -> Place | None:
    boxes = [piece.box for piece in pieces if piece.box is not None]
    if not boxes:
        return None
    west, south, east, north = zip(*boxes, strict=True)
    return (min(west), min(south), max(east), max(north))


def _raw(spots: Floats) -> Floats:
    """Middle and spread as means of values and of squares, which can be averaged."""
    return np.hstack((spots[:, :2], spots[:, :2] ** 2 + spots[:, 2:] ** 2))


def _central(raw: Floats) -> Floats:
    return np.hstack((raw[:, :2], np.sqrt(np.maximum(raw[:, 2:] - raw[:, :2] ** 2, 0.0))))
