"""How many slots are wanted: what becomes of numbers that cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from geoflux.balance.policy import Decision
from geoflux.config import Config
from geoflux.engine.control_files import ControlFiles
from geoflux.engine.engine import Engine
from geoflux.engine.setting import Setting
from geoflux.engine.wanted import Wanted, asked_for, with_slots
from geoflux.errors import ConfigError
from geoflux.plan import GridPlan, HashPlan, Move, ReplicatedPlan, Resize
from geoflux.state.store import Store

PLAN = HashPlan.initial(2, per_slot=3)


def test_the_plan_has_what_is_wanted_or_gets_it_with_the_reason() -> None:
    assert asked_for(lambda: None, PLAN) == ((), "")
    assert asked_for(lambda: 2, PLAN) == ((), "")
    changes, reason = asked_for(lambda: Wanted(4, "shortage"), PLAN)
    assert changes == (Resize(4),)
    assert reason == "slots 2 to 4: shortage"
    decision = with_slots(Decision((Move(0, 1),), "uneven"), changes, reason)
    assert decision.changes == (Move(0, 1), Resize(4))
    assert decision.reason == "uneven; slots 2 to 4: shortage"
    assert with_slots(Decision((), ""), changes, reason).reason == reason


def test_no_more_slots_than_can_own_something() -> None:
    changes, reason = asked_for(lambda: 9, PLAN)
    assert changes == (Resize(6),)
    assert reason == "slots 2 to 6: as wanted; 9 were wanted, and no more can own anything"
    assert asked_for(lambda: 9, PLAN.apply(Resize(6))) == ((), "")
    assert asked_for(lambda: 50, GridPlan.initial(4, 2, 2))[0][0] == Resize(8)


def test_less_than_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"0 slots are wanted \(as wanted\); expected 1 or more"):
        asked_for(lambda: 0, PLAN)


def test_a_replicated_plan_keeps_its_slots(tmp_path: Path) -> None:
    control = ControlFiles(tmp_path / "queries.ndjson", tmp_path / "control.log")
    setting = Setting(Config(), Store(str(tmp_path)), pa.schema([]), control)
    Engine(setting, ReplicatedPlan(8, 8, 2))
    with pytest.raises(ConfigError, match=r"replicated.*same slots for ever"):
        Engine(replace(setting, wanted_slots=lambda: 3), ReplicatedPlan(8, 8, 2))
