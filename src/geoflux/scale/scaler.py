"""The coordinator of an application's slots: looks, decides, notes, and says how many are wanted.

What was decided is on disk before anybody acts on it: whoever starts the application again goes on
with the same memory and the same wanted slots. Decisions, those to change nothing as well, are
lines of `scale/decisions.ndjson`, each with what was measured and predicted.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geoflux.scale.decisions import Look, ScaleDecision
from geoflux.scale.observing import NotReady
from geoflux.scale.policy import ScalePolicy
from geoflux.state.store import Store

_STATE, _DECISIONS = "scale/state.json", "scale/decisions.ndjson"


@dataclass(frozen=True)
class ScaleRecord:
    """What a run's directory holds of its scaling."""

    store: Store

    def state(self) -> dict[str, Any]:
        """What was noted last: the scheduler's ``memory``, the ``wanted`` slots, how many ``looks``
        there were, and what is remembered of what was ``seen``."""
        if not self.store.exists(_STATE):
            return {"memory": {}, "wanted": {}, "looks": 0, "seen": {}}
        values: dict[str, Any] = self.store.read_json(_STATE)
        return values

    def note(self, state: Mapping[str, Any], line: Mapping[str, Any]) -> None:
        """Note a decision and the state after it. The state counts; a line that a crash left out
        or doubled is told by its ``look``."""
        self.store.write_json(_STATE, dict(state))
        with open(self.store.path(_DECISIONS), "a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
                file.write(b"\n" if torn else b"")
            file.write(json.dumps(dict(line)).encode() + b"\n")

    def decisions(self) -> list[dict[str, Any]]:
        """All decisions in order, each once; a last line that was torn by a crash is none."""
        path = Path(self.store.path(_DECISIONS))
        found: dict[int, dict[str, Any]] = {}
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                line = json.loads(text)
            except ValueError:  # torn; what it said was not in the state yet, or is said again
                continue
            found[line["look"]] = line
        return [found[look] for look in sorted(found)]


@dataclass
class Scaler:
    """Holds the wanted slots of operators; changed by :meth:`look`, asked from any thread.

    Guarantee: :meth:`wanted` never gives a number that is not on disk.
    """

    record: ScaleRecord
    policy: ScalePolicy
    _state: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._state = self.record.state()

    def wanted(self, operator: str) -> int | None:
        """The slots that an operator should have; ``None``: nobody has said anything."""
        with self._lock:
            return self._state["wanted"].get(operator)

    @property
    def seen(self) -> Mapping[str, Any]:
        """What was remembered with the last decision."""
        seen: Mapping[str, Any] = self._state["seen"]
        return seen

    def look(
        self, seen: Look | NotReady, remembered: Mapping[str, Any] | None = None
    ) -> ScaleDecision | None:
        """Decide upon what was measured; ``None``: too little was, and nothing is noted."""
        if isinstance(seen, NotReady):
            return None
        decision, memory = self.policy.decide(seen, self._state["memory"])
        wanted = dict(self._state["wanted"])
        if decision.carried_out:
            wanted |= decision.after
        number = self._state["looks"] + 1
        state = {
            "memory": memory, "wanted": wanted, "looks": number, "seen": dict(remembered or {}),
        }  # fmt: skip
        self.record.note(state, {"look": number, **decision.to_dict()})
        with self._lock:
            self._state = state
        return decision
