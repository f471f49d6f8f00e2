"""Placing and ending subscriptions: judged as the run will judge them, then written durably.

What is answered with success is in the run's control file, on disk. A client that heard no answer
asks again with the same id: what is there already is found, and nothing is placed twice.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from geoflux.engine.records import judge
from geoflux.errors import RejectedRecord
from geoflux.serve.following import Follower
from geoflux.serve.journal import Journal
from geoflux.serve.problems import Problem
from geoflux.serve.registry import Subscription, digest, line_of, query_id

_FIELDS = ("shape", "where", "valid_from", "valid_until", "aggregate")
_JUDGED_HERE = 16_384
"""More bytes are judged in a thread, so that others do not wait."""


@dataclass(frozen=True)
class Placed:
    """A subscription that is on disk; ``created`` unless it was there before."""

    id: str
    created: bool


@dataclass
class Subscriptions:
    """What users ask for, of a run that goes on; ``most`` of each user at once."""

    follower: Follower
    most: int
    _writing: dict[tuple[str, str], asyncio.Future[None]] = field(default_factory=dict)

    async def place(self, user: str, asked: Sequence[Mapping[str, Any]]) -> list[Placed]:
        """Place all of them, or refuse all."""
        self.follower.check_not_blocked(user)
        journal = await self.follower.opened()
        names = [str(item.get("id") or uuid.uuid4().hex) for item in asked]
        lines = [_registration(user, name, item) for name, item in zip(names, asked, strict=True)]
        if len(set(names)) < len(names):
            raise Problem(422, "two subscriptions of the batch have the same id", "duplicate_id")
        if sum(map(len, lines)) <= _JUDGED_HERE:
            self._judge(lines)
        else:
            await asyncio.to_thread(self._judge, lines)
        new = [
            (n, line) for n, line in zip(names, lines, strict=True) if self._is_new(user, n, line)
        ]
        self._check_room(user, len([n for n, _ in new if n not in self.follower.registry.of(user)]))
        there = [self._writing[user, n] for n in names if (user, n) in self._writing]
        if new:
            await self._write(journal, user, new)
        for other in there:
            await asyncio.shield(other)
        created = {name for name, _ in new}
        return [Placed(name, name in created) for name in names]

    async def end(self, user: str, name: str) -> None:
        """End one; doing so twice is fine."""
        journal = await self.follower.opened()
        if (user, name) in self._writing:
            await asyncio.shield(self._writing[user, name])
        known = self.follower.registry.of(user).get(name)
        if known is None:
            raise unknown(name)
        if known.state != "ending":
            line = line_of({"op": "terminate", "id": query_id(user, name), "user": user})
            await self._noted(user, [name], journal.append(line))

    async def listed(self, user: str, after: str | None, most: int) -> list[dict[str, Any]]:
        """Subscriptions of a user in the order of their ids, after one of them."""
        mine = self.follower.registry.of(user)
        names = heapq.nsmallest(
            most,
            (n for n, k in mine.items() if (after is None or n > after) and k.state != "writing"),
        )
        found = [(name, mine[name].state, mine[name]) for name in names]
        return await asyncio.to_thread(
            lambda: [{"id": n, "state": state, **self._told(known)} for n, state, known in found]
        )

    def one(self, user: str, name: str) -> dict[str, Any]:
        """A subscription as it was placed, and how far it is; others' are unknown here."""
        known = self.follower.registry.of(user).get(name)
        if known is not None and known.state != "writing":
            return {"id": name, "state": known.state, **self._told(known)}
        ended = self.follower.registry.past(user, name)
        if ended is None:
            raise unknown(name)
        return {"id": name, "state": ended.state, "reason": ended.reason}

    def just_placed(self, user: str, name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The same of one whose content is at hand."""
        known = self.follower.registry.of(user).get(name)
        if known is None:
            return self.one(user, name)
        return {**asked, "id": name, "state": known.state}

    def _told(self, known: Subscription) -> dict[str, Any]:
        journal = self.follower.journal
        assert journal is not None, "what is known was read from it"
        record = json.loads(journal.line(known.offset, known.length))
        return {field: record[field] for field in _FIELDS if record.get(field) is not None}

    def _judge(self, lines: Sequence[bytes]) -> None:
        rules = self.follower.run.rules
        for place, line in enumerate(lines):
            try:
                judge(line.rstrip(b"\n"), rules)
            except RejectedRecord as error:
                where = f"subscription {place} of the batch: " if len(lines) > 1 else ""
                raise Problem(422, where + error.detail, error.code) from None

    def _is_new(self, user: str, name: str, line: bytes) -> bool:
        known = self.follower.registry.of(user).get(name)
        if known is None or known.state == "ending":
            return True
        if known.digest != digest(line):
            raise Problem(
                409, f"there is another subscription {name!r}; end it first, or use another id",
                "duplicate_id",
            )  # fmt: skip
        return False

    def _check_room(self, user: str, new: int) -> None:
        has = len(self.follower.registry.of(user))
        if has + new > self.most:
            raise Problem(
                403, f"a user may have {self.most:,} subscriptions at once and has {has:,}; end "
                "some first", "too_many_subscriptions",
            )  # fmt: skip

    async def _write(self, journal: Journal, user: str, new: list[tuple[str, bytes]]) -> None:
        for name, line in new:
            self.follower.registry.reserve(user, name, line)
        names = [name for name, _ in new]
        try:
            await self._noted(user, names, journal.append(b"".join(line for _, line in new)))
        finally:
            self.follower.registry.withdraw(user, names)  # those that were not written

    async def _noted(self, user: str, names: Sequence[str], writing: Any) -> None:
        """Write, while others who ask about the same can wait for it."""
        task = asyncio.ensure_future(writing)
        for name in names:
            self._writing[user, name] = task
        try:
            await task
        finally:
            for name in names:
                if self._writing.get((user, name)) is task:
                    del self._writing[user, name]


def unknown(name: str) -> Problem:
    """Nothing of that name is this user's; whether it is another's is not told."""
    return Problem(404, f"you have no subscription {name[:80]!r}", "unknown_id")


def _registration(user: str, name: str, item: Mapping[str, Any]) -> bytes:
    record = {field: item[field] for field in _FIELDS if item.get(field) is not None}
    return line_of({"op": "register", "id": query_id(user, name), "user": user, **record})
