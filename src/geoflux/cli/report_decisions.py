"""What was decided in a run and why, as a table of the report; long rows and many rows fold."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from geoflux.chronicle.decision_words import (
    changes_of,
    is_decision,
    reason_of,
    told_change,
    told_changes,
)
from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.wording import count, duration, plural
from geoflux.cli.report_cards import card, lead
from geoflux.cli.report_tables import row, table, tight

LAST_DECISIONS = 12
MOST_DECISIONS = 3000
_MOST_CHANGES = 2
_LONG_REASON = 150

Run = list[Manifest]
"""Epochs after which the same was decided."""


def decisions_card(manifests: list[Manifest]) -> str:
    """The last decisions; all of them where a plan was changed or could have been."""
    if not manifests:
        return card("Last decisions", '<p class="none">Nothing has been decided yet.</p>', True)
    begun = manifests[0]["opened"]
    if not any(changes_of(m) or m.get("round") for m in manifests):
        runs = [list(run) for _, run in groupby(manifests, key=reason_of)]
        return card("Last decisions", _table(runs[-LAST_DECISIONS:], begun, timed=False), True)
    runs = [list(run) for _, run in groupby(filter(is_decision, manifests), key=_decided)]
    caption = "" if len(runs) < LAST_DECISIONS else "Newest first."
    idle = len(manifests) - sum(map(len, runs))
    if idle:
        caption += f" In {plural(idle, 'more epoch')} there was nothing to decide."
    body = lead(caption.strip()) if caption else ""
    body += _table(runs[-LAST_DECISIONS:], begun, timed=True)
    earlier = runs[:-LAST_DECISIONS]
    if earlier:
        words = plural(len(earlier), "earlier decision")
        if len(earlier) > MOST_DECISIONS:
            words += f", the last {count(MOST_DECISIONS)} of them (all are in the manifests)"
        rest = _table(earlier[-MOST_DECISIONS:], begun, timed=True)
        body += f'<details class="rest"><summary>{words}</summary>{rest}</details>'
    return card("Every decision", body, wide=True)


def _decided(m: Manifest) -> tuple[str, int]:
    """What makes decisions the same: the reason, and that nothing was changed or reckoned."""
    own = bool(changes_of(m)) or bool(m.get("round"))
    return reason_of(m), m["epoch"] + 1 if own else 0


def _table(runs: Sequence[Run], begun: float, timed: bool) -> str:
    """Newest first."""
    rounds = any(m.get("round") for run in runs for m in run)
    head = ["epochs", *(["time"] if timed else []), *(["round"] if rounds else []),
            "plan", "decision", "why"]  # fmt: skip
    rows = []
    for run in reversed(runs):
        cells = [tight(_epochs(run))]
        if timed:
            cells.append(tight(duration(max(run[0]["committed"] - begun, 0.0))))
        if rounds:
            cells.append(tight(_round(run[-1])))
        cells += [tight(_plan(run)), _changes(run[-1]), _reason(run[-1])]
        rows.append(row(*cells))
    return f'<div class="scroll">{table(head, rows)}</div>' if timed else table(head, rows)


def _epochs(run: Run) -> str:
    first, last = count(run[0]["epoch"]), count(run[-1]["epoch"])
    return first if len(run) == 1 else f"{first} &ndash; {last}"


def _plan(run: Run) -> str:
    before, after = run[0]["plan"], run[-1]["next_plan"]
    return str(before) if before == after else f"{before} → {after}"


def _round(m: Manifest) -> str:
    closed = m.get("round")
    return f"{closed.get('number')}, {escape(str(closed.get('stage')))}" if closed else ""


def _changes(m: Manifest) -> str:
    changes = changes_of(m)
    if not changes:
        return '<span class="none">no change</span>'
    lines = "<br>".join(escape(told_change(change)) for change in changes)
    if len(changes) <= _MOST_CHANGES:
        return lines
    return _folded(escape(told_changes(changes)), lines)


def _reason(m: Manifest) -> str:
    """The reason; of a long one the beginning, up to where a clause or a word ends."""
    reason = reason_of(m)
    if len(reason) <= _LONG_REASON:
        return escape(reason)
    at = max(reason.rfind("; ", 0, _LONG_REASON) + 1, reason.rfind(" ", 0, _LONG_REASON * 2 // 3))
    at = at if at > 0 else _LONG_REASON
    return _folded(f"{escape(reason[:at])} …", escape(reason[at:].strip()))


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"
