"""Decisions about how many slots operators get, in words, for every display alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geoflux.chronicle.wording import duration
from geoflux.scale.decisions import shown
from geoflux.scale.executors import Answer


def told_scaling(decision: Mapping[str, Any], answer: Answer | None = None) -> str:
    """A decision about slots in a line: what was measured and predicted, what is done and why.

    >>> told_scaling({"before": {"a": 1}, "after": {"a": 2}, "action": "scale_out",
    ...     "carried_out": True, "measured": 3.0, "predicted_before": 2.5, "reason": "too slow"})
    'slots 1 to 2; an input takes 3 s (2.5 s predicted); too slow'
    """
    before, after = shown(decision["before"]), shown(decision["after"])
    slots = f"slots {before}"
    if decision["action"] != "none":
        slots += f" to {after}" if decision["carried_out"] else f", {after} recommended"
    times = [decision["measured"], decision["predicted_before"]]
    measured, predicted = ("unknown" if t is None else duration(t) for t in times)
    line = f"{slots}; an input takes {measured} ({predicted} predicted); {decision['reason']}"
    short_of = answer is not None and answer.state == "short"
    return f"{line}; {answer.reason}" if answer is not None and short_of else line
