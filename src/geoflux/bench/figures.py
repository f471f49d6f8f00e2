"""Figures of the benchmarks as SVG files: what was measured next to what was published.

What was measured is solid with a mark at every measurement; what was published, or follows from a
published formula, is dashed. Files stand alone: colours and fonts are in them, nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from geoflux.bench.figure_frame import (
    HEX,
    INK,
    MUTED,
    STYLE,
    Colour,
    Words,
    begin,
    exact,
    short,
    write,
)

__all__ = [
    "FOLDER", "Box", "Colour", "Curve", "Mark", "Pair", "Words", "draw_boxes", "draw_curves",
    "draw_mark", "draw_pairs", "stroke",
]  # fmt: skip

FOLDER = Path("bench-figures")
"""Where figures go unless the caller says otherwise."""

_DASHES = (0, (5, 3))
_FEW_TICKS = 8
"""With so few places on a logarithmic axis, each of them is a tick."""
_FEW_DECADES = 2.0
"""A logarithmic axis this short has ticks between its powers of ten."""
_ROOM = 1.12
"""For the words of marks, above the curves."""


@dataclass(frozen=True)
class Curve:
    """A line of a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: Colour = "blue"
    published: bool = False
    style: Literal["both", "marks", "line"] = "both"
    """Marks joined by a line, marks alone, or a line alone."""


@dataclass(frozen=True)
class Mark:
    """Something that happened at one place of the x axis."""

    at: float
    label: str = ""
    colour: Colour = "grey"


@dataclass(frozen=True)
class Pair:
    """Something measured and what was published of it, if anything was."""

    label: str
    measured: float
    published: float | None = None


@dataclass(frozen=True)
class Box:
    """How values are spread, beside others of the same group."""

    group: str
    label: str
    values: Sequence[float]
    colour: Colour = "blue"


def draw_boxes(path: Path, words: Words, boxes: Sequence[Box]) -> Path:
    """Quartiles as boxes, the median as a line, whiskers to the ends, the mean as a cross."""
    groups = list(dict.fromkeys(box.group for box in boxes))
    labels = list(dict.fromkeys(box.label for box in boxes))
    width = 0.7 / len(labels)
    with matplotlib.rc_context(STYLE):
        figure, axes = begin(640, 400, words)
        for box in boxes:
            at = groups.index(box.group) + (labels.index(box.label) - (len(labels) - 1) / 2) * width
            colour = HEX[box.colour]
            line = {"color": colour, "lw": 1.4}
            axes.boxplot(
                [box.values], positions=[at], widths=0.8 * width, whis=(0, 100), showmeans=True,
                patch_artist=True, boxprops={"facecolor": colour + "33", "edgecolor": colour},
                medianprops=line, whiskerprops=line, capprops=line,
                meanprops={"marker": "x", "markeredgecolor": INK, "markersize": 6},
            )  # fmt: skip
            if groups.index(box.group) == 0:
                axes.plot([], [], color=colour, lw=6, alpha=0.5, label=box.label)
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=2, fontsize=10)
        return write(figure, path)


def draw_curves(
    path: Path, words: Words, curves: Sequence[Curve], log: Literal["", "x", "y", "xy"] = "",
    marks: Sequence[Mark] = (),
) -> Path:  # fmt: skip
    """Lines over a common axis; ``log`` names the axes that are logarithmic, ``marks`` are vertical
    lines."""
    with matplotlib.rc_context(STYLE):
        figure, axes = begin(640, 400, words)
        for curve in curves:
            axes.plot(
                curve.x, curve.y, color=HEX[curve.colour], label=curve.label, **stroke(curve)
            )  # fmt: skip
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            if name in log:
                axes.set(**{f"{name}scale": "log"})
                axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        measured = sorted({x for curve in curves if not curve.published for x in curve.x})
        if "x" in log and len(measured) <= _FEW_TICKS:
            axes.set_xticks(measured)
            axes.xaxis.set_minor_locator(NullLocator())
        if "y" not in log:
            axes.set_ylim(bottom=0)
        elif _decades(curves) <= _FEW_DECADES:
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.grid(axis="y")
        for mark in marks:
            draw_mark(axes, mark)
        if any(mark.label for mark in marks) and "y" not in log:
            axes.set_ylim(top=axes.get_ylim()[1] * _ROOM)
        figure.legend(loc="outside lower center", ncols=2, fontsize=10, handlelength=2.6)
        return write(figure, path)


def draw_mark(axes: Any, mark: Mark) -> None:
    """A vertical line, with its words along it."""
    colour = HEX[mark.colour]
    axes.axvline(mark.at, color=colour, lw=1.2, alpha=0.8, zorder=3)
    axes.annotate(
        mark.label, (mark.at, 1.0), (3, -3), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=9, color=colour, rotation=90,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6}, zorder=7,
    )  # fmt: skip


def _decades(curves: Sequence[Curve]) -> float:
    """How many powers of ten the values span."""
    values = [y for curve in curves for y in curve.y if y > 0]
    return log10(max(values) / min(values)) if values else 0.0


def stroke(curve: Curve) -> dict[str, Any]:
    """How a curve is drawn."""
    if curve.published:
        # Above what was measured: where both agree the dashes are still seen.
        return {"ls": _DASHES, "lw": 1.5, "zorder": 5}
    if curve.style == "line":
        return {"lw": 1.8, "zorder": 4}
    marks = {"mec": "white", "mew": 0.8, "zorder": 4}
    if curve.style == "marks":
        return {"marker": "o", "ms": 7, "lw": 0, **marks}
    if len(curve.x) == 1:
        return {"marker": "D", "ms": 8, "lw": 0, **marks, "zorder": 6}
    return {"marker": "o", "ms": 5, "lw": 1.8, **marks}


def draw_pairs(path: Path, words: Words, pairs: Sequence[Pair]) -> Path:
    """Two bars per thing on a logarithmic axis, each with its value."""
    with matplotlib.rc_context(STYLE):
        figure, axes = begin(640, 90 + 58 * len(pairs), words)
        known = [v for p in pairs for v in (p.measured, p.published) if v]
        left = 10.0 ** _power_below(min(known))
        for place, pair in enumerate(pairs):
            bars = (
                (place - 0.19, pair.measured, "blue", "measured"),
                (place + 0.19, pair.published, "grey", "published"),
            )
            for y, value, colour, label in bars:
                shown = "not given in the text" if value is None else exact(value)
                axes.barh(
                    y, (value or left) - left, 0.34, left, color=HEX[colour],
                    alpha=1.0 if colour == "blue" else 0.55, label=None if place else label,
                )  # fmt: skip
                at = value or left
                axes.annotate(
                    shown, (at, y), (5, 0), textcoords="offset points", va="center", fontsize=10,
                    color=INK if value else MUTED,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(left, max(known) * 6)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
        axes.set_yticks(range(len(pairs)), [p.label for p in pairs])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.invert_yaxis()
        axes.grid(axis="x")
        figure.legend(loc="outside lower center", ncols=2, fontsize=10)
        return write(figure, path)


def _power_below(value: float) -> int:
    """The whole power of ten that leaves a bar of some length."""
    power = 0
    while 10.0**power > value / 2:
        power -= 1
    while 10.0 ** (power + 1) <= value / 2:
        power += 1
    return power
