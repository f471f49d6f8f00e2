"""How fast subscriptions are taken, and how soon a thousand clients hear of their matches.

Every client is a user of its own with one subscription on a cell of its own. Events are sent over
the API, some for each cell; a client checks that it hears of all of its own and of no other's.
Lateness is from the time at which the epoch was committed, by its manifest, to the client's clock.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geoflux.bench.serve_clients import Connection, MatchClient, until_up
from geoflux.bench.serve_world import World
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

_CONNECTIONS = 16
_BATCH = 1000
_NDJSON = "application/x-ndjson"
_SIDE = 40
"""Cells of clients a row; a degree apart."""


async def subscribing(at: World, count: int) -> dict[str, float]:
    """Subscriptions one by one over a few connections, and in batches; all of them durable."""
    tokens = at.tokens([f"sub{k}" for k in range(_CONNECTIONS)])
    took: list[float] = []

    async def place(connection: Connection, names: Any) -> None:
        for name in names:
            began = time.perf_counter()
            body = {"id": f"q{name}", "shape": _cell(name % _SIDE**2)}
            status, told = await connection.ask("POST", "/v1/subscriptions", body)
            took.append(time.perf_counter() - began)
            assert status == 201, told

    connections = [Connection(at.port, token) for token in tokens.values()]
    began = time.perf_counter()
    spread = (range(k, count, _CONNECTIONS) for k in range(_CONNECTIONS))
    await asyncio.gather(*map(place, connections, spread))
    seconds = time.perf_counter() - began
    batched = await _in_batches(connections[0], count)
    for connection in connections:
        connection.close()
    return {
        "subscribe_per_second": count / seconds,
        "subscribe_p99_ms": float(np.percentile(took, 99)) * 1000,
        "subscribe_batch_per_second": batched,
    }


async def _in_batches(connection: Connection, count: int) -> float:
    began = time.perf_counter()
    for first in range(0, count, _BATCH):
        some = [{"id": f"b{n}", "shape": _cell(n % _SIDE**2)} for n in range(first, first + _BATCH)]
        body = {"subscriptions": some}
        status, told = await connection.ask("POST", "/v1/subscriptions/batch", body)
        assert status == 201, told
    return count / (time.perf_counter() - began)


@dataclass
class Listening:
    """What the clients have heard: matches by user, strangers', and when."""

    heard: dict[str, list[int]] = field(default_factory=dict)
    strangers: int = 0
    arrived: list[tuple[int, float]] = field(default_factory=list)

    def taker(self, user: str) -> Any:
        """What a user's client does with a message."""
        mine = self.heard.setdefault(user, [])

        def take(data: str, now: float) -> None:
            told = json.loads(data)
            self.arrived.append((told["epoch"], now))
            for match in told["matches"]:
                if match["subscription"] != f"of-{user}":
                    self.strangers += 1
                mine.append(match["event"])

        return take


async def streaming(at: World, clients: int, rounds: int) -> dict[str, float]:
    """A thousand clients and some rounds of events for each of them."""
    users = [f"user{k}" for k in range(clients)]
    tokens = at.tokens(users)
    ops = Connection(at.port, at.tokens(["ops"], "operator")["ops"])
    for number, user in enumerate(users):
        connection = Connection(at.port, tokens[user])
        body = {"id": f"of-{user}", "shape": _cell(number)}
        status, told = await connection.ask("POST", "/v1/subscriptions", body)
        assert status == 201, told
        if number == clients - 1:
            await _live(connection, f"of-{user}")
        connection.close()
    listening = Listening()
    found = [MatchClient(at.port, tokens[user], listening.taker(user)) for user in users]
    tasks = [asyncio.create_task(client.listen()) for client in found]
    try:
        await asyncio.wait_for(asyncio.gather(*(c.listening.wait() for c in found)), 120)
        connected = sum(client.connected > 0 for client in found)
        sent = await _send(ops, users, rounds)
        await _until(lambda: sum(map(len, listening.heard.values())) >= clients * rounds, 60)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    wrong = sum(sorted(listening.heard[user]) != sorted(sent[user]) for user in users)
    log, late = EpochLog(Store(str(at.out))), []
    committed = {e: log.manifest(e)["committed"] for e in {e for e, _ in listening.arrived}}
    late = [now - committed[epoch] for epoch, now in listening.arrived]
    return {
        "sse_clients": connected,
        "sse_clients_wrong": wrong + listening.strangers,
        "sse_matches": sum(map(len, listening.heard.values())),
        "match_to_client_p50_seconds": float(np.percentile(late, 50)),
        "match_to_client_p99_seconds": float(np.percentile(late, 99)),
    }


async def _live(connection: Connection, name: str) -> None:
    async with asyncio.timeout(120):
        while (await connection.ask("GET", f"/v1/subscriptions/{name}"))[1]["state"] != "live":
            await asyncio.sleep(0.05)


async def _send(ops: Connection, users: list[str], rounds: int) -> dict[str, list[int]]:
    """One event for every user, round after round; which are whose."""
    sent: dict[str, list[int]] = {user: [] for user in users}
    serial = itertools.count(1)
    for number in range(rounds):
        lines = []
        for place, user in enumerate(users):
            west, south = _corner(place)
            event = next(serial)
            sent[user].append(event)
            row = {"id": event, "lon": west + 0.25, "lat": south + 0.25, "speed": 1.0,
                   "time": 1_700_000_001 + number}  # fmt: skip
            lines.append(json.dumps(row) + "\n")
        status, told = await ops.ask("POST", "/v1/events", "".join(lines).encode(), _NDJSON)
        assert status == 202, told
        await asyncio.sleep(1.0)
    return sent


async def _until(done: Any, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not done() and time.monotonic() < limit:
        await asyncio.sleep(0.05)


def _corner(number: int) -> tuple[float, float]:
    return -60.0 + number % _SIDE, -30.0 + number // _SIDE


def _cell(number: int) -> dict[str, Any]:
    west, south = _corner(number)
    return {
        "type": "rectangle", "west": west, "south": south, "east": west + 0.5, "north": south + 0.5,
    }  # fmt: skip


async def measured(at: World, quick: bool) -> dict[str, float]:
    """Both, on a world whose processes are not yet started."""
    at.start_engine()
    at.start_server()
    await until_up(at.port)
    await _until((at.out / "run.json").exists, 60)
    result = await streaming(at, 1000 if quick else 1200, 3 if quick else 10)
    return {**await subscribing(at, 1000 if quick else 10_000), **result}
