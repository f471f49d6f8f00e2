"""The plots of a run over time and over slots, as SVG for the report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator, NullFormatter

from geoflux.chronicle.epoch_series import EpochSeries, Floats, Masked
from geoflux.chronicle.wording import duration, short
from geoflux.cli.svg import COLOUR, as_svg, new_axes, new_figure

WIDTH = 520
STAGE_COLOUR = {
    "open": "plum", "route": "leaf", "execute": "accent", "rest": "stone", "commit": "warm",
}  # fmt: skip
_HEAT = "#5b8def"
_HUES = (
    "#5083b8", "#e08e45", "#5aa469", "#cf6679", "#49a6a6", "#9b7cc1", "#d4b13f", "#a47b62",
    "#7480d4", "#d17fb0", "#7ea04d", "#8593a3",
)  # fmt: skip
_UNITS = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))
_LOG_FROM = 10.0
CUT_FROM = 6.0
_MOST_BARS = 300


def slot_colour(slot: int) -> str:
    """The colour of a slot, on maps and bars alike: neighbours in number differ most."""
    base = to_rgb(_HUES[slot % len(_HUES)])
    # Further rounds are the same hues, darker and lighter: legible on any background still.
    target, weight = ((0.5, 0.0), (0.15, 0.35), (0.95, 0.35))[slot // len(_HUES) % 3]
    red, green, blue = (part + (target - part) * weight for part in base)
    return to_hex((red, green, blue))


def throughput(series: EpochSeries, mean: float) -> str:
    """Events per second of each epoch, as steps, and the mean of the run."""
    figure = new_figure(WIDTH, 210)
    axes = new_axes(figure)
    rate = _ratio(series.processed, series.at_work_seconds)
    axes.stairs(rate, series.edges, fill=True, color=COLOUR["accent"], alpha=0.14, lw=0)
    axes.stairs(rate, series.edges, color=COLOUR["accent"], lw=1.6, baseline=None)
    if paced(series):
        overall = _ratio(series.processed, np.diff(series.edges))
        axes.stairs(overall, series.edges, color=COLOUR["warm"], lw=1.4, baseline=None)
    axes.axhline(mean, color=COLOUR["muted"], lw=1, ls=(0, (4, 3)))
    axes.set_ylim(0, max(float(rate.max(initial=0)), mean, 1e-9) * 1.12)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    _time_axis(axes, series)
    return as_svg(figure, "Events per second over time")


def paced(series: EpochSeries) -> bool:
    """Whether epochs waited for events, so that work and wall time differ."""
    return float(np.diff(series.edges).sum()) > 1.15 * float(series.at_work_seconds.sum())


def latency(series: EpochSeries) -> str:
    """Median and 99th percentile of each epoch."""
    figure = new_figure(WIDTH, 210)
    axes = new_axes(figure)
    p50, p99 = series.percentiles()
    style: dict[str, Any] = {"lw": 1.6, "baseline": None}
    if not is_even(series):
        axes.stairs(p99.filled(np.nan), series.edges, color=COLOUR["warm"], **style)
    axes.stairs(p50.filled(np.nan), series.edges, color=COLOUR["accent"], **style)
    worst = p99.max() if p99.count() else 1.0
    usual, least = (np.median(p50.compressed()), p50.min()) if p50.count() else (1.0, 1.0)
    if worst > _LOG_FROM * usual and least > 0:
        axes.set_yscale("log")
        axes.set_ylim(least / 1.5, worst * 1.5)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="y", which="minor", length=0)
    else:
        seconds_upwards(axes, float(worst))
    _time_axis(axes, series)
    return as_svg(figure, "Latency over time, median and 99th percentile")


def is_even(series: EpochSeries) -> bool:
    """Whether median and 99th percentile are the same all along, so that one line says it all."""
    p50, p99 = series.percentiles()
    return bool(np.ma.allclose(p50, p99, rtol=0.01))


def slot_load(series: EpochSeries, slots: int) -> str:
    """Busy seconds of each slot with their mean, and below it slot by epoch as a strip."""
    figure = new_figure(WIDTH, 308)
    rows = figure.add_gridspec(2, 1, height_ratios=(2.1, 1))
    table = series.busy(slots)
    busy = table.sum(axis=1).filled(0.0)
    bars = new_axes(figure, rows[0])
    tips = {}
    if slots <= _MOST_BARS:
        for slot, bar in enumerate(bars.bar(np.arange(slots), busy, width=0.74)):
            bar.set_facecolor(slot_colour(slot))
            bar.set_gid(f"tip-{slot}")
            tips[slot] = f"slot {slot}: busy for {duration(busy[slot])}"
    else:
        edges = np.arange(slots + 1) - 0.5
        bars.stairs(busy, edges, fill=True, color=COLOUR["accent"], alpha=0.7)
    mean = float(busy.mean())
    bars.axhline(mean, color=COLOUR["ink"], lw=1.1, ls=(0, (4, 3)))
    bars.set_xlim(-0.6, slots - 0.4)
    seconds_upwards(bars, float(busy.max()))
    bars.xaxis.set_major_locator(MaxNLocator(14, integer=True))
    bars.tick_params(axis="x", length=0)
    bars.set_xlabel("slot")
    per_epoch = series.busy_per_epoch(slots)
    top = float(per_epoch.max()) if per_epoch.count() else 0.0
    heat_strip(new_axes(figure, rows[1]), series, per_epoch, top)
    return as_svg(figure, "Busy seconds of each slot, and slot by epoch", tips)


def stages(series: EpochSeries) -> str:
    """Where the time of an epoch goes, stacked."""
    figure = new_figure(WIDTH, 290)
    axes = new_axes(figure)
    edges = series.numbers
    below = np.zeros(len(series))
    for name, seconds in series.stages().items():
        top = below + seconds
        axes.stairs(top, edges, baseline=below, fill=True, color=COLOUR[STAGE_COLOUR[name]], lw=0)
        below = top
    seconds_upwards(axes, min(float(below.max()), shown_seconds(series)))
    epoch_axis(axes, series)
    return as_svg(figure, "Where an epoch's time goes")


def shown_seconds(series: EpochSeries) -> float:
    """How far the axis of :func:`stages` reaches: a slow first epoch must not hide all others."""
    total = sum(series.stages().values(), start=np.zeros(len(series)))
    usual = float(np.median(total))
    return 3 * usual if float(total.max()) > CUT_FROM * usual > 0 else float(total.max())


def heat_strip(axes: Any, series: EpochSeries, per_epoch: Masked, top: float) -> None:
    """Slot by epoch, the stronger the more; ``top`` and beyond are strongest."""
    colour = to_rgb(_HEAT)
    heat = LinearSegmentedColormap.from_list("heat", [(*colour, 0.04), (*colour, 1.0)])
    edges = series.numbers
    extent = (edges[0], edges[-1], per_epoch.shape[0] - 0.5, -0.5)
    axes.imshow(
        per_epoch, cmap=heat, vmin=0, vmax=top or 1.0, aspect="auto", interpolation="none",
        extent=extent,
    )  # fmt: skip
    axes.grid(visible=False)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel("slot")
    epoch_axis(axes, series)


def epoch_axis(axes: Any, series: EpochSeries) -> None:
    """Epochs from left to right."""
    axes.set_xlim(series.numbers[0], series.numbers[-1])
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("epoch")


def _time_axis(axes: Any, series: EpochSeries) -> None:
    edges = series.edges
    length = max(float(edges[-1] - edges[0]), 1e-6)
    axes.set_xlim(edges[0], edges[0] + length)
    _seconds(axes.xaxis, length)
    for place, _ in series.pauses:
        axes.axvline(place, color=COLOUR["muted"], lw=1, ls=(0, (1, 2)))


def seconds_upwards(axes: Any, largest: float) -> None:
    """Seconds from bottom to top, from 0 to a little more than the largest."""
    largest = max(largest, 1e-6)
    axes.set_ylim(0, largest * 1.12)
    _seconds(axes.yaxis, largest)


def _seconds(axis: Any, largest: float) -> None:
    """Ticks at round numbers of one unit."""
    size, unit = next((u for u in reversed(_UNITS) if largest >= 2 * u[0]), _UNITS[0])
    rough = largest / size / 7
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 2.5, 5, 10) if n * power >= rough)
    axis.set_major_locator(MultipleLocator(step * size))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{round(value / size, 6):g} {unit}" if value else "0")
    )


def _ratio(amount: Floats, seconds: Floats) -> Floats:
    ratio: Floats = np.divide(amount, seconds, out=np.zeros_like(amount), where=seconds > 0)
    return ratio
