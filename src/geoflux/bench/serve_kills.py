"""What is acknowledged is never lost: subscriptions, terminations and events, while the server and
the run are killed at random moments.

Clients go on all the time. Who gets no answer asks again with the same id, as a client should. At
the end it is counted what was acknowledged and is not there, and what is there twice. A client that
listens to everything comes back after every kill with its last id, and must have heard each match
exactly once.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from geoflux.bench.serve_clients import GONE, Connection, MatchClient, until_up
from geoflux.bench.serve_world import WORLD, World
from geoflux.engine.catalogue import rebuilt
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

_USERS = 4
_NDJSON = "application/x-ndjson"
_PATIENCE_SECONDS = 120.0
_CELL = {"type": "rectangle", "west": 10, "south": 10, "east": 11, "north": 11}
"""Where no event is: the subscriptions of the load only have to be there."""


@dataclass
class Acknowledged:
    """What clients were told is done."""

    placed: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    events: Counter[int] = field(default_factory=Counter)
    heard: Counter[int] = field(default_factory=Counter)

    def hear(self, data: str, _: float) -> None:
        """Take a message of the stream."""
        self.heard.update(match["event"] for match in json.loads(data)["matches"])


@dataclass
class Load:
    """A client that subscribes, ends and sends, over and over."""

    at: World
    number: int
    user: Connection
    ops: Connection
    done: Acknowledged
    stopped: asyncio.Event

    async def run(self) -> None:
        """Until it is stopped; what was begun is finished."""
        serial = 0
        while not self.stopped.is_set():
            serial += 1
            name = f"s{serial}"
            asked = {"id": name, "shape": _CELL}
            await self._insist(self.user, "POST", "/v1/subscriptions", asked)
            self.done.placed.add(f"@load{self.number}/{name}")
            if serial % 3 == 0:
                gone = f"s{serial - 1}"
                await self._insist(self.user, "DELETE", f"/v1/subscriptions/{gone}", None)
                self.done.ended.add(f"@load{self.number}/{gone}")
            ids = [self.number * 10_000_000 + serial * 10 + k for k in range(5)]
            body = "".join(json.dumps(_event(i)) + "\n" for i in ids).encode()
            if serial % 2:
                sent = ("POST", "/v1/events", body, _NDJSON)
                await self._insist(self.ops, *sent, Idempotency_Key=f"{self.number}-{serial}")
                self.done.events.update(ids)
            elif await self._once(body):
                self.done.events.update(ids)
            await asyncio.sleep(0.01)

    async def _once(self, body: bytes) -> bool:
        """Send events without a key: who hears nothing cannot know, and does not send again."""
        try:
            status, _ = await self.ops.ask("POST", "/v1/events", body, _NDJSON)
        except GONE:
            return False
        return status == 202

    async def _insist(self, connection: Connection, *asked: Any, **headers: str) -> None:
        """Ask until there is an answer."""
        limit = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                status, told = await connection.ask(*asked, **headers)
            except GONE:
                if time.monotonic() > limit:
                    raise
                await asyncio.sleep(0.02)
                continue
            if status in (200, 201, 202):
                return
            # A termination that was done before the crash finds nothing any more.
            if asked[0] == "DELETE" and status == 404:
                return
            if status != 503:
                raise AssertionError(f"{asked[:2]} was answered {status}: {told}")


def _event(number: int) -> dict[str, Any]:
    moment = 1_700_000_000 + number % 1000
    return {"id": number, "lon": 20.0, "lat": 20.0, "time": moment, "speed": 2.0}


async def killed(at: World, kills: int, seed: int = 1) -> dict[str, int]:
    """So many kills, the server's and the run's in turn by chance; what was lost or doubled."""
    dice = random.Random(seed)
    users = at.tokens(["watch", *(f"load{k}" for k in range(_USERS))])
    ops = at.tokens(["ops"], "operator")["ops"]
    at.start_engine()
    at.start_server()
    await until_up(at.port)
    done, stopped = Acknowledged(), asyncio.Event()
    watch = Connection(at.port, users["watch"])
    loads = [
        Load(at, k, Connection(at.port, users[f"load{k}"]), Connection(at.port, ops), done, stopped)
        for k in range(_USERS)
    ]
    await loads[0]._insist(watch, "POST", "/v1/subscriptions", {"id": "all", "shape": WORLD})
    await _live(watch)
    listener = asyncio.create_task(
        MatchClient(at.port, users["watch"], done.hear, "start").listen()
    )
    tasks = [asyncio.create_task(load.run()) for load in loads]
    try:
        for _ in range(kills):
            await asyncio.sleep(dice.uniform(0.05, 3.0 if at.on_spark else 0.8))
            if dice.random() < 0.5:
                at.kill(at.server)
                at.start_server()
                await until_up(at.port)
            else:
                before = EpochLog(Store(str(at.out))).last()
                at.kill(at.engine)
                at.start_engine()
                await _beyond(at, before)
            for task in tasks:
                if task.done():
                    task.result()
        stopped.set()
        await asyncio.gather(*tasks)
        await _settled(at, done)
    finally:
        listener.cancel()
        await asyncio.gather(listener, *tasks, return_exceptions=True)
    return _counted(at, done, kills)


async def _live(watch: Connection) -> None:
    while (await watch.ask("GET", "/v1/subscriptions/all"))[1].get("state") != "live":
        await asyncio.sleep(0.05)


async def _beyond(at: World, before: int | None) -> None:
    """Until the run has committed another epoch."""
    log, limit = EpochLog(Store(str(at.out))), time.monotonic() + _PATIENCE_SECONDS
    while (log.last() or 0) <= (before or 0) and time.monotonic() < limit:
        await asyncio.sleep(0.02)


async def _settled(at: World, done: Acknowledged) -> None:
    """Until everything that was acknowledged has been heard of, or does not come any more."""
    limit = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < limit:
        if not set(done.events) - set(done.heard) and not _missing(at, done):
            return
        await asyncio.sleep(0.2)


def _catalogue(at: World) -> Counter[str]:
    log = EpochLog(Store(str(at.out)))
    last = log.last()
    assert last is not None
    segments = log.manifest(last)["catalogue"]
    return Counter(rebuilt(log.store, segments).live_rows().column("id").to_pylist())


def _missing(at: World, done: Acknowledged) -> int:
    live = _catalogue(at)
    gone = sum(live[name] != 1 for name in done.placed - done.ended)
    return gone + sum(live[name] != 0 for name in done.ended)


def _counted(at: World, done: Acknowledged, kills: int) -> dict[str, int]:
    return {
        "kills": kills,
        "acknowledged": len(done.placed) + len(done.ended) + len(done.events),
        "lost_after_ack": _missing(at, done) + len(set(done.events) - set(done.heard)),
        "doubled": sum(n - 1 for n in done.heard.values() if n > 1),
    }
