"""What Spark itself measures of a streaming query, as far as nobody else can."""

from __future__ import annotations

import time
from typing import Any

_APART = 1.0
"""Seconds between two questions: each is a round trip to the JVM."""


class Progress:
    """Asks a query what its last micro-batch took."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self._asked = 0.0

    def between(self) -> float | None:
        """Seconds of the last micro-batch in which our code did not run: looking for offsets,
        planning, writing its own logs. ``None``: not known, or asked a moment ago."""
        now = time.monotonic()
        if now - self._asked < _APART:
            return None
        self._asked = now
        last = self._query.lastProgress
        if last is None:
            return None
        took = last["durationMs"]
        if "triggerExecution" not in took or "addBatch" not in took:
            return None
        return float(max(took["triggerExecution"] - took["addBatch"], 0)) / 1000
