"""Which rows of a view a scope covers: wholly, in part with a share, or not at all.

A scope is planned once for all forests; covering a view is then a few compiled loops. ``Items``
are the covered rows, each with the share that is expected to match and the fewest and most of its
observations that can match: none to all where place or time cut through it, and what its mean,
low and high allow where a range of a feature does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.errors import QueryError
from geoflux.sketch.items import Items
from geoflux.sketch.range_cover import Ranges, ranges_of, refined
from geoflux.sketch.ranges import both, both_times
from geoflux.sketch.region_cover import Cells, CellShares, Shapes, region_shares, shapes_of
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.scope import Condition, Scope
from geoflux.sketch.time_cover import (
    MAX_UNITS,
    covered_seconds,
    hours_array,
    shares_by_unit,
    spans_array,
    unit_starts,
)
from geoflux.sketch.view import Rows, View

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Units:
    """What times are told apart by: a unit of the calendar, the hour of the day, both or none."""

    calendar: str | None = None
    hour_of_day: bool = False


ALL_TIME = Units()


@dataclass(frozen=True, eq=False, slots=True)
class Covered:
    """The items of one view and the rows that they are of. The number of a unit is that of its
    entry in ``starts`` (seconds) times 24, plus the hour of the day if that is told apart."""

    view: View
    rows: Rows
    items: Items
    cells: CellShares
    starts: Ints
    ranges: Ranges | None


class ScopePlan:
    """Scopes, all of which must hold, made ready for many views of one schema."""

    def __init__(self, schema: SketchSchema, *scopes: Scope) -> None:
        self.schema = schema
        self.scope = scopes[0]
        for other in scopes[1:]:
            self.scope = narrowed(self.scope, other)
        shapes = (shapes_of(scope.regions) for scope in scopes)
        self.shapes: tuple[Shapes, ...] = tuple(s for s in shapes if s is not None)
        self.spans = spans_array(self.scope.times)
        self.hours = hours_array(self.scope.hours)

    def shares(self, cells: Cells) -> CellShares:
        """How much of each cell lies in the regions of all scopes."""
        if not self.shapes:
            return region_shares(cells, None)
        found = region_shares(cells, self.shapes[0])
        for shapes in self.shapes[1:]:
            found = found.both(region_shares(cells, shapes))
        return found

    @cached_property
    def ranges(self) -> Ranges | None:
        """What is asked of the features; nothing if nothing is."""
        return ranges_of(self.scope.conditions, self.schema)

    @property
    def always(self) -> bool:
        """Whether all times are meant."""
        return self.scope.times is None and self.scope.hours is None

    def cover(self, view: View, units: Units = ALL_TIME, leaves: bool = False) -> Covered:
        """The rows of a view that the scope covers: leaves if asked for or if features matter,
        otherwise the coarsest summary that will do."""
        ranges = self.ranges
        coarse = self.always and units == ALL_TIME and not leaves and ranges is None
        if ranges is not None or leaves:
            rows = view.rows
        else:
            rows = view.totals if coarse else view.summary
        cells = self.shares(view.cells)
        entries, starts = _whole_time() if coarse else self._entries(view, units)
        first, number, part, full, reach = entries
        row, unit, shares, whole = _selected(
            rows.first, rows.time, cells.state, cells.wide, cells.tall, first, number, part, full,
            reach[0], reach[1],
        )  # fmt: skip
        counts = rows.count[row].astype(np.float64)
        items = Items(
            row, unit, shares, whole, np.where(whole, counts, 0.0), counts,
            np.full(len(row), -1, np.int8),
        )  # fmt: skip
        if ranges is not None:
            items = refined(rows, ranges, items)
        return Covered(view, rows, items, cells, starts, ranges)

    def _entries(self, view: View, units: Units) -> Any:
        """For each time of the view the units that it is counted in: where its entries begin, then
        unit, share and whether all of it is in the scope and the unit."""
        combs = view.combs
        arrays = (combs.day, combs.days, combs.offset, combs.length)
        size = combs.days * combs.length
        if units.calendar is None:
            starts = np.zeros(1, np.int64)
            seconds = covered_seconds(*arrays, self.spans, self.hours)
            comb = np.flatnonzero(seconds)
            seconds = seconds[comb]
            number = np.zeros(len(comb), np.int64)
        else:
            starts = unit_starts(units.calendar, *self._reach(view))
            if len(starts) > MAX_UNITS:
                raise QueryError(
                    f"GROUP BY {units.calendar} over this time makes {len(starts):,} groups; at "
                    f"most {MAX_UNITS:,} are made: ask for a shorter time or a longer unit"
                )
            found = shares_by_unit(*arrays, self.spans, self.hours, starts)
            comb, number, seconds = (np.ascontiguousarray(found[:, k]) for k in range(3))
        number = number * 24
        if units.hour_of_day:
            number += combs.offset[comb] // 3600
        first = np.searchsorted(comb, np.arange(len(size) + 1))
        reach = (int(comb[0]), int(comb[-1])) if len(comb) else (1, 0)
        full = seconds == size[comb]
        return (first, number, seconds / size[comb], full, reach), starts

    def _reach(self, view: View) -> tuple[int, int]:
        """The first and last second that the scope and the view have in common."""
        if not len(view.times):
            return 0, 0
        begin = max(int(self.spans[0, 0]), int(view.combs.start.min()))
        end = min(int(self.spans[-1, 1]), int(view.combs.end.max())) - 1
        return begin, max(begin, end)


def narrowed(first: Scope, second: Scope) -> Scope:
    """Times, hours and values that both scopes allow; regions are those of the first, since not
    every two shapes have a shape in common."""
    times = first.times or second.times
    if first.times is not None and second.times is not None:
        times = both_times(first.times, second.times)
    hours = first.hours or second.hours
    if first.hours is not None and second.hours is not None:
        hours = first.hours & second.hours
    conditions = {c.feature: c for c in first.conditions}
    for c in second.conditions:
        held = conditions.get(c.feature)
        if held is not None:
            c = Condition(c.feature, both(held.ranges, c.ranges), held.missing and c.missing)
        conditions[c.feature] = c
    return Scope(first.regions, times, hours, tuple(conditions.values()))


def _whole_time() -> Any:
    one = np.zeros(1, np.int64)
    return (np.array([0, 1]), one, np.ones(1), np.ones(1, bool), (0, 0)), one


@numba.njit(cache=True)
def _selected(
    first: Any, time: Any, state: Any, wide: Any, tall: Any, entry: Any, unit: Any, part: Any,
    full: Any, begin: int, end: int,
) -> Any:  # fmt: skip
    """Rows of covered regions at covered times: number, unit, shares, whether wholly covered."""
    total = 0
    spans = np.empty((state.size, 2), np.int64)
    for r in range(state.size):
        lo, hi = first[r], first[r]
        if state[r] > 0 and begin <= end:
            mine = time[first[r] : first[r + 1]]
            lo += np.searchsorted(mine, begin)
            hi += np.searchsorted(mine, end, side="right")
            for i in range(lo, hi):
                total += entry[time[i] + 1] - entry[time[i]]
        spans[r, 0], spans[r, 1] = lo, hi
    rows = np.empty(total, np.int64)
    units = np.empty(total, np.int64)
    shares = np.ones((4, total), np.float64)
    whole = np.empty(total, np.bool_)
    k = 0
    for r in range(state.size):
        for i in range(spans[r, 0], spans[r, 1]):
            for e in range(entry[time[i]], entry[time[i] + 1]):
                rows[k] = i
                units[k] = unit[e]
                shares[0, k], shares[1, k], shares[2, k] = wide[r], tall[r], part[e]
                whole[k] = state[r] == 2 and full[e]
                k += 1
    return rows, units, shares, whole
