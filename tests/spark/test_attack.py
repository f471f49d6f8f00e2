"""A shortened attack end to end: real rounds of a few seconds, users who ask while the run goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from geoflux import api
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.guard_reader import guard_view
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.workload import Scenario, Simulator
from geoflux.workload.attackers import Attack, Attackers
from geoflux.workload.requests import REGISTER, TERMINATE, Asked, NormalUsers

SIDE = 0.006
"""Of a query, as a share of the space's."""
EPOCH_SECONDS = 0.5
"""Between the starts of two epochs; on a slow machine users wait for them."""
MOST_EPOCHS = 100


class Streets:
    """Where the events of a run are, as shares of the space."""

    def __init__(self, config: Config) -> None:
        simulator = Simulator(Scenario.of(config), 0.0, lambda: 10.0)
        pieces = simulator.slices(0, 20_000, 1)
        tables = [batch.table for piece in pieces for batch in simulator.read(piece)]
        self._x = np.concatenate([t.column("lon").to_numpy() for t in tables]) / 360 + 0.5
        self._y = np.concatenate([t.column("lat").to_numpy() for t in tables]) / 180 + 0.5
        self._rng = np.random.default_rng(5)

    def sample(self, count: int) -> tuple[Any, Any]:
        at = self._rng.integers(0, len(self._x), count)
        return self._x[at], self._y[at]


class Town:
    """Normal users and attackers, who write their requests into the control file."""

    def __init__(self, path: Path, config: Config, attack: Attack) -> None:
        self._path, self._streets = path, Streets(config)
        self.normal = NormalUsers(3, users=25, rate=50.0, queries=1200)
        self.attackers = Attackers(attack, 3)
        self._now = 0.0
        self.ask()

    def ask(self) -> None:
        """The requests of an epoch; at first all that is there."""
        people = (self.normal, self.attackers)
        sample = self._streets.sample
        asked = Asked.joined([p.step(self._now, EPOCH_SECONDS, sample) for p in people])
        self._now += EPOCH_SECONDS
        with open(self._path, "a") as file:
            file.write("".join(json.dumps(record) + "\n" for record in _records(asked)))


def _records(asked: Asked) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for op, user, key, x, y in zip(asked.op, asked.user, asked.key, asked.x, asked.y, strict=True):
        if op == TERMINATE:
            out.append({"op": "terminate", "id": f"q{key}"})
            continue
        assert op == REGISTER
        west, south = 360 * (x - SIDE / 2) - 180, 180 * (y - SIDE / 2) - 90
        shape = {"type": "rectangle", "west": max(west, -180), "south": max(south, -90),
                 "east": min(west + 360 * SIDE, 180), "north": min(south + 180 * SIDE, 90)}  # fmt: skip
        out.append({"op": "register", "id": f"q{key}", "user": asked.names[user], "shape": shape})
    return out


def test_attackers_are_blocked_and_hardly_anybody_else(tmp_path: Path, spark: SparkSession) -> None:
    control, out = tmp_path / "control.ndjson", tmp_path / "out"
    control.write_text("")
    config = Config.from_dict(
        {
            "space": {"grid": [400, 400]}, "control": {"path": str(control)},
            "engine": {"slots": 4, "balance": "swarm", "epoch_events": 3000,
                       "epoch_seconds": EPOCH_SECONDS},
            "simulate": {"paced": False, "time_speed": 0.0}, "run": {"mode": "follow"},
            "swarm": {"round": "1s"},
            "guard": {"enabled": True, "round": "3s", "warm_up_rounds": 1, "placed": "remove",
                      "removal_rounds": [20, 30]},
        }
    )  # fmt: skip
    town = Town(control, config, Attack(users=4, rate=200.0, queries=500, start=4.0, side=0.02))
    streams: list[Any] = []
    blocked: set[str] = set()
    since: list[int] = []

    def on_epoch(manifest: Manifest) -> None:
        blocked.update(block["user"] for block in manifest["guard"]["blocks"])
        if blocked >= set(town.attackers.names):
            since.append(manifest["epoch"])
        if len(since) > 3 or manifest["epoch"] == MOST_EPOCHS:
            streams[0].stop()
        town.ask()

    api.run(config, out, spark=spark, on_epoch=on_epoch, on_start=streams.append)
    # Rounds go by the clock: on a slow machine a round is few requests, and one of 25 others may be
    # taken for an attacker. What Guard makes of the same requests every time is in the laws.
    others = blocked - set(town.attackers.names)
    assert blocked >= set(town.attackers.names), (blocked, town.attackers.targets)
    assert len(others) <= 1, (others, town.attackers.targets)
    manifests = list(EpochLog(Store(str(out))).manifests())
    for m in manifests:
        assert m["received"] == m["processed"] + m["quarantined"] + m["carried_out"]
    rows = pq.read_table(out / "quarantine").to_pylist()
    refused = [row for row in rows if row["reason"] == "blocked_user"]
    assert len(refused) == sum(m["guard"]["refused"] for m in manifests) > 0
    assert all(row["detail"].startswith("user '") for row in refused)
    attacks = [row for row in refused if row["detail"].startswith("user 'attacker-")]
    assert len(attacks) > 0.9 * len(refused)
    view = guard_view(out)
    assert view.blocks.blocked == blocked
    for block in view.blocks.listed():
        assert block.evidence is not None
        assert block.evidence["hotspots"]
    assert api.verify(out).is_clean
