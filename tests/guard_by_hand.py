"""Guard driven by hand: users place and end queries, hotspots are where the test says."""

from __future__ import annotations

import numpy as np

from geoflux.guard import Found, Guard, GuardTuning, Verdict, sense
from geoflux.guard.features import Features
from geoflux.guard.receiver import REGISTER, TERMINATE

SIDE = 1000.0
LISBON, OSLO, ROME = (100.0, 100.0), (150.0, 900.0), (700.0, 200.0)
PLACES = [LISBON, OSLO, ROME, (500.0, 500.0), (900.0, 900.0), (300.0, 700.0), (850.0, 550.0)]
CREW = [f"crew-{i}" for i in range(6)]
PUBLISHED, ROBUST = GuardTuning.published(), GuardTuning()


class Stage:
    """A space of 1000 by 1000 cells; ``normals`` place ten queries a round, anywhere."""

    def __init__(self, tuning: GuardTuning, normals: int = 20, seed: int = 1) -> None:
        self.guard = Guard(tuning)
        self.rng = np.random.default_rng(seed)
        self.normals = [f"normal-{i}" for i in range(normals)]
        self.rows: list[tuple[str, int, float, float]] = []  # user, number, x, y
        self.number = self.occasion = 0
        self.now = 0.0

    def ask(self, op: int, user: str, rows: list[tuple[str, int, float, float]]) -> int:
        """One user's requests of one kind; gives how many were refused."""
        if not rows:
            return 0
        at = (np.array([r[2] for r in rows]), np.array([r[3] for r in rows]))
        ops = np.full(len(rows), op, np.uint8)
        refused = self.guard.receive(ops, [user] * len(rows), self.now, self.number, at)
        return int(refused.sum())

    def place(self, user: str, count: int, at: tuple[float, float] | None = None) -> int:
        """Queries around a place, or anywhere; gives how many were refused."""
        if at is None:
            spots = self.rng.random((count, 2)) * SIDE
        else:
            spots = np.array(at) + self.rng.normal(0, 3.0, (count, 2))
        rows = [(user, self.number + i, float(x), float(y)) for i, (x, y) in enumerate(spots)]
        refused = self.ask(REGISTER, user, rows)
        if not refused:
            self.rows += rows
            self.number += count
        return refused

    def end(self, user: str, count: int) -> int:
        """A user's oldest queries end."""
        mine = [row for row in self.rows if row[0] == user][:count]
        refused = self.ask(TERMINATE, user, mine)
        self.rows = [row for row in self.rows if row not in mine]
        return refused

    def hotspot(self, at: tuple[float, float], reach: float = 40.0, donor: int = 0) -> int | None:
        """The partition around a place is about to be relieved."""
        box = (at[0] - reach, at[1] - reach, at[0] + reach, at[1] + reach)
        inside = [
            r for r in self.rows if box[0] <= r[2] < box[2] and box[1] <= r[3] < box[3]
        ]  # fmt: skip
        names = sorted({row[0] for row in inside})
        numbers = np.array([row[1] for row in inside], np.int64)
        found = Found(
            tuple(names),
            np.array([names.index(row[0]) for row in inside], np.int64),
            self.guard.rounds.of(numbers),
            np.array([row[2] for row in inside]),
            np.array([row[3] for row in inside]),
        )
        self.occasion += 1
        now = self.guard.rounds.current
        return self.guard.sense(sense(found, donor, self.occasion, box=box, round=now))

    def close(self) -> Verdict:
        """Normal users do what they do, and the round ends."""
        for user in self.normals:
            self.place(user, 10)
        self.now += 60.0
        return self.guard.close(self.now, self.number)

    def warm_up(self, rounds: int = 5) -> None:
        for _ in range(rounds):
            self.close()

    @property
    def blocked(self) -> set[str]:
        return {block.user for block in self.guard.blocks.listed()}


def warm(tuning: GuardTuning, normals: int = 20) -> Stage:
    stage = Stage(tuning, normals)
    stage.warm_up()
    return stage


def raid(stage: Stage, members: list[str], at: tuple[float, float], count: int = 40) -> None:
    """Members make a hotspot, and are gone when the round is over."""
    for member in members:
        stage.place(member, count, at)
    stage.hotspot(at)
    stage.close()
    for member in members:
        stage.end(member, count)


def table(rows: dict[str, dict[int, float]]) -> Features:
    values = np.zeros((len(rows), 14))
    for k, cells in enumerate(rows.values()):
        for feature, value in cells.items():
            values[k, feature] = value
    return Features(tuple(rows), values)
