"""Following a run: one look-out per server notices each epoch that counts, once, for everybody.

It looks for the next manifest, which costs one look at a name; reads it and what it did to
subscriptions; and wakes whoever waits. Everything else in the server goes by what is known here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from geoflux.engine.guard_reader import guard_view
from geoflux.errors import GeofluxError, StateError
from geoflux.guard import BlockList
from geoflux.serve.epoch_facts import ChangeReader, Changes, Manifest, facts_of
from geoflux.serve.journal import Journal
from geoflux.serve.problems import Problem
from geoflux.serve.registry import Registry
from geoflux.serve.served_run import ServedRun

LOOK_SECONDS = 0.05
_AGAIN_SECONDS = 0.5
_RECENT = 512
_log = logging.getLogger("geoflux.serve")


@dataclass
class Follower:
    """What is known of a run that goes on; ``last`` is its newest epoch that was taken in."""

    run: ServedRun
    registry: Registry = field(default_factory=Registry)
    journal: Journal | None = None
    """The control file; ``None`` where subscriptions cannot be placed."""
    last: int = -1
    seen_at: float = 0.0
    recent: deque[Manifest] = field(default_factory=lambda: deque(maxlen=_RECENT))
    totals: Counter[str] = field(default_factory=Counter)
    """Since the server looks on."""
    blocks: BlockList = field(default_factory=BlockList)
    fault: str = ""
    """Why the run cannot be followed at the moment."""
    clock: Callable[[], float] = time.time
    _reader: ChangeReader | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def follow(self) -> None:
        """Look on until cancelled; what cannot be read is said, and tried again."""
        while True:
            try:
                while await self.look():
                    pass
                self.fault = ""
            except Problem:
                await asyncio.sleep(_AGAIN_SECONDS)  # there is no run yet
            except (GeofluxError, OSError) as error:
                self._note(str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
            except Exception as error:  # nobody expected it: everybody's streams depend on this
                self._note(f"{type(error).__name__}: {error}", error)
                await asyncio.sleep(_AGAIN_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    def _note(self, fault: str, error: Exception | None = None) -> None:
        if fault != self.fault:
            self.fault = fault
            _log.warning("the run cannot be followed at the moment: %s", fault, exc_info=error)

    async def look(self) -> bool:
        """Take in the next epoch, if it counts."""
        if not self.run.is_there:
            return False
        if self._reader is None:
            await self._begin()
            return True
        following = self.last + 1
        if not self.run.log.is_committed(following):
            return False
        manifest = await asyncio.to_thread(self.run.log.manifest, following)
        await self._take_in(manifest)
        return True

    async def beyond(self, epoch: int, seconds: float) -> bool:
        """Wait for an epoch after this one, for so long; whether it came."""
        if self.last > epoch:
            return True
        try:
            async with asyncio.timeout(seconds):  # a task for each of a thousand would cost more
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def check_not_blocked(self, user: str) -> None:
        """Refuse whom the run would refuse."""
        config = self.run.config.guard
        block = self.blocks.at(self.clock()).entries.get(user) if config.enabled else None
        if block is not None and not block.observed:
            raise Problem(403, f"Guard has blocked this user: {block.reason}", "blocked_user")

    async def opened(self) -> Journal:
        """The control file, and all that it says; refused where there is none."""
        async with self._opening:
            if self.journal is None:
                journal = Journal(self.run.control_inbox(), self.registry.line)
                await journal.catch_up()
                self.journal = journal
            return self.journal

    async def _begin(self) -> None:
        try:
            journal = await self.opened()
            self._reader = ChangeReader(self.run.store, journal.path.name)
        except Problem:
            self._reader = ChangeReader(self.run.store, "")
        last = await asyncio.to_thread(self.run.log.last)
        if last is None:
            return
        # The newest few for whoever wants to know how it went so far; only the last one counts.
        for epoch in range(max(0, last - 63), last):
            self.recent.append(facts_of(await asyncio.to_thread(self.run.log.manifest, epoch)))
        await self._take_in(await asyncio.to_thread(self.run.log.manifest, last), first=True)

    async def _take_in(self, manifest: Manifest, first: bool = False) -> None:
        if not self.run.operator:
            await self._settle(manifest)
        facts = facts_of(manifest)
        guard = facts.get("guard")
        if guard is not None and (first or guard["blocks"] or guard["ended"]):
            self.blocks = (await asyncio.to_thread(guard_view, self.run.directory)).blocks
        self.recent.append(facts)
        if not first:
            self.totals.update(_counted(facts))
        self.last, self.seen_at = manifest["epoch"], self.clock()
        woken, self._woken = self._woken, asyncio.Event()
        woken.set()

    async def _settle(self, manifest: Manifest) -> None:
        assert self._reader is not None
        if self.journal is not None:
            await self.journal.catch_up()  # others may have written to the same file
        try:
            changes = await asyncio.to_thread(self._reader.changes, manifest)
        except StateError:
            if not self.run.log.is_committed(manifest["epoch"] + 1):
                raise
            return  # the next one tells all that is live
        self._apply(changes)

    def _apply(self, changes: Changes) -> None:
        if changes.ended is None:
            self.registry.resync(changes.read_upto, changes.came, changes.refused)
        else:
            self.registry.settle(changes.read_upto, changes.came, changes.ended, changes.refused)


def _counted(facts: Manifest) -> dict[str, int]:
    """What is added up over epochs."""
    names = (
        "received",
        "processed",
        "quarantined",
        "matches",
        "aggregates",
        "late",
        "registered",
        "ended",
    )
    found: dict[str, Any] = {name: facts.get(name, 0) for name in names}
    found["epochs"] = 1
    found["control_rejected"] = sum(facts.get("control_rejected", {}).values())
    found["changes"] = len(facts.get("decision", {}).get("changes", ()))
    return found
