"""Epochs as small rows for a page, each read once: a manifest of a large run is long, and a page
asks often. Rows are as in the manifests; nothing is averaged, so a page may group as it likes."""

from __future__ import annotations

import threading
from typing import Any

from geoflux.chronicle.decision_words import (
    changes_of,
    is_decision,
    reason_of,
    told_in_turn,
    told_round,
)
from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.plan_history import read_plan
from geoflux.engine.summary import latencies
from geoflux.serve.view_run import OperatorPlace, results_of
from geoflux.state.epoch_log import EpochLog

Row = dict[str, Any]
MOST_ROWS = 5000
"""What a page gets at once, and what is kept of a run: the newest."""


def epoch_row(m: Manifest) -> Row:
    """What a page shows of an epoch."""
    p50, p99 = latencies([m])
    guard = m.get("guard") or {}
    return {
        "epoch": m["epoch"], "opened": _brief(m["opened"]), "committed": _brief(m["committed"]),
        "processed": m["processed"], "results": results_of(m),
        "p50": _brief(p50), "p99": _brief(p99), "plan": m["plan"], "next_plan": m["next_plan"],
        "busy": [_brief(s) for s in _busy(m)],
        "changes": len(changes_of(m)), "queries": m.get("live_queries"),
        "blocked": guard.get("blocked", 0), "quarantined": m["quarantined"],
    }  # fmt: skip


def decision_row(m: Manifest, plan: Any) -> Row:
    """What was decided after an epoch, in words; ``plan`` is the one that is changed."""
    closed = m.get("round")
    return {
        "epoch": m["epoch"], "at": _brief(m["committed"]), "plan": m["plan"],
        "next_plan": m["next_plan"], "reason": reason_of(m),
        "changes": told_in_turn(changes_of(m), plan),
        "round": told_round(closed) if closed else "",
    }  # fmt: skip


class EpochRows:
    """Rows of one operator's epochs and decisions, read as they come; safe in threads.

    Guarantee: every manifest is read once, however many pages ask.
    """

    def __init__(self, operator: OperatorPlace) -> None:
        self.operator = operator
        self._rows: list[Row] = []
        self._decisions: list[Row] = []
        self._next = 0
        self._lock = threading.Lock()

    def after(self, epoch: int) -> list[Row]:
        """The newest rows of epochs beyond that one, in order."""
        with self._lock:
            self._read()
            return [row for row in self._rows[-MOST_ROWS:] if row["epoch"] > epoch]

    def decisions(self, upto: int | None, most: int) -> list[Row]:
        """The newest decisions up to an epoch, newest first. Those that neither changed anything
        nor closed a round are told once, however often they were repeated."""
        with self._lock:
            self._read()
            known = [d for d in self._decisions if upto is None or d["epoch"] <= upto]
        return known[: -most - 1 : -1]

    def _read(self) -> None:
        if self.operator.config is None:
            return
        log = self.operator.log
        last = log.last()
        if last is None:
            return
        self._next = max(self._next, last + 1 - MOST_ROWS)
        for epoch in range(self._next, last + 1):
            m = log.manifest(epoch)
            self._rows.append(epoch_row(m))
            self._decide(m, log)
            self._next = epoch + 1
        del self._rows[:-MOST_ROWS], self._decisions[:-MOST_ROWS]

    def _decide(self, m: Manifest, log: EpochLog) -> None:
        if not is_decision(m):
            return
        plan = read_plan(log.store, m["plan"]) if changes_of(m) else None
        row = decision_row(m, plan)
        before = self._decisions[-1] if self._decisions else None
        same = before and not (row["changes"] or row["round"] or before["changes"])
        if before and same and before["reason"] == row["reason"]:
            return
        self._decisions.append(row)


def _busy(m: Manifest) -> list[float | None]:
    """Busy seconds of every slot without loading; ``None``: it gave no report."""
    found: list[float | None] = [None] * max((s["slot"] + 1 for s in m["slots"]), default=0)
    for s in m["slots"]:
        found[s["slot"]] = max(s["busy_seconds"] - s["load_seconds"], 0.0)
    return found


def _brief(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
