"""What all figures of the benchmarks have in common: colours, words around them, the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

Colour = Literal["blue", "orange", "green", "purple", "grey"]
HEX = {
    "blue": "#2f6fde", "orange": "#d9772b", "green": "#2f9e7c", "purple": "#8a63c9",
    "grey": "#5d6b7c",
}  # fmt: skip
INK, MUTED, _LINE = "#1b2430", "#5d6b7c", "#d5dbe3"
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
STYLE: Any = {
    "svg.fonttype": "none", "font.size": 11, "font.family": "sans-serif",
    "axes.edgecolor": _LINE, "axes.labelcolor": MUTED, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "text.color": INK, "xtick.color": _LINE, "ytick.color": _LINE,
    "xtick.labelcolor": MUTED, "ytick.labelcolor": MUTED, "ytick.major.size": 0,
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


def begin(width: float, height: float, words: Words) -> tuple[Figure, Any]:
    """A figure with its words and one pair of axes."""
    figure, (axes,) = begin_rows(width, height, words, 1)
    axes.set_ylabel(words.y)
    return figure, axes


def begin_rows(
    width: float, height: float, words: Words, rows: int
) -> tuple[Figure, list[Any]]:  # fmt: skip
    """A figure with its words and axes one above the other, which share the x axis."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
    figure.patch.set_facecolor("white")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    # Constrained layout gives a super title its own room; the note is small and stands below it.
    figure.suptitle(words.title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    axes[0].set_title(words.note, loc="left", fontsize=9.5, color=MUTED)
    axes[-1].set_xlabel(words.x)
    return figure, list(axes)


def write(figure: Figure, path: Path) -> Path:
    """The same figure gives the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas: Any = FigureCanvasSVG(figure)
    # Without a date and with fixed ids the same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": path.stem}), open(path, "w", encoding="utf-8") as f:
        canvas.print_svg(f, metadata={"Date": None})
    return path


def short(value: float) -> str:
    """A number for an axis.

    >>> short(250.0), short(2.5e6), short(0.0)
    ('250', '2.5 M', '0')
    """
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.4g} {prefix}"
    return f"{value:.4g}"


def exact(value: float) -> str:
    """A number beside its bar.

    >>> exact(0.0123), exact(1327.4)
    ('0.0123', '1,327')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
