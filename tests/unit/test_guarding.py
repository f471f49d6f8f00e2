"""Guard beside the engine: who is refused, what is removed, orders of operators; without Spark."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoflux.balance.policy import Static
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.guard_orders import FOLDER, Order, place, waiting
from geoflux.engine.guard_state import names_in, tuning_of
from geoflux.errors import ConfigError
from geoflux.guard import GuardTuning
from geoflux.operators.queries import QUERY_SCHEMA, middles
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from guarded_run import GUARD, Run, Story, box, play, quarantined, register, started

WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}
"""What a query has that must show in the results."""


def begun(folder: Path, guard: dict[str, Any] | None = None, epochs: int = 6, **more: Any) -> tuple[Run, Story]:  # fmt: skip
    """A run of few epochs in which nobody attacks."""
    story = Story(1, epochs, 20, attack=99)
    return started(folder, story, guard, Static(), **more), story


def order(run: Run, op: Any, user: str, **more: Any) -> str:
    return place(run.setting.store, Order(op, user, **more))


def guard_of(manifest: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = manifest["guard"]
    return found


def users(run: Run) -> Counter[Any]:
    return Counter(run.engine.catalogue.live_rows().column("user").to_pylist())


def restarted(run: Run, **guard: Any) -> None:
    """With other settings of Guard."""
    config = Config.from_dict(run.setting.config.as_dict() | {"guard": GUARD | guard})
    object.__setattr__(run.setting, "config", config)
    run.recover()


def test_a_blocked_user_is_refused_with_a_reason_and_may_still_terminate(tmp_path: Path) -> None:
    run, story = begun(tmp_path)
    play(run, story, range(2))
    order(run, "block", "user-3", reason="asked to")
    before = users(run)
    mine = [q for q in story.batches[0] if q.get("user") == "user-3"]
    story.batches[2] += [
        {"op": "terminate", "id": mine[-1]["id"]},
        register("user-3", "refused", box(story.dice, 0)),
        {"op": "terminate", "id": "refused"},
        register("user-3", "everywhere", WORLD),
    ]
    manifests = play(run, story, range(2, 6))
    rows = quarantined(tmp_path)
    wanted = [q["id"] for batch in story.batches[2:] for q in batch if q.get("user") == "user-3"]
    refused = [row for row in rows if row["reason"] == "blocked_user"]
    assert sorted(row["row"] for row in refused) == sorted(wanted)
    assert {row["detail"] for row in refused} == {"user 'user-3' is blocked: asked to"}
    assert sum(guard_of(m)["refused"] for m in manifests) == len(wanted)
    assert manifests[2]["control_rejected"]["unknown_id"] >= 1  # of a query that never was
    assert users(run)["user-3"] < before["user-3"]
    told = Counter(
        code for m in manifests for code, n in m["control_rejected"].items() for _ in range(n)
    )
    asked = sum(len(batch) for batch in story.batches)
    # A termination of a query that was registered in the same epoch undoes both.
    pairs = asked - sum(m["registered"] + m["ended"] for m in manifests) - told.total()
    assert pairs >= 0
    assert pairs % 2 == 0
    assert told["blocked_user"] == len(wanted)
    for m in manifests:
        assert m["received"] == m["processed"] + m["quarantined"] + m["carried_out"]
    assert run.verified().is_clean


def test_what_they_had_is_removed_at_once_exactly_once(tmp_path: Path) -> None:
    run, story = begun(tmp_path, GUARD | {"placed": "remove"})
    story.batches[0].append(register(None, "nobody's", box(story.dice, 0)))
    story.batches[1].append(register("user-3", "everywhere", WORLD))
    play(run, story, range(2))
    order(run, "block", "user-3")
    before = users(run)
    run.tell(story.batches[2])
    run.engine.open(2)  # and crash
    run.recover()
    story.batches[2] = []
    manifests = play(run, story, range(2, 4))
    after = users(run)
    assert after["user-3"] == 0
    assert before["user-3"] > 0
    assert [guard_of(m)["removed"] for m in manifests] == [[], [], ["user-3"], []]
    assert {u: n for u, n in after.items() if u not in before} == {}
    assert after[None] == 1
    assert sum(after.values()) == manifests[-1]["live_queries"]
    order(run, "lift", "user-3")
    story.batches[4].append(register("user-3", "again", box(story.dice, 0)))
    play(run, story, range(4, 6))
    assert users(run)["user-3"] >= 1
    assert run.verified().is_clean


def test_what_they_had_stays_otherwise(tmp_path: Path) -> None:
    run, story = begun(tmp_path)
    play(run, story, range(2))
    before = users(run)["user-3"]
    order(run, "block", "user-3")
    story.batches[2] = []
    play(run, story, range(2, 3))
    assert users(run)["user-3"] == before
    assert run.verified().is_clean


def test_an_order_is_taken_once_whatever_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    run, story = begun(tmp_path)
    play(run, story, range(1))
    name = order(run, "block", "user-3")
    store = run.setting.store
    run.tell(story.batches[1])
    run.engine.open(1)  # and crash: the intent has it, the file is still there
    run.recover()
    assert store.exists(name)
    story.batches[1] = []
    with monkeypatch.context() as patch:  # the epoch counts, but nothing is deleted
        patch.setattr("geoflux.engine.guarding.Guarding.finish", lambda _: None)
        play(run, story, range(1, 2))
        assert store.exists(name)
    lifted = order(run, "lift", "user-3")
    run.recover()
    assert not store.exists(name)
    manifests = play(run, story, range(2, 4))
    assert not store.exists(lifted)
    assert [[b["user"] for b in guard_of(m)["blocks"]] for m in manifests] == [
        [],
        ["user-3"],
        [],
        [],
    ]
    assert [guard_of(m)["ended"] for m in manifests] == [[], [], ["user-3"], []]
    assert [names_in(store, guard_of(m)["in_force"]) for m in manifests] == [
        set(),
        {"user-3"},
        set(),
        set(),
    ]


def test_what_is_no_order_is_quarantined(tmp_path: Path) -> None:
    run, story = begun(tmp_path)
    bad = [
        "{",
        "[]",
        '{"op": "hang", "user": "a"}',
        '{"op": "block", "user": 7}',
        '{"op": "block", "user": "a", "seconds": -1}',
    ]
    for k, text in enumerate(bad):
        run.setting.store.write_bytes(f"{FOLDER}/{k}.json", text.encode())
    manifests = play(run, story, range(2))
    rows = [row for row in quarantined(tmp_path) if row["reason"] == "bad_guard_request"]
    assert [row["row"] for row in rows] == bad
    assert all("is no order to Guard: " in row["detail"] for row in rows)
    assert manifests[0]["control_rejected"]["bad_guard_request"] == len(bad)
    assert waiting(run.setting.store, ()) == ([], [], [])


def test_requests_without_a_user(tmp_path: Path) -> None:
    for anonymous, left in (("accept", 1), ("refuse", 0)):
        run, story = begun(tmp_path / anonymous, GUARD | {"anonymous": anonymous})
        story.batches[1] += [
            register(None, "nobody's", box(story.dice, 0)),
            {"op": "terminate", "id": "q0"},
        ]
        manifests = play(run, story, range(3))
        assert users(run)[None] == left
        assert manifests[1]["control_rejected"].get("missing_user", 0) == 1 - left
        assert "q0" not in run.engine.catalogue.live_rows().column("id").to_pylist()
        assert run.verified().is_clean


def test_snapshots_of_blocked_users_are_refused(tmp_path: Path) -> None:
    run, story = begun(tmp_path, retention={"time": "1 hour"})
    order(run, "block", "mallory")
    story.batches[1] += [
        {"op": "snapshot", "id": name, "user": name} for name in ("mallory", "ann")
    ]
    manifests = play(run, story, range(3))
    assert manifests[1]["snapshots"] == 1
    (row,) = (row for row in quarantined(tmp_path) if row["reason"] == "blocked_user")
    assert row["row"] == "mallory"


def test_a_block_expires(tmp_path: Path) -> None:
    run, story = begun(tmp_path)
    order(run, "block", "user-3", seconds=2.0)
    manifests = play(run, story, range(4))
    assert [guard_of(m)["in_force"] is not None for m in manifests] == [True, True, False, False]
    assert guard_of(manifests[2])["ended"] == ["user-3"]
    assert run.verified().is_clean


def test_turned_off_it_remembers_and_refuses_nobody(tmp_path: Path) -> None:
    run, story = begun(tmp_path)
    order(run, "block", "user-3")
    play(run, story, range(4))
    restarted(run, enabled=False)
    manifests = play(run, story, range(4, 5))
    assert (guard_of(manifests[4])["in_force"], guard_of(manifests[4])["refused"]) == (None, 0)
    restarted(run)
    manifests = play(run, story, range(5, 6))
    assert names_in(run.setting.store, guard_of(manifests[5])["in_force"]) == {"user-3"}
    assert run.verified().is_clean


def test_never_on_it_leaves_no_trace(tmp_path: Path) -> None:
    run, story = begun(tmp_path, {})
    manifests = play(run, story, range(2))
    assert [m["guard"] for m in manifests] == [None, None]
    assert not (tmp_path / "out/guard").exists()


def test_manifests_stay_small_and_files_are_cleared_away(tmp_path: Path) -> None:
    run, story = begun(tmp_path, GUARD | {"round": "4s"}, epochs=20)
    manifests = play(run, story)
    assert all(len(guard_of(m)["journal"]) <= 4 for m in manifests)
    assert max(len(json.dumps(m["guard"])) for m in manifests) < 2000
    states = [name for name in run.setting.store.names("state") if name.startswith("guard")]
    assert len(states) <= 3
    assert guard_of(manifests[-1])["round"] >= 4


def test_the_settings_reach_the_detector() -> None:
    given = {"mode": "published", "round": "2 minutes", "block": "1 hour", "factor": 5.0, "spread": 0.1,
             "removal_rounds": [2, 3], "seed": 9, "observe_only": True, "evidence_floor": 3.0,
             "least_rate": 0.2, "least_share": 0.3, "crowd_users": 7, "crowd_share": 0.6,
             "least_users": 8, "warm_up_rounds": 1, "relocated_rate": 1.5}  # fmt: skip
    grid = Grid(Space("planar", 0.0, 0.0, 1.0, 1.0), 400, 200)
    tuning = tuning_of(Config.from_dict({"guard": given}).guard, grid)
    assert tuning == GuardTuning(
        "published", True, 120.0, 5.0, 0.1, (2, 3), seed=9, block_seconds=3600.0, evidence_floor=3.0,
        least_rate=0.2, least_share=0.3, crowd_users=7, crowd_share=0.6, least_users=8,
        warm_up_rounds=1, least_place=4.0, relocated_rate=1.5,
    )  # fmt: skip
    usual = tuning_of(Config().guard, Grid(grid.space, 1000, 1000))
    assert usual == GuardTuning()
    with pytest.raises(ConfigError, match="removal_rounds"):
        Config.from_dict({"guard": {"removal_rounds": [5, 2]}})
    with pytest.raises(ConfigError, match=r"guard\.round"):
        Config.from_dict({"guard": {"enabled": True, "round": "0s"}})


def test_middles_are_in_cells_also_over_the_antimeridian() -> None:
    grid = Grid(Space("lonlat", -180.0, -90.0, 180.0, 90.0), 36, 18)
    boxes = [
        (0, 0, 10, 10),
        (170, -10, -170, 10),
        (175, 0, -175, 0),
        (-180, -90, 180, 90),
        (100, 80, 200, 120),
    ]
    rows = [
        dict.fromkeys(QUERY_SCHEMA.names) | {"number": k, "id": str(k), "kind": 0, "x0": b[0], "y0": b[1], "x1": b[2], "y1": b[3]}
        for k, b in enumerate(boxes)
    ]  # fmt: skip
    x, y = middles(pa.Table.from_pylist(rows, QUERY_SCHEMA), grid)
    assert np.allclose(x % 36, [18.5, 0.0, 0.0, 18.0, 32.0])
    assert np.allclose(y, [9.5, 9.0, 9.0, 9.0, 17.5])


def test_the_log_can_be_read_by_its_epochs(tmp_path: Path) -> None:
    """What a verification needs stays when states are cleared away."""
    run, story = begun(tmp_path, GUARD | {"round": "1s"})
    order(run, "block", "user-3")
    play(run, story)
    store = Store(str(tmp_path / "out"))
    for m in EpochLog(store).manifests():
        assert names_in(store, guard_of(m)["in_force"]) == {"user-3"}
