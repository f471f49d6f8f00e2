"""Manifests of standing queries as short as a display needs them."""

from __future__ import annotations

from typing import Any


def epoch_of(number: int, reason: str = "static plan", **changed: Any) -> dict[str, Any]:
    slots = [{"slot": s, "busy_seconds": 0.1 + 0.2 * s, "load_seconds": 0.0} for s in range(2)]
    return {
        "epoch": number, "opened": 10.0 + number, "committed": 10.5 + number, "plan": 1, "next_plan": 1,
        "processed": 100, "matches": 7, "quarantined": 0, "live_queries": 5, "slots": slots,
        "decision": {"reason": reason, "changes": []},
    } | changed  # fmt: skip
