"""Settings: all mistakes at once, the last source wins, and what is written down comes back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.config import Config
from geoflux.errors import ConfigError
from geoflux.settings import seconds

NO_ENVIRONMENT: dict[str, str] = {}


def problems(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict(values)
    return str(caught.value)


def test_everything_has_a_default() -> None:
    config = Config.load(environment=NO_ENVIRONMENT)
    assert config == Config()
    assert config.engine.slots == 4


def test_all_problems_at_once() -> None:
    text = problems(
        {
            "engine": {"slots": 0, "balance": "magic", "epoch_events": "many", "slotz": 3},
            "space": {"grid": [10], "kind": 3},
            "output": {"record_input": "yes"},
            "run": {"duration": "soon"},
            "simulate": {"hotspots": [{"side": 7}, {"peek": 1}, 5], "rate": 1.5},
            "nonsense": {},
            "source": 5,
        }
    )
    for part in (
        "engine.slots = 0", "engine.balance = 'magic'", "engine.epoch_events = 'many'",
        "engine.slotz is not a setting; did you mean engine.slots?", "space.grid = [10]",
        "space.kind = 3", "output.record_input = 'yes'", "run.duration = 'soon'",
        "simulate.hotspots[0].side = 7", "simulate.hotspots[1].peek is not a setting",
        "[simulate.hotspots[2]] is 5", "simulate.rate = 1.5", "nonsense is not a setting",
        "[source] is 5",
    ):  # fmt: skip
        assert part in text, text
    assert text.startswith("14 settings are wrong:")


def test_a_mistake_in_one_setting_does_not_hide_one_between_settings() -> None:
    text = problems({"engine": {"slots": 0}, "space": {"bounds": [10, 0, 0, 5]}})
    assert "engine.slots = 0" in text
    assert "space.bounds" in text


def test_problems_in_the_environment_do_not_hide_others(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(
            flags={"engine.slots": 0, "run.mode": "x"}, environment={"GEOFLUX_ENGINE_SLOTZ": "1"}
        )
    for part in ("GEOFLUX_ENGINE_SLOTZ", "engine.slots = 0", "run.mode = 'x'"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"space": {"bounds": [0, 0, 0, 1]}}, "expected west < east and south < north"),
        ({"space": {"bounds": [0, 0, 181, 1]}}, 'for other units set space.kind = "planar"'),
        ({"space": {"bounds": [0, 0, math.nan, 1]}}, "space.bounds"),
        ({"space": {"grid": [0, 5]}}, "expected 1 to 8192 cells a side"),
        ({"space": {"grid": [1, 3]}}, "expected at most one slot per cell"),
        ({"source": {"kind": "files"}}, "source.path is empty"),
        ({"source": {"kind": "files", "path": "/no/such"}}, "no such file or folder"),
        ({"control": {"path": "/no/such"}}, "control.path = '/no/such'"),
        ({"space": {"kind": "planar"}}, 'the simulator needs "lonlat"'),
        ({"simulate": {"hotspots": [{"start": 0.5, "stop": 0.5}]}}, "must be after start"),
        ({"engine": {"epoch_seconds": math.nan}}, "engine.epoch_seconds"),
        ({"engine": {"slots": True}}, "expected a whole number"),
        ({"engine": {"master": 5}}, "expected a text in quotes"),
        ({"space": {"bounds": [0, 0, "1", 1]}}, "expected a number"),
        ({"space": {"bounds": 5}}, "expected a list of 4 numbers"),
        ({"simulate": {"hotspots": 5}}, "expected a list of tables"),
    ],
    ids=str,
)
def test_mistakes(values: dict[str, Any], sentence: str) -> None:
    assert sentence in problems(values)


@pytest.mark.parametrize("bounds", [[-math.inf, 0, math.inf, 1], [-1e308, 0, 1e308, 1]], ids=str)
def test_a_space_without_end_is_a_mistake(bounds: list[float]) -> None:
    values = {
        "space": {"kind": "planar", "bounds": bounds},
        "source": {"kind": "files", "path": "/"},
    }
    assert "space.bounds" in problems(values)


def test_a_control_file_may_come_later_in_follow() -> None:
    values = {"control": {"path": "/no/such"}, "run": {"mode": "follow"}}
    assert Config.from_dict(values).control.path == "/no/such"


def test_file_then_environment_then_flags(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[engine]\nslots = 1\nepoch_events = 11\nmemory = '1g'\n[simulate]\nrate = 5\n")
    environment = {
        "GEOFLUX_ENGINE_EPOCH_EVENTS": "22", "GEOFLUX_ENGINE_MEMORY": "2048", "PATH": "/bin",
        "GEOFLUX_SIMULATE_PACED": "false", "GEOFLUX_SPACE_BOUNDS": "[0, 0, 10, 20]",
    }  # fmt: skip
    flags = {"engine.memory": "3g", "simulate.rate": "7", "run.duration": "5s"}
    config = Config.load(path, flags, environment)
    assert config.engine.slots == 1
    assert config.engine.epoch_events == 22
    assert config.engine.memory == "3g"
    assert config.simulate.rate == 7
    assert config.simulate.paced is False
    assert config.space.bounds == (0.0, 0.0, 10.0, 20.0)
    assert config.run.duration == "5s"
    assert Config.load(path, {}, {"GEOFLUX_ENGINE_MEMORY": "2048"}).engine.memory == "2048"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"engine.slots": "many"}, "engine.slots = 'many'"),
        ({"engine.slotz": "1"}, "did you mean engine.slots?"),
        ({"engin.slots": "1"}, "engin is not a setting; did you mean engine?"),
    ],
    ids=str,
)
def test_wrong_flags(flags: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(None, flags, NO_ENVIRONMENT)
    assert sentence in str(caught.value)


def test_suggestions_only_where_something_is_near() -> None:
    assert "did you mean engine.balance?" in problems({"engine": {"balanec": "x"}})
    text = problems({"control": {"zzz": 1}})
    assert "control.zzz is not a setting; known: kind, path, topic" in text


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "conf"
    (folder / "events").mkdir(parents=True)
    (folder / "q.ndjson").write_text("")
    (folder / "a.toml").write_text(
        '[source]\nkind = "files"\npath = "events"\n[control]\npath = "q.ndjson"\n'
    )
    monkeypatch.chdir(tmp_path)
    for path in (folder / "a.toml", Path("conf/a.toml")):
        config = Config.load(path, environment=NO_ENVIRONMENT)
        assert Path(config.source.path).samefile(folder / "events")
        assert Path(config.control.path).samefile(folder / "q.ndjson")
    (tmp_path / "here").mkdir()
    flagged = Config.load(folder / "a.toml", {"source.path": "here"}, NO_ENVIRONMENT)
    assert Path(flagged.source.path).samefile(tmp_path / "here")
    absolute = tmp_path / "b.toml"
    absolute.write_text(f'[source]\nkind = "files"\npath = "{folder / "events"}"\n')
    assert Config.load(absolute, environment=NO_ENVIRONMENT).source.path == str(folder / "events")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no settings file"):
        Config.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        Config.load(tmp_path)
    for content in (b"slots = = 3", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match="is not a TOML file"):
            Config.load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90), ("5 minutes", 300), ("1h30m", 5400), ("250 ms", 0.25), ("2d", 172_800),
        ("1.5h", 5400), ("10us", 1e-5), (" 3 Seconds ", 3), ("1 hour 5 min", 3900), ("0s", 0),
    ],
)  # fmt: skip
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", " ", "5", "s", "-5s", "5 fortnights", "5s!", "1h 30", "s5"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)
    if text:
        assert "is not a duration" in problems({"run": {"duration": text}})


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    west, east = sorted(draw(st.lists(st.floats(-180, 180), min_size=2, max_size=2, unique=True)))
    hotspot = st.fixed_dictionaries(
        {"at": st.tuples(st.floats(0, 1), st.floats(0, 1)), "start": st.floats(0, 0.4)},
        optional={"peak": st.floats(0, 1), "inside": st.sampled_from(["uniform", "normal"])},
    )
    return {
        "space": {"bounds": [west, -90, east, 90], "grid": [draw(st.integers(64, 8192)), 64]},
        "engine": {
            "slots": draw(st.integers(1, 4096)), "lateness": draw(st.sampled_from(["", "5m"])),
            "balance": draw(st.sampled_from(["uniform", "history", "replicated"])),
        },
        "output": {"record_input": draw(st.booleans())},
        "simulate": {
            "seed": draw(st.integers(0, 2**63 - 1)), "query_side": draw(st.floats(0, 1)),
            "hotspots": draw(st.lists(hotspot, max_size=3)),
        },
    }  # fmt: skip


@settings(max_examples=50)
@given(configs())
def test_what_is_written_down_comes_back(values: dict[str, Any]) -> None:
    config = Config.from_dict(values)
    assert Config.restored(config.as_dict()) == config
    assert Config.restored(json.loads(json.dumps(config.as_dict()))) == config
    assert Config.from_dict(config.as_dict()) == config


def test_settings_come_back_though_their_files_are_gone(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    config = Config.from_dict({"source": {"kind": "files", "path": str(tmp_path / "events")}})
    (tmp_path / "events").rmdir()
    assert Config.restored(config.as_dict()) == config
    with pytest.raises(ConfigError):
        Config.restored({**config.as_dict(), "engine": {"slots": "x"}})
