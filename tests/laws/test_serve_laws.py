"""A user's stream of matches, over any reconnects, is exactly that user's matches; and what the
server knows of subscriptions is what the run made of the records, whenever it was started."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.serve.epoch_facts import ChangeReader
from geoflux.serve.following import Follower
from geoflux.serve.journal import Journal
from geoflux.serve.match_epochs import MatchHistory
from geoflux.serve.match_stream import Listener, MatchStream, Tempo, cursor_of
from geoflux.serve.registry import Registry, line_of, query_id
from geoflux.serve.served_run import ServedRun
from served import LiveRun, event, messages

USERS = ("ann", "bob", "cat")
BOXES = [(-180, -90, 180, 90), (0, 0, 10, 10), (5, 5, 60, 60), (-60, -60, -5, -5)]


def box(number: int) -> dict[str, Any]:
    west, south, east, north = BOXES[number]
    return {"type": "rectangle", "west": west, "south": south, "east": east, "north": north}


class Cut(Exception):
    """The connection broke."""


async def heard(
    source: tuple[Follower, MatchHistory], user: str, place: str, most: int
) -> tuple[list[Any], str]:
    """What a client hears that is cut after so many messages, and the last id that it has got."""
    text = ""

    async def send(message: Any) -> None:
        nonlocal text, most
        body = message.get("body", b"").decode()
        if "data: " in body:
            if most == 0:
                raise Cut
            most -= 1
        text += body
        if "heartbeat" in body:
            raise Cut  # it has heard all there is

    async def receive() -> Any:
        await asyncio.sleep(3600)

    stream = MatchStream(
        source, Listener(user, None, lambda: True), cursor_of(place), Tempo(0.001, 10), lambda: None
    )
    with contextlib.suppress(Cut):
        await stream({"type": "http"}, receive, send)
    ids = [line[4:] for line in text.split("\n") if line.startswith("id: ")]
    return messages(text), ids[-1] if ids else place


@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.sampled_from(USERS), st.integers(0, len(BOXES) - 1)), min_size=1, max_size=6
    ),
    st.lists(
        st.lists(st.tuples(st.integers(-80, 80), st.integers(-80, 80)), max_size=30),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(0, 3), min_size=1, max_size=20),
    st.sampled_from([1, 1 << 30]),
    st.integers(1, 7),
)
def test_a_stream_over_any_reconnects_is_exactly_the_users_matches(
    asked: list[tuple[str, int]],
    batches: list[list[tuple[int, int]]],
    cuts: list[int],
    kept: int,
    per_message: int,
) -> None:
    from geoflux.serve import match_epochs

    with tempfile.TemporaryDirectory() as name:
        run = LiveRun(Path(name))
        (run.folder / "control").mkdir()
        lines = [
            line_of(
                {"op": "register", "id": query_id(user, f"s{i}"), "user": user, "shape": box(b)}
            )
            for i, (user, b) in enumerate(asked)
        ]
        (run.folder / "control/serve.ndjson").write_bytes(b"".join(lines))
        serial = itertools.count(1)
        for batch in batches:
            run.send([event(next(serial), float(x), float(y)) for x, y in batch])
            run.epoch()
        before, match_epochs._MOST_IN_MESSAGE = match_epochs._MOST_IN_MESSAGE, per_message
        try:
            told = asyncio.run(_all_streams(run, cuts, kept))
        finally:
            match_epochs._MOST_IN_MESSAGE = before
        wanted: dict[str, Counter[Any]] = {user: Counter() for user in USERS}
        for file in (run.out / "matches").glob("*.parquet"):
            for row in pq.read_table(file).to_pylist():
                user, _, query = row["query_id"][1:].partition("/")
                wanted[user][row["epoch"], query, row["event_id"]] += 1
        assert told == wanted


async def _all_streams(run: LiveRun, cuts: list[int], kept: int) -> dict[str, Counter[Any]]:
    served = ServedRun(run.out)
    follower = Follower(served)
    while await follower.look():
        pass
    found: dict[str, Counter[Any]] = {user: Counter() for user in USERS}
    for user in USERS:
        place, left = "start", itertools.chain(cuts, itertools.repeat(1000))
        history = MatchHistory(served, kept)
        while True:
            most = next(left)
            some, after = await heard((follower, history), user, place, most)
            for message in some:
                for m in message["matches"]:
                    found[user][message["epoch"], m["subscription"], m["event"]] += 1
            if most == 1000:
                break
            place = after
    return found


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.sampled_from(USERS[:2]), st.just("x")),
        st.tuples(st.just("terminate"), st.sampled_from(USERS[:2]), st.just("x")),
        st.just(("epoch",)),
    ),
    max_size=25,
)


@settings(max_examples=25)
@given(STEPS, st.integers(0, 25))
def test_what_is_known_of_subscriptions_is_what_the_run_made_of_them(
    steps: list[Any], restart: int
) -> None:
    """Whoever writes the lines; a server that was started in the middle knows the same."""
    with tempfile.TemporaryDirectory() as name:
        run = LiveRun(Path(name))
        (run.folder / "control").mkdir()
        path = run.folder / "control/serve.ndjson"
        path.touch()
        servers = [_Knowing(run, path)]
        for number, step in enumerate([*steps, ("epoch",)]):
            if number == restart:
                servers.append(_Knowing(run, path))
            if step[0] == "epoch":
                manifest = run.epoch()
                for server in servers:
                    server.hear(manifest)
            else:
                op, user, query = step
                shape = {"shape": box(0)} if op == "register" else {}
                with open(path, "ab") as file:
                    file.write(
                        line_of({"op": op, "id": query_id(user, query), "user": user, **shape})
                    )
        live = set(run.engine.catalogue.live_rows().column("id").to_pylist())
        for server in servers:
            states = {
                query_id(user, n): s.state
                for user, mine in server.registry.users.items()
                for n, s in mine.items()
            }
            assert states == dict.fromkeys(live, "live"), json.dumps(steps)


class _Knowing:
    """What a server knows, without its server."""

    def __init__(self, run: LiveRun, path: Path) -> None:
        self.registry = Registry()
        self.journal = Journal(path, self.registry.line)
        self.reader = ChangeReader(run.store, path.name)
        asyncio.run(self.journal.catch_up())
        if run.engine.last is not None:
            self.hear(run.engine.manifest(run.engine.last))

    def hear(self, manifest: Any) -> None:
        asyncio.run(self.journal.catch_up())
        changes = self.reader.changes(manifest)
        if changes.ended is None:
            self.registry.resync(changes.read_upto, changes.came, changes.refused)
        else:
            self.registry.settle(changes.read_upto, changes.came, changes.ended, changes.refused)
