"""Matches of one user as server-sent events, from any match on, with none missing or doubled.

A client is a cursor: (epoch, row) up to which it has got everything. There is no queue per client
that could overflow; one that is slow falls behind, reads on from the epochs that are kept, and is
cut when it takes nothing for long. Its last id brings it back to where it was.

Every message has as its id the cursor after it. A heartbeat has one too, so that a client without
matches does not have to be told again about epochs that held nothing for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Response

from geoflux.serve.following import Follower
from geoflux.serve.limits import Receive, Scope, Send
from geoflux.serve.match_epochs import MatchHistory, SplitEpoch
from geoflux.serve.problems import Problem

Cursor = tuple[int, int]
_ID = re.compile(r"(\d{1,12})-(\d{1,15})")
_AT_ONCE = 64
"""Epochs that are told without a pause, and without a look whether the client still may."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def cursor_of(text: str) -> Cursor:
    """A cursor from its text.

    >>> cursor_of("12-345"), cursor_of("start")
    ((12, 345), (-1, 0))
    """
    if text == "start":
        return -1, 0
    found = _ID.fullmatch(text)
    if found is None:
        raise Problem(
            422, f"{text[:40]!r} is no place in the stream; expected the id of a message, as "
            "12-345, or start", "bad_cursor",
        )  # fmt: skip
    return int(found[1]), int(found[2])


@dataclass(frozen=True)
class Listener:
    """Who listens: a user, to all of their subscriptions or ``only`` one; as long as ``allowed``
    says so."""

    user: str
    only: str | None
    allowed: Callable[[], bool]


@dataclass(frozen=True)
class Tempo:
    """How long a stream may be silent, and how long a client may take nothing."""

    heartbeat_seconds: float
    patience_seconds: float


class MatchStream(Response):
    """The stream of one client; ``cursor`` ``None`` begins with what comes.

    ``on_close`` is called once, however it ends.
    """

    def __init__(
        self, source: tuple[Follower, MatchHistory], listener: Listener, cursor: Cursor | None,
        tempo: Tempo, on_close: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__()
        self.follower, self.history = source
        self.listener, self.cursor, self.tempo, self.on_close = listener, cursor, tempo, on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client goes, is too slow, or may not listen any more."""
        telling = asyncio.create_task(self._tell(send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            done, _ = await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (telling, leaving):
                task.cancel()
            self.on_close()

    async def _tell(self, send: Send) -> None:
        async def put(text: str) -> None:
            async with asyncio.timeout(self.tempo.patience_seconds):
                await send(_body(text.encode(), more=True))

        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        epoch, row = self.cursor or (self.follower.last, 1 << 50)
        if self.cursor is None and epoch >= 0:
            row = (await self.history.epoch(epoch)).rows
        try:
            await put(f"retry: 1000\nid: {max(epoch, 0)}-{row if epoch >= 0 else 0}\n\n")
            while self.listener.allowed():
                behind = range(max(epoch, 0), self.follower.last + 1)[:_AT_ONCE]
                for number in behind:
                    split = await self.history.epoch(number)
                    await self._epoch(split, row if number == epoch else 0, put)
                    epoch, row = number, max(split.rows, row if number == epoch else 0)
                far = len(behind) == _AT_ONCE  # told where it is, and not holding others up
                await asyncio.sleep(0)
                if far or not await self.follower.beyond(epoch, self.tempo.heartbeat_seconds):
                    at = f"id: {epoch}-{row}\n" if epoch >= 0 else ""
                    await put(f": heartbeat\n{at}\n")
        except TimeoutError:
            return  # it takes nothing: it is cut, and may come back
        await send(_body(b"", more=False))

    async def _epoch(
        self, split: SplitEpoch, after: int, put: Callable[[str], Awaitable[None]]
    ) -> None:
        for part in split.users.get(self.listener.user, ()):
            for last, data in part.messages(split.epoch, after, self.listener.only):
                await put(f"event: {part.kind}\nid: {split.epoch}-{last}\ndata: {data}\n\n")


def _body(data: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _gone(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
