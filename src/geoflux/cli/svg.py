"""Figures as inline SVG that follows the page: its colours, light or dark, and its font.

Figures are drawn in placeholder colours; in the SVG each becomes the CSS variable of its name.
Nothing in the SVG points outside the page.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_NAMES = ("ink", "muted", "line", "map", "accent", "accent2", "warm", "leaf", "plum", "stone")
COLOUR = {name: f"#0102{number + 16:02x}" for number, name in enumerate(_NAMES)}
"""Placeholder of each CSS variable (``--ink`` and so on)."""

_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_FONT = re.compile(r"font: ((?:\w+ )?)([\d.]+)px [^;\"]*")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_MARKUP = re.compile(r"<[^>]*>")
_ID = re.compile(r' id="([^"]*)"')
_TIP = re.compile(r'<g id="tip-(\d+)">')


def style_of(colour: Mapping[str, str]) -> Any:
    """Settings of matplotlib for the house style, in some colours."""
    return {
        "svg.fonttype": "none",
        "svg.image_inline": True,
        "font.size": 11,
        "axes.edgecolor": colour["line"],
        "axes.linewidth": 1,
        "figure.constrained_layout.w_pad": 0.03,
        "figure.constrained_layout.h_pad": 0.03,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.labelcolor": colour["muted"],
        "axes.axisbelow": True,
        "text.color": colour["ink"],
        "xtick.color": colour["line"],
        "ytick.color": colour["line"],
        "xtick.labelcolor": colour["muted"],
        "ytick.labelcolor": colour["muted"],
        "ytick.major.size": 0,
        "grid.color": colour["line"],
        "grid.linewidth": 0.8,
    }


def new_figure(width: float, height: float, colour: Mapping[str, str] = COLOUR) -> Figure:
    """An empty figure of so many CSS pixels, without a background."""
    with matplotlib.rc_context(style_of(colour)):
        return Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")


def new_axes(figure: Figure, place: Any = None, colour: Mapping[str, str] = COLOUR) -> Any:
    """Axes in the house style: no frame, faint horizontal lines."""
    with matplotlib.rc_context(style_of(colour)):
        axes = figure.add_subplot(111 if place is None else place)
    axes.patch.set_visible(False)
    axes.grid(axis="y")
    return axes


def as_svg(figure: Figure, label: str, tips: Mapping[int, str] | None = None) -> str:
    """The figure as an ``<svg>`` element; ``label`` is read out to those who cannot see it.

    ``tips`` are shown when the pointer rests on an artist: ``tips[7]`` belongs to the artist whose
    gid is ``tip-7``.
    """
    buffer = io.StringIO()
    figure.patch.set_visible(False)
    # The salt makes the ids of clips and markers the same in every run, and no two figures share
    # one by chance.
    with matplotlib.rc_context({**style_of(COLOUR), "svg.hashsalt": label}):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer)
    text = buffer.getvalue()
    text = _METADATA.sub("", text[text.index("<svg") :])
    text = _slim(text)
    for name, placeholder in COLOUR.items():
        text = text.replace(placeholder, f"var(--{name})")
    known = tips or {}
    text = _TIP.sub(
        lambda found: f"<g><title>{html.escape(known.get(int(found[1]), ''))}</title>", text
    )
    box = re.search(r'viewBox="([^"]*)"', text)
    body = text[text.index(">") + 1 :]
    opening = f'<svg viewBox="{box[1] if box else "0 0 1 1"}" role="img"'
    return f'{opening} aria-label="{html.escape(label)}">{body}'


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _slim(text: str) -> str:
    """Less text for the same picture: two decimals, the page's font, no ids that nobody uses."""
    images: list[str] = []

    def aside(found: re.Match[str]) -> str:
        images.append(found[0])
        return f"@image{len(images) - 1}@"

    text = re.sub(r"data:image/png;base64,[^\"]*", aside, text)
    text = _MARKUP.sub(lambda tag: _LONG_NUMBER.sub(_shorter, tag[0]), text)  # not what is read
    text = _FONT.sub(lambda found: f"font: {found[1]}{found[2]}px var(--sans)", text)
    used = set(re.findall(r"#([\w-]+)", text))
    text = _ID.sub(lambda found: found[0] if found[1] in used or "tip-" in found[1] else "", text)
    text = re.sub(r"<!--.*?-->\n?", "", text)
    text = re.sub(r"\n\s*", "\n", text)
    for number, image in enumerate(images):
        text = text.replace(f"@image{number}@", "".join(image.split()))
    return text
