"""The tables of the report: where every event went, why some were set aside, the settings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol

from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.wording import count
from geoflux.config import Config


class Counts(Protocol):
    """Where the events of a run went, as every summary has it."""

    @property
    def received(self) -> int:
        """All of them."""
        ...

    @property
    def processed(self) -> int:
        """Those that were worked on."""
        ...

    @property
    def quarantined(self) -> int:
        """Those that were set aside."""
        ...

    @property
    def carried_out(self) -> int:
        """Those that wait for the next epoch."""
        ...


def unaccounted(summary: Counts) -> int:
    """Events that were received and are nowhere now; anything but 0 is a loss (or a surplus)."""
    return summary.received - summary.processed - summary.quarantined - summary.carried_out


def conservation(summary: Counts) -> str:
    """Received = processed + quarantined + carried over."""
    parts = (
        ("= processed", summary.processed),
        ("+ quarantined", summary.quarantined),
        ("+ carried over to the next epoch", summary.carried_out),
    )
    rows = [row("received", _number(summary.received), kind="total")]
    rows += [row(name, _number(amount)) for name, amount in parts]
    rows.append(row("unaccounted for", _number(unaccounted(summary)), kind="total"))
    return table((), rows)


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
        row(_code(code), _number(events), _number(control)) for code, (events, control) in order
    ]
    return table(("reason", "#events", "#control records"), rows)


def settings(config: Config) -> str:
    """Settings that are not at their defaults."""
    rows = [
        row(tight(_code(name)), _code(_value(given)), tight(_code(_value(usual))))
        for name, given, usual in _differences(config, Config())
    ]
    if not rows:
        return '<p class="none">All settings are at their defaults.</p>'
    return table(("setting", "value", "default"), rows)


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


def tight(cell: str) -> str:
    """A cell that is not broken into lines."""
    return f'<td class="tight">{cell}</td>'


def _number(value: int) -> str:
    return f'<td class="number">{count(value)}</td>'


def row(*cells: str, kind: str = "") -> str:
    """A row of cells (HTML)."""
    filled = "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{kind}">{filled}</tr>' if kind else f"<tr>{filled}</tr>"


def table(head: Sequence[str], rows: Sequence[str]) -> str:
    """A table; a heading that starts with # is one of numbers."""
    cells = "".join(
        f'<th class="number">{name[1:]}</th>' if name.startswith("#") else f"<th>{name}</th>"
        for name in head
    )
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(rows)}</tbody></table>"
