"""Single runs of `geoflux bench guard`, and what is counted of each.

What really happened is known from the attackers themselves: a hotspot is *made* if most of what the
donor had above the other slots was queries that attackers had placed at a target within the last
five rounds; an attacker took part in it if at least one of those was theirs. Until a block hotspots
are counted by targets, however often the plan was changed because of one; such changes are counted
beside them, several slots that shed at once as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean

from geoflux.bench.guard_cluster import EPOCH_SECONDS, Cluster, Placed
from geoflux.bench.guard_slots import Costs, Size
from geoflux.bench.guard_world import World
from geoflux.guard import GuardTuning
from geoflux.guard.tuning import Mode
from geoflux.workload.attackers import Attack, Attackers, Crowd, Gathering
from geoflux.workload.requests import NormalUsers, Population

NORMAL, MALICIOUS = 900_000, 100_000
"""Standing queries at the start."""
ACTIVITY = 600.0
"""Registrations a second of normal users."""
_EPOCHS = round(60 / EPOCH_SECONDS)
_LEAST_PLACE = 0.01
"""Of the grid's side, as Guard's default has it for 1000 cells."""


@dataclass(frozen=True)
class Scene:
    """What is run. Without an attack normal users have all queries, and ``extra`` activity."""

    attack: Attack | None = None
    gathering: Gathering | None = None
    extra: float = 0.0
    normal: float = ACTIVITY
    users: int = 100
    placed: Placed = "expire"


@dataclass(frozen=True)
class Scale:
    """How much of it: ``share`` of the dissertation's population, each standing for several."""

    share: float = 0.25
    minutes: float = 30.0
    settling: float = 3.0
    """Minutes before the first, in which the plan comes to fit; they are not counted."""
    size: Size = field(default_factory=Size)
    costs: Costs = field(default_factory=Costs)


@dataclass(frozen=True)
class Outcome:
    """What is counted of a run; times are by attacker."""

    throughput: tuple[float, ...]
    """Events a second that the cluster could carry, minute by minute."""
    availability: tuple[float, ...]
    hotspots: int
    made: int
    wrongly: tuple[str, ...]
    """Innocent users who were blocked."""
    missed: tuple[str, ...]
    """Attackers with two hotspots or more within the removal time who were not."""
    blocked: int
    detect_rounds: tuple[float, ...]
    """From an attacker's first hotspot until they were suspected, in detection rounds."""
    block_minutes: tuple[float, ...]
    """From an attacker's first hotspot until they were blocked."""
    before_block: tuple[int, ...]
    """Targets that became hotspots with an attacker's part in it until they were blocked."""
    changes_before: tuple[int, ...]
    """Changes of the plan because of these."""


def run_scene(scene: Scene, mode: Mode | None, seed: int, scale: Scale) -> Outcome:
    """One run from the first minute to the last; ``None`` is a cluster without Guard."""
    share, size = scale.share, scale.size
    standing = NORMAL if scene.attack is not None else NORMAL + MALICIOUS
    activity = (scene.normal + scene.extra) * share
    populations: list[Population] = [
        NormalUsers(seed, scene.users, activity, round(standing * share))
    ]
    busiest, later = _middle(seed, size), 60 * scale.settling
    attackers = None
    if scene.attack is not None:
        attack = scene.attack.scaled(share)
        attack = replace(attack, start=attack.start + later)
        if attack.first is not None:
            attack = replace(attack, first=busiest)
        attackers = Attackers(attack, seed)
        populations.append(attackers)
    if scene.gathering is not None:
        queries = max(1, round(scene.gathering.queries * share))
        start = scene.gathering.start + later
        crowd = replace(scene.gathering, at=busiest, queries=queries, start=start)
        populations.append(Crowd(crowd, seed))
    tuning = None
    if mode is not None:
        tuning = GuardTuning(mode=mode, least_place=_LEAST_PLACE * size.side)
    cluster = Cluster(
        populations, tuning, seed, size, scale.costs.of_scale(share), attackers,
        placed=scene.placed,
    )  # fmt: skip
    return counted(cluster.run(scale.settling + scale.minutes), attackers, scale.settling)


def _middle(seed: int, size: Size) -> tuple[float, float]:
    """Of the largest city: where crowds gather."""
    x, y = World(seed, side=size.side).middles[0].tolist()
    return float(x), float(y)


def counted(cluster: Cluster, attackers: Attackers | None, settling: float = 0.0) -> Outcome:
    """What is counted of a run that has ended; the minutes from ``settling`` on."""
    carried = cluster.carried[round(settling * _EPOCHS) :]
    names = () if attackers is None else attackers.names
    blocked = cluster.blocked()
    made = [seen for seen in cluster.sensed if seen.made]
    took_part = {
        name: sorted({seen.now for seen in made if seen.aimed.get(name)}) for name in names
    }
    suspected: dict[str, float] = {}
    for now, verdict in cluster.verdicts:
        for name in verdict.suspected:
            suspected.setdefault(name, now)
    tuning = cluster.guard_tuning or GuardTuning()
    lapse = tuning.removal_rounds[1] * tuning.round_seconds
    caught = [name for name in names if name in blocked and took_part[name]]
    first = {name: moments[0] for name, moments in took_part.items() if moments}
    found = [name for name in names if name in suspected and name in first]
    before = {name: [at for at in took_part[name] if at <= blocked[name]] for name in caught}
    begun = [] if attackers is None else [start for start, _, _ in attackers.targets]
    return Outcome(
        by_minute([one.capability for one in carried]),
        by_minute([one.available for one in carried]),
        len(cluster.sensed),
        len({seen.now for seen in made}),
        tuple(sorted(name for name in blocked if name not in names)),
        tuple(n for n in names if n not in blocked and is_repeated(took_part[n], lapse)),
        sum(name in blocked for name in names),
        tuple(max(0.0, suspected[n] - first[n]) / tuning.round_seconds for n in found),
        tuple(max(0.0, blocked[n] - first[n]) / 60 for n in caught),
        tuple(len({bisect_right(begun, at) for at in before[n]}) for n in caught),
        tuple(len(before[n]) for n in caught),
    )


def is_repeated(moments: Sequence[float], within: float) -> bool:
    """Whether two follow each other within a time.

    >>> is_repeated([10.0, 90.0], 60.0), is_repeated([10.0, 90.0, 100.0], 60.0)
    (False, True)
    """
    return any(b - a <= within for a, b in pairwise(moments))


def by_minute(values: Sequence[float]) -> tuple[float, ...]:
    """Means of the epochs of each minute; what is left of a last one is dropped."""
    return tuple(
        fmean(values[k : k + _EPOCHS]) for k in range(0, len(values) - _EPOCHS + 1, _EPOCHS)
    )


def recovery_minutes(attacked: Sequence[float], calm: Sequence[float], start: int) -> float | None:
    """Minutes from the lowest throughput after the attack began until it is back at what it is
    without an attack; ``None`` if it never is.

    >>> recovery_minutes([9, 9, 3, 5, 8.9, 9], [9] * 6, start=2)
    2.0
    """
    ratios = [a / c for a, c in zip(attacked, calm, strict=True)]
    lowest = min(range(start, len(ratios)), key=ratios.__getitem__)
    back = (k for k in range(lowest, len(ratios)) if ratios[k] >= _RECOVERED)
    found = next(back, None)
    return None if found is None else float(found - lowest)


_RECOVERED = 0.97


def pooled(outcomes: Sequence[Outcome], name: str) -> list[float]:
    """The values of all attackers of several runs."""
    return [float(value) for one in outcomes for value in getattr(one, name)]


CROWDS: Mapping[str, Scene] = {
    "arriving": Scene(gathering=Gathering(queries=600, staying=300.0)),
    "walking": Scene(gathering=Gathering(users=200, queries=600, staying=300.0, refresh=60.0)),
    "moving_at_once": Scene(
        gathering=Gathering(users=40, queries=3000, moving=True, arriving=200.0)
    ),
    "moving_in": Scene(
        gathering=Gathering(users=60, queries=2000, moving=True, arriving=400.0)
    ),
    "one_by_one": Scene(
        gathering=Gathering(users=120, queries=1000, moving=True, arriving=400.0, bringing=60.0)
    ),
    "quiet_night": Scene(normal=6.0, users=12),
}  # fmt: skip
"""Innocent ones; the last is next to nobody."""
