"""Guard in a run: who is let in, what sensors found, when rounds are closed.

As an epoch is opened, orders of operators are taken in and it is fixed whose requests are refused
and whose queries are removed: a replay after a crash does the same. When it is committed, hotspots
are told and a round is closed if it is due. Everything follows from the directory and the clock.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.guard_orders import waiting
from geoflux.engine.guard_state import (
    Entry,
    GuardState,
    names_in,
    names_kept,
    sense_all,
    sensed_written,
    tuning_of,
    written,
)
from geoflux.engine.records import REGISTER, Records
from geoflux.engine.setting import Setting
from geoflux.engine.source import Rejected
from geoflux.engine.task import SlotReport
from geoflux.guard import Block, Guard, Verdict
from geoflux.guard.rounds import Rounds

Note = Mapping[str, Any]
"""What an epoch's opening fixed, as plain values of its intent."""
_LONGEST_JOURNAL = 100
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Admitted:
    """The records that are let in, those that are not, whose queries are removed; and the note."""

    records: Records
    refused: list[Rejected]
    removing: frozenset[str]
    note: dict[str, Any] | None


class Guarding:
    """Guard beside an engine; does nothing where ``guard.enabled`` is false, but remembers."""

    def __init__(self, setting: Setting, manifest: Mapping[str, Any] | None = None) -> None:
        """As a manifest left it; ``None`` before the first."""
        self._store, self._grid = setting.store, setting.grid
        self._config = setting.config.guard
        tuning = tuning_of(self._config, self._grid)
        known = None if manifest is None else GuardState.of(manifest)
        self._state = known
        self._taken: list[str] = []
        self.guard = Guard(tuning)
        if known is not None and manifest is not None:
            self.guard = known.guard(self._store, self._grid, tuning)
            self._taken = list(manifest["guard"]["taken"])
        self._in_force = names_in(self._store, known.in_force if known else None)
        self._told = self.guard.blocks
        self._seconds = 0.0

    def files(self) -> frozenset[str]:
        """The files under ``state/`` that must stay."""
        return frozenset() if self._state is None else self._state.files()

    def admit(self, records: Records, now: float, next_number: int) -> Admitted:
        """Open a new epoch: take orders in, and refuse who is blocked."""
        if not self._config.enabled:
            return Admitted(records, [], frozenset(), None)
        began = time.perf_counter()
        orders, files, bad = waiting(self._store, self._taken)
        given = [order.to_dict() for order in orders]
        Entry(now, next_number, orders=given).begin(self.guard)
        blocks = self.guard.blocks.at(now)
        names = blocks.blocked
        removing = names - self._in_force if self._config.placed == "remove" else frozenset()
        nameless = self._config.anonymous == "refuse"
        admitted, refused = _sorted_out(records, blocks.entries, names, nameless)
        note = {
            "now": now, "next_number": next_number, "orders": given, "taken": files,
            "in_force": names_kept(self._store, names), "refuses_nameless": nameless,
            "removed": sorted(removing), "refused": len(refused),
        }  # fmt: skip
        self._seconds += time.perf_counter() - began
        return Admitted(admitted, bad + refused, removing, note)

    def admit_again(self, note: Note | None) -> None:
        """Open an epoch again that was opened before a crash."""
        if note is not None:
            Entry(note["now"], note["next_number"], orders=note["orders"]).begin(self.guard)

    def receive(self, note: Note | None, delta: str | None) -> Rounds | None:
        """What came and ended is counted. Gives the rounds that sensors date queries by."""
        if note is None:
            return None
        began = time.perf_counter()
        entry = Entry(note["now"], note["next_number"], delta)
        entry.receive(self.guard, self._store, self._grid)
        self._seconds += time.perf_counter() - began
        return self.guard.rounds

    def commit(
        self, note: Note | None, delta: str | None, slots: Sequence[SlotReport],
        donors: Collection[int], now: float, next_number: int, scaled: str | None = None,
    ) -> dict[str, Any] | None:  # fmt: skip
        """End an epoch in which ``donors`` give load away; fields of its manifest. ``scaled`` is
        who holds what, where it is followed by more slots or fewer."""
        if note is None:
            return self._idle()
        began = time.perf_counter()
        state = self._state or GuardState()
        entry = Entry(note["now"], note["next_number"], delta, note["orders"])
        told = [s.sensed for s in slots if s.sensed is not None and s.slot in donors]
        if scaled is not None:
            told.append(scaled)
        if told:
            entry = replace(entry, sensed=sensed_written(self._store, told))
            sense_all(self.guard, told)
        verdict = None
        if self.guard.is_due(now):
            verdict = self.guard.close(now, next_number)
        journal = (*state.journal, asdict(entry))
        state = replace(state, journal=journal, in_force=note["in_force"])
        if verdict is not None or len(state.journal) >= _LONGEST_JOURNAL:
            state = replace(state, state=written(self._store, self.guard), journal=())
        self._state, self._taken = state, note["taken"]
        self._in_force = names_in(self._store, note["in_force"])
        news = self._news()
        seconds, self._seconds = self._seconds + time.perf_counter() - began, 0.0
        return {
            **state.to_dict(), "taken": note["taken"], "removed": note["removed"],
            "refuses_nameless": note["refuses_nameless"], "refused": note["refused"],
            "round": self.guard.rounds.current, "blocked": len(self.guard.blocks.blocked),
            "hotspots": len(told), "closed": None if verdict is None else _told(verdict),
            **news, "seconds": seconds,
        }  # fmt: skip

    def finish(self) -> None:
        """The epoch counts: orders that it took in are done with."""
        for name in self._taken:
            self._store.delete(name)

    def _idle(self) -> dict[str, Any] | None:
        """Of an epoch without Guard, what it remembers from others."""
        if self._state is None:
            return None
        self._state, self._in_force = replace(self._state, in_force=None), frozenset()
        return {
            **self._state.to_dict(), "taken": self._taken, "removed": [],
            "refuses_nameless": False, "refused": 0, "round": self.guard.rounds.current,
            "blocked": 0, "hotspots": 0, "closed": None, "blocks": [], "ended": [], "seconds": 0.0,
        }  # fmt: skip

    def _news(self) -> dict[str, Any]:
        """Blocks that were added or replaced since the last epoch, and users who are free again."""
        before, after = self._told.entries, self.guard.blocks.entries
        self._told = self.guard.blocks
        new = [block.to_dict() for name, block in after.items() if before.get(name) != block]
        return {"blocks": new, "ended": sorted(set(before) - set(after))}


def _told(verdict: Verdict) -> dict[str, Any]:
    """A verdict in short; who is accused is among the blocks, with the evidence."""
    return {
        "round": verdict.round, "reason": verdict.reason, "hotspots": list(verdict.hotspots),
        "suspected": len(verdict.suspected), "accused": len(verdict.accused),
    }  # fmt: skip


def _sorted_out(
    records: Records, blocks: Mapping[str, Block], names: frozenset[str], nameless: bool
) -> tuple[Records, list[Rejected]]:
    """The records that may pass, and why the others may not. Who is blocked may still terminate."""
    if not names and not nameless:
        return records, []

    def refusal(user: str | None, query: str) -> Rejected | None:
        if user is None:
            return Rejected("missing_user", f"{query!r} names no user", query) if nameless else None
        if user not in names:
            return None
        who = repr(user) if len(user) <= _LONGEST_NAME else repr(user[:_LONGEST_NAME]) + " ..."
        return Rejected("blocked_user", f"user {who} is blocked: {blocks[user].reason}", query)

    users = records.rows.column("user")
    barred = _flags(pc.is_in(users, value_set=pa.array(sorted(names), pa.string())))
    if nameless:
        barred |= _flags(pc.is_null(users))
    barred &= records.op == REGISTER
    rows = records.rows.filter(pa.array(barred)).select(["user", "id"]).to_pydict()
    found = [refusal(user, query) for user, query in zip(rows["user"], rows["id"], strict=True)]
    asked = [(query, refusal(query.user, query.id)) for query in records.snapshots]
    found += [why for _, why in asked]
    kept = replace(
        records, op=records.op[~barred], rows=records.rows.filter(pa.array(~barred)),
        snapshots=[query for query, why in asked if why is None],
    )  # fmt: skip
    return kept, [why for why in found if why is not None]


def _flags(values: Any) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = np.array(values.to_numpy(zero_copy_only=False), np.bool_)
    return flags
