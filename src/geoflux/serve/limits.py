"""How much anybody may ask: a rate per token, a length per body, a number of streams per user.

Pure values and counters; the clock is injected. What is refused is told what would be accepted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from geoflux.serve.problems import Json, Problem, told

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]

_MOST_BUCKETS = 100_000
_SLOWEST_BYTES = 10_000
"""A second, of a body that is as long as bodies may be."""


@dataclass
class Buckets:
    """A token bucket per name: ``rate`` a second in the long run, ``burst`` at once.

    >>> now = [0.0]
    >>> buckets = Buckets(rate=2.0, burst=2, clock=lambda: now[0])
    >>> [buckets.wait("a") for _ in range(3)]
    [0.0, 0.0, 0.5]
    >>> now[0] = 0.5
    >>> buckets.wait("a"), buckets.wait("b")
    (0.0, 0.0)
    """

    rate: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _filled: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, name: str) -> float:
        """Take one; 0, or the seconds after which there will be one."""
        now = self.clock()
        amount, since = self._filled.pop(name, (float(self.burst), now))
        amount = min(self.burst, amount + (now - since) * self.rate)
        if len(self._filled) >= _MOST_BUCKETS:
            self._filled.popitem(last=False)
        if amount < 1.0:
            self._filled[name] = amount, now
            return (1.0 - amount) / self.rate
        self._filled[name] = amount - 1.0, now
        return 0.0

    def take(self, name: str) -> None:
        """Take one, or be told when there is one."""
        wait = self.wait(name)
        if wait > 0:
            raise Problem(
                429, f"this token has made its {self.rate:g} requests a second; wait {wait:.2f} s",
                "rate", {"Retry-After": str(max(1, round(wait)))},
            )  # fmt: skip


@dataclass
class Seats:
    """So many at once per name."""

    most: int
    taken: Counter[str] = field(default_factory=Counter)

    def take(self, name: str) -> None:
        """Hold a seat until :meth:`leave`, or be refused."""
        if self.taken[name] >= self.most:
            raise Problem(
                429, f"{self.most} streams are open for this user; close one", "streams",
                {"Retry-After": "5"},
            )  # fmt: skip
        self.taken[name] += 1

    def leave(self, name: str) -> None:
        """Give a seat back."""
        self.taken[name] -= 1
        if not self.taken[name]:
            del self.taken[name]


@dataclass(frozen=True)
class BodyLimit:
    """Refuses bodies that are too long, at once where their length is told, else while they come;
    and those that do not come.

    An ASGI application around another; nothing of a body that is refused is kept.
    """

    app: ASGI
    most: int
    less: Mapping[str, int] = field(default_factory=dict)
    """Of some paths."""
    patience_seconds: float = 30.0
    """A body of which nothing comes for so long is given up; so is one that comes in drops."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, if its body is short enough."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.less.get(scope["path"], self.most)
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length[:18]) > most:
            await self._too_long(most)(scope, receive, send)
            return
        came, whole, begun = 0, False, False
        now = asyncio.get_running_loop().time
        deadline = now() + self.patience_seconds + most / _SLOWEST_BYTES
        refusal: Json | None = None

        async def counted() -> Message:
            nonlocal came, whole, refusal
            try:
                until = min(deadline, now() + self.patience_seconds)
                async with asyncio.timeout_at(None if whole else until):
                    message = await receive()
            except TimeoutError:
                refusal = self._too_slow()
                raise OSError("the body does not come") from None
            came += len(message.get("body", b""))
            whole = whole or not message.get("more_body", False)
            if came > most:
                refusal = self._too_long(most)
                raise OSError("the body is too long")
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            if refusal is None or begun:
                begun = True
                await send(message)

        try:
            await self.app(scope, counted, noted)
        except OSError:
            if refusal is None or begun:
                raise
        if refusal is not None and not begun:  # whatever the application made of it
            await refusal(scope, receive, send)

    def _too_long(self, most: int) -> Json:
        detail = f"the body is longer than the {most:,} bytes that are taken; send it in parts"
        return told(413, detail, "body", {"Connection": "close"})

    def _too_slow(self) -> Json:
        detail = f"the body did not come within {self.patience_seconds:g} s; send it again"
        return told(408, detail, "body", {"Connection": "close"})
