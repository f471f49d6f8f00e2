"""The pieces that every live view is made of: bars, figures in columns, decisions, progress.

Each takes the width that there is and never gives a line that is longer, from 40 columns on; what
does not fit is cut with an ellipsis, never wrapped, so that a view keeps its height.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from geoflux.chronicle.decision_words import changes_of, reason_of, told_change, told_changes
from geoflux.chronicle.guard_words import evidence_in_short
from geoflux.chronicle.wording import duration
from geoflux.engine.epochs import Manifest
from geoflux.guard import Block

BARS = " ▁▂▃▄▅▆▇█"
_MOST_SLOTS_IN_FULL = 16
_SLOT_WIDTH = 24
_FIGURE_WIDTH = 38
_HOT = 1.5
"""Times the mean from which on a slot's bar stands out."""

Figure = tuple[str, str]


def bars(values: Sequence[float]) -> str:
    """How much each is beside the largest.

    >>> bars([1.0, 0.5, 0.0])
    '█▄ '
    """
    top = max(values, default=0.0) or 1.0
    return "".join(BARS[round(value / top * (len(BARS) - 1))] for value in values)


def figures(pairs: Sequence[Figure], width: int, most: int = 3) -> Table:
    """Names and values in as many columns as there is room for, each as wide as the next."""
    across = max(min(width // _FIGURE_WIDTH, most), 1)
    table = Table.grid(padding=(0, 1), expand=True)
    for _ in range(across):
        table.add_column(style="dim", no_wrap=True, min_width=11)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    cells: list[Any] = []
    for name, value in pairs:
        cells += [Text(name), Text(value)]
    for start in range(0, len(cells), 2 * across):
        table.add_row(*cells[start : start + 2 * across])
    return table


def slot_bars(loads: Sequence[float], width: int) -> Table | Text:
    """How busy every slot is, beside the busiest: a bar each and the share of time where there are
    few, otherwise a character each."""
    mean = sum(loads) / len(loads) if loads else 0.0
    styles = ["yellow" if load > _HOT * mean else "green" for load in loads]
    if len(loads) > _MOST_SLOTS_IN_FULL:
        text = Text("slots  ", style="dim", overflow="fold")
        for character, style in zip(bars(loads), styles, strict=True):
            text.append(character, f"not dim {style}")
        return text
    top = max(loads, default=0.0) or 1.0
    across = max(min(width // _SLOT_WIDTH, 4), 1)
    table = Table.grid(padding=(0, 1), expand=True)
    for _ in range(across):
        table.add_column(style="dim", no_wrap=True)
        table.add_column(ratio=1)
        table.add_column(justify="right", no_wrap=True, min_width=4)
    cells: list[Any] = []
    for slot, (load, style) in enumerate(zip(loads, styles, strict=True)):
        bar = ProgressBar(top, load, complete_style=style, finished_style=style)
        cells += [f"slot {slot}", bar, f"{load:.0%}"]
    for start in range(0, len(cells), 3 * across):
        table.add_row(*cells[start : start + 3 * across])
    return table


def progress(done: float, total: float, per_second: float, width: int) -> Table:
    """How much of what will ever come has been read, and how long the rest takes at this pace."""
    share = min(done / total, 1.0) if total else 1.0
    left = max(total - done, 0.0)
    rest = f"about {duration(left / per_second)} left" if left and per_second > 0 else ""
    table = Table.grid(padding=(0, 1))
    table.add_row(
        ProgressBar(1.0, share, width=max(min(width - 30, 60), 10)), f"{share:4.0%}",
        Text(rest, style="dim"),
    )  # fmt: skip
    return table


def decisions(told: Sequence[tuple[float, str, Manifest]], width: int) -> Table:
    """The last decisions, newest first: when, whose, what, why; a line each. The newest change is
    told in full where it was one."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(style="dim", no_wrap=True)
    named = any(name for _, name, _ in told)
    if named:
        table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(width // 2 - 8, 12))
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for when, name, manifest in reversed(told):
        row = [f"at {when:.0f} s", *([name] if named else [])]
        table.add_row(*row, Text(_done(manifest)), Text(reason_of(manifest)))
    return table


def _done(manifest: Manifest) -> str:
    changes = changes_of(manifest)
    if len(changes) == 1:
        return told_change(changes[0])
    return told_changes(changes) if changes else "no change"


def blocks(told: Sequence[tuple[float, Block]]) -> Table:
    """The last blocks, newest first: when, who and why, and the evidence in short."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis", ratio=1)
    for when, block in reversed(told):
        row = (block.told(), evidence_in_short(block))
        table.add_row(f"at {when:.0f} s", *(Text(words) for words in row))
    return table


def heading(words: Sequence[str]) -> Text:
    """The first line: the name, then what matters most, as far as it fits."""
    text = Text("geoflux", style="bold cyan", no_wrap=True, overflow="ellipsis")
    for word in words:
        if word:
            text.append("  ").append(word, "not bold default")
    return text


def latency_words(pair: tuple[float | None, float | None]) -> str:
    """Median and 99th percentile.

    >>> latency_words((0.84, 1.5)), latency_words((None, None))
    ('840 ms, p99 1.5 s', '-')
    """
    p50, p99 = pair
    return "-" if p50 is None or p99 is None else f"{duration(p50)}, p99 {duration(p99)}"
