"""The plan in the report: one map, or a strip of maps where the run changed its plan."""

from __future__ import annotations

from html import escape

from geoflux.chronicle.decision_words import told_changes
from geoflux.chronicle.epoch_series import Manifest, partition_checks
from geoflux.chronicle.plan_history import Layout, layouts, plan_of, spread
from geoflux.chronicle.wording import count, duration, plural
from geoflux.cli.map import Costs, Frame, plan_map
from geoflux.cli.report_cards import card, lead
from geoflux.config import Config
from geoflux.plan import GridPlan, ReplicatedPlan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

MOST_MAPS = 6
_WIDTHS = {1: 1070.0, 2: 525.0, 4: 525.0}
_THIRD_WIDTH = 345.0


def plan_card(config: Config, store: Store, manifests: list[Manifest]) -> str:
    """The plan on the map; before, during and after, if the run changed it."""
    found = layouts(manifests) or [Layout(1, 0, ())]
    drawn = [(layout, plan_of(store, layout.version)) for layout in spread(found, MOST_MAPS)]
    grids = [(layout, plan) for layout, plan in drawn if isinstance(plan, GridPlan)]
    if grids and len(found) > 1:
        return card("The plan on the map", _strip(config, grids, found, manifests), wide=True)
    if grids:
        return card("The plan on the map", _one_map(config, grids[0][1], manifests), wide=True)
    plan = drawn[-1][1]
    if plan is None:
        return card("The plan", lead("There is no plan yet."), wide=True)
    text = (
        f"Replicated over {plural(plan.slots, 'slot')}: each holds every query for the "
        "whole space, and events go to them in turn. There are no parts to draw."
    )
    return card("The plan", lead(text), wide=True)


def _one_map(config: Config, plan: GridPlan, manifests: list[Manifest]) -> str:
    frame = _frame(config, plan, _WIDTHS[1])
    costs = Costs.of(partition_checks(manifests))
    caption = (
        f"{_parts(plan)}. Partitions in the colour of their slot, the stronger the more was "
        "checked there" + _remarks(frame)
    )
    drawing = plan_map(plan, frame, costs, f"Plan {plan.version}")
    return lead(caption) + _maps(frame, [f"<div>{drawing}</div>"])


def _strip(
    config: Config, grids: list[tuple[Layout, GridPlan]], found: list[Layout],
    manifests: list[Manifest],
) -> str:  # fmt: skip
    frame = _frame(config, grids[0][1], _WIDTHS.get(len(grids), _THIRD_WIDTH))
    checks = [_checks(layout, found) for layout, _ in grids]
    top = max((value for each in checks for value in each.values()), default=0.0)
    figures = []
    for place, (layout, plan) in enumerate(grids):
        title = f"Plan {plan.version}"
        if layout is found[0]:
            title += " at the start"
        elif layout is found[-1]:
            title += " at the end"
        drawing = plan_map(plan, frame, Costs(checks[place], top), title)
        about = escape(_about(layout, plan, manifests), quote=False)
        figures.append(f'<div><h3>{title}</h3><p class="caption">{about}</p>{drawing}</div>')
    caption = "Partitions in the colour of their slot, the stronger the more an epoch checked there"
    caption += _remarks(frame)
    changes = plural(len(found) - 1, "time")
    caption = f"The plan was changed {'once' if changes == '1 time' else changes}. {caption}"
    if len(grids) < len(found):
        caption += f" {len(grids)} of {len(found)} plans are shown."
    return lead(caption) + _maps(frame, figures)


def _checks(layout: Layout, found: list[Layout]) -> dict[int, float]:
    """What an epoch checks under a plan. A plan that was decided on last has no epoch of its own;
    those of its parts that are older have a past."""
    if layout.epochs:
        return layout.checks_per_epoch()
    return found[-2].checks_per_epoch() if len(found) > 1 else {}


def _about(layout: Layout, plan: GridPlan, manifests: list[Manifest]) -> str:
    """Since when, how many partitions, how evenly."""
    words = [f"from epoch {count(layout.first_epoch)}"]
    if not layout.epochs:
        words[0] += ", which has not run yet"
    elif layout.epochs[0] is not manifests[0]:
        words[0] += (
            f", {duration(layout.epochs[0]['opened'] - manifests[0]['opened'])} into the run"
        )
    words.append(plural(len(plan.partitions), "partition"))
    if layout.changes:
        words.append(told_changes(layout.changes))
    ratio = layout.busiest_over_mean(plan.slots)
    if ratio is not None:
        words.append(f"busiest slot {ratio:.2f} times the mean")
    return " · ".join(words)


def _frame(config: Config, plan: GridPlan, width: float) -> Frame:
    return Frame.fitted(Grid(Space.of(config.space), plan.columns, plan.rows), width)


def _parts(plan: GridPlan | ReplicatedPlan) -> str:
    return f"{plural(len(plan.partitions), 'partition')} on {plural(plan.slots, 'slot')}"


def _remarks(frame: Frame) -> str:
    words = "; dots are populated places." if frame.grid.space.is_lonlat else "."
    return words if frame.is_to_scale else words + " Not to scale: the space is very long."


def _maps(frame: Frame, figures: list[str]) -> str:
    width = f"--width:{frame.outer[0]:.0f}px"
    columns = "pair" if len(figures) in _WIDTHS else "strip"
    return f'<div class="map {columns}" style="{width}">{"".join(figures)}</div>'
