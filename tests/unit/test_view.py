"""What a page is told of a run: rows of epochs, plans in degrees, heat, decisions, Guard."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from geoflux.bench.serve_story import BOUNDS, MadeUpRun
from geoflux.chronicle.decision_words import told_in_turn
from geoflux.errors import StateError
from geoflux.guard import GuardTuning
from geoflux.plan import GridPlan, HashPlan, Move, PrefixPlan, Split, change_to_dict
from geoflux.run_notes import note_run
from geoflux.scale.scaler import ScaleRecord
from geoflux.serve.page import page_router
from geoflux.serve.view_epochs import EpochRows
from geoflux.serve.view_guard import guard_values, told_suspicion
from geoflux.serve.view_heat import heat_view
from geoflux.serve.view_places import places_view
from geoflux.serve.view_plan import _rectangles, plan_view
from geoflux.serve.view_routes import view_router
from geoflux.serve.view_run import chosen, operators, run_view
from geoflux.serve.view_scaling import scaling_view
from geoflux.state.store import Store
from guard_by_hand import CREW, LISBON, PUBLISHED, ROBUST, raid, warm
from guarded_run import Story, play, started


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> MadeUpRun:
    run = MadeUpRun(tmp_path_factory.mktemp("made-up"), slots=6, partitions=40)
    for _ in range(9):
        run.epoch()
    return run


def test_every_manifest_is_read_once_and_rows_come_in_order(made_up: MadeUpRun) -> None:
    rows = EpochRows(chosen(made_up.directory))
    assert [row["epoch"] for row in rows.after(-1)] == list(range(9))
    assert [row["epoch"] for row in rows.after(6)] == [7, 8]
    first = made_up.directory / "epochs/manifests" / f"{0:012d}.json"
    kept = first.read_bytes()
    first.write_text("gone")
    try:
        assert len(rows.after(-1)) == 9
    finally:
        first.write_bytes(kept)
    row = rows.after(7)[0]
    assert len(row["busy"]) == 6
    assert row["processed"] == sum(s["processed"] for s in made_up.log.manifest(8)["slots"])


def test_decisions_are_told_newest_first_and_up_to_an_epoch(made_up: MadeUpRun) -> None:
    rows = EpochRows(chosen(made_up.directory))
    told = rows.decisions(None, 10)
    assert [one["epoch"] for one in told] == [7, 3]
    assert [one["epoch"] for one in rows.decisions(6, 10)] == [3]
    assert "moved partition" in told[0]["changes"][0]
    assert " from slot " in told[0]["changes"][0]
    assert "x the mean" in told[0]["reason"]


def test_changes_are_told_by_the_owners_that_those_before_them_left() -> None:
    plan = GridPlan.initial(8, 8, 2)
    first = plan.partitions[0]
    split = Split(first.id, "rows", 4, first.slot, 1 - first.slot)
    upper = plan.apply(split).partitions[-1].id
    told = told_in_turn([change_to_dict(c) for c in (split, Move(upper, first.slot))], plan)
    assert f"of slot {first.slot} at row 4 and gave the upper half to slot" in told[0]
    assert told[1] == f"moved partition {upper} from slot {1 - first.slot} to slot {first.slot}"


def test_a_plan_tiles_the_space_in_degrees_and_says_what_changed(made_up: MadeUpRun) -> None:
    view = plan_view(chosen(made_up.directory), 4)
    areas = [
        (e - w) * (n - s)
        for w, s, e, n in zip(*(view[k] for k in ("west", "south", "east", "north")), strict=True)
    ]
    west, south, east, north = BOUNDS
    assert sum(areas) == pytest.approx((east - west) * (north - south), rel=1e-6)
    moved = made_up.log.manifest(3)["decision"]["changes"][0]["partition"]
    assert view["changed"] == [moved]
    assert view["decision"]["epoch"] == 3
    assert not view["is_next"]
    assert plan_view(chosen(made_up.directory), 5)["changed"] == []
    assert sum(e or 0 for e in view["events"]) == made_up.log.manifest(4)["processed"]


def test_prefixes_are_rectangles_and_keys_are_not(made_up: MadeUpRun) -> None:
    sides = _rectangles(PrefixPlan.initial(2, 10, per_slot=2), made_up.config)
    boxes = zip(sides["west"], sides["south"], sides["east"], sides["north"], strict=True)
    assert sorted(boxes) == [
        (-180.0, -90.0, 0.0, 0.0), (-180.0, 0.0, 0.0, 90.0), (0.0, -90.0, 180.0, 0.0),
        (0.0, 0.0, 180.0, 90.0),
    ]  # fmt: skip
    assert _rectangles(object(), made_up.config) == {}


def test_heat_is_of_the_epochs_own_events(made_up: MadeUpRun) -> None:
    heat = heat_view(chosen(made_up.directory), 2)
    assert heat["of"] == "events"
    assert 0 < sum(heat["count"]) == heat["sampled"] <= 40_000
    assert heat == heat_view(chosen(made_up.directory), 2)
    assert heat["cell"] != heat_view(chosen(made_up.directory), 3)["cell"]
    assert max(heat["cell"]) < heat["columns"] * heat["rows"]


def test_events_that_cannot_be_read_again_are_said_to_be(
    made_up: MadeUpRun, tmp_path: Path
) -> None:
    other = MadeUpRun(tmp_path, slots=2, partitions=4)
    other.epoch()
    noted = other.store.read_json("run.json")
    other.store.write_json("run.json", noted | {"lane": "dataframe"})
    assert heat_view(chosen(tmp_path), 0)["of"] == "partitions"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    story = Story(3, epochs=18)
    run = started(tmp_path_factory.mktemp("guarded"), story)
    about = {"started": 0.0, "lane": "dataframe"}
    note_run(run.setting.config, run.setting.store, "", run.setting.schema, about)
    play(run, story)
    return Path(run.setting.store.root)


def test_guard_is_told_with_evidence_and_places(guarded: Path) -> None:
    told = guard_values(chosen(guarded))
    assert {block["user"] for block in told["blocks"]} >= {"attacker-0"}
    block = told["blocks"][0]
    assert "hotspot" in block["words"]
    assert block["features"]
    for west, south, east, north in block["places"]:
        assert west < east
        assert south < north
    blocked = {one["user"] for one in told["blocks"]}
    assert not blocked & {one["user"] for one in told["suspects"]}


@pytest.mark.parametrize("tuning", [ROBUST, PUBLISHED])
def test_who_made_one_hotspot_is_a_suspect_with_that_as_evidence(tuning: GuardTuning) -> None:
    stage = warm(tuning)
    raid(stage, CREW, LISBON)
    assert set(stage.guard.suspects) == set(CREW)
    for seen in stage.guard.suspects.values():
        assert told_suspicion(seen).startswith("part of 1 hotspot in round ")


def test_an_application_shows_its_standing_queries_first(
    made_up: MadeUpRun, tmp_path: Path
) -> None:
    for name in ("ingest", "places"):
        (tmp_path / name).mkdir()
    store = Store(str(tmp_path))
    store.write_json(
        "topology.json",
        {"operators": [{"name": "ingest", "kind": "ingest", "reads": ["source"]},
                       {"name": "places", "kind": "queries", "reads": ["ingest"]}]},
    )  # fmt: skip
    assert [o.name for o in operators(tmp_path)] == ["ingest", "places"]
    assert chosen(tmp_path).name == "places"
    assert run_view(tmp_path)["space"] is None, "no operator has begun"
    MadeUpRun(tmp_path / "places", slots=2, partitions=2).epoch()
    seen = run_view(tmp_path)
    assert seen["shown"] == "places"
    assert [o["last"] for o in seen["operators"]] == [None, 0]
    with pytest.raises(StateError, match="operators: 'ingest', 'places'"):
        chosen(tmp_path, "../made-up")


def test_looks_at_scaling_are_columns(tmp_path: Path) -> None:
    (tmp_path / "scale").mkdir()
    record = ScaleRecord(Store(str(tmp_path)))
    for look in (1, 2):
        line = {"look": look, "at": 10.0 * look, "action": "none", "carried_out": False,
                "before": {"a": 1}, "after": {"a": 2}, "measured": None, "predicted_before": 2.0,
                "reason": "all is well"}  # fmt: skip
        record.note({}, line)
    told = scaling_view(tmp_path)
    assert told["predicted"] == [2.0, 2.0]
    assert [one["look"] for one in told["told"]] == [2], "only the last: nothing was done"


def test_places_have_names_and_nobody_lives_at_sea() -> None:
    assert "Paris" in places_view((0.0, 45.0, 5.0, 50.0))["name"]
    assert places_view((-40.0, 0.0, -39.0, 1.0))["name"] == []


def client(directory: Path, **more: Any) -> TestClient:
    app = FastAPI()
    app.include_router(view_router(directory, more.get("require", lambda: None), lambda _: True))
    app.include_router(page_router())
    return TestClient(app)


def test_every_route_answers_and_is_behind_the_dependency(made_up: MadeUpRun) -> None:
    from fastapi import HTTPException

    def nobody() -> None:
        raise HTTPException(401)

    open_to_all, closed = client(made_up.directory), client(made_up.directory, require=nobody)
    for path in ("run", "epochs", "plan", "heat", "places", "decisions", "guard", "scaling"):
        assert open_to_all.get(f"/v1/view/{path}").status_code == 200, path
        assert closed.get(f"/v1/view/{path}").status_code == 401, path
    assert closed.get("/v1/view/stream").status_code == 401
    assert closed.get("/").status_code == 200, "the page itself holds nothing about a run"


def test_the_page_allows_no_script_but_its_own(made_up: MadeUpRun) -> None:
    browser = client(made_up.directory)
    page = browser.get("/")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in page.text
    assert "://" not in page.text, "nothing is fetched from elsewhere"
    assert browser.get("/static/app.js").headers["content-type"].startswith("text/javascript")
    for name in ("../page.py", "..%2fpage.py", "page.py", "nothing"):
        assert browser.get(f"/static/{name}").status_code == 404, name


def test_the_stream_tells_of_epochs_as_they_are_committed(tmp_path: Path) -> None:
    from geoflux.serve.view_routes import _messages

    run = MadeUpRun(tmp_path, slots=2, partitions=2)
    run.epoch()
    rows = EpochRows(chosen(tmp_path))

    allowed = True

    async def goes_on() -> bool:
        return allowed

    async def heard() -> list[str]:
        nonlocal allowed
        told = _messages(goes_on, [""], lambda _: rows)
        first = await anext(told)
        await asyncio.to_thread(run.epoch)
        news = await asyncio.wait_for(anext(told), 10)
        allowed = False  # revoked: it ends by itself
        assert await asyncio.wait_for(anext(told, "over"), 10) == "over"
        return [first, news]

    hello, news = asyncio.run(heard())
    assert hello == 'event: hello\ndata: {"":0}\n\n'
    assert news.startswith("event: epoch\ndata: ")
    told = json.loads(news.splitlines()[1].removeprefix("data: "))
    assert (told["operator"], told["epoch"]) == ("", 1)


def test_coastlines_are_on_the_globe() -> None:
    from geoflux.serve.page import STATIC

    outline = json.loads((STATIC / "coast.json").read_text())
    assert "Natural Earth" in outline["source"]
    for part in (*outline["land"], *outline["borders"]):
        points = np.cumsum(np.array(part).reshape(-1, 2), axis=0) * outline["unit"]
        assert (np.abs(points) <= (180.01, 90.01)).all()


def test_partitions_of_keys_are_counted_and_have_no_place(tmp_path: Path) -> None:
    store, plan = Store(str(tmp_path)), HashPlan.initial(2, 4)
    run = MadeUpRun(tmp_path, slots=2, partitions=2)
    run.epoch()
    move = change_to_dict(Move(plan.partitions[0].id, 1 - plan.partitions[0].slot))
    manifest = run.log.manifest(0) | {"plan": 8, "next_plan": 9}
    manifest["decision"] = {"reason": "memory", "changes": [move]}
    store.write_json("epochs/manifests/000000000000.json", manifest)
    for version in (8, 9):
        store.write_json(f"plans/{version:08d}.json", plan.to_dict())
    view = plan_view(chosen(tmp_path))
    assert "west" not in view
    assert view["kind"] == "hash"
    assert view["changed"] == [plan.partitions[0].id]
    assert view["decision"]["changes"][0].startswith("moved partition")
    assert sum(s["partitions"] for s in view["slot_table"]) == len(plan.partitions)


def test_an_application_is_served_by_its_standing_queries(tmp_path: Path) -> None:
    from geoflux.sections_serve import ServeConfig
    from geoflux.serve.app import create_app
    from geoflux.serve.tokens import TokenFile
    from served import LiveRun

    run = LiveRun(tmp_path / "made")
    run.epoch()
    app_folder = tmp_path / "app"
    app_folder.mkdir()
    run.out.rename(app_folder / "places")
    Store(str(app_folder)).write_json(
        "topology.json",
        {"operators": [{"name": "ingest", "kind": "ingest", "reads": ["source"]},
                       {"name": "places", "kind": "queries", "reads": ["ingest"]}]},
    )  # fmt: skip
    app = create_app(app_folder, ServeConfig())
    token = TokenFile(app_folder / "serve/tokens.json").create("ops", "operator")
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(app, base_url="http://localhost") as browser:
        assert browser.get("/v1/view/run", headers=headers).json()["shown"] == "places"
        assert browser.get("/v1/subscriptions", headers=headers).json()["subscriptions"] == []
        assert browser.get("/v1/view/run").status_code == 401
