"""Continuous queries: every due epoch is answered once, as of its commit, whatever crashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from test_sketching import CONFIG, WEATHER, Rows
from typer.testing import CliRunner

import geoflux
from geoflux.cli.main import app
from geoflux.engine import sketch_reader
from geoflux.engine.continuous import ANSWERS, Answering, configured, is_due
from geoflux.engine.following import follow_sketch
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.sketch_reader import SketchReader, open_sketch, sketch_of
from geoflux.engine.source import EventSource
from geoflux.errors import ConfigError, QueryError
from geoflux.keyed_api import first_plan, setting_of
from geoflux.operators.sketching import Sketch
from geoflux.sections_sketch import ContinuousConfig
from geoflux.state.store import Store

COUNTED = ContinuousConfig("counted", "SELECT count(*), mean(t2m_k)")
TABLE = WEATHER.table()
SIZE = 500


class Running:
    """A run of the sketch, epoch by epoch, that can be begun again."""

    def __init__(self, folder: Path, *given: ContinuousConfig) -> None:
        self.store, operator = Store(str(folder)), sketch_of(CONFIG)
        self.store.write_json("run.json", {"format": 1, "config": CONFIG.as_dict()})
        setting = setting_of(operator, CONFIG, self.store)
        self.engine = KeyedEngine.recovered(setting, lambda: first_plan(CONFIG, operator))
        self.answering = Answering(SketchReader(folder), configured(given, operator.schema))
        self.answering.catch_up()

    def epoch(self, answered: bool = True) -> None:
        epoch = 0 if self.engine.last is None else self.engine.last + 1
        span = epoch * SIZE, (epoch + 1) * SIZE
        run_epoch(self.engine, cast("EventSource", Rows(TABLE)), epoch, span)
        if answered:
            self.answering.answer(epoch)

    def over(self) -> None:
        self.store.write_json("summary.json", {"epochs": len(self.store.names("epochs/manifests"))})


def counts(folder: Path, name: str = "") -> list[tuple[int, int]]:
    told = geoflux.continuous_answers(folder, name)
    return [(one["epoch"], one["rows"][0]["count(*)"]) for one in told]


def test_every_epoch_is_answered_as_of_its_commit(tmp_path: Path) -> None:
    running = Running(tmp_path, COUNTED)
    for _ in range(4):
        running.epoch()
    assert counts(tmp_path) == [(epoch, (epoch + 1) * SIZE) for epoch in range(4)]
    first = next(geoflux.continuous_answers(tmp_path))
    assert first["rows"][0]["mean(t2m_k)"] == pytest.approx(
        WEATHER.values[:SIZE, 0].mean(), rel=1e-12
    )
    assert first["rows"][0]["mean(t2m_k)_kind"] == "exact"


def test_a_crash_before_the_answer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    running = Running(tmp_path, COUNTED)
    running.epoch()
    running.epoch(answered=False)  # killed between commit and answer
    assert counts(tmp_path) == [(0, SIZE)]
    again = Running(tmp_path, COUNTED)
    assert counts(tmp_path) == [(0, SIZE), (1, 2 * SIZE)]
    again.epoch()
    written = tmp_path / ANSWERS / f"{2:012d}.ndjson"
    before = written.stat().st_mtime_ns
    Running(tmp_path, COUNTED).answering.answer(2)  # killed after the answer
    assert written.stat().st_mtime_ns == before
    assert counts(tmp_path) == [(0, SIZE), (1, 2 * SIZE), (2, 3 * SIZE)]


def test_a_half_written_answer_is_none(tmp_path: Path) -> None:
    running = Running(tmp_path, COUNTED)
    running.epoch(answered=False)
    (tmp_path / ANSWERS).mkdir()
    (tmp_path / ANSWERS / f".{0:012d}.ndjson.abc").write_text('{"name": "coun')
    Running(tmp_path, COUNTED)
    assert counts(tmp_path) == [(0, SIZE)]


def test_queries_come_and_go_while_the_run_goes(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.epoch()
    assert not (tmp_path / ANSWERS).exists(), "nobody asked"
    geoflux.place_query(tmp_path, "warm", "SELECT count(*) WHERE t2m_k > 280")
    running.epoch()
    geoflux.drop_query(tmp_path, "warm")
    running.epoch()
    assert [epoch for epoch, _ in counts(tmp_path, "warm")] == [1]
    with pytest.raises(ConfigError, match="no query warm was placed here; placed: none"):
        geoflux.drop_query(tmp_path, "warm")


def test_seconds_are_those_of_the_commits() -> None:
    committed = [100.0, 110.0, 119.9, 121.0, 300.0, 301.0]
    pairs = zip([None, *committed], committed, strict=False)
    assert [now for before, now in pairs if is_due(60.0, before, now)] == [100.0, 121.0, 300.0]


def test_a_query_of_minutes_is_answered_once_in_each(tmp_path: Path) -> None:
    running = Running(tmp_path, COUNTED, ContinuousConfig("hourly", COUNTED.query, "1000h"))
    for _ in range(3):
        running.epoch()
    assert len(counts(tmp_path, "counted")) == 3
    assert [epoch for epoch, _ in counts(tmp_path, "hourly")] == [0]


def test_mistakes_of_the_settings_are_told_at_once() -> None:
    given = [
        ContinuousConfig("a", "SELECT mean(temp)"),
        ContinuousConfig("no name", "SELECT count(*)"),
        ContinuousConfig("b", "SELECT count(*)"),
        ContinuousConfig("b", "SELECT count(*)"),
    ]
    with pytest.raises(ConfigError) as told:
        configured(given, sketch_of(CONFIG).schema)
    for part in (
        "sketch.continuous[0]: unknown feature 'temp'", "line 1, column 13", "'no name'",
        "two queries are called b",
    ):  # fmt: skip
        assert part in str(told.value)
    with pytest.raises(ConfigError, match=r"sketch\.continuous\[0\]\.every"):
        geoflux.Config.from_dict({"sketch": {"continuous": [{"every": "often"}]}})


def test_a_file_that_is_no_query_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    running = Running(tmp_path, COUNTED)
    for name, form in (("one", {"query": "SELECT mean(temp)"}), ("two", {"asked": 1}), ("x", 5)):
        running.store.write_json(f"continuous/{name}.json", form)
    running.epoch()
    told = {one["name"]: one for one in geoflux.continuous_answers(tmp_path)}
    assert "rows" in told["counted"]
    assert "unknown feature 'temp'" in told["one"]["mistake"]
    assert 'expected {"query"' in told["two"]["mistake"]
    assert 'expected {"query"' in told["x"]["mistake"]


def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(tmp_path)
    running.epoch()
    reader = SketchReader(tmp_path)
    first = reader.read()
    assert reader.read().forests[0] is first.forests[0], "nothing came: nothing is opened"
    running.epoch()
    whole: list[Any] = []
    real = sketch_reader.opened
    monkeypatch.setattr(sketch_reader, "opened", lambda *a: whole.append(a) or real(*a))
    second = reader.read()
    journals = [
        refs for refs in running.engine.manifest(1)["states"].values() if len(refs) > 1
    ]  # fmt: skip
    assert journals, "some of it was journalled"
    assert len(whole) == len(second.forests) - len(journals)
    fresh = open_sketch(tmp_path)
    asked = "SELECT count(*), mean(t2m_k), max(dew_k), corr(t2m_k, msl_pa) GROUP BY geohash(1)"
    assert second.query(asked).to_dict() == fresh.query(asked).to_dict()


def test_what_a_run_made_ready_is_the_same_and_is_not_taken_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(tmp_path)
    for _ in range(3):
        running.epoch()
    asked = "SELECT count(*), mean(t2m_k), corr(t2m_k, msl_pa), deciles(dew_k) GROUP BY geohash(1)"
    before = open_sketch(tmp_path).query(asked).to_dict()
    SketchReader(tmp_path).made_ready()
    with monkeypatch.context() as patch:
        patch.setattr(Sketch, "process", lambda *_: pytest.fail("a row was taken in again"))
        assert open_sketch(tmp_path).query(asked).to_dict() == before
    running.epoch()
    assert open_sketch(tmp_path).observations == 4 * SIZE, "the copies are out of date"
    Running(tmp_path)
    assert not list((tmp_path / "state").glob("ready*")), "who goes on sweeps them away"
    assert open_sketch(tmp_path).observations == 4 * SIZE


def test_following_a_run_until_it_is_over(tmp_path: Path) -> None:
    running = Running(tmp_path)
    turns = iter([running.epoch, lambda: None, running.epoch, running.over])
    told = follow_sketch(tmp_path, "SELECT count(*)", wait=lambda _: next(turns)())
    found = [(one.epoch, int(one.answer["count(*)"].value[0])) for one in told]
    assert found == [(0, SIZE), (1, 2 * SIZE)]
    again = [
        one.epoch for one in follow_sketch(tmp_path, '{"select": [{"count": []}], "every": 5}')
    ]
    assert again == [1], "a finished run is answered once"
    with pytest.raises(ConfigError, match="neither epoch nor a duration"):
        follow_sketch(tmp_path, "SELECT count(*)", "often")
    with pytest.raises(QueryError, match="unknown feature"):
        follow_sketch(tmp_path, "SELECT mean(temp)", "epoch")


def _told(*arguments: str) -> str:
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_from_the_command_line(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.epoch()
    out = str(tmp_path)
    _told("continuous", "place", out, "storms", "SELECT count(*) WHERE wind_ms > 5")
    running.epoch()
    running.over()
    shown = _told("continuous", "show", out)
    assert "storms" in shown
    assert "epoch" in shown
    lines = _told("continuous", "show", out, "storms", "--json").splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1]
    followed = _told("query", out, "SELECT count(*)", "--every", "epoch", "--json").splitlines()
    assert [json.loads(line)["rows"][0]["count(*)"] for line in followed] == [2 * SIZE]
    assert "epoch 1, " in _told("query", out, "SELECT count(*)", "--every", "1s", "--answers", "1")
    assert "no longer asked" in _told("continuous", "drop", out, "storms")


def test_answers_become_files(tmp_path: Path) -> None:
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    running = Running(tmp_path / "run")
    running.epoch()
    out = str(tmp_path / "run")
    rows, graph = tmp_path / "rows.parquet", tmp_path / "graph.arrow"
    _told("query", out, "SELECT synthetic(50, 1)", "--out", str(rows))
    assert pq.read_table(rows).num_rows == 50
    assert f"{graph.stem}-edges.arrow" in _told("query", out, "SELECT graph", "--out", str(graph))
    edges = feather.read_table(tmp_path / "graph-edges.arrow")
    assert edges.num_rows < feather.read_table(graph).num_rows
    assert len(open_sketch(out).query("SELECT synthetic(20, 1)").to_pandas()) == 20
