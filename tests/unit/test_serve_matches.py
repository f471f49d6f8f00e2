"""Matches as they come: one's own, from any point on, read once for everybody."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from served import PARIS, WORLD, LiveRun, Served, event, messages, served


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path)


class Client:
    """A client of a stream that takes what comes for a while."""

    def __init__(
        self, s: Served, headers: dict[str, str], query: bytes = b"", stalls: bool = False
    ) -> None:
        self.s, self.headers, self.query, self.stalls = s, headers, query, stalls
        self.text, self.status = "", 0

    async def listen(self, seconds: float) -> None:
        """As a server would run it; the client goes after so many seconds."""
        gone = anyio.Event()
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                return
            if self.stalls:
                await anyio.sleep(3600)
            self.text += message.get("body", b"").decode()

        scope = {
            "type": "http", "method": "GET", "path": "/v1/matches", "raw_path": b"/v1/matches", "http_version": "1.1",
            "query_string": self.query, "root_path": "", "scheme": "http", "server": ("localhost", 80), "client": ("x", 1),
            "headers": [(b"host", b"localhost"), *((k.lower().encode(), v.encode()) for k, v in self.headers.items())],
        }  # fmt: skip
        app: Any = self.s.client.app
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                await anyio.sleep(seconds)
                gone.set()

            group.start_soon(leave)
            await app(scope, receive, send)
            group.cancel_scope.cancel()


def listen(
    s: Served, headers: dict[str, str], query: bytes = b"", seconds: float = 0.4
) -> list[dict[str, Any]]:
    client = Client(s, headers, query)
    assert s.client.portal is not None
    s.client.portal.call(client.listen, seconds)
    assert client.status == 200, client.text
    return messages(client.text)


def rows(found: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(m["subscription"], m["event"]) for message in found for m in message["matches"]]


def test_everybody_gets_their_own_and_nobody_elses(run: LiveRun) -> None:
    with served(run) as s:
        s.client.post("/v1/subscriptions", json={"id": "paris", "shape": PARIS}, headers=s.ann)
        s.client.post("/v1/subscriptions", json={"id": "all", "shape": WORLD}, headers=s.bob)
        (run.folder / "control/others.ndjson").write_text(
            '{"op": "register", "id": "plain", "shape": ' + str(WORLD).replace("'", '"') + "}\n"
        )
        s.epoch()
        run.send([event(1), event(2, 100.0, 10.0), event(3)])
        assert s.epoch()["matches"] == 2 + 3 + 3
        assert sorted(rows(listen(s, s.ann, b"from=start"))) == [("paris", 1), ("paris", 3)]
        assert sorted(rows(listen(s, s.bob, b"from=start"))) == [
            ("all", 0),
            ("all", 1),
            ("all", 2),
            ("all", 3),
        ]
        assert listen(s, s.ops, b"from=start") == []
        assert listen(s, s.ann) == []  # from now on: nothing came


def test_a_stream_goes_on_after_the_last_id(run: LiveRun) -> None:
    with served(run) as s:
        s.client.post("/v1/subscriptions", json={"id": "a", "shape": WORLD}, headers=s.ann)
        s.client.post("/v1/subscriptions", json={"id": "b", "shape": WORLD}, headers=s.ann)
        s.epoch()
        run.send([event(n) for n in range(1, 1500)])
        s.epoch()
        run.send([event(n) for n in range(1500, 1510)])
        s.epoch()
        whole = listen(s, s.ann, b"from=start")
        assert len(rows(whole)) == 2 * 1510
        assert len(set(rows(whole))) == 2 * 1510
        assert len(whole) > 5
        for cut in range(len(whole)):
            after = {"Last-Event-ID": whole[cut]["id"]}
            assert rows(listen(s, s.ann | after, seconds=0.1)) == rows(whole[cut + 1 :])
        middle = whole[2]["matches"][100]["row"]
        left = listen(s, s.ann, f"from={whole[2]['epoch']}-{middle}".encode())
        assert rows(left) == rows(whole[2:])[101:]
        only = listen(s, s.ann, b"from=start&subscription=b")
        assert {name for name, _ in rows(only)} == {"b"}
        assert len(rows(only)) == 1510


def test_an_epoch_is_read_once_however_many_listen_and_old_ones_are_read_again(
    run: LiveRun,
) -> None:
    with served(run, history="1 kB") as s:
        s.client.post("/v1/subscriptions", json={"id": "a", "shape": WORLD}, headers=s.ann)
        for n in range(4):
            run.send([event(10 * n + k) for k in range(10)])
            s.epoch()
        parts = s.client.app.state.parts  # type: ignore[attr-defined]

        async def many() -> None:
            clients = [Client(s, s.ann, b"from=3-0") for _ in range(8)]
            async with anyio.create_task_group() as group:
                for client in clients:
                    group.start_soon(client.listen, 0.3)
            assert all(len(rows(messages(c.text))) == 10 for c in clients)

        assert s.client.portal is not None
        s.client.portal.call(many)
        assert parts.history.reads == 1
        assert len(rows(listen(s, s.ann, b"from=start"))) == 41
        assert parts.seats.taken.total() == 0


def test_heartbeats_carry_the_place_and_a_client_that_takes_nothing_is_cut(run: LiveRun) -> None:
    with served(run, heartbeat="100ms", patience="300ms") as s:
        s.epoch()
        client = Client(s, s.ann)
        assert s.client.portal is not None
        s.client.portal.call(client.listen, 0.5)
        assert ": heartbeat\nid: 0-0\n\n" in client.text
        slow = Client(s, s.ann, stalls=True)
        began = time.monotonic()
        s.client.portal.call(slow.listen, 60.0)
        assert time.monotonic() - began < 10


def test_streams_per_user_are_counted_and_a_revoked_token_ends_them(run: LiveRun) -> None:
    with served(run, streams=2, heartbeat="100ms") as s:
        s.epoch()

        async def several() -> list[int]:
            clients = [Client(s, s.ann) for _ in range(3)]
            async with anyio.create_task_group() as group:
                for client in clients:
                    group.start_soon(client.listen, 30.0)
                await anyio.sleep(0.5)
                for token in s.tokens.listed():
                    s.tokens.revoke(token.id)
            return sorted(client.status for client in clients)

        began = time.monotonic()
        assert s.client.portal is not None
        assert s.client.portal.call(several) == [200, 200, 429]
        assert time.monotonic() - began < 20


def test_whoever_comes_from_far_is_told_where_it_is_and_cut_when_revoked(run: LiveRun) -> None:
    with served(run) as s:
        s.epoch()
        for n in range(140):
            run.send([event(n + 1)])
            run.epoch()
        run.send([event(1000)])
        s.epoch()
        client = Client(s, s.ann, b"from=start")
        assert s.client.portal is not None
        s.client.portal.call(client.listen, 1.0)
        places = [line for line in client.text.split("\n") if line.startswith("id: ")]
        assert len(places) >= 3  # though nothing was for ann
        parts = s.client.app.state.parts  # type: ignore[attr-defined]
        looks, still = [], parts.access.still
        parts.access.still = lambda request: (
            len(looks) < 1 and not looks.append(1) and still(request)
        )
        before = parts.history.reads
        parts.history._kept.clear()
        began = time.monotonic()
        s.client.portal.call(Client(s, s.ann, b"from=start").listen, 30.0)
        assert time.monotonic() - began < 20
        assert parts.history.reads - before <= 64


@pytest.mark.parametrize(
    "place", ["x", "1", "-1-0", "1-2-3", "9-0", "99999999999999999999-1", "%00"]
)
def test_a_place_that_the_stream_never_had_is_refused(run: LiveRun, place: str) -> None:
    with served(run) as s:
        s.epoch()
        assert s.client.get(f"/v1/matches?from={place}", headers=s.ann).status_code == 422


def test_windows_and_counts_come_the_same_way(tmp_path: Path) -> None:
    run = LiveRun(tmp_path, output={"matches": "counts"}, engine={"slots": 2, "lateness": "0s"})
    with served(run) as s:
        aggregate = {"functions": ["count", "avg(speed)"], "window": "10 seconds"}
        s.client.post(
            "/v1/subscriptions",
            json={"id": "w", "shape": PARIS, "aggregate": aggregate},
            headers=s.ann,
        )
        s.epoch()
        run.send([event(n) for n in range(25)])
        s.epoch()
        run.send([event(100)])
        s.epoch()
        found = listen(s, s.ann, b"from=start")
        assert sum(m["count"] for f in found for m in f.get("counts", ())) == 26
        windows = [m for f in found for m in f.get("aggregates", ())]
        assert {(w["function"], w["value"]) for w in windows} >= {
            ("count", 10.0),
            ("avg(speed)", 5.0),
        }
        ids = [tuple(map(int, f["id"].split("-"))) for f in found]
        assert ids == sorted(set(ids))
