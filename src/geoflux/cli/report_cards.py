"""The cards of the report that hold a picture: a heading, what is shown, a key, the picture."""

from __future__ import annotations

from html import escape

from geoflux.cli import plots
from geoflux.cli.epoch_series import EpochSeries, Manifest, partition_checks
from geoflux.cli.map import Frame, plan_map
from geoflux.cli.wording import duration, plural, short
from geoflux.config import Config
from geoflux.engine.summary import Summary
from geoflux.plan import GridPlan, ReplicatedPlan, plan_from_dict
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

_FULL_WIDTH, _HALF_WIDTH = 1070.0, 525.0
_STAGE_WORDS = {
    "open": "open", "route": "route", "execute": "execute (busiest slot)", "rest": "rest",
    "commit": "commit",
}  # fmt: skip


def throughput_card(series: EpochSeries, summary: Summary) -> str:
    """Events per second."""
    entries = [_entry("accent", "each epoch, from its opening to its commit")]
    if plots.paced(series):
        entries.append(_entry("warm", "with the waiting between epochs"))
    entries.append(f'<li><i class="stroke"></i>mean {short(summary.events_per_second)}/s</li>')
    caption = "Events per second." + _grouping(series) + _pauses(series)
    body = _caption(caption) + _key(entries) + plots.throughput(series, summary.events_per_second)
    return card("Throughput", body)


def latency_card(series: EpochSeries, summary: Summary) -> str:
    """Latency, where there were events."""
    caption = "From an event's arrival to the commit that makes its matches count."
    if not any(m.get("arrivals") for group in series.groups for m in group):
        caption = "The source is not paced: events count as arrived when their epoch opens."
    if summary.latency_p50_seconds is None:
        return card("Latency", _caption("No events were processed, so there is no latency."))
    entries = [_entry("accent", "median"), _entry("warm", "99th percentile")]
    if plots.is_even(series):
        entries = [_entry("accent", "all events of an epoch have the same")]
    return card("Latency", _caption(caption) + _key(entries) + plots.latency(series))


def load_card(series: EpochSeries, summary: Summary) -> str:
    """How evenly the slots were loaded."""
    caption = "Busy seconds of each slot; below, slot by epoch, the stronger the busier."
    entries = ['<li><i class="stroke"></i>mean of all slots</li>']
    if summary.busiest_over_mean is not None:
        entries.append(
            f"<li>the busiest has <b>{summary.busiest_over_mean:.2f} &times;</b> the mean</li>"
        )
    body = _caption(caption) + _key(entries) + plots.slot_load(series, summary.slots)
    return card("Load per slot", body)


def stages_card(series: EpochSeries) -> str:
    """Where an epoch's time goes."""
    seconds = {name: float(values.sum()) for name, values in series.stages().items()}
    total = sum(seconds.values())
    entries = [
        _entry(plots.STAGE_COLOUR[name], f"{_STAGE_WORDS[name]} <b>{part / total:.0%}</b>")
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
    body = _caption(caption) + _key(entries) + plots.stages(series)
    return card("Where an epoch's time goes", body)


def plan_card(config: Config, store: Store, manifests: list[Manifest]) -> str:
    """The plan on the map; before and after, if the run changed it."""
    first = manifests[0]["plan"] if manifests else 1
    last = manifests[-1]["next_plan"] if manifests else 1
    plans = [_plan(store, version) for version in ([first, last] if last != first else [last])]
    known = [plan for plan in plans if plan is not None]
    if not known:
        return card("The plan", _caption("There is no plan yet."), wide=True)
    if any(isinstance(plan, ReplicatedPlan) for plan in known):
        text = (
            f"Replicated over {plural(known[-1].slots, 'slot')}: each holds every query for the "
            "whole space, and events go to them in turn. There are no parts to draw."
        )
        return card("The plan", _caption(text), wide=True)
    grids = [plan for plan in known if isinstance(plan, GridPlan)]
    return card("The plan on the map", _maps(config, grids, manifests), wide=True)


def _maps(config: Config, plans: list[GridPlan], manifests: list[Manifest]) -> str:
    grid = Grid(Space.of(config.space), plans[0].columns, plans[0].rows)
    frame = Frame.fitted(grid, _FULL_WIDTH if len(plans) == 1 else _HALF_WIDTH)
    figures = []
    for plan, when in zip(plans, ("at the start", "at the end"), strict=False):
        # A plan that was decided on last has no epoch of its own; its older parts have a past.
        own = [m for m in manifests if m["plan"] == plan.version]
        checks = partition_checks(
            own or [m for m in manifests if m["plan"] == manifests[-1]["plan"]]
        )
        label = f"Plan {plan.version} {when}" if len(plans) > 1 else f"Plan {plan.version}"
        parts = f"{plural(len(plan.partitions), 'partition')} on {plural(plan.slots, 'slot')}"
        heading = f"<h3>{label}: {parts}</h3>" if len(plans) > 1 else ""
        figures.append(f"<div>{heading}{plan_map(plan, frame, checks, label)}</div>")
    caption = "Partitions in the colour of their slot, the stronger the more was checked there"
    caption += "; dots are populated places." if grid.space.is_lonlat else "."
    if len(plans) == 1:
        caption = f"{parts}. {caption}"
    if not frame.is_to_scale:
        caption += " Not to scale: the space is very long."
    width = f"--width:{frame.width + 52:.0f}px"
    return f'{_caption(caption)}<div class="map pair" style="{width}">{"".join(figures)}</div>'


def _plan(store: Store, version: int) -> GridPlan | ReplicatedPlan | None:
    name = f"plans/{version:08d}.json"
    return plan_from_dict(store.read_json(name)) if store.exists(name) else None


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


def _caption(text: str) -> str:
    return f'<p class="caption">{escape(text, quote=False)}</p>'


def _key(entries: list[str]) -> str:
    return f'<ul class="key">{"".join(entries)}</ul>'


def _entry(colour: str, words: str) -> str:
    return f'<li><i style="background:var(--{colour})"></i>{words}</li>'
