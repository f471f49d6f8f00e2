"""The cards of the report that hold a picture: a heading, what is shown, a key, the picture."""

from __future__ import annotations

from html import escape
from typing import Protocol

from geoflux.chronicle.epoch_series import EpochSeries
from geoflux.chronicle.wording import duration, plural, short
from geoflux.cli import plots, plots_balance

_CHANGED = '<li><i class="tick"></i>the plan was changed</li>'
_STAGE_WORDS = {
    "open": "open", "route": "route", "execute": "execute (busiest slot)", "rest": "rest",
    "commit": "commit",
}  # fmt: skip


class Balance(Protocol):
    """How evenly the slots of a run were loaded, as every summary has it."""

    @property
    def slots(self) -> int:
        """How many there are."""
        ...

    @property
    def busiest_over_mean(self) -> float | None:
        """``None`` where nobody was busy."""
        ...


def throughput_card(series: EpochSeries, mean: float, noun: str = "Events") -> str:
    """Events per second, and their mean."""
    entries = [entry("accent", "each epoch, from its opening to its commit")]
    if plots.paced(series):
        entries.append(entry("warm", "with the waiting between epochs"))
    entries.append(f'<li><i class="stroke"></i>mean {short(mean)}/s</li>')
    caption = f"{noun} per second." + _grouping(series) + _pauses(series)
    body = lead(caption) + key(entries) + plots.throughput(series, mean)
    return card("Throughput", body)


def latency_card(series: EpochSeries, counts: str = "matches") -> str:
    """Latency, where there were events; ``counts`` is what a commit makes count."""
    caption = f"From an event's arrival to the commit that makes its {counts} count."
    if not any(m.get("arrivals") for group in series.groups for m in group):
        caption = "The source is not paced: events count as arrived when their epoch opens."
    if not series.processed.any():
        return card("Latency", lead("No events were processed, so there is no latency."))
    entries = [entry("accent", "median"), entry("warm", "99th percentile")]
    if plots.is_even(series):
        entries = [entry("accent", "all events of an epoch have the same")]
    return card("Latency", lead(caption) + key(entries) + plots.latency(series))


def load_card(series: EpochSeries, summary: Balance) -> str:
    """How evenly the slots were loaded."""
    caption = "Busy seconds of each slot; below, slot by epoch, the stronger the busier."
    entries = ['<li><i class="stroke"></i>mean of all slots</li>']
    if summary.busiest_over_mean is not None:
        entries.append(
            f"<li>the busiest has <b>{summary.busiest_over_mean:.2f} &times;</b> the mean</li>"
        )
    body = lead(caption) + key(entries) + plots.slot_load(series, summary.slots)
    return card("Load per slot", body)


def load_over_time_card(series: EpochSeries, summary: Balance, changes: list[int]) -> str:
    """How busy each slot was, epoch by epoch."""
    caption = "Busy time of each slot in an epoch."
    span = plots_balance.smoothed_over(series)
    if plots_balance.as_lines(summary.slots):
        entries = [
            f'<li><i style="background:{plots.slot_colour(slot)}"></i>{slot}</li>'
            for slot in range(summary.slots)
        ]
        if span > 1:
            caption += f" Medians over {plural(span * series.epochs_per_point, 'epoch')}."
        longest = float(series.busy_per_epoch(summary.slots).max())
        if longest > 1.12 * plots_balance.shown_busy_seconds(series, summary.slots):
            caption += f" Cut off: the longest was {duration(longest)}."
    else:
        caption += " Slot by epoch, the stronger the busier."
        entries = []
    entries.append(_CHANGED)
    body = (
        lead(caption) + key(entries) + plots_balance.load_over_time(series, summary.slots, changes)
    )
    return card("Load over time", body)


def balance_card(series: EpochSeries, summary: Balance, changes: list[int]) -> str:
    """How even that was."""
    caption = "Busy time of the busiest slot over the mean of all: 1 is perfectly even."
    entries = [entry("accent", "each epoch")]
    span = plots_balance.smoothed_over(series)
    if span > 1:
        epochs = plural(span * series.epochs_per_point, "epoch")
        entries = [entry("accent", f"over {epochs}"), entry("accent2", "each epoch")]
    entries.append(_CHANGED)
    body = lead(caption) + key(entries) + plots_balance.balance(series, summary.slots, changes)
    return card("Balance over time", body)


def stages_card(series: EpochSeries) -> str:
    """Where an epoch's time goes."""
    seconds = {name: float(values.sum()) for name, values in series.stages().items()}
    total = sum(seconds.values())
    entries = [
        entry(plots.STAGE_COLOUR[name], f"{_STAGE_WORDS[name]} <b>{part / total:.0%}</b>")
        for name, part in seconds.items()
        if total > 0
    ]
    rest = "The rest is scheduling, exchange, and slots waiting for a core."
    if "open" not in seconds:
        rest = "Opening, commit and waiting were not timed here: they are in the rest."
    caption = "From an epoch's opening to its commit. " + rest
    slowest = max(max(m["committed"] - m["opened"] for m in group) for group in series.groups)
    if slowest > 1.12 * plots.shown_seconds(series):
        caption += f" Cut off at the top: the slowest took {duration(slowest)}."
    body = lead(caption) + key(entries) + plots.stages(series)
    return card("Where an epoch's time goes", body)


def _grouping(series: EpochSeries) -> str:
    size = series.epochs_per_point
    return f" Each step stands for {size} epochs." if size > 1 else ""


def _pauses(series: EpochSeries) -> str:
    if not series.pauses:
        return ""
    longest = max(seconds for _, seconds in series.pauses)
    times = "once" if len(series.pauses) == 1 else f"{len(series.pauses)} times"
    return (
        f" The run paused {times}, at most for {duration(longest)}; pauses are left out (dotted)."
    )


def card(title: str, body: str, wide: bool = False) -> str:
    """One card of the page; ``title`` and ``body`` are HTML."""
    kind = "card wide" if wide else "card"
    return f'<section class="{kind}"><h2>{title}</h2>{body}</section>\n'


def lead(text: str) -> str:
    """What is shown, in a sentence or two of plain text."""
    return f'<p class="caption">{escape(text, quote=False)}</p>'


def key(entries: list[str]) -> str:
    """What the colours of a picture mean."""
    return f'<ul class="key">{"".join(entries)}</ul>'


def entry(colour: str, words: str) -> str:
    """One of them; ``words`` is HTML."""
    return f'<li><i style="background:var(--{colour})"></i>{words}</li>'
