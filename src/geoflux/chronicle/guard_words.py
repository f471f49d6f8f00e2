"""Guard in words, for the live display and the report alike."""

from __future__ import annotations

from typing import Any

from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.wording import plural
from geoflux.guard import Block


def blocks_of(m: Manifest) -> list[Block]:
    """The blocks that were added with an epoch."""
    return [Block(**block) for block in (m.get("guard") or {}).get("blocks", ())]


def told_guard(known: dict[str, Any]) -> str:
    """How Guard is doing.

    >>> told_guard({"round": 4, "blocked": 1})
    'round 4, 1 user blocked'
    """
    blocked = plural(known["blocked"], "user") if known["blocked"] else "nobody"
    return f"round {known['round']}, {blocked} blocked"


def evidence_in_short(block: Block) -> str:
    """What spoke against a user, in a few words.

    >>> hotspots = [{"rate": 0.4, "round": 3}, {"rate": 0.9, "round": 4}]
    >>> evidence = {"hotspots": hotspots, "cluster_size": 3, "rounds": [3, 4]}
    >>> evidence_in_short(Block("a", 0.0, None, "guard", "chased", evidence))
    '2 hotspots in rounds 3 to 4, up to 90% of what they placed lately in one; 3 users alike'
    """
    if block.evidence is None:
        return ""
    hotspots, rounds = block.evidence["hotspots"], block.evidence["rounds"]
    words = plural(len(hotspots), "hotspot")
    if rounds:
        words += f" in rounds {min(rounds)} to {max(rounds)}"
    rates = [hotspot["rate"] for hotspot in hotspots if "rate" in hotspot]
    if rates:
        words += f", up to {max(rates):.0%} of what they placed lately in one"
    return f"{words}; {plural(block.evidence['cluster_size'], 'user')} alike"
