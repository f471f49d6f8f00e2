"""The reader beside a run, its answers as rows and as JSON, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import geoflux
from geoflux.cli.main import app
from geoflux.config import Config
from geoflux.engine.answers import SNAPSHOT_SCHEMA, answers_table
from geoflux.errors import ConfigError, StateError
from geoflux.operators.events import Events
from geoflux.operators.retained import write_retained
from geoflux.plan import GridPlan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.held import Retained
from geoflux.state.store import Store

SCHEMA = pa.schema(
    [("id", pa.string()), ("lon", pa.float64()), ("lat", pa.float64()), ("time", pa.timestamp("us", "UTC")),
     ("speed", pa.float64()), ("kind", pa.string())]
)  # fmt: skip
GRID = Grid(Space("lonlat", -180.0, -90.0, 180.0, 90.0), 20, 10)
PLAN = GridPlan.initial(20, 10, 2)


class Run:
    """A run's directory, made by hand: one segment in the western partition per epoch."""

    def __init__(self, folder: Path, retention: dict[str, Any]) -> None:
        self.store = Store(str(folder))
        config = Config.from_dict({"space": {"grid": [20, 10]}, "retention": retention})
        schema = SCHEMA.serialize().to_pybytes().hex()
        self.store.write_json(
            "run.json", {"config": config.as_dict(), "started": 0, "lane": "fast", "schema": schema}
        )
        self.store.write_json("plans/00000001.json", PLAN.to_dict())
        self.retained, self.epoch = Retained(), 0

    def commit(self, drop: bool = False) -> None:
        if drop:
            for name in self.retained.segments():
                self.store.delete(name)
            self.retained = Retained()
        times = np.arange(3, dtype=np.int64) + self.epoch * 1_000_000
        events = Events(
            np.array([-100.0, -50.0, -50.0]), np.array([0.0, 10.0, 20.0]), times,
            pa.array([f"{self.epoch}-{i}" for i in range(3)]),
            {"speed": pa.array([1.5, None, float("nan")]), "kind": pa.array(["a\"b", None, "c"])},
        )  # fmt: skip
        held = write_retained(
            self.store, GRID, PLAN.partitions[0], events, (self.epoch, self.epoch)
        )
        self.retained = self.retained.added([held])
        manifest = {
            "epoch": self.epoch,
            "next_plan": 1,
            "held": self.retained.to_list(),
            "max_time": int(times[-1]),
        }
        EpochLog(self.store).commit(self.epoch, manifest)
        self.epoch += 1


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, {"events": 1000})


def test_a_reader_follows_the_run(run: Run) -> None:
    reader = geoflux.Snapshots(run.store.root)
    with pytest.raises(StateError, match="no epoch yet"):
        reader.ask({})
    for epoch in range(3):
        run.commit()
        assert reader.ask({}).matched == 3 * (epoch + 1)
    run.commit()
    run.commit()
    assert reader.ask({"where": "lat > 0 and time >= '1970-01-01T00:00:04Z'"}).matched == 2
    assert (
        geoflux.snapshot(
            run.store.root, {"shape": {"type": "circle", "lon": 100, "lat": 0, "radius_m": 10}}
        ).matched
        == 0
    )


def test_a_reader_survives_segments_that_the_run_has_dropped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.commit()
    reader = geoflux.Snapshots(run.store.root)
    exists = Store.exists

    def run_moves_on(store: Store, name: str) -> bool:
        found = exists(store, name)
        if run.epoch == 1:  # right after the reader looked
            run.commit(drop=True)
        return found

    monkeypatch.setattr(Store, "exists", run_moves_on)
    assert reader.ask({}).rows.column("id").to_pylist() == ["1-0", "1-1", "1-2"]


def test_a_segment_that_is_lost_is_said(run: Run) -> None:
    run.commit()
    run.store.delete(next(iter(run.retained.segments())))
    with pytest.raises(StateError, match="is missing"):
        geoflux.snapshot(run.store.root, {})


def test_time_cuts_exactly(tmp_path: Path) -> None:
    run = Run(tmp_path, {"time": "1s"})
    run.commit()
    run.commit()
    assert geoflux.snapshot(tmp_path, {}).rows.column("id").to_pylist()[0] == "0-2"


def test_mistakes_are_one_sentence(run: Run, tmp_path: Path) -> None:
    run.commit()
    with pytest.raises(ConfigError, match="did you mean 'speed'"):
        geoflux.snapshot(run.store.root, {"where": "sped > 1"})
    with pytest.raises(StateError, match="holds no run"):
        geoflux.snapshot(tmp_path / "elsewhere", {})
    off = Run(tmp_path / "off", {})
    off.commit()
    with pytest.raises(StateError, match=r"retention\.time"):
        geoflux.snapshot(off.store.root, {})


def test_answers_as_rows(run: Run) -> None:
    run.commit()
    reader = geoflux.Snapshots(run.store.root)
    listed = reader.ask({"id": "list", "nearest": {"lon": -50, "lat": 10, "k": 2}})
    told = reader.ask({"id": "told", "aggregate": {"functions": ["count"]}})
    nothing = reader.ask({"id": "none", "from": 99})
    table = answers_table(4, [listed, told, nothing])
    assert table.schema == SNAPSHOT_SCHEMA
    rows = table.to_pylist()
    assert [(r["snapshot_id"], r["kind"]) for r in rows] == [
        ("list", "event"), ("list", "event"), ("list", "summary"), ("told", "aggregate"), ("told", "summary"), ("none", "summary"),
    ]  # fmt: skip
    assert {r["epoch"] for r in rows} == {4}
    assert [(r["event_id"], r["distance"] is not None) for r in rows[:2]] == [
        ("0-1", True),
        ("0-2", True),
    ]
    assert json.loads(rows[0]["attributes"]) == {"speed": None, "kind": None}
    assert json.loads(rows[1]["attributes"]) == {"speed": None, "kind": "c"}
    assert (rows[2]["count"], rows[2]["partitions"], rows[2]["segments"]) == (2, 1, 1)
    assert (rows[3]["function"], rows[3]["value"], rows[3]["count"]) == ("count", 3.0, 3)
    assert (rows[5]["count"], rows[5]["partitions"], rows[5]["segments"]) == (0, 0, 0)
    assert answers_table(0, []).num_rows == 0
    (first,) = answers_table(0, [reader.ask({"where": "lon = -100"})]).slice(0, 1).to_pylist()
    assert json.loads(first["attributes"]) == {"speed": 1.5, "kind": 'a"b'}


def test_the_command_prints_a_table_and_json(run: Run) -> None:
    run.commit()
    out = CliRunner().invoke(
        app, ["snapshot", run.store.root, '{"where": "lat >= 10"}'], env={"COLUMNS": "200"}
    )
    assert out.exit_code == 0
    assert "2 events matched; read 1 of 1 partition, 1 of 1 segment" in out.output
    out = CliRunner().invoke(
        app, ["snapshot", run.store.root, "-", "--json"], input='{"where": "kind = \'c\'"}'
    )
    told = json.loads(out.stdout.strip().splitlines()[-1])
    assert (told["matched"], told["rows"][0]["id"], told["rows"][0]["speed"]) == (1, "0-2", None)
    assert told["rows"][0]["time"] == "1970-01-01T00:00:00.000002+00:00"
    for bad in ("{", "[]", '{"nearest": 1}'):
        assert isinstance(
            CliRunner().invoke(app, ["snapshot", run.store.root, bad]).exception, ConfigError
        )
