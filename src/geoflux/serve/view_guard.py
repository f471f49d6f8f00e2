"""Guard for a page: who is blocked, who is suspected, and what speaks against each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from geoflux.chronicle.guard_words import evidence_in_short
from geoflux.chronicle.wording import plural
from geoflux.engine.guard_reader import guard_view
from geoflux.guard import Block
from geoflux.serve.view_run import QUERIES, OperatorPlace
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space

MOST_USERS = 500


def guard_values(operator: OperatorPlace) -> dict[str, Any]:
    """Blocks, suspects and waiting orders as of the newest epoch."""
    config = operator.config
    if config is None or operator.kind != QUERIES or not config.guard.enabled:
        return {"enabled": False, "blocks": [], "suspects": [], "ended": [], "waiting": []}
    view = guard_view(operator.path)
    grid = Grid(Space.of(config.space), *config.space.grid)
    suspects = sorted(view.suspects.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "enabled": True, "observing": view.observing, "epoch": view.epoch, "round": view.round,
        "blocks": [_block(block, grid) for block in view.blocks.listed()[-MOST_USERS:]],
        "ended": [_block(block, grid) for block in view.blocks.past[-20:]],
        "suspects": [
            {"user": user, "words": told_suspicion(seen), "places": _places(seen, grid)}
            for user, seen in suspects[:MOST_USERS]
            if user not in view.blocks.entries
        ],
        "waiting": [{"op": order.op, "user": order.user} for order in view.waiting],
    }  # fmt: skip


def _block(block: Block, grid: Grid) -> dict[str, Any]:
    evidence = block.evidence or {}
    return {
        "user": block.user, "since": block.since, "until": block.until, "by": block.by,
        "reason": block.reason, "observed": block.observed, "ended": block.ended,
        "words": evidence_in_short(block),
        "alike": list(evidence.get("cluster", ()))[:20],
        "features": dict(evidence.get("features", {})),
        "places": _places(evidence.get("hotspots", ()), grid),
    }  # fmt: skip


def told_suspicion(seen: Sequence[Mapping[str, Any]]) -> str:
    """What speaks against a user who is not blocked.

    >>> told_suspicion([{"round": 3, "rate": 0.4}, {"round": 5, "rate": 0.75}])
    'part of 2 hotspots in rounds 3 to 5, up to 75% of what they placed lately in one'
    """
    rounds = sorted({int(one["round"]) for one in seen})
    words = f"part of {plural(len(seen), 'hotspot')}"
    if rounds:
        first, last = rounds[0], rounds[-1]
        words += f" in round {first}" if first == last else f" in rounds {first} to {last}"
    rates = [one["rate"] for one in seen if "rate" in one]
    return words + (f", up to {max(rates):.0%} of what they placed lately in one" if rates else "")


def _places(seen: Sequence[Mapping[str, Any]], grid: Grid) -> list[list[float]]:
    """Where the hotspots were, as west, south, east, north."""
    space, found = grid.space, []
    for one in seen:
        place = one.get("place")
        if place is not None:
            x = [space.west + float(place[k]) * grid.cell_width for k in (0, 2)]
            y = [space.south + float(place[k]) * grid.cell_height for k in (1, 3)]
            found.append([round(v, 4) for v in (x[0], y[0], x[1], y[1])])
    return found
