"""Asking and drawing a sketch from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_sketching import WEATHER, ran
from typer.testing import CliRunner

from geoflux.cli.main import app, main
from geoflux.engine.sketch_reader import open_sketch
from geoflux.workload.weather import FEATURES


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sketch")
    ran(folder, WEATHER.table(), epochs=1)
    return folder


def asked(*arguments: str) -> str:
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_a_question_in_sql_and_in_json(out: Path) -> None:
    shown = asked("query", str(out), "SELECT count(*), mean(t2m_k)")
    assert "6000" in shown
    assert "exact" in shown
    told = json.loads(
        asked("query", str(out), '{"select": [{"count": []}]}', "--json").splitlines()[-1]
    )
    assert next(iter(told["rows"][0].values())) == 6000


def test_a_row_of_many_columns_is_shown_from_top_to_bottom(out: Path) -> None:
    shown = asked("query", str(out), "SELECT deciles(t2m_k), regress(dew_k, t2m_k)")
    assert "deciles(t2m_k)_0.5" in shown
    assert "regress(dew_k, t2m_k)_slope" in shown


def test_leaves_and_synthetic_rows_are_tables(out: Path) -> None:
    assert "rows" in asked("query", str(out), "SELECT leaves", "--rows", "2")
    assert "3 rows" in asked("query", str(out), "SELECT synthetic(3, 1)")
    graph = asked("query", str(out), "SELECT graph", "--rows", "1")
    assert "vertices" in graph
    assert "edges between them" in graph


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["geoflux", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_mistake_says_where(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = mistake(capsys, "query", str(out), "SELECT mean(temp)")
    assert "unknown feature 'temp'" in told
    assert "line 1, column 13" in told
    assert "Traceback" not in told


def test_pictures_are_written(out: Path, tmp_path: Path) -> None:
    lon, lat = WEATHER.lon[0], WEATHER.lat[0]
    picture, page = tmp_path / "climate.png", tmp_path / "map.html"
    asked("chart", "climate", str(out), "--at", f"{lon},{lat}", "--by", "hour", "--out",
          str(picture))  # fmt: skip
    assert picture.read_bytes().startswith(b"\x89PNG")
    asked("chart", "map", str(out), "--feature", "t2m_k", "--correlation", "t2m_k,msl_pa",
          "--time", "2026-03-25/2026-03-25", "--box", "-90,-45,90,45", "--out", str(page))  # fmt: skip
    assert "mean of t2m_k, 2026-03-25 to 2026-03-25" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["climate", "--at", "1"], "--at 1: expected 2 numbers"),
        (["climate", "--at", "500,2"], "expected longitude,latitude"),
        (["climate", "--at", "0,89.99"], "ask for another place, the nearest is --at "),
        (["climate", "--at", "1,2", "--second", "rain"], "--second rain: the sketch has t2m_k"),
        (["map", "--feature", "t2m_k", "--time", "today"], "--time today: expected from/to"),
        (["map", "--feature", "t2m_k", "--correlation", "a"], "expected two features"),
        (["map", "--feature", "t2m_k", "--out", "map.gif"], "ends in .png or .html"),
        (["map", "--feature", "rain"], "unknown feature 'rain'"),
    ],
)
def test_mistakes_of_pictures(
    out: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, *rest = arguments
    said = mistake(capsys, "chart", kind, str(out), *rest)
    assert told in " ".join(said.split())


def test_weather_is_written_and_never_over_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "events"
    assert "400 rows" in asked("weather", str(folder), "--rows", "200", "--steps", "2")
    table = pq.read_table(folder)
    assert set(FEATURES) < set(table.schema.names)
    assert table.num_rows == 400
    assert "not empty; name a new folder" in " ".join(
        mistake(capsys, "weather", str(folder)).split()
    )


def test_one_sketchlet_of_an_epoch(out: Path) -> None:
    whole = open_sketch(out)
    one = open_sketch(out, 0, 2)
    assert one.observations == whole.forests[2].observations
