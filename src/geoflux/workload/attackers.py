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

from geoflux.workload.draws import Floats, Indices
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
    side: float = 0.008
    """Side of a target as a share of the space's: queries around one spot."""
    looked_at: int = 100
    """Events of the live stream that the next target is chosen from: where most of them are, but
    not where the last one was."""
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


_AROUND, _ELSEWHERE = 0.02, 0.1
"""As shares of the space's side: how near events are to each other, and how far a target is from
the last one, at least."""


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
        everybody = np.repeat(np.arange(self.attack.users), self._keep)
        self._standing.register(everybody, *sample(len(everybody)))

    def _go_on(self, start: float, sample: Sample) -> None:
        attack = self.attack
        x, y = self._next_target(sample)
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

    def _next_target(self, sample: Sample) -> tuple[float, float]:
        """The spot of the live stream with most events around it, away from the last target."""
        at = np.array(sample(self.attack.looked_at))
        apart = np.abs(at[:, :, None] - at[:, None, :]).max(axis=0)
        crowded = (apart <= _AROUND).sum(axis=0)
        if self._target is not None:
            last = np.abs(at - np.array(self._target)[:, None]).max(axis=0)
            crowded[last <= _ELSEWHERE] = 0
        best = int(crowded.argmax())
        return float(at[0, best]), float(at[1, best])

    def _work(self, count: int, sample: Sample) -> None:
        attack, rng = self.attack, self._rng
        assert self._target is not None
        who = rng.choice(self._members, count)
        xs, ys = (at + attack.side * (rng.random(count) - 0.5) for at in self._target)
        decoy = rng.random(count) < attack.decoys
        if decoy.any():
            xs[decoy], ys[decoy] = sample(int(decoy.sum()))
        xs, ys = (np.clip(values, 0.0, np.nextafter(1.0, 0.0)) for values in (xs, ys))
        if attack.snapshots:
            self._standing.ask(who, xs, ys)
        else:
            self._standing.register(who, xs, ys)
            self._standing.keep(self._keep)


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
    bringing: float | None = None
    """Seconds that each takes to bring them, one user beginning after another; ``None``: all of
    them all the time while they arrive."""


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
        self._begins = np.full(gathering.users, gathering.start)
        if gathering.moving:
            if gathering.bringing is not None:
                self._begins = self._comes.copy()
            self._comes[:] = np.inf

    def step(self, start: float, seconds: float, sample: Sample) -> Asked:
        """Requests of a span."""
        g, end = self.gathering, start + seconds
        if self._home:
            self._home = False
            everybody = np.repeat(np.arange(g.users), g.queries)
            self._standing.register(everybody, *sample(len(everybody)))
        if g.moving:
            lasts = g.arriving if g.bringing is None else g.bringing
            busy = (self._begins <= start) & (start < self._begins + lasts)
            each = self._rng.poisson(g.queries * seconds / lasts * busy)
            self._place(np.repeat(np.arange(g.users), each))
            self._standing.keep(g.queries)
        self._place(np.repeat(_within(self._comes, start, end), g.queries))
        for user in _within(self._comes + g.staying, start, end).tolist():
            self._leave(user)
            self._renews[user] = np.inf
        if g.refresh:
            for user in _within(self._renews, start, end).tolist():
                self._leave(user)
                self._place(np.repeat(user, g.queries))
                self._renews[user] += g.refresh
        return self._standing.written()

    def _place(self, who: Indices) -> None:
        g = self.gathering
        places = self._rng.normal(g.at, g.spread, (len(who), 2))
        x, y = np.clip(places, 0.0, np.nextafter(1.0, 0.0)).T
        self._standing.register(who, x, y)

    def _leave(self, user: int) -> None:
        self._standing.end_oldest(user, self._standing.held(user))


def _within(moments: Floats, start: float, end: float) -> Indices:
    """Whose moment lies in a span."""
    return np.flatnonzero((moments >= start) & (moments < end))
