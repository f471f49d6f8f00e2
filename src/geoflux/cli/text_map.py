"""A plan as characters for the terminal: each partition in the colour of its slot.

A cell's left border is a thin block and its lower one an underline, so that borders cost no room.
Without colours every character is the slot's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgb
from rich.style import Style
from rich.text import Text

from geoflux.cli.map import Costs, Frame
from geoflux.cli.plots import slot_colour
from geoflux.plan import GridPlan

_SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DARK = (0.08, 0.10, 0.13)
_BORDER = "▏"
_WIDTHS = (20, 110)
_HEIGHTS = (6, 34)
_HEIGHT_OF_CHARACTER = 2.0  # in widths


@dataclass(frozen=True)
class _Raster:
    """The place of the partition at the middle of each character, north at the top."""

    plan: GridPlan
    places: np.ndarray[tuple[int, ...], np.dtype[np.int32]]

    @classmethod
    def of(cls, plan: GridPlan, size: tuple[int, int]) -> _Raster:
        width, height = size
        columns = ((np.arange(width) + 0.5) / width * plan.columns).astype(int)
        rows = ((np.arange(height)[::-1] + 0.5) / height * plan.rows).astype(int)
        raster = plan.raster.reshape(plan.rows, plan.columns)
        return cls(plan, raster[np.ix_(rows, columns)])

    def labels(self) -> dict[tuple[int, int], str]:
        """Characters of the ids that fit, by row and column."""
        found: dict[tuple[int, int], str] = {}
        for place, p in enumerate(self.plan.partitions):
            rows, columns = np.nonzero(self.places == place)
            if rows.size == 0:
                continue
            row = (int(rows.min()) + int(rows.max())) // 2
            wide, text = int(np.ptp(columns)) + 1, str(p.id)
            if wide >= len(text) + 1:  # the first column is the border's
                start = int(columns.min()) + max((wide - len(text) + 1) // 2, 1)
                found |= {(row, start + i): character for i, character in enumerate(text)}
        return found


def text_map(plan: GridPlan, frame: Frame, costs: Costs, width: int, colours: bool) -> Text:
    """The plan as lines of text, at most so many characters wide."""
    raster = _Raster.of(plan, _size(frame, width))
    if not colours:
        rows = ["".join(symbol(plan.partitions[p].slot) for p in row) for row in raster.places]
        return Text("\n".join(rows))
    return _coloured(raster, costs)


def _size(frame: Frame, width: int) -> tuple[int, int]:
    """Characters across and down, in the proportions of the frame."""
    shape = frame.height / frame.width / _HEIGHT_OF_CHARACTER
    across = min(max(width, _WIDTHS[0]), _WIDTHS[1])
    down = min(max(round(across * shape), _HEIGHTS[0]), _HEIGHTS[1])
    return max(min(across, round(down / shape)), _WIDTHS[0]), down


def _coloured(raster: _Raster, costs: Costs) -> Text:
    styles = [_styles(p.slot, costs.share(p.id)) for p in raster.plan.partitions]
    labels, places = raster.labels(), raster.places
    height, width = places.shape
    text = Text()
    for y in range(height):
        for x in range(width):
            place = places[y, x]
            begins = x > 0 and places[y, x - 1] != place
            ends = y + 1 < height and places[y + 1, x] != place
            character = labels.get((y, x)) or (_BORDER if begins else " ")
            text.append(character, styles[place][int(ends)])
        text.append("\n" if y + 1 < height else "")
    return text


def _styles(slot: int, share: float) -> tuple[Style, Style]:
    """Ink on the slot's colour, darker where less was checked; and the same with a border below."""
    strength = 0.35 + 0.65 * math.sqrt(share)
    mixed = [d + (c - d) * strength for c, d in zip(to_rgb(slot_colour(slot)), _DARK, strict=True)]
    light = 0.3 * mixed[0] + 0.59 * mixed[1] + 0.11 * mixed[2]
    paper = f"rgb({','.join(str(round(255 * part)) for part in mixed)})"
    ink = "#0d1117" if light > 0.45 else "#e6edf3"
    plain = Style.parse(f"{ink} on {paper}")
    return plain, plain + Style(underline=True)


def symbol(slot: int) -> str:
    """One character for a slot; there are as many as digits and letters.

    >>> symbol(3), symbol(10), symbol(99)
    ('3', 'a', '+')
    """
    return _SYMBOLS[slot] if slot < len(_SYMBOLS) else "+"
