"""How busy slots were over time and how evenly, for runs that changed their plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from geoflux.chronicle.epoch_series import EpochSeries, Masked
from geoflux.cli.plots import (
    CUT_FROM,
    WIDTH,
    epoch_axis,
    heat_strip,
    seconds_upwards,
    slot_colour,
)
from geoflux.cli.svg import COLOUR, as_svg, new_axes, new_figure

_MOST_LINES = 8


def load_over_time(series: EpochSeries, slots: int, changes: Sequence[int]) -> str:
    """Busy seconds of each slot in an epoch: lines (medians over a few epochs, since single ones
    differ much), or a strip where they would be too many."""
    figure = new_figure(WIDTH, 240)
    axes = new_axes(figure)
    per_epoch = series.busy_per_epoch(slots)
    if as_lines(slots):
        calm = _running_medians(per_epoch, smoothed_over(series))
        for slot in range(slots):
            axes.stairs(calm[slot].filled(np.nan), series.numbers, color=slot_colour(slot),
                        lw=1.4, baseline=None)  # fmt: skip
        seconds_upwards(axes, shown_busy_seconds(series, slots))
        epoch_axis(axes, series)
    else:
        known = per_epoch.compressed()
        top = float(np.percentile(known, 99)) if known.size else 0.0  # one outlier hides nothing
        heat_strip(axes, series, per_epoch, top)
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    _mark_changes(axes, changes)
    return as_svg(figure, "Busy seconds of each slot in each epoch")


def balance(series: EpochSeries, slots: int, changes: Sequence[int]) -> str:
    """Busiest slot over the mean: each epoch, and over a few of them."""
    figure = new_figure(WIDTH, 240)
    axes = new_axes(figure)
    each = series.busiest_over_mean(slots)
    span = smoothed_over(series)
    style: dict[str, Any] = {"baseline": None}
    if span > 1:
        smooth = series.busiest_over_mean(slots, span)
        axes.stairs(each.filled(np.nan), series.numbers, color=COLOUR["accent2"], lw=0.9,
                    alpha=0.7, **style)  # fmt: skip
        axes.stairs(smooth.filled(np.nan), series.numbers, color=COLOUR["accent"], lw=2, **style)
    else:
        axes.stairs(each.filled(np.nan), series.numbers, color=COLOUR["accent"], lw=1.6, **style)
    worst = float(each.max()) if each.count() else 1.0
    axes.set_ylim(0.98, max(1.0 + (worst - 1.0) * 1.12, 1.25))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value, 3):g}"))
    epoch_axis(axes, series)
    _mark_changes(axes, changes)
    return as_svg(figure, "Busiest slot over the mean in each epoch")


def as_lines(slots: int) -> bool:
    """Whether :func:`load_over_time` draws lines: so few slots can be told apart."""
    return slots <= _MOST_LINES


def smoothed_over(series: EpochSeries) -> int:
    """Points over which lines are smoothed; 1: not at all."""
    return max(len(series) // 25, 3) if len(series) >= 16 else 1


def shown_busy_seconds(series: EpochSeries, slots: int) -> float:
    """How far :func:`load_over_time` reaches: a slow first epoch must not hide all others."""
    busiest = series.busy_per_epoch(slots).max(axis=0).compressed()
    if busiest.size == 0:
        return 0.0
    usual = float(np.median(busiest))
    return 3 * usual if float(busiest.max()) > CUT_FROM * usual > 0 else float(busiest.max())


def _running_medians(table: Masked, span: int) -> Masked:
    """Of each row the median over ``span`` points up to each; masked where there is none."""
    padded = np.hstack((np.full((table.shape[0], span - 1), np.nan), table.filled(np.nan)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, span, axis=1)
    masked: Any = np.ma  # not typed
    return masked.median(masked.masked_invalid(windows), axis=2)


def _mark_changes(axes: Any, changes: Sequence[int]) -> None:
    """A tick above the plot where an epoch began under a changed plan."""
    axes.plot(
        list(changes), [1.02] * len(changes), ls="none", marker="|", ms=7, mew=1.1,
        color=COLOUR["warm"], transform=axes.get_xaxis_transform(), clip_on=False,
    )  # fmt: skip
