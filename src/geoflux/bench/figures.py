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
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

FOLDER = Path("bench-figures")
"""Where figures go unless the caller says otherwise."""

Colour = Literal["blue", "orange", "green", "purple", "grey"]
_HEX = {
    "blue": "#2f6fde", "orange": "#d9772b", "green": "#2f9e7c", "purple": "#8a63c9",
    "grey": "#5d6b7c",
}  # fmt: skip
_INK, _MUTED, _LINE = "#1b2430", "#5d6b7c", "#d5dbe3"
_DASHES = (0, (5, 3))
_FEW_TICKS = 8
"""With so few places on a logarithmic axis, each of them is a tick."""
_FEW_DECADES = 2.0
"""A logarithmic axis this short has ticks between its powers of ten."""
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_STYLE: Any = {
    "svg.fonttype": "none", "font.size": 11, "font.family": "sans-serif",
    "axes.edgecolor": _LINE, "axes.labelcolor": _MUTED, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "text.color": _INK, "xtick.color": _LINE, "ytick.color": _LINE,
    "xtick.labelcolor": _MUTED, "ytick.labelcolor": _MUTED, "ytick.major.size": 0,
    "ytick.minor.size": 0, "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.1, "grid.color": _LINE, "grid.linewidth": 0.8,
    "legend.frameon": False,
}  # fmt: skip


@dataclass(frozen=True)
class Words:
    """What is written around a figure; ``note`` says where published values come from."""

    title: str
    x: str
    y: str
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A line of a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: Colour = "blue"
    published: bool = False


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
    with matplotlib.rc_context(_STYLE):
        figure, axes = _begin(640, 400, words)
        for box in boxes:
            at = groups.index(box.group) + (labels.index(box.label) - (len(labels) - 1) / 2) * width
            colour = _HEX[box.colour]
            line = {"color": colour, "lw": 1.4}
            axes.boxplot(
                [box.values], positions=[at], widths=0.8 * width, whis=(0, 100), showmeans=True,
                patch_artist=True, boxprops={"facecolor": colour + "33", "edgecolor": colour},
                medianprops=line, whiskerprops=line, capprops=line,
                meanprops={"marker": "x", "markeredgecolor": _INK, "markersize": 6},
            )  # fmt: skip
            if groups.index(box.group) == 0:
                axes.plot([], [], color=colour, lw=6, alpha=0.5, label=box.label)
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=2, fontsize=10)
        return _write(figure, path)


def draw_curves(
    path: Path, words: Words, curves: Sequence[Curve], log: Literal["", "x", "y", "xy"] = ""
) -> Path:
    """Lines over a common axis; ``log`` names the axes that are logarithmic."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _begin(640, 400, words)
        for curve in curves:
            axes.plot(
                curve.x, curve.y, color=_HEX[curve.colour], label=curve.label, **_stroke(curve)
            )  # fmt: skip
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            if name in log:
                axes.set(**{f"{name}scale": "log"})
                axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
        measured = sorted({x for curve in curves if not curve.published for x in curve.x})
        if "x" in log and len(measured) <= _FEW_TICKS:
            axes.set_xticks(measured)
            axes.xaxis.set_minor_locator(NullLocator())
        if "y" not in log:
            axes.set_ylim(bottom=0)
        elif _decades(curves) <= _FEW_DECADES:
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=2, fontsize=10, handlelength=2.6)
        return _write(figure, path)


def _decades(curves: Sequence[Curve]) -> float:
    """How many powers of ten the values span."""
    values = [y for curve in curves for y in curve.y if y > 0]
    return log10(max(values) / min(values)) if values else 0.0


def _stroke(curve: Curve) -> dict[str, Any]:
    if curve.published:
        # Above what was measured: where both agree the dashes are still seen.
        return {"ls": _DASHES, "lw": 1.5, "zorder": 5}
    marks = {"mec": "white", "mew": 0.8, "zorder": 4}
    if len(curve.x) == 1:
        return {"marker": "D", "ms": 8, "lw": 0, **marks, "zorder": 6}
    return {"marker": "o", "ms": 5, "lw": 1.8, **marks}


def draw_pairs(path: Path, words: Words, pairs: Sequence[Pair]) -> Path:
    """Two bars per thing on a logarithmic axis, each with its value."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _begin(640, 90 + 58 * len(pairs), words)
        known = [v for p in pairs for v in (p.measured, p.published) if v]
        left = 10.0 ** _power_below(min(known))
        for place, pair in enumerate(pairs):
            bars = (
                (place - 0.19, pair.measured, "blue", "measured"),
                (place + 0.19, pair.published, "grey", "published"),
            )
            for y, value, colour, label in bars:
                shown = "not given in the text" if value is None else _exact(value)
                axes.barh(
                    y, (value or left) - left, 0.34, left, color=_HEX[colour],
                    alpha=1.0 if colour == "blue" else 0.55, label=None if place else label,
                )  # fmt: skip
                at = value or left
                axes.annotate(
                    shown, (at, y), (5, 0), textcoords="offset points", va="center", fontsize=10,
                    color=_INK if value else _MUTED,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(left, max(known) * 6)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
        axes.set_yticks(range(len(pairs)), [p.label for p in pairs])
        axes.tick_params(axis="y", labelcolor=_INK)
        axes.invert_yaxis()
        axes.grid(axis="x")
        figure.legend(loc="outside lower center", ncols=2, fontsize=10)
        return _write(figure, path)


def _short(value: float) -> str:
    """A number for an axis.

    >>> _short(250.0), _short(2.5e6), _short(0.0)
    ('250', '2.5 M', '0')
    """
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.4g} {prefix}"
    return f"{value:.4g}"


def _exact(value: float) -> str:
    """A number beside its bar.

    >>> _exact(0.0123), _exact(1327.4)
    ('0.0123', '1,327')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _power_below(value: float) -> int:
    """The whole power of ten that leaves a bar of some length."""
    power = 0
    while 10.0**power > value / 2:
        power -= 1
    while 10.0 ** (power + 1) <= value / 2:
        power += 1
    return power


def _begin(width: float, height: float, words: Words) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
    figure.patch.set_facecolor("white")
    axes = figure.add_subplot()
    # Constrained layout gives a super title its own room; the note is small and stands below it.
    figure.suptitle(words.title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    axes.set_title(words.note, loc="left", fontsize=9.5, color=_MUTED)
    axes.set_xlabel(words.x)
    axes.set_ylabel(words.y)
    return figure, axes


def _write(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas: Any = FigureCanvasSVG(figure)
    # Without a date and with fixed ids the same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": path.stem}), open(path, "w", encoding="utf-8") as f:
        canvas.print_svg(f, metadata={"Date": None})
    return path
