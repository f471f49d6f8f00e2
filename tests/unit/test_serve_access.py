"""Who may ask, and how much: tokens, roles, sessions, limits, headers."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn

from geoflux.errors import ConfigError
from geoflux.serve.app import create_app
from geoflux.serve.server import _patient, alone
from geoflux.serve.tokens import TokenFile
from served import PARIS, LiveRun, Served, served


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LiveRun:
    return LiveRun(tmp_path_factory.mktemp("run"))


def test_tokens_are_kept_as_hashes_in_a_file_of_the_owners(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "serve/tokens.json")
    secret = tokens.create("ann", "user")
    text = tokens.path.read_text()
    assert secret.split("_", 2)[2] not in text
    assert os.stat(tokens.path).st_mode & 0o777 == 0o600
    other = TokenFile(tokens.path)  # another process
    [known] = other.listed()
    assert other.find(secret) == known
    assert [
        other.find(wrong)
        for wrong in (secret[:-1], secret.replace("gfx", "gfy"), "", "gfx_", "gfx__")
    ] == [None] * 5
    tokens.revoke(known.id)
    assert other.find(secret) is None
    with pytest.raises(ConfigError, match="no token"):
        tokens.revoke(known.id)
    os.chmod(tokens.path, 0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        TokenFile(tokens.path).listed()


def test_nothing_but_health_and_the_description_is_told_without_a_token(run: LiveRun) -> None:
    with served(run) as s:
        paths = s.client.get("/openapi.json").json()["paths"]
        for path, methods in paths.items():
            for method in methods:
                status = s.client.request(
                    method, path.replace("{name}", "x"), json={"token": "gfx_0_0"}
                ).status_code
                assert status == (
                    200
                    if path == "/health"
                    else 204
                    if (path, method) == ("/v1/session", "delete")
                    else 401
                ), (path, method)
        for wrong in ("Bearer gfx_00000000_x", "Bearer ", "Basic x", "Bearer " + "x" * 10_000):
            assert s.client.get("/v1/me", headers={"Authorization": wrong}).status_code == 401


def test_users_are_no_operators_and_a_revoked_token_is_worth_nothing(run: LiveRun) -> None:
    with served(run) as s:
        for path in (
            "/v1/plan",
            "/v1/slots",
            "/v1/rounds",
            "/v1/decisions",
            "/v1/blocks",
            "/metrics",
        ):
            assert s.client.get(path, headers=s.ann).status_code == 403, path
        assert (
            s.client.post("/v1/blocks/lift", json={"user": "x"}, headers=s.ann).status_code == 403
        )
        assert s.client.get("/v1/me", headers=s.ann).json()["user"] == "ann"
        for token in s.tokens.listed():
            if token.user == "ann":
                s.tokens.revoke(token.id)
        assert s.client.get("/v1/me", headers=s.ann).status_code == 401


def test_a_session_is_a_cookie_that_other_sites_cannot_use(run: LiveRun) -> None:
    with served(run) as s:
        token = s.ops["Authorization"].removeprefix("Bearer ")
        opened = s.client.post("/v1/session", json={"token": token})
        cookie = opened.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=strict"))
        assert token not in cookie
        assert s.client.get("/v1/me").json() == {
            "user": "ops",
            "role": "operator",
            "subscriptions": {"most": 10_000, "has": 0},
        }
        body = {"id": "drawn", "shape": PARIS}
        for headers, status in (
            ({}, 403), ({"Origin": "http://evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, 403),
            ({"Origin": "http://localhost"}, 201), ({"Sec-Fetch-Site": "same-origin"}, 200),
        ):  # fmt: skip
            assert (
                s.client.post("/v1/subscriptions", json=body, headers=headers).status_code == status
            ), headers
        assert s.client.delete("/v1/session").status_code == 204
        assert s.client.get("/v1/me").status_code == 401
        assert s.client.post("/v1/session", json={"token": "gfx_x_y"}).status_code == 401


def test_bodies_rates_and_streams_have_limits(run: LiveRun) -> None:
    with served(run, body="2 kB", rate=0.01, burst=4) as s:
        huge = b'{"id": "' + b"x" * 5000 + b'"}'
        for content in (huge, iter([huge[:1000]] * 5)):  # with its length, and without
            refused = s.client.post(
                "/v1/subscriptions",
                content=content,
                headers=s.ann | {"Content-Type": "application/json"},
            )
            assert (refused.status_code, refused.json()["title"]) == (413, "Too large")
        codes = [s.client.get("/v1/me", headers=s.bob).status_code for _ in range(5)]
        assert codes == [200, 200, 200, 200, 429]
        assert int(s.client.get("/v1/me", headers=s.bob).headers["retry-after"]) >= 1
        assert s.client.get("/v1/me", headers=s.ops).status_code == 200


def test_nothing_of_a_body_is_read_before_its_sender_is_known(run: LiveRun) -> None:
    with served(run, burst=2, rate=0.01) as s:
        told = [_sent(s, who) for who in ({}, s.ann, s.ann, s.ann)]
        assert told == [(401, 0), (422, 1), (422, 1), (429, 0)]


def test_a_body_that_does_not_come_is_given_up(run: LiveRun) -> None:
    with served(run, patience="200ms") as s:
        began = time.monotonic()
        assert _sent(s, s.ann, comes=False) == (408, 2)
        status, asked = _sent(s, {}, "/v1/session", drops=0.05)
        assert (status, 3 < asked < 100) == (408, True)
        assert time.monotonic() - began < 10
        long = {"token": "x" * 5000}
        assert s.client.post("/v1/session", json=long).status_code == 413


def _sent(
    s: Served, headers: dict[str, str], path: str = "/v1/subscriptions", comes: bool = True,
    drops: float = 60.0,
) -> tuple[int, int]:  # fmt: skip
    """The status of a request without content, and how often its body was asked for; one that does
    not come begins and stops, or goes on in drops, so many seconds apart."""
    asked, statuses = 0, []

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if asked > 1:
            await anyio.sleep(drops)
        whole = comes and drops == 60.0
        return {"type": "http.request", "body": b"{}" if whole else b" ", "more_body": not whole}

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status"))

    pairs = {"host": "localhost", "content-type": "application/json", **headers}
    scope = {
        "type": "http", "method": "POST", "path": path, "query_string": b"",
        "http_version": "1.1", "scheme": "http", "root_path": "", "raw_path": b"",
        "server": ("localhost", 80), "client": ("x", 1),
        "headers": [(k.lower().encode(), v.encode()) for k, v in pairs.items()],
    }  # fmt: skip
    app: Any = s.client.app
    assert s.client.portal is not None
    s.client.portal.call(app, scope, receive, send)
    return statuses[0], asked


def test_a_token_has_few_sessions_and_they_end_with_it(run: LiveRun) -> None:
    with served(run) as s:
        tokens = [h["Authorization"].removeprefix("Bearer ") for h in (s.ann, s.bob)]
        first, kept = (
            s.client.post("/v1/session", json={"token": token}).cookies["geoflux_session"]
            for token in tokens
        )
        for _ in range(20):  # ann's own oldest gives way, and nobody else's
            s.client.post("/v1/session", json={"token": tokens[0]})
        s.client.cookies.clear()

        def known(cookie: str) -> int:
            return s.client.get(
                "/v1/me", headers={"Cookie": f"geoflux_session={cookie}"}
            ).status_code

        assert (known(first), known(kept)) == (401, 200)
        s.tokens.revoke(kept.partition(".")[0])
        assert known(kept) == 401


def test_headers_keep_browsers_careful_and_other_names_are_refused(run: LiveRun) -> None:
    with served(run) as s:
        headers = s.client.get("/health").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert s.client.get("/health", headers={"Host": "evil.example"}).status_code == 421
        assert s.client.get("/nothing").json()["status"] == 404
        assert s.client.put("/v1/me").headers["content-type"] == "application/problem+json"


def test_a_directory_has_one_server(run: LiveRun) -> None:
    with alone(run.out), pytest.raises(ConfigError, match="served already"), alone(run.out):
        pass


def test_a_connection_that_says_nothing_is_closed() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(
        app, port=0, http=_patient(0.3), lifespan="off", log_level="error", timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        for begun in (b"", b"GET / HTTP/1.1\r\nHost: "):
            with socket.create_connection(listener.getsockname(), 10) as slow:
                slow.sendall(begun)
                slow.settimeout(10)
                assert _rest(slow) == b""
        with socket.create_connection(listener.getsockname(), 10) as second:
            second.settimeout(10)
            second.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert second.recv(12) == b"HTTP/1.1 204"
            second.sendall(b"G")  # of another request, which never comes
            _rest(second)
    finally:
        server.should_exit = True
        thread.join(10)


def _rest(connection: socket.socket) -> bytes:
    """What still comes until the other side closes, however it does."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(1000):
            found += data
    return found


def test_a_run_that_cannot_be_followed_is_told_by_health_and_tried_again(
    run: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(run) as s:
        follower = s.client.app.state.parts.follower  # type: ignore[attr-defined]
        with monkeypatch.context() as broken:
            broken.setattr(follower, "look", _fails)
            _until(lambda: s.client.get("/health").json()["status"] == "stuck")
            assert "nobody expected" in follower.fault
        _until(lambda: s.client.get("/health").json()["status"] == "ok")
        s.epoch()


async def _fails() -> bool:
    raise ValueError("nobody expected this")


def _until(what: Callable[[], bool]) -> None:
    for _ in range(200):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def test_before_its_run_begins_a_server_says_so(tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    from geoflux.sections_serve import ServeConfig

    tokens = TokenFile(tmp_path / "serve/tokens.json")
    ops = {"Authorization": f"Bearer {tokens.create('ops', 'operator')}"}
    with TestClient(create_app(tmp_path, ServeConfig()), base_url="http://localhost") as client:
        assert client.get("/health").json()["run"] == "waiting"
        for path in ("/v1/plan", "/v1/slots", "/v1/decisions", "/v1/blocks", "/v1/subscriptions"):
            told = client.get(path, headers=ops)
            assert (told.status_code, told.json()["type"]) == (503, "urn:geoflux:problem:no_run"), (
                path
            )
