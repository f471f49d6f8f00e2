"""Subscriptions over HTTP: durable before they are acknowledged, a user's own, placed once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.errors import StateError
from geoflux.serve.epoch_facts import ChangeReader
from geoflux.serve.problems import Problem
from geoflux.serve.served_run import ServedRun
from served import PARIS, WORLD, LiveRun, event, served


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path)


def test_a_subscription_is_on_disk_when_it_is_acknowledged_and_live_after_an_epoch(
    run: LiveRun,
) -> None:
    with served(run) as s:
        made = s.client.post(
            "/v1/subscriptions",
            json={"id": "home", "shape": PARIS, "where": "speed < 10"},
            headers=s.ann,
        )
        assert (made.status_code, made.json()["state"]) == (201, "placed")
        [line] = (run.folder / "control/serve.ndjson").read_text().splitlines()
        assert json.loads(line) == {
            "op": "register",
            "id": "@ann/home",
            "user": "ann",
            "shape": PARIS,
            "where": "speed < 10",
        }
        s.epoch()
        found = s.client.get(made.headers["location"], headers=s.ann).json()
        assert found == {"id": "home", "state": "live", "shape": PARIS, "where": "speed < 10"}
        ended = s.client.delete("/v1/subscriptions/home", headers=s.ann)
        assert (ended.status_code, ended.json()["state"]) == (202, "ending")
        assert s.client.delete("/v1/subscriptions/home", headers=s.ann).status_code == 202
        manifest = s.epoch()
        assert (manifest["ended"], manifest["control_rejected"]) == (1, {})
        assert s.client.get("/v1/subscriptions/home", headers=s.ann).json()["state"] == "ended"
        assert s.client.get("/v1/subscriptions", headers=s.ann).json()["subscriptions"] == []


def test_placed_again_it_is_found_and_with_other_content_refused(run: LiveRun) -> None:
    with served(run) as s:
        body = {"id": "home", "shape": PARIS}
        assert [
            s.client.post("/v1/subscriptions", json=body, headers=s.ann).status_code
            for _ in range(2)
        ] == [201, 200]
        other = s.client.post(
            "/v1/subscriptions", json={**body, "where": "speed > 1"}, headers=s.ann
        )
        assert (other.status_code, other.json()["type"]) == (
            409,
            "urn:geoflux:problem:duplicate_id",
        )
        assert s.client.post("/v1/subscriptions", json=body, headers=s.bob).status_code == 201
        assert s.epoch()["registered"] == 2


def test_nobody_sees_or_ends_what_is_anothers(run: LiveRun) -> None:
    with served(run) as s:
        s.client.post("/v1/subscriptions", json={"id": "home", "shape": PARIS}, headers=s.ann)
        for name in ("home", "@ann/home", "ann/home", "..%2Fann%2Fhome"):
            for method in ("GET", "DELETE"):
                status = s.client.request(
                    method, f"/v1/subscriptions/{name}", headers=s.bob
                ).status_code
                assert status in (404, 405, 422), (name, method)
        assert s.client.get("/v1/subscriptions", headers=s.bob).json() == {"subscriptions": []}
        hijack = {"id": "x/../../ann/home", "shape": WORLD}
        assert s.client.post("/v1/subscriptions", json=hijack, headers=s.bob).status_code == 422
        s.epoch()
        assert s.client.get("/v1/subscriptions/home", headers=s.ann).json()["state"] == "live"


def test_a_server_that_is_started_again_knows_what_the_last_one_did(run: LiveRun) -> None:
    with served(run) as s:
        for name in ("live", "gone", "again"):
            s.client.post("/v1/subscriptions", json={"id": name, "shape": PARIS}, headers=s.ann)
        s.epoch()
        s.client.delete("/v1/subscriptions/gone", headers=s.ann)
        s.client.delete("/v1/subscriptions/again", headers=s.ann)
        s.epoch()
        s.client.post("/v1/subscriptions", json={"id": "again", "shape": WORLD}, headers=s.ann)
        s.client.post("/v1/subscriptions", json={"id": "placed", "shape": PARIS}, headers=s.ann)
        s.client.delete("/v1/subscriptions/live", headers=s.ann)
    with served(run) as s:
        found = s.client.get("/v1/subscriptions", headers=s.ann).json()["subscriptions"]
        assert {f["id"]: f["state"] for f in found} == {
            "live": "ending",
            "again": "placed",
            "placed": "placed",
        }
        assert (
            s.client.post(
                "/v1/subscriptions", json={"id": "placed", "shape": PARIS}, headers=s.ann
            ).status_code
            == 200
        )
        s.epoch()
        found = s.client.get("/v1/subscriptions", headers=s.ann).json()["subscriptions"]
        assert {f["id"]: f["state"] for f in found} == {"again": "live", "placed": "live"}


def test_a_torn_line_that_a_crash_left_is_not_glued_to_the_next(run: LiveRun) -> None:
    (run.folder / "control").mkdir()
    (run.folder / "control/serve.ndjson").write_text('{"op": "register", "id": "@ann/torn", "sha')
    with served(run) as s:
        assert (
            s.client.post(
                "/v1/subscriptions", json={"id": "home", "shape": PARIS}, headers=s.ann
            ).status_code
            == 201
        )
        manifest = s.epoch()
        assert (manifest["registered"], manifest["control_rejected"]) == (1, {"malformed_json": 1})


def test_batches_are_placed_whole_or_not_at_all(run: LiveRun) -> None:
    with served(run, subscriptions=50) as s:
        items = [{"id": f"q{i}", "shape": PARIS} for i in range(40)]
        bad = [*items, {"id": "bad", "shape": {"type": "circle", "lon": 2, "lat": 48}}]
        refused = s.client.post(
            "/v1/subscriptions/batch", json={"subscriptions": bad}, headers=s.ann
        )
        assert refused.status_code == 422
        assert "subscription 40" in refused.json()["detail"]
        first = s.client.post(
            "/v1/subscriptions/batch", json={"subscriptions": items}, headers=s.ann
        )
        assert (first.status_code, len(first.json()["created"])) == (201, 40)
        again = s.client.post(
            "/v1/subscriptions/batch", json={"subscriptions": items}, headers=s.ann
        ).json()
        assert (again["created"], len(again["existing"])) == ([], 40)
        many = [{"id": f"m{i}", "shape": PARIS} for i in range(11)]
        full = s.client.post("/v1/subscriptions/batch", json={"subscriptions": many}, headers=s.ann)
        assert (full.status_code, full.json()["type"]) == (
            403,
            "urn:geoflux:problem:too_many_subscriptions",
        )
        assert s.epoch()["registered"] == 40


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"shape": {"type": "circle", "lon": 200, "lat": 0, "radius_m": 1}}, "invalid_shape"),
        ({"shape": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 1], [1, 0], [0, 0]]]}}, "invalid_shape"),
        ({"shape": {"type": "blob"}}, "invalid_shape"),
        ({"shape": PARIS, "where": "nosuch > 1"}, "unknown_column"),
        ({"shape": PARIS, "where": "speed >"}, "bad_where"),
        ({"shape": PARIS, "valid_until": "soon"}, "bad_time"),
        ({"shape": PARIS, "aggregate": {"functions": ["nope"]}}, "bad_aggregate"),
        ({"shape": PARIS, "user": "bob"}, "invalid_request"),
        ({"shape": PARIS, "id": "\ud800"}, "invalid_request"),
        ({"shape": {**PARIS, "note": "\ud800"}}, "malformed_json"),
    ],
)  # fmt: skip
def test_what_the_run_would_refuse_is_refused_at_once_in_one_sentence(
    run: LiveRun, body: dict[str, object], code: str
) -> None:
    with served(run) as s:
        answer = s.client.post(
            "/v1/subscriptions",
            content=json.dumps(body),
            headers=s.ann | {"Content-Type": "application/json"},
        )
        told = answer.json()
        assert (answer.status_code, answer.headers["content-type"]) == (
            422,
            "application/problem+json",
        )
        assert told["type"] == f"urn:geoflux:problem:{code}", told
        assert "\n" not in told["detail"]
        assert s.epoch()["control_rejected"] == {}


def test_a_query_whose_validity_is_over_and_one_that_guard_refuses_are_told_so(
    tmp_path: Path,
) -> None:
    run = LiveRun(tmp_path, guard={"enabled": True}, engine={"slots": 2, "lateness": "1s"})
    with served(run) as s:
        body = {"id": "short", "shape": PARIS, "valid_until": 1_700_000_100}
        s.client.post("/v1/subscriptions", json=body, headers=s.ann)
        s.epoch()
        run.send([event(5000)])
        s.epoch()
        run.send([event(5001)])
        s.epoch()
        assert s.client.get("/v1/subscriptions/short", headers=s.ann).json()["state"] == "ended"
        from geoflux.engine.guard_orders import Order
        from geoflux.engine.guard_reader import give_order

        s.client.post("/v1/subscriptions", json={"id": "late", "shape": PARIS}, headers=s.ann)
        give_order(run.out, Order("block", "ann", "asked to"))
        s.epoch()
        told = s.client.get("/v1/subscriptions/late", headers=s.ann).json()
        assert told["state"] == "refused"
        assert "asked to" in told["reason"]
        refused = s.client.post("/v1/subscriptions", json={"shape": PARIS}, headers=s.ann)
        assert (refused.status_code, refused.json()["type"]) == (
            403,
            "urn:geoflux:problem:blocked_user",
        )
        lift = s.client.post("/v1/blocks/lift", json={"user": "ann"}, headers=s.ops)
        assert lift.status_code == 202
        s.epoch()
        assert (
            s.client.post("/v1/subscriptions", json={"shape": PARIS}, headers=s.ann).status_code
            == 201
        )
        assert (
            s.client.post("/v1/blocks/lift", json={"user": "ann"}, headers=s.ops).status_code == 404
        )


def test_a_run_that_reads_no_more_control_records_says_so(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    run = LiveRun(tmp_path, run={"mode": "drain"})
    with served(run) as s:
        refused = s.client.post("/v1/subscriptions", json={"shape": PARIS}, headers=s.ann)
        assert refused.status_code == 409
        assert "follow" in refused.json()["detail"]


def test_a_simulated_run_takes_subscriptions_beside_its_own_queries(tmp_path: Path) -> None:
    from geoflux import api

    simulated = {
        "source": {"kind": "simulate"},
        "control": {},
        "run": {"mode": "drain", "duration": "2s"},
    }
    run = LiveRun(tmp_path, **simulated, simulate={"rate": 200, "queries": 20, "paced": False})
    with served(run) as s:
        s.client.post("/v1/subscriptions", json={"id": "all", "shape": WORLD}, headers=s.ann)
        first = s.epoch()
        assert (first["registered"], first["received"]) == (21, 400)
        assert s.client.get("/v1/subscriptions/all", headers=s.ann).json()["state"] == "live"
        s.client.delete("/v1/subscriptions/all", headers=s.ann)
        assert s.epoch()["ended"] == 1
    assert api.verify(run.out).is_clean


def test_an_odd_line_of_another_writer_stops_nobody(run: LiveRun) -> None:
    with served(run) as s:
        (run.folder / "control").mkdir(exist_ok=True)
        with open(run.folder / "control/serve.ndjson", "a") as file:
            file.write('{"op": "register", "id": ["@x"]}\n')
        made = s.client.post("/v1/subscriptions", json={"id": "a", "shape": PARIS}, headers=s.ann)
        assert made.status_code == 201
        s.epoch()
        assert s.client.get("/v1/subscriptions/a", headers=s.ann).json()["state"] == "live"


def test_an_epoch_that_cannot_be_read_at_first_refuses_nothing(
    run: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are renamed while they are opened: it is asked again, and tells all."""
    read, failed = ChangeReader._refused, []

    def renamed(reader: ChangeReader, manifest: Manifest) -> dict[str, str]:
        if not failed:
            failed.append(manifest["epoch"])
            raise StateError("quarantine/x.parquet is not there")
        return read(reader, manifest)

    with served(run) as s:
        s.epoch()
        monkeypatch.setattr(ChangeReader, "_refused", renamed)
        made = s.client.post("/v1/subscriptions", json={"id": "a", "shape": PARIS}, headers=s.ann)
        assert made.status_code == 201
        s.epoch()
        assert failed
        assert s.client.get("/v1/subscriptions/a", headers=s.ann).json()["state"] == "live"
        assert s.client.delete("/v1/subscriptions/a", headers=s.ann).status_code == 202


def test_a_run_that_reads_a_topic_takes_no_subscriptions(tmp_path: Path) -> None:
    topic = {"kind": "kafka", "topic": "control"}
    told = Config.from_dict(
        {"control": topic, "kafka": {"servers": "localhost:1"}, "run": {"mode": "follow"}}
    )
    with pytest.raises(Problem, match="from kafka; write them there"):
        ServedRun(tmp_path, told).control_inbox()


def test_a_control_file_that_was_cut_is_not_written_to(run: LiveRun) -> None:
    with served(run) as s:
        body = {"id": "a", "shape": PARIS}
        assert s.client.post("/v1/subscriptions", json=body, headers=s.ann).status_code == 201
        path = run.folder / "control/serve.ndjson"
        path.write_bytes(b"")
        refused = s.client.post("/v1/subscriptions", json=body | {"id": "b"}, headers=s.ann)
        assert refused.status_code == 503
        assert path.read_bytes() == b""


def test_relative_paths_of_a_run_count_from_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    run = LiveRun(Path("mine"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    run.out = tmp_path / "mine/out"
    with served(run) as s:
        body = {"id": "a", "shape": PARIS}
        assert s.client.post("/v1/subscriptions", json=body, headers=s.ann).status_code == 201
    assert (tmp_path / "mine/control/serve.ndjson").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []
