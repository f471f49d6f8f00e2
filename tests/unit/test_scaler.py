"""The coordinator of slots: what is decided is on disk first, and outlives crashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from geoflux.config import Config
from geoflux.errors import ConfigError
from geoflux.scale.decisions import Look
from geoflux.scale.network import Network, Operator
from geoflux.scale.observing import NotReady
from geoflux.scale.policy import ScalePolicy
from geoflux.scale.scaler import Scaler, ScaleRecord
from geoflux.scale.smoothing import Smoothing
from geoflux.scale.tuning import ScaleTuning
from geoflux.state.store import Store

HASTY = ScaleTuning("processors", longest=2.0, patience=1, between=0)


def look(now: float, sojourn: float = 9.0) -> Look:
    return Look(now, Network((Operator("a", 1.0, 0.9),)), {"a": 1}, sojourn=sojourn)


def scaler(folder: Path, tuning: ScaleTuning = HASTY) -> Scaler:
    return Scaler(ScaleRecord(Store(str(folder))), ScalePolicy(tuning))


def test_what_is_wanted_outlives_the_coordinator(tmp_path: Path) -> None:
    first = scaler(tmp_path)
    assert first.wanted("a") is None
    decision = first.look(look(0.0))
    assert decision is not None
    assert decision.carried_out
    assert first.wanted("a") == decision.after["a"] > 1
    again = scaler(tmp_path)
    assert again.wanted("a") == first.wanted("a")
    later = again.look(look(1.0))
    assert later is not None
    assert "settl" in later.reason or later.number == decision.number
    assert [line["look"] for line in again.record.decisions()] == [1, 2]
    assert again.record.decisions()[0]["reason"] == decision.reason


def test_nothing_is_noted_before_something_is_known(tmp_path: Path) -> None:
    some = scaler(tmp_path)
    assert some.look(NotReady("nothing was measured of a")) is None
    assert some.record.decisions() == []


def test_whoever_only_observes_wants_nothing_and_says_what_it_would(tmp_path: Path) -> None:
    tuning = ScaleTuning("processors", longest=2.0, patience=1, between=0, observe=True)
    some = scaler(tmp_path, tuning)
    decision = some.look(look(0.0))
    assert decision is not None
    assert decision.after["a"] > 1
    assert some.wanted("a") is None
    assert some.record.decisions()[0]["after"] == dict(decision.after)


def test_a_line_that_a_crash_tore_is_no_decision_and_spoils_none(tmp_path: Path) -> None:
    some = scaler(tmp_path)
    some.look(look(0.0))
    path = tmp_path / "scale/decisions.ndjson"
    path.write_bytes(path.read_bytes() + b'{"look": 2, "rea')
    again = scaler(tmp_path)
    again.look(look(1.0))
    assert [line["look"] for line in again.record.decisions()] == [1, 2]


def test_the_settings_say_how_patient_it_is() -> None:
    scale = Config.from_dict(
        {"scale": {"mode": "observe", "longest": "4s", "patience": 2, "apart": "7s", "alpha": 0.5}}
    ).scale
    tuning = ScaleTuning.of(scale)
    assert (tuning.longest, tuning.shortest, tuning.between) == (4.0, 1.0, 7.0)
    assert (tuning.patience, tuning.observe, tuning.problem) == (2, True, "processors")
    assert Smoothing.of(scale).alpha == 0.5
    assert Smoothing.of(Config().scale) == Smoothing(6)
    with pytest.raises(ConfigError, match=r"scale\.shortest = '5s', scale\.longest = '4s'"):
        Config.from_dict({"scale": {"longest": "4s", "shortest": "5s"}})
