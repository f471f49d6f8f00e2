"""Who was blocked in a run and on what evidence, as a table of the report."""

from __future__ import annotations

from html import escape

from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.guard_words import blocks_of, evidence_in_short
from geoflux.chronicle.wording import count, duration, plural
from geoflux.cli.report_cards import card, lead
from geoflux.cli.report_tables import row, table, tight

MOST_BLOCKS = 1000
_OPEN = 20


def guard_card(manifests: list[Manifest]) -> str:
    """Every block, newest first; nothing where there was no Guard."""
    guarded = [m for m in manifests if m.get("guard")]
    if not guarded:
        return ""
    begun = manifests[0]["opened"]
    rounds = sum(m["guard"]["closed"] is not None for m in guarded)
    hotspots = sum(m["guard"]["hotspots"] for m in guarded)
    refused = sum(m["guard"]["refused"] for m in guarded)
    caption = (
        f"{plural(rounds, 'detection round')}, {plural(hotspots, 'hotspot')} looked into; "
        f"{plural(refused, 'request')} refused."
    )
    rows = [
        row(
            tight(count(m["epoch"])), tight(duration(max(block.since - begun, 0.0))),
            escape(block.user), block.by, escape(_why(block.reason, block.observed)),
            escape(evidence_in_short(block)),
        )
        for m in reversed(guarded)
        for block in blocks_of(m)
    ]  # fmt: skip
    if not rows:
        return card("Guard", lead(caption) + '<p class="none">Nobody was blocked.</p>', wide=True)
    head = ("epoch", "time", "user", "by", "why", "evidence")
    body = lead(caption) + table(head, rows[:_OPEN])
    if len(rows) > _OPEN:
        rest = rows[_OPEN:MOST_BLOCKS]
        words = plural(len(rows) - _OPEN, "earlier block")
        body += f'<details class="rest"><summary>{words}</summary>{table(head, rest)}</details>'
    return card("Guard", body, wide=True)


def _why(reason: str, observed: bool) -> str:
    return f"would have been blocked: {reason}" if observed else reason
