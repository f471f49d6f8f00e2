"""Where an operator's states were over time, and how many rows waited, as SVG for the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from geoflux.chronicle.epoch_series import EpochSeries, Floats
from geoflux.chronicle.wording import short, size
from geoflux.cli.plots import WIDTH, epoch_axis
from geoflux.cli.svg import COLOUR, as_svg, new_axes, new_figure


def states(series: EpochSeries) -> str:
    """Bytes of states in memory and on disk, stacked."""
    total, spilled = _means(series, "state_bytes"), _means(series, "spilled_bytes")
    figure = _stacked(series, (total - spilled, total), ("accent", "warm"), size)
    return as_svg(figure, "Bytes of states in memory and on disk, in each epoch")


def waiting(series: EpochSeries) -> str:
    """Rows that were handed to the next epoch: for time, and for states on disk, stacked."""
    total, spooled = _means(series, "carried_rows"), _means(series, "spooled_rows")
    figure = _stacked(series, (spooled, total), ("warm", "accent2"), short)
    return as_svg(figure, "Rows that waited for the next epoch")


def _means(series: EpochSeries, name: str) -> Floats:
    """Of all slots together, at the end of an epoch."""
    groups = [np.mean([sum(s[name] for s in m["slots"]) for m in group]) for group in series.groups]
    return np.array(groups, dtype=np.float64)


def _stacked(
    series: EpochSeries, tops: tuple[Floats, Floats], colours: tuple[str, str], told: Any
) -> Any:
    """Two amounts over the epochs, one upon the other, by where each ends."""
    figure = new_figure(WIDTH, 240)
    axes = new_axes(figure)
    for top, baseline, colour in zip(tops, (0, tops[0]), colours, strict=True):
        axes.stairs(
            top, series.numbers, baseline=baseline, color=COLOUR[colour], fill=True, lw=0
        )  # fmt: skip
    axes.set_ylim(0, max(float(tops[1].max(initial=0)), 1.0) * 1.12)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: told(value)))
    epoch_axis(axes, series)
    return figure
