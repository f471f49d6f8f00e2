"""Events that come in, questions that are asked once, and how the run is doing."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sketching import WEATHER, ran

from geoflux.sections_serve import ServeConfig
from geoflux.serve.app import create_app
from geoflux.serve.arrow_bodies import claims
from geoflux.serve.event_inbox import ARROW
from geoflux.serve.tokens import TokenFile
from served import PARIS, LiveRun, event, served

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path, retention={"time": "1 day"})


def lines(events: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in events).encode()


def stream(table: pa.Table, codec: str | None = None) -> bytes:
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table)
    return out.getvalue().to_pybytes()


def arrow(events: list[dict[str, Any]]) -> bytes:
    return stream(pa.Table.from_pylist(events))


def test_batches_of_lines_and_of_arrow_are_taken_in_once(run: LiveRun) -> None:
    with served(run) as s:
        s.client.post("/v1/subscriptions", json={"id": "p", "shape": PARIS}, headers=s.ann)
        s.epoch()
        first = s.client.post(
            "/v1/events", content=lines([event(1), event(2)]), headers=s.ops | NDJSON
        )
        assert (first.status_code, first.json()) == (202, {"accepted": 2, "again": False})
        keyed = s.ops | NDJSON | {"Idempotency-Key": "k1"}
        other = s.ops | {"Content-Type": ARROW, "Idempotency-Key": "k2"}
        for again in (False, True):
            sent = s.client.post("/v1/events", content=lines([event(3)]), headers=keyed)
            assert sent.json() == {"accepted": 1, "again": again}
            sent = s.client.post("/v1/events", content=arrow([event(4), event(5)]), headers=other)
            assert sent.json() == {"accepted": 2, "again": again}
        for content, headers in (
            (lines([event(9)]), keyed),
            (arrow([event(9)]), other),
            (arrow([event(9)]), other | {"Idempotency-Key": "k1"}),
        ):
            assert s.client.post("/v1/events", content=content, headers=headers).status_code == 409
        s.client.post("/v1/events", content=lines([event(6)])[:-1], headers=s.ops | NDJSON)
        s.client.post(
            "/v1/events", content=arrow([event(7)]), headers=s.ops | {"Content-Type": ARROW}
        )
        manifest = s.epoch()
        assert (manifest["received"], manifest["matches"], manifest["quarantined"]) == (7, 7, 0)


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b"", NDJSON["Content-Type"], 422),
        (b"\n \n", NDJSON["Content-Type"], 422),
        (b"[1]\n", NDJSON["Content-Type"], 422),
        (b'{"id": 1}\n{"id": ', NDJSON["Content-Type"], 422),
        (b"[" * 100_000, NDJSON["Content-Type"], 422),
        (b"\xff\xfe\n", NDJSON["Content-Type"], 422),
        (b"not arrow", ARROW, 422),
        (arrow([{"id": 1, "lon": 2.0}]), ARROW, 422),
        (arrow([event(1)])[:-200], ARROW, 422),
        (b"{}", "application/json", 415),
        (b"{}", "", 415),
    ],
)
def test_batches_that_are_none_are_refused_whole(
    run: LiveRun, body: bytes, media: str, status: int
) -> None:
    with served(run) as s:
        s.epoch()
        told = s.client.post("/v1/events", content=body, headers=s.ops | {"Content-Type": media})
        assert told.status_code == status, told.text
        assert s.epoch()["received"] == 0


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_what_an_arrow_body_claims_is_known_before_it_is_unfolded(
    run: LiveRun, codec: str | None
) -> None:
    columns = {name: pa.array([1.0] * 1000) for name in ("id", "lon", "lat", "time")}
    words = pa.array(["a", "b"] * 500).dictionary_encode()
    honest = stream(pa.table({**columns, "word": words}), codec)
    claimed = claims(honest)
    assert claimed.rows == 1000
    assert 4 * 8000 <= claimed.nbytes < 4 * 8000 + 10_000
    nulls = stream(pa.table({n: pa.nulls(1 << 30) for n in columns}), codec)
    zeros = stream(pa.table({n: pa.array(np.zeros(1 << 24)) for n in columns}), codec)
    for bomb in (nulls, zeros)[: 2 if codec else 1]:
        assert len(bomb) < 8_000_000
        with served(run) as s:
            told = s.client.post(
                "/v1/events", content=bomb, headers=s.ops | {"Content-Type": ARROW}
            )
            assert (told.status_code, "unfolds" in told.json()["detail"]) == (413, True)


def _shared() -> pa.Array:
    sizes, starts = pa.array([1000] * 1000, pa.int32()), pa.array([0] * 1000, pa.int32())
    return pa.ListViewArray.from_arrays(starts, sizes, pa.array([7] * 1000, pa.int8()))


def _old(table: pa.Table) -> bytes:
    """As before Arrow 1.0, when messages said elsewhere whether they are compressed."""
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("column", "status"),
    [
        (pa.ListArray.from_arrays(pa.array([0, 1 << 30], pa.int32()), pa.nulls(1 << 30)), 413),
        (pa.FixedSizeListArray.from_arrays(pa.nulls(1 << 30), 1 << 30), 413),
        (_shared(), 422),
        (pa.array([b"x" * 50] * 1000, pa.binary(50)).dictionary_encode(), 422),
        (pa.array([["a"]] * 1000, pa.list_(pa.dictionary(pa.int32(), pa.binary()))), 422),
        (pa.array(["a"] * 1000).dictionary_encode(), 202),
        (pa.array([1] * 1000).dictionary_encode(), 202),
    ],
)
def test_nested_and_shared_values_are_counted_too(
    run: LiveRun, column: pa.Array, status: int
) -> None:
    columns = {name: pa.array([1.0] * len(column)) for name in ("id", "lon", "lat", "time")}
    body = stream(pa.table({**columns, "more": column}))
    assert len(body) < 200_000
    with served(run) as s:
        told = s.client.post("/v1/events", content=body, headers=s.ops | {"Content-Type": ARROW})
        assert told.status_code == status, told.text


def test_streams_of_an_old_format_are_refused() -> None:
    with pytest.raises(ValueError, match=r"before Arrow 1\.0"):
        claims(_old(pa.table({"x": [1.0]})))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_damaged_headers_are_refused_and_never_more(place: int, damage: bytes) -> None:
    body = bytearray(arrow([event(1), event(2)]))
    place %= len(body)
    body[place : place + len(damage)] = damage
    with contextlib.suppress(ValueError):
        assert claims(bytes(body)).rows >= 0


def test_users_send_events_only_where_they_may(run: LiveRun) -> None:
    with served(run) as s:
        assert (
            s.client.post(
                "/v1/events", content=lines([event(1)]), headers=s.ann | NDJSON
            ).status_code
            == 403
        )
    with served(run, ingest="user") as s:
        assert (
            s.client.post(
                "/v1/events", content=lines([event(1)]), headers=s.ann | NDJSON
            ).status_code
            == 202
        )


@pytest.mark.parametrize(
    ("sections", "word"),
    [
        ({"source": {"kind": "simulate"}}, "simulator"),
        ({"run": {"mode": "drain"}, "control": {}}, "stops"),
    ],
)
def test_a_run_that_takes_no_events_from_here_says_why(
    tmp_path: Path, sections: dict[str, Any], word: str
) -> None:
    with served(LiveRun(tmp_path, **sections)) as s:
        told = s.client.post("/v1/events", content=lines([event(1)]), headers=s.ops | NDJSON)
        assert told.status_code == 409
        assert word in told.json()["detail"]


def test_snapshots_are_answered_as_of_the_newest_epoch(run: LiveRun) -> None:
    with served(run, answer_rows=2) as s:
        early = s.client.post("/v1/snapshots", json={}, headers=s.ann)
        assert (early.status_code, "no epoch" in early.json()["detail"]) == (409, True)
        run.send([event(n) for n in range(1, 6)])
        s.epoch()
        found = s.client.post(
            "/v1/snapshots", json={"shape": PARIS, "where": "speed < 10"}, headers=s.ann
        ).json()
        assert (found["matched"], len(found["rows"]), found["rows_left_out"]) == (5, 2, 3)
        nearest = {"nearest": {"lon": 2.35, "lat": 48.86, "k": 1}, "from": 1_700_000_003}
        [row] = s.client.post("/v1/snapshots", json=nearest, headers=s.ann).json()["rows"]
        assert row["id"] == 5
        total = {"aggregate": {"functions": ["avg(speed)"]}, "shape": PARIS}
        assert (
            s.client.post("/v1/snapshots", json=total, headers=s.ann).json()["rows"][0]["value"]
            == 5.0
        )
        for wrong in ({"where": "x >"}, {"nearest": {}}, {"to": "soon"}, {"what": 1}, []):
            assert s.client.post("/v1/snapshots", json=wrong, headers=s.ann).status_code == 422
        sketch = s.client.post("/v1/sketch/query", json={"sql": "SELECT count(*)"}, headers=s.ann)
        assert (sketch.status_code, "no sketch" in sketch.json()["detail"]) == (409, True)


def test_how_the_run_is_doing(run: LiveRun) -> None:
    with served(run) as s:
        s.client.post("/v1/subscriptions", json={"shape": PARIS}, headers=s.ann)
        s.epoch()
        run.send([event(n) for n in range(1, 11)])
        s.epoch()
        plan = s.client.get("/v1/plan", headers=s.ops).json()
        assert (plan["kind"], len(plan["slots"]), len(plan["partitions"])) == ("grid", 2, 2)
        assert s.client.get("/v1/plan?epoch=0", headers=s.ops).json()["epoch"] == 0
        assert s.client.get("/v1/plan?epoch=77", headers=s.ops).status_code == 422
        slots = s.client.get("/v1/slots", headers=s.ops).json()
        assert (slots["epoch"], sum(slot["processed"] for slot in slots["slots"])) == (1, 10)
        assert s.client.get("/v1/decisions", headers=s.ops).json() == {"decisions": []}
        assert s.client.get("/v1/rounds?before=1", headers=s.ops).json() == {"rounds": []}
        assert s.client.get("/v1/blocks", headers=s.ops).json()["blocks"] == []
        health = s.client.get("/health").json()
        assert (health["status"], health["last_epoch"]) == ("ok", 1)
        assert health["last_commit_age_seconds"] < 600
        figures = s.client.get("/metrics", headers=s.ops).text
        for line in (
            "geoflux_last_epoch 1", "geoflux_processed_total 11", "geoflux_matches_total 10", "geoflux_epochs_total 2",
            "geoflux_live_queries 1", 'geoflux_subscriptions{state="live"} 1', "geoflux_quarantined_total 0",
            'geoflux_http_requests_total{method="POST",route="/v1/subscriptions",status="201"} 1',
        ):  # fmt: skip
            assert line in figures.splitlines(), (line, figures)
        assert "ann" not in figures


def test_a_sketch_is_asked_over_http(tmp_path: Path) -> None:
    ran(tmp_path, WEATHER.table(), epochs=1)
    tokens = TokenFile(tmp_path / "serve/tokens.json")
    ann = {"Authorization": f"Bearer {tokens.create('ann', 'user')}"}
    with TestClient(create_app(tmp_path, ServeConfig()), base_url="http://localhost") as client:

        def ask(**body: Any) -> Any:
            return client.post("/v1/sketch/query", json=body, headers=ann)

        found = ask(sql="SELECT count(*), mean(t2m_k)").json()
        assert found["epoch"] == 0
        assert 6000 in found["rows"][0].values()
        assert (
            ask(query={"select": [{"count": []}]}).json()["rows"]
            == ask(sql="SELECT count(*)").json()["rows"]
        )
        wrong = ask(sql="SELECT mean(nosuch)")
        assert (wrong.status_code, "nosuch" in wrong.json()["detail"]) == (422, True)
        assert ask().status_code == ask(sql="SELECT", query={}).status_code == 422
        assert client.get("/v1/subscriptions", headers=ann).status_code == 409
        assert (
            client.post("/v1/subscriptions", json={"shape": PARIS}, headers=ann).status_code == 409
        )
