"""A plan for a person: a table and a map in the terminal, or a picture in a file."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from geoflux.chronicle.decision_words import changes_of, reason_of, told_changes
from geoflux.chronicle.plan_view import PlanView
from geoflux.chronicle.wording import count, duration, plural
from geoflux.cli.map import Costs, Frame, plan_map
from geoflux.cli.plots import slot_colour
from geoflux.cli.report_style import LIGHT
from geoflux.cli.text_map import symbol, text_map
from geoflux.errors import ConfigError
from geoflux.plan import GridPlan

_WIDTH = 1070.0
_HEAD, _KEY, _ENTRY, _LEFT = 34.0, 22.0, 46.0, 52.0
_HALO = "svg svg text{paint-order:stroke;stroke:#fff;stroke-width:2.5px;stroke-opacity:.75}"
_FONT = "system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif"


def print_plan(console: Console, view: PlanView) -> None:
    """The table of slots, the map, and why the plan is as it is."""
    table = Table()
    table.add_column("slot")
    names = ("partitions", "cells", "events", "checks", "queries", "busy")
    for name in names if view.ran else names[:2]:
        table.add_column(name, justify="right")
    slots = view.slots
    cells = view.plan.columns * view.plan.rows
    events, checks = (sum(getattr(s, name) or 0 for s in slots) for name in ("events", "checks"))
    for s in slots:
        row = [
            f"[{slot_colour(s.slot)}]■[/] {s.slot}",
            count(s.partitions),
            _share(s.cells, cells),
        ]
        if view.ran:
            row += [
                _share(s.events, events),
                _share(s.checks, checks),
                "-" if s.queries is None else count(s.queries),
                "-" if s.busy_seconds is None else duration(s.busy_seconds),
            ]
        table.add_row(*row)
    console.print(title(view), style="bold", highlight=False)
    console.print(table, highlight=False)
    colours = console.is_terminal and not console.no_color
    if isinstance(view.plan, GridPlan):
        frame = Frame.fitted(view.grid, _WIDTH)
        console.print(
            text_map(view.plan, frame, _costs(view), console.width - 1, colours),
            no_wrap=True, overflow="crop", highlight=False,
        )  # fmt: skip
        if not colours and view.plan.slots > 10:
            last = view.plan.slots - 1
            console.print(f"letters are slots from a, 10, to {symbol(last)}, {last}")
    for line in _remarks(view):
        console.print(plain(line), highlight=False)


def title(view: PlanView) -> str:
    """Which plan, of which epoch, and how large."""
    parts = plural(len(view.plan.partitions), "partition")
    comes = ", which comes next" if view.is_next else ""
    return (
        f"plan {view.plan.version} of epoch {count(view.epoch)}{comes}: "
        f"{parts} on {plural(view.plan.slots, 'slot')}"
    )


def picture(view: PlanView) -> str:
    """The plan as an SVG file in light colours, since most viewers know nothing of a page's."""
    if not isinstance(view.plan, GridPlan):
        raise ConfigError(
            f"plan {view.plan.version} is replicated: every slot has the whole space, so there is "
            "nothing to draw; leave --svg out"
        )
    frame = Frame.fitted(view.grid, _WIDTH)
    drawing = plan_map(view.plan, frame, _costs(view), title(view), with_ids=True)
    wide, high = frame.outer
    width = max(wide, 480.0)
    per_line = max(int((width - _LEFT) // _ENTRY), 1)
    lines = -(-view.plan.slots // per_line)
    key = "".join(
        f'<g transform="translate({_LEFT + slot % per_line * _ENTRY:g} '
        f'{_HEAD + high + 16 + slot // per_line * _KEY:g})">'
        f'<rect width="10" height="10" rx="2" fill="{slot_colour(slot)}"/>'
        f'<text x="15" y="9" font-size="12" fill="var(--muted)">{slot}</text></g>'
        for slot in range(view.plan.slots)
    )
    key += f'<text x="10" y="{_HEAD + high + 25:g}" font-size="12" fill="var(--muted)">slots</text>'
    height = _HEAD + high + 16 + lines * _KEY
    inner = drawing.replace(
        "<svg ", f'<svg x="0" y="{_HEAD:g}" width="{wide:g}" height="{high:g}" '
    )
    page = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="{_FONT}">'
        f'<style>{_HALO}</style><rect width="100%" height="100%" fill="var(--card)"/>'
        f'<text x="10" y="22" font-size="15" font-weight="600" fill="var(--ink)">'
        f"{escape(title(view))}</text>{inner}{key}</svg>\n"
    )
    page = page.replace("var(--sans)", _FONT)
    return re.sub(r"var\(--([\w]+)\)", lambda found: LIGHT[found[1]], page)


def write_picture(view: PlanView, path: Path) -> None:
    """The picture into a file; what prevents that is said in a sentence."""
    drawn = picture(view)
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--svg {path} cannot be written: {error.strerror or error}") from None


def _costs(view: PlanView) -> Costs:
    return Costs.of({p: float(checks) for p, (_, checks) in view.partition_loads.items()})


def _remarks(view: PlanView) -> list[str]:
    lines = []
    if not isinstance(view.plan, GridPlan):
        lines.append("every slot has all queries for the whole space; events go to them in turn")
    ratio = view.busiest_over_mean
    if view.ran is None:
        earlier = f"; --epoch {view.epoch - 1} shows the one before, with its load"
        lines.append("nothing has run under it yet" + (earlier if view.epoch else ""))
    elif ratio is not None:
        when = f"in epoch {count(view.ran['epoch'])} "
        lines.append(f"{when}the busiest slot was busy for {ratio:.2f} times the mean")
    if view.decided is not None:
        changes = told_changes(changes_of(view.decided)) or "no change of parts"
        after = f"decided after epoch {count(view.decided['epoch'])}: {changes}"
        lines.append(f"{after} ({reason_of(view.decided)})" if reason_of(view.decided) else after)
    return lines


def _share(part: int | None, whole: int) -> str:
    """A share in per cent.

    >>> _share(1, 8), _share(0, 0), _share(None, 8)
    ('12.5 %', '-', '-')
    """
    return "-" if part is None or whole == 0 else f"{part / whole:.1%}".replace("%", " %")
