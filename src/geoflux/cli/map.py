"""A plan on a map: who owns which part of the space, and what it costs.

Partitions have the colour of their slot, stronger where more is checked. In a space of longitudes
and latitudes the populated places lie behind them, so that one sees what is where.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from matplotlib.transforms import Affine2D

from geoflux.chronicle.wording import plural, short
from geoflux.cli.plots import slot_colour
from geoflux.cli.svg import COLOUR, as_svg, new_figure
from geoflux.errors import ConfigError
from geoflux.plan import GridPlan, Partition
from geoflux.spatial.grid import Grid
from geoflux.workload.cities import cities

_MARGIN = (44, 8, 8, 22)  # left, top, right, bottom
_BARE_MARGIN = (1, 1, 1, 1)
_BARE_BELOW = 400.0
_HEIGHTS = (120.0, 620.0)
_STEPS_OF_DEGREES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60)
_DOTS = ((0, 1.0), (300_000, 1.6), (1_500_000, 2.6), (6_000_000, 4.0))
_PIXELS_PER_DOT, _BARE_PIXELS_PER_DOT = 2.4, 4.0
_MANY_DOTS = 2500


@dataclass(frozen=True)
class Frame:
    """The rectangle of CSS pixels that the space is drawn into.

    A degree of longitude is as wide as it is in the middle of the space. ``is_to_scale`` is false
    for spaces so long and thin that they would be a line. ``margin`` is what the ticks need: left,
    top, right, bottom; narrow frames have none.
    """

    grid: Grid
    width: float
    height: float
    is_to_scale: bool
    margin: tuple[int, int, int, int] = _MARGIN

    @classmethod
    def fitted(cls, grid: Grid, width: float) -> Frame:
        """As large as the width allows, and not too high."""
        space = grid.space
        shrink = 1.0
        if space.is_lonlat:
            shrink = max(math.cos(math.radians((space.south + space.north) / 2)), 0.1)
        shape = space.height / (space.width * shrink)
        margin = _BARE_MARGIN if width < _BARE_BELOW else _MARGIN
        inner = width - margin[0] - margin[2]
        height = min(max(inner * shape, _HEIGHTS[0]), _HEIGHTS[1], inner * 1.2)
        wide = min(inner, max(height / shape, inner / 4))
        return cls(grid, wide, height, math.isclose(height / wide, shape, rel_tol=0.01), margin)

    @property
    def is_bare(self) -> bool:
        """Whether it is too narrow for ticks and for many words."""
        return self.margin == _BARE_MARGIN

    @property
    def outer(self) -> tuple[float, float]:
        """Width and height with the margin."""
        left, top, right, bottom = self.margin
        return self.width + left + right, self.height + top + bottom

    def box(self, p: Partition) -> tuple[float, float, float, float]:
        """West, south, width and height of a partition in the space's unit."""
        grid, space = self.grid, self.grid.space
        return (
            space.west + p.col0 * grid.cell_width, space.south + p.row0 * grid.cell_height,
            p.columns * grid.cell_width, p.rows * grid.cell_height,
        )  # fmt: skip


@dataclass(frozen=True)
class Costs:
    """Checks of each partition (by its id), and what counts as much: maps that are to be compared
    have the same ``top``."""

    checks: Mapping[int, float]
    top: float

    @classmethod
    def of(cls, checks: Mapping[int, float]) -> Costs:
        """With the costliest partition as the top."""
        return cls(checks, max(checks.values(), default=0.0))

    def share(self, partition: int) -> float:
        """From 0 to 1."""
        return min(self.checks.get(partition, 0.0) / self.top, 1.0) if self.top > 0 else 0.0


def plan_map(
    plan: GridPlan, frame: Frame, costs: Costs, label: str, with_ids: bool = False
) -> str:  # fmt: skip
    """The plan, shaded by cost. Where there is room for one number alone it is the slot's, or
    ``with_ids`` the partition's."""
    left, _, _, bottom = frame.margin
    size = frame.outer
    figure = new_figure(*size)
    figure.set_layout_engine("none")
    axes = figure.add_axes(
        (left / size[0], bottom / size[1], frame.width / size[0], frame.height / size[1])
    )
    space = frame.grid.space
    axes.set_xlim(space.west, space.east)
    axes.set_ylim(space.south, space.north)
    axes.set_facecolor(COLOUR["map"])
    _ticks(axes, frame)
    tips = {}
    palest = 0.24 if frame.is_bare else 0.14
    for p in plan.partitions:
        west, south, width, height = frame.box(p)
        fill = Rectangle((west, south), width, height, lw=0, fc=slot_colour(p.slot))
        share = costs.share(p.id)
        fill.set_alpha(palest + (0.7 - palest) * math.sqrt(share))
        fill.set_gid(f"tip-{p.id}")
        tips[p.id] = (
            f"partition {p.id}, slot {p.slot}: {plural(round(costs.checks.get(p.id, 0)), 'check')} "
            f"({share:.0%} of the costliest)"
        )
        axes.add_patch(fill)
    _borders(axes, plan, frame)
    if space.is_lonlat:
        _places(axes, frame)
    for p in plan.partitions:
        _label(axes, p, frame, with_ids)
    return as_svg(figure, label, tips)


def _borders(axes: Any, plan: GridPlan, frame: Frame) -> None:
    """All outlines as one path: they are many, and all alike."""
    paths = []
    for p in plan.partitions:
        west, south, width, height = frame.box(p)
        paths.append(
            Path.unit_rectangle().transformed(
                Affine2D().scale(width, height).translate(west, south)
            )
        )
    few = len(plan.partitions) <= 120 and not frame.is_bare
    lw, alpha = (0.9, 0.55) if few else (0.5, 0.4)
    axes.add_patch(PathPatch(Path.make_compound_path(*paths), fc="none", ec=COLOUR["ink"],
                             lw=lw, alpha=alpha))  # fmt: skip


def _places(axes: Any, frame: Frame) -> None:
    """Populated places as dots: lines of no length with round ends, few bytes each."""
    space = frame.grid.space
    try:
        found = cities("world", (space.west, space.south, space.east, space.north))
    except ConfigError:  # no place in these bounds
        return
    # Largest first: of those that would lie on each other the largest is kept.
    apart = _BARE_PIXELS_PER_DOT if frame.is_bare else _PIXELS_PER_DOT
    x = (found.lon - space.west) / space.width * frame.width // apart
    y = (found.lat - space.south) / space.height * frame.height // apart
    _, kept = np.unique(np.column_stack((x, y)), axis=0, return_index=True)
    lon, lat, population = found.lon[kept], found.lat[kept], found.population[kept]
    larger = 1.0 if len(kept) > _MANY_DOTS or frame.is_bare else 1.7
    limits = [limit for limit, _ in _DOTS] + [np.inf]
    for number, (limit, size) in enumerate(_DOTS):
        chosen = (population >= limit) & (population < limits[number + 1])
        points = np.repeat(np.column_stack((lon[chosen], lat[chosen])), 2, axis=0)
        if len(points) == 0:
            continue
        codes = np.tile([Path.MOVETO, Path.LINETO], len(points) // 2)
        path = Path(points, codes)
        path.should_simplify = False
        axes.add_patch(PathPatch(path, fc="none", ec=COLOUR["ink"], lw=size * larger, alpha=0.42,
                                 capstyle="round"))  # fmt: skip


def _label(axes: Any, p: Partition, frame: Frame, with_ids: bool) -> None:
    """The slot, and the partition's id below it, as far as there is room."""
    wide = p.columns / frame.grid.columns * frame.width
    high = p.rows / frame.grid.rows * frame.height
    west, south, width, height = frame.box(p)
    x, y = west + width / 2, south + height / 2
    style: dict[str, Any] = {"ha": "center", "color": COLOUR["ink"]}
    words = f"partition {p.id}"
    if wide >= max(62.0, 4 + 5.3 * len(words)) and high >= 32 and not frame.is_bare:
        gap = 2.0 / frame.height * frame.grid.space.height
        axes.text(x, y + gap, f"slot {p.slot}", va="bottom", fontsize=11, weight="bold", **style)
        axes.text(x, y - gap, words, va="top", fontsize=9, **style)
        return
    number = str(p.id if with_ids else p.slot)
    if wide >= 8 + 7 * len(number) and high >= 14:
        axes.text(x, y, number, va="center", fontsize=10, weight="bold", **style)


def _ticks(axes: Any, frame: Frame) -> None:
    axes.tick_params(length=0, labelsize=10, labelcolor=COLOUR["muted"])
    for spine in axes.spines.values():
        spine.set_edgecolor(COLOUR["line"])
    space = frame.grid.space
    if frame.is_bare:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    if not space.is_lonlat:
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        return
    for axis, low, high, signs in (
        (axes.xaxis, space.west, space.east, "WE"),
        (axes.yaxis, space.south, space.north, "SN"),
    ):
        step = next((s for s in _STEPS_OF_DEGREES if (high - low) / s <= 7), 60)
        places = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
        # Not at the very ends, where the labels of both axes would meet.
        edge = (high - low) / 50
        axis.set_major_locator(
            FixedLocator(list(places[(places > low + edge) & (places < high - edge)]))
        )
        axis.set_major_formatter(
            FuncFormatter(lambda value, _, signs=signs: _degrees(value, signs))
        )


def _degrees(value: float, signs: str) -> str:
    """A longitude or latitude as maps have it.

    >>> _degrees(-60, "WE"), _degrees(0, "SN")
    ('60°W', '0°')
    """
    size = f"{abs(round(value, 6)):g}°"
    return size if round(value, 6) == 0 else size + signs[int(value > 0)]
