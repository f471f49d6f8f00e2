"""A run with users, some of whom make hotspots for the plan to chase; without Spark.

Events lie in a few cities and so do the queries of most users. Attackers have theirs in one city,
and take them to another every few epochs. An epoch is a second of the run's clock.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parent / "laws"))

from test_swarm_run_laws import Measured, tuning_of
from test_window_laws import Run

from geoflux.engine.epochs import Manifest
from geoflux.plan import GridPlan
from geoflux.state.epoch_log import EpochLog

CITIES = [(-120.0, 40.0), (-60.0, -20.0), (2.0, 48.0), (30.0, -30.0), (100.0, 20.0), (140.0, -35.0)]
NORMAL, ATTACKERS = 16, 3
STAYS = 4
"""Epochs that attackers stay in a city."""
SIDE = 60
SLOTS = 4
Record = dict[str, Any]


def box(dice: random.Random, city: int, wide: float = 4.0) -> Record:
    x, y = (dice.gauss(middle, wide) for middle in CITIES[city])
    return {"type": "rectangle", "west": x - 2, "south": y - 2, "east": x + 2, "north": y + 2}


def register(user: str | None, name: str, shape: Record) -> Record:
    named = {} if user is None else {"user": user}
    return {"op": "register", "id": name, "shape": shape, **named}


class Story:
    """Events of all epochs, and the control records before each."""

    def __init__(
        self, seed: int, epochs: int = 30, events: int = 60, attack: int = 6,
        named: Callable[[str], str | None] = str,
    ) -> None:  # fmt: skip
        dice = self.dice = random.Random(seed)
        self.rows = []
        for serial in range(epochs * events):
            city = dice.randrange(len(CITIES))
            lon, lat = (dice.gauss(middle, 4.0) for middle in CITIES[city])
            self.rows.append({"id": serial, "lon": lon, "lat": lat, "time": serial // events})
        self.epochs, self.events = epochs, events
        self._number = 0
        self._held: dict[str, list[str]] = {}
        self._named = named
        self.batches = [self._epoch(k, attack) for k in range(epochs)]

    def _epoch(self, epoch: int, attack: int) -> list[Record]:
        dice, out = self.dice, []
        for k in range(NORMAL):
            for _ in range(12 if epoch == 0 else dice.randrange(3)):
                out += self._place(f"user-{k}", dice.randrange(len(CITIES)), 12)
        for k in range(ATTACKERS):
            if epoch == 0 or epoch >= attack:
                target = (epoch - attack) // STAYS * 5 % len(CITIES)
                for _ in range(40 if epoch == 0 else 14):
                    city = dice.randrange(len(CITIES)) if epoch == 0 else target
                    out += self._place(f"attacker-{k}", city, 40)
        return out

    def _place(self, user: str, city: int, keeps: int) -> list[Record]:
        held = self._held.setdefault(user, [])
        held.append(f"q{self._number}")
        self._number += 1
        wide = 1.0 if user.startswith("attacker") else 4.0
        out = [register(self._named(user), held[-1], box(self.dice, city, wide))]
        if len(held) > keeps:
            out.append({"op": "terminate", "id": held.pop(0)})
        return out


GUARD = {"enabled": True, "round": "3s"}


def started(
    folder: Path, story: Story, guard: dict[str, Any] | None = None, policy: Any = None,
    wanted: Callable[[Run], int] | None = None, **more: Any,
) -> Run:  # fmt: skip
    """A run that has not done an epoch; ``wanted`` says how many slots it should have."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "space": {"grid": [SIDE, SIDE]}, "engine": {"slots": SLOTS, "lateness": "30s"},
        "run": {"mode": "follow"}, "guard": GUARD if guard is None else guard, **more,
    }  # fmt: skip
    policy = policy or Measured(tuning_of("geoflux"))
    run = Run(folder, config, GridPlan.initial(SIDE, SIDE, SLOTS), policy)
    if wanted is not None:
        run.wanted = lambda: wanted(run)
    run.start(pa.Table.from_pylist(story.rows), [])
    return run


def play(
    run: Run, story: Story, epochs: range | None = None,
    before: Callable[[int, tuple[int, int]], None] | None = None,
) -> list[Manifest]:  # fmt: skip
    """Epochs of a story; ``before`` each, something may happen. All manifests so far."""
    for number in epochs or range(story.epochs):
        run.tell(story.batches[number])
        run.now += 1.0
        span = story.events * number, story.events * (number + 1)
        if before is not None:
            before(number, span)
        run.epoch(number, span)
    return list(EpochLog(run.setting.store).manifests())


def blocks(manifests: list[Manifest]) -> dict[str, tuple[int, str]]:
    """Who was blocked, in which epoch, and why."""
    found = {}
    for m in manifests:
        for block in (m["guard"] or {"blocks": []})["blocks"]:
            found[block["user"]] = m["epoch"], block["reason"]
    return found


def quarantined(folder: Path) -> list[Record]:
    return pq.read_table(folder / "out/quarantine").to_pylist()
