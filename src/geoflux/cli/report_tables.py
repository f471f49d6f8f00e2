"""The tables of the report: where every event went, why some were set aside, what was decided."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

from geoflux.cli.epoch_series import Manifest
from geoflux.cli.wording import count
from geoflux.config import Config
from geoflux.engine.summary import Summary

LAST_DECISIONS = 12


def unaccounted(summary: Summary) -> int:
    """Events that were received and are nowhere now; anything but 0 is a loss (or a surplus)."""
    return summary.received - summary.processed - summary.quarantined - summary.carried_out


def conservation(summary: Summary) -> str:
    """Received = processed + quarantined + carried over."""
    parts = (
        ("= processed", summary.processed),
        ("+ quarantined", summary.quarantined),
        ("+ carried over to the next epoch", summary.carried_out),
    )
    rows = [_row("received", _number(summary.received), kind="total")]
    rows += [_row(name, _number(amount)) for name, amount in parts]
    rows.append(_row("unaccounted for", _number(unaccounted(summary)), kind="total"))
    return _table((), rows)


def reasons(manifests: list[Manifest]) -> str:
    """Why events and control records were set aside, most frequent first."""
    found: dict[str, list[int]] = {}
    for m in manifests:
        for place, kind in enumerate(("reasons", "control_rejected")):
            for code, amount in m.get(kind, {}).items():
                found.setdefault(code, [0, 0])[place] += amount
    if not found:
        return '<p class="none">Nothing was quarantined.</p>'
    order = sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))
    rows = [
        _row(_code(code), _number(events), _number(control)) for code, (events, control) in order
    ]
    return _table(("reason", "#events", "#control records"), rows)


def settings(config: Config) -> str:
    """Settings that are not at their defaults."""
    rows = [
        _row(_tight(_code(name)), _code(_value(given)), _tight(_code(_value(usual))))
        for name, given, usual in _differences(config, Config())
    ]
    if not rows:
        return '<p class="none">All settings are at their defaults.</p>'
    return _table(("setting", "value", "default"), rows)


def decisions(manifests: list[Manifest]) -> str:
    """The last decisions; the same one several times over is one row."""
    runs = [(key, list(run)) for key, run in groupby(manifests, key=_decided)]
    if not runs:
        return '<p class="none">Nothing has been decided yet.</p>'
    rows = []
    for (reason, _), run in reversed(runs[-LAST_DECISIONS:]):
        first, last = run[0], run[-1]
        epochs = count(first["epoch"])
        if len(run) > 1:
            epochs += f" &ndash; {count(last['epoch'])}"
        changes = [escape(_change(c)) for c in last.get("decision", {}).get("changes", ())]
        plan = str(first["plan"])
        if last["next_plan"] != first["plan"]:
            plan += f" → {last['next_plan']}"
        done = "<br>".join(changes) or '<span class="none">no change</span>'
        rows.append(_row(_tight(epochs), _tight(plan), done, escape(reason)))
    return _table(("epochs", "plan", "decision", "why"), rows)


def _decided(m: Manifest) -> tuple[str, int]:
    """What makes decisions the same: the reason, and that nothing was changed."""
    decision = m.get("decision", {})
    changed = bool(decision.get("changes"))
    return str(decision.get("reason", "")), m["epoch"] + 1 if changed else 0


def _change(change: dict[str, Any]) -> str:
    match change:
        case {"kind": "move", "partition": partition, "to": to}:
            return f"move partition {partition} to slot {to}"
        case {"kind": "split", "partition": partition, "axis": axis, "at": at}:
            line = f"{str(axis).removesuffix('s')} {at}"
            owners = f"slots {change.get('first_to')} and {change.get('second_to')}"
            return f"split partition {partition} at {line}, to {owners}"
        case {"kind": "merge", "first": first, "second": second, "to": to}:
            return f"merge partitions {first} and {second}, to slot {to}"
    return json.dumps(change)


def _differences(given: Any, usual: Any, prefix: str = "") -> Iterable[tuple[str, Any, Any]]:
    for field in dataclasses.fields(given):
        mine, default = getattr(given, field.name), getattr(usual, field.name)
        if dataclasses.is_dataclass(mine):
            yield from _differences(mine, default, f"{prefix}{field.name}.")
        elif mine != default:
            yield f"{prefix}{field.name}", mine, default


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        value = [dataclasses.asdict(v) if dataclasses.is_dataclass(v) else v for v in value]  # type: ignore[arg-type]
    return json.dumps(value, ensure_ascii=False)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _tight(cell: str) -> str:
    """A cell that is not broken into lines."""
    return f'<td class="tight">{cell}</td>'


def _number(value: int) -> str:
    return f'<td class="number">{count(value)}</td>'


def _row(*cells: str, kind: str = "") -> str:
    filled = "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{kind}">{filled}</tr>' if kind else f"<tr>{filled}</tr>"


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    """A table; a heading that starts with # is one of numbers."""
    cells = "".join(
        f'<th class="number">{name[1:]}</th>' if name.startswith("#") else f"<th>{name}</th>"
        for name in head
    )
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(rows)}</tbody></table>"
