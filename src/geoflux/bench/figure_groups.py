"""Figures of several parts: bars side by side in groups, and curves in rows over the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.ticker import FuncFormatter, MaxNLocator

from geoflux.bench.figure_frame import (
    HEX,
    INK,
    MUTED,
    STYLE,
    Colour,
    Words,
    begin,
    begin_rows,
    exact,
    short,
    write,
)
from geoflux.bench.figures import Curve, Mark, draw_mark, stroke

_MOST_VALUES = 14
"""Beyond so many bars there is no room for their values."""

_ROOM = 1.5


@dataclass(frozen=True)
class Bar:
    """A value of a group, with its standard error if that is known."""

    group: str
    label: str
    value: float
    error: float = 0.0
    colour: Colour = "blue"


@dataclass(frozen=True)
class Row:
    """Curves over the common time; ``whole``: their values are whole numbers."""

    y: str
    curves: Sequence[Curve]
    whole: bool = False


def draw_bars(path: Path, words: Words, bars: Sequence[Bar]) -> Path:
    """Bars from 0 on, side by side within groups, with twice their standard errors."""
    groups = list(dict.fromkeys(bar.group for bar in bars))
    most = max(sum(bar.group == group for bar in bars) for group in groups)
    width = 0.8 / most
    with matplotlib.rc_context(STYLE):
        figure, axes = begin(640, 400, words)
        told: set[str] = set()
        for place, group in enumerate(groups):
            here = [bar for bar in bars if bar.group == group]
            for n, bar in enumerate(here):
                at = place + (n - (len(here) - 1) / 2) * width
                axes.bar(
                    at, bar.value, 0.9 * width, color=HEX[bar.colour],
                    label=None if bar.label in told else bar.label,
                )  # fmt: skip
                told.add(bar.label)
                if bar.error > 0:
                    axes.errorbar(at, bar.value, 2 * bar.error, color=INK, lw=1.3, capsize=4)
                if len(bars) <= _MOST_VALUES:
                    axes.annotate(
                        exact(bar.value), (at, bar.value + 2 * bar.error), (0, 3), ha="center",
                        textcoords="offset points", fontsize=9.5, color=MUTED,
                    )  # fmt: skip
        axes.set_xticks(range(len(groups)), groups)
        axes.tick_params(axis="x", labelcolor=INK, length=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.grid(axis="y")
        if len(told) > 1:
            figure.legend(loc="outside lower center", ncols=min(len(told), 4), fontsize=10)
        return write(figure, path)


def draw_rows(
    path: Path, words: Words, rows: Sequence[Row], marks: Sequence[Mark] = ()
) -> Path:  # fmt: skip
    """Rows of curves; marks go through all of them, and have their words in the first."""
    with matplotlib.rc_context(STYLE):
        figure, every = begin_rows(640, 110 + 130 * len(rows), words, len(rows))
        for n, (axes, row) in enumerate(zip(every, rows, strict=True)):
            for curve in row.curves:
                axes.plot(
                    curve.x, curve.y, color=HEX[curve.colour], label=curve.label, **stroke(curve)
                )  # fmt: skip
            for mark in marks:
                draw_mark(axes, mark if n == 0 else Mark(mark.at, "", mark.colour))
            axes.set_ylabel(row.y)
            # The words of marks stand above the curves of the first row.
            top = axes.get_ylim()[1] * (_ROOM if n == 0 and marks else 1.05)
            axes.set_ylim(0, top)
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=row.whole))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
            axes.grid(axis="y")
        figure.align_ylabels(every)
        figure.legend(loc="outside lower center", ncols=3, fontsize=10, handlelength=2.6)
        return write(figure, path)
