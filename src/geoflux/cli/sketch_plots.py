"""Pictures of what a sketch knows: the climate of a place, and a feature on a map.

Values in, figures out; who asks the sketch is elsewhere. A figure is drawn either in the colours of
a page, which follow it, or in plain ones for a picture that stands alone.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.dates
import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from geoflux.cli.coast import coastlines
from geoflux.cli.report_style import LIGHT
from geoflux.cli.svg import COLOUR, new_axes, new_figure, style_of
from geoflux.errors import ConfigError
from geoflux.workload.cities import cities

Floats = npt.NDArray[np.float64]
PLAIN = {name: LIGHT[name] for name in COLOUR}
"""The colours of a picture outside of any page."""
_LEVELS = 12
_MAP = "viridis"
_DENSE = 0.5
"""Of the cells that must have a value, for contours."""


@dataclass(frozen=True)
class Climate:
    """Of every stretch of time its highest, lowest and mean value of one feature, and the mean of a
    second one; not a number where nothing was observed."""

    starts: npt.NDArray[np.datetime64]
    high: Floats
    mean: Floats
    low: Floats
    second: Floats | None
    names: tuple[str, str]


@dataclass(frozen=True)
class Field:
    """A feature on a map: edges of cells in degrees, and a value for every cell (row: latitude);
    not a number where nothing was observed. ``lines`` is a second one, between -1 and 1."""

    west_to_east: Floats
    south_to_north: Floats
    values: Floats
    name: str
    lines: Field | None = None

    @property
    def middles(self) -> tuple[Floats, Floats]:
        """Of the cells, from west to east and from south to north."""
        both = (self.west_to_east, self.south_to_north)
        west, south = (0.5 * (edges[1:] + edges[:-1]) for edges in both)
        return west, south


def climate(data: Climate, title: str, colour: Mapping[str, str] = COLOUR) -> Figure:
    """High, low and mean as lines, the second feature as bars below."""
    figure = new_figure(760, 400 if data.second is not None else 300, colour)
    rows = figure.add_gridspec(2, 1, height_ratios=(2.2, 1)) if data.second is not None else None
    axes = new_axes(figure, None if rows is None else rows[0], colour)
    axes.fill_between(data.starts, data.low, data.high, color=colour["accent"], alpha=0.12, lw=0)
    for values, shade, word in (
        (data.high, "warm", "high"), (data.mean, "ink", "mean"), (data.low, "accent", "low"),
    ):  # fmt: skip
        axes.plot(data.starts, values, color=colour[shade], lw=1.8, label=word, marker=".", ms=3)
    axes.set_ylabel(data.names[0])
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", pad=12)
    legend = axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, fontsize=10
    )
    for text in legend.get_texts():
        text.set_color(colour["muted"])
    below = axes
    if rows is not None and data.second is not None:
        below = new_axes(figure, rows[1], colour)
        below.bar(data.starts, data.second, width=_bar_days(data.starts), color=colour["leaf"])
        below.set_ylabel(data.names[1])
        below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        axes.set_xlim(below.get_xlim())
        axes.tick_params(axis="x", labelbottom=False)
    dates: Any = matplotlib.dates  # untyped
    locator = dates.AutoDateLocator(minticks=3, maxticks=10)
    below.xaxis.set_major_locator(locator)
    below.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    return figure


def _bar_days(starts: npt.NDArray[np.datetime64]) -> float:
    if len(starts) < 2:
        return 0.8
    return 0.8 * float(np.diff(starts).min() / np.timedelta64(1, "D"))


def field_map(data: Field, title: str, colour: Mapping[str, str] = COLOUR) -> Figure:
    """Filled contours of the feature, lines of the second one, coasts and populated places."""
    if not np.isfinite(data.values).any():
        raise ConfigError(f"nothing was observed of {data.name} there; ask for another time or box")
    wide = data.west_to_east[-1] - data.west_to_east[0]
    high = data.south_to_north[-1] - data.south_to_north[0]
    width = 820.0
    figure = new_figure(width, min(max((width - 120) * high / wide, 220), 760) + 60, colour)
    axes = new_axes(figure, None, colour)
    axes.grid(visible=False)
    axes.set_facecolor(colour["map"])
    lon, lat = data.middles
    values = np.ma.masked_invalid(data.values)
    dense = np.isfinite(data.values).mean() >= _DENSE  # contours need neighbours
    if dense and min(values.shape) >= 2 and float(values.max()) > float(values.min()):
        drawn = axes.contourf(lon, lat, values, _LEVELS, cmap=_MAP, alpha=0.9)
        ends = lon[0], lon[-1], lat[0], lat[-1]  # contours go from middle to middle
    else:
        ends = (*data.west_to_east[[0, -1]], *data.south_to_north[[0, -1]])
        drawn = axes.pcolormesh(
            data.west_to_east, data.south_to_north, values, cmap=_MAP, alpha=0.9
        )
    bar = figure.colorbar(drawn, ax=axes, shrink=0.9, pad=0.02)
    bar.set_label(data.name, color=colour["muted"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelcolor=colour["muted"], color=colour["line"])
    if data.lines is not None and np.isfinite(data.lines.values).any():
        _lines(axes, data.lines, colour)
    _places(axes, data, colour)
    coast = LineCollection(coastlines(), colors=colour["ink"], linewidths=0.7, alpha=0.6)
    axes.add_collection(coast, autolim=False)
    axes.set_xlim(ends[0], ends[1])
    axes.set_ylim(ends[2], ends[3])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(9))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}°"))
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", pad=12)
    return figure


def _lines(axes: Any, data: Field, colour: Mapping[str, str]) -> None:
    axes.set_xlabel(f"lines: {data.name}", fontsize=10)
    if min(data.values.shape) < 2:
        return
    lines = np.ma.masked_invalid(data.values)
    drawn = axes.contour(
        *data.middles, lines, levels=(-0.8, -0.5, 0.5, 0.8), colors=colour["ink"], linewidths=1.0
    )
    axes.clabel(drawn, fontsize=8, fmt="%.1f")


def _places(axes: Any, data: Field, colour: Mapping[str, str]) -> None:
    west, east = float(data.west_to_east[0]), float(data.west_to_east[-1])
    south, north = float(data.south_to_north[0]), float(data.south_to_north[-1])
    try:
        found = cities("world", (west, south, east, north))
    except ConfigError:  # no place in these bounds
        return
    most = np.argsort(-found.population)[:700]
    axes.scatter(
        found.lon[most], found.lat[most], s=1.2 + found.population[most] / 2.5e6, lw=0,
        color=colour["ink"], alpha=0.45,
    )  # fmt: skip


def as_png(figure: Figure, pixels_per_point: float = 2.0) -> bytes:
    """The figure as a PNG file; it must be drawn in plain colours."""
    buffer = io.BytesIO()
    figure.patch.set_facecolor("white")
    canvas: Any = FigureCanvasAgg(figure)
    with matplotlib.rc_context(style_of(PLAIN)):
        canvas.print_figure(buffer, dpi=72 * pixels_per_point, format="png")
    return buffer.getvalue()
