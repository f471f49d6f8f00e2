"""Clients of the HTTP API for benchmarks: few lines each, so that what is measured is the server.

Plain HTTP/1.1 over asyncio's streams, kept open; and a stream of matches that comes back after
every cut with the last id that it has got.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

HOST = "127.0.0.1"
GONE = (ConnectionError, asyncio.IncompleteReadError, OSError, ValueError)
_LIMIT = 1 << 24


@dataclass
class Connection:
    """One connection, opened when it is needed; an answer that does not come raises."""

    port: int
    token: str
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: Any = None, media: str = "application/json",
        **headers: str,
    ) -> tuple[int, Any]:  # fmt: skip
        """The status and the body of an answer."""
        data = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(HOST, self.port, limit=_LIMIT)
            reader, writer = self._streams
            head = _head(method, path, self.token, {**headers, "Content-Type": media})
            writer.write(head + f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
            answer = await reader.readexactly(int(fields.get("content-length", 0)))
        except GONE:
            self.close()
            raise
        return int(lines[0].split()[1]), json.loads(answer) if answer else None

    def close(self) -> None:
        """Give the connection up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _head(method: str, path: str, token: str, headers: Mapping[str, str]) -> bytes:
    given = {"Host": HOST, "Authorization": f"Bearer {token}", **headers}
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items()]
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}".encode()


async def until_up(port: int, seconds: float = 60.0) -> None:
    """Wait until a server answers."""
    limit = time.monotonic() + seconds
    while True:
        try:
            status, _ = await Connection(port, "").ask("GET", "/health")
            if status == 200:
                return
        except GONE:
            pass
        if time.monotonic() > limit:
            raise TimeoutError(f"no server at port {port} within {seconds:g} s")
        await asyncio.sleep(0.05)


@dataclass
class MatchClient:
    """Listens to the matches of a user, and comes back whenever it is cut."""

    port: int
    token: str
    on_message: Callable[[str, float], None] | None = None
    last_id: str = ""
    """Where to begin; empty: with what comes."""
    connected: int = 0
    listening: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._once()
            except GONE:
                await asyncio.sleep(0.1)

    async def _once(self) -> None:
        reader, writer = await asyncio.open_connection(HOST, self.port, limit=_LIMIT)
        try:
            place = {"Last-Event-ID": self.last_id} if self.last_id else {}
            writer.write(_head("GET", "/v1/matches", self.token, place) + b"\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise ConnectionError(head.decode("latin-1"))
            self.connected += 1
            self.listening.set()
            await self._messages(reader)
        finally:
            writer.close()

    async def _messages(self, reader: asyncio.StreamReader) -> None:
        text = ""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            chunk = await reader.readexactly(size + 2)
            text += chunk[:-2].decode()
            *whole, text = text.split("\n\n")
            for message in whole:
                self._take(message)

    def _take(self, message: str) -> None:
        place = data = ""
        for line in message.split("\n"):
            if line.startswith("id: "):
                place = line[4:]
            elif line.startswith("data: "):
                data = line[6:]
        if data and self.on_message is not None:
            self.on_message(data, time.time())
        self.last_id = place or self.last_id
