"""Attackers to test Guard with, and crowds that only look like them; all from one seed.

Attackers register queries at one target until all that they have lies there, terminating what they
had at the target before; then the next target is chosen from the live stream. Variants hide this:
members take turns, join late, rest between targets, place most queries like anybody else, or ask
snapshots instead. A crowd is many users at one place at one moment.

After the dissertation (004), 5.1.1 and 6.4; the variants and crowds are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from geoflux.workload.draws import Floats
from geoflux.workload.requests import Asked, Sample, Standing


@dataclass(frozen=True)
class Attack:
    """How an attack goes. The defaults are the dissertation's."""

    users: int = 10
    rate: float = 600.0
    """Registrations a second of all together."""
    queries: int = 100_000
    """What they keep standing, and move about."""
    start: float = 300.0
    side: float = 0.02
    """Side of a target as a share of the space's."""
    taking_part: float = 1.0
    """Share of the members that work on one target; below 1 they take turns, drawn anew."""
    joining: float = 0.0
    """Seconds between the appearances of members; half of them are there from the start."""
    rest: float = 0.0
    """Seconds between leaving a target and going to the next."""
    decoys: float = 0.0
    """Share of queries that are placed like anybody's."""
    snapshots: bool = False
    """Whether they ask snapshots instead of registering."""
    first: tuple[float, float] | None = None
    """The first target, such as where a crowd is."""

    @property
    def seconds(self) -> float:
        """How long they work on one target."""
        return self.queries / self.rate / (1 - self.decoys)

    def scaled(self, by: float) -> Attack:
        """With so many times the activity and queries, at the same pace."""
        return replace(self, rate=self.rate * by, queries=round(self.queries * by))


VARIANTS: Mapping[str, Attack] = {
    "one_user": Attack(users=1),
    "group": Attack(),
    "rotating": Attack(users=20, taking_part=0.5),
    "joining_late": Attack(users=20, joining=60.0),
    "low_and_slow": Attack(rate=150.0, queries=50_000, rest=240.0),
    "mimicking": Attack(decoys=0.5),
    "snapshots": Attack(rate=1200.0, snapshots=True),
}
"""What the tests and the benchmark attack with."""


class Attackers:
    """A group that makes hotspots to be chased."""

    def __init__(self, attack: Attack, seed: int) -> None:
        self.attack = attack
        self._rng = np.random.default_rng((seed, 2))
        self.names = tuple(f"attacker-{i}" for i in range(attack.users))
        self._standing = Standing(self.names, 2)
        self._keep = max(1, round(attack.queries / attack.users / attack.taking_part))
        self._target: tuple[float, float] | None = None
        self._until = 0.0
        self._members = np.arange(0)
        self.targets: list[tuple[float, float, float]] = []
        """When they went where."""

    def step(self, start: float, seconds: float, sample: Sample) -> Asked:
        """Requests of a span; before the attack they place what they have like anybody."""
        attack = self.attack
        if not self._standing.held(0) and not attack.snapshots:
            self._preload(sample)
        if start < attack.start:
            return self._standing.written()
        if self._target is None or start >= self._until + attack.rest:
            self._go_on(start, sample)
        if self._target is not None and start < self._until and len(self._members):
            self._work(int(self._rng.poisson(attack.rate * seconds)), sample)
        return self._standing.written()

    def _preload(self, sample: Sample) -> None:
        for user in range(self.attack.users):
            places = sample(self._keep)
            for x, y in zip(places[0].tolist(), places[1].tolist(), strict=True):
                self._standing.register(user, x, y)

    def _go_on(self, start: float, sample: Sample) -> None:
        attack = self.attack
        x, y = (float(values[0]) for values in sample(1))
        if self._target is None and attack.first is not None:
            x, y = attack.first
        self._target, self._until = (x, y), start + attack.seconds
        here = attack.users
        if attack.joining:
            late = int((start - attack.start) / attack.joining)
            here = min(here, (here + 1) // 2 + late)
        some = max(1, round(here * attack.taking_part))
        self._members = np.sort(self._rng.choice(here, some, replace=False))
        self.targets.append((start, x, y))

    def _work(self, count: int, sample: Sample) -> None:
        attack, rng = self.attack, self._rng
        assert self._target is not None
        who = rng.choice(self._members, count)
        xs, ys = (at + attack.side * (rng.random(count) - 0.5) for at in self._target)
        decoy = rng.random(count) < attack.decoys
        if decoy.any():
            xs[decoy], ys[decoy] = sample(int(decoy.sum()))
        xs, ys = (np.clip(values, 0.0, np.nextafter(1.0, 0.0)) for values in (xs, ys))
        for user, x, y in zip(who.tolist(), xs.tolist(), ys.tolist(), strict=True):
            if attack.snapshots:
                self._standing.ask(user, x, y)
            else:
                self._standing.register(user, x, y)
                self._standing.end_oldest(user, self._keep)


@dataclass(frozen=True)
class Gathering:
    """How a crowd comes together."""

    users: int = 300
    queries: int = 30
    """Of each user."""
    start: float = 300.0
    arriving: float = 120.0
    """Seconds within which they come."""
    staying: float = 900.0
    """Seconds after which they go, each when they have been there so long."""
    at: tuple[float, float] = (0.5, 0.5)
    spread: float = 0.02
    """Standard deviation around the place, as a share of the space's side."""
    refresh: float = 0.0
    """Seconds after which everybody replaces all they have, as a phone does whose owner walks."""
    moving: bool = False
    """Whether they had as many queries where they came from, and bring them one by one while they
    arrive: what attackers do, but for being many."""


class Crowd:
    """Many users, one place, one moment; innocent."""

    def __init__(self, gathering: Gathering, seed: int) -> None:
        self.gathering = gathering
        self._rng = np.random.default_rng((seed, 3))
        self.names = tuple(f"visitor-{i}" for i in range(gathering.users))
        self._standing = Standing(self.names, 3)
        self._comes = gathering.start + gathering.arriving * self._rng.random(gathering.users)
        self._renews = self._comes + gathering.refresh
        self._home = gathering.moving
        if gathering.moving:
            self._comes[:] = np.inf

    def step(self, start: float, seconds: float, sample: Sample) -> Asked:
        """Requests of a span."""
        g, end = self.gathering, start + seconds
        if self._home:
            self._home = False
            for user in range(g.users):
                for x, y in zip(*(at.tolist() for at in sample(g.queries)), strict=True):
                    self._standing.register(user, x, y)
        if g.moving and g.start <= start < g.start + g.arriving:
            each = g.queries * seconds / g.arriving
            for user in np.repeat(np.arange(g.users), self._rng.poisson(each, g.users)).tolist():
                self._place(user, 1)
                self._standing.end_oldest(user, g.queries)
        for user in _within(self._comes, start, end):
            self._place(user, g.queries)
        for user in _within(self._comes + g.staying, start, end):
            self._leave(user)
            self._renews[user] = np.inf
        if g.refresh:
            for user in _within(self._renews, start, end):
                self._leave(user)
                self._place(user, g.queries)
                self._renews[user] += g.refresh
        return self._standing.written()

    def _place(self, user: int, count: int) -> None:
        g = self.gathering
        places = self._rng.normal(g.at, g.spread, (count, 2))
        for x, y in np.clip(places, 0.0, np.nextafter(1.0, 0.0)).tolist():
            self._standing.register(user, x, y)

    def _leave(self, user: int) -> None:
        for _ in range(self._standing.held(user)):
            self._standing.end_oldest(user)


def _within(moments: Floats, start: float, end: float) -> list[int]:
    """Whose moment lies in a span."""
    due: list[int] = np.flatnonzero((moments >= start) & (moments < end)).tolist()
    return due
