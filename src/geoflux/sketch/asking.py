"""One scope of a query over the views of some forests: what its columns are calculated from.

Covers, groups and pools are made when a column first needs them and shared by all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geoflux.sketch.answers import KeyColumn
from geoflux.sketch.cover import ScopePlan, Units
from geoflux.sketch.expressions import TIME_BINS, Key
from geoflux.sketch.groups import Groups, grouped
from geoflux.sketch.measures import Measure
from geoflux.sketch.pools import Pool
from geoflux.sketch.ranges import Span
from geoflux.sketch.region_cover import cells_of
from geoflux.sketch.relational import region_text
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.scope import Box, Scope
from geoflux.sketch.time_cover import unit_starts
from geoflux.sketch.view import View


@dataclass(frozen=True, slots=True)
class Keys:
    """What rows are grouped by: bits of the region, unit of time."""

    bits: int | None
    units: Units

    @classmethod
    def of(cls, keys: Sequence[Key], schema: SketchSchema) -> Keys:
        """The keys of a query."""
        bits = calendar = None
        for key in keys:
            if key.name == "region":
                bits = schema.region_bits
            elif key.letters is not None:
                bits = 5 * key.letters
            elif key.name in TIME_BINS:
                calendar = key.name
        return cls(bits, Units(calendar, any(k.name == "hour_of_day" for k in keys)))


class Asking:
    """A planned scope, grouped, over views."""

    def __init__(self, plan: ScopePlan, keys: Keys, views: Sequence[View]) -> None:
        self.plan = plan
        self.keys = keys
        self.views = tuple(views)
        self.schema = plan.schema

    @cached_property
    def pool(self) -> Pool:
        """Of summaries, or of leaves if features are asked something."""
        return self._pool(leaves=False)

    @cached_property
    def leaf_pool(self) -> Pool:
        """Of leaves; its groups are those of ``pool``."""
        return self._pool(leaves=True) if self.plan.ranges is None else self.pool

    def _pool(self, leaves: bool) -> Pool:
        units = self.keys.units
        covers = tuple(self.plan.cover(view, units, leaves) for view in self.views)
        by_time = units.calendar is not None or units.hour_of_day
        return Pool(self.schema, covers, grouped(covers, self.keys.bits, by_time))

    @property
    def groups(self) -> Groups:
        """The rows of the answer."""
        return self.pool.groups

    @property
    def ungrouped(self) -> bool:
        """Whether the answer has one row for all."""
        units = self.keys.units
        return self.keys.bits is None and units.calendar is None and not units.hour_of_day

    def narrowed(self, *scopes: Scope) -> Asking:
        """The same with further scopes that must hold."""
        plan = ScopePlan(self.schema, self.plan.scope, *scopes)
        plan.shapes = self.plan.shapes + plan.shapes[1 if self.plan.scope.regions else 0 :]
        return Asking(plan, self.keys, self.views)

    def one_group(self, g: int) -> ScopePlan:
        """The scope of one group by itself."""
        groups, units = self.groups, self.keys.units
        box = times = None
        if self.keys.bits is not None:
            cell = cells_of(groups.prefix[g : g + 1], self.keys.bits)
            edges = (cell.west, cell.south, cell.last_x, cell.last_y)
            box = (Box(*(float(e[0]) for e in edges)),)
        if units.calendar is not None:
            start = int(groups.start[g])
            times = (Span(start, int(unit_starts(units.calendar, start, start)[1])),)
        hours = frozenset([int(groups.hour[g])]) if units.hour_of_day else None
        return self.narrowed(Scope(box, times, hours)).plan

    def key_column(self, key: Key, name: str) -> KeyColumn:
        """The values of a key, one for each group."""
        groups = self.groups
        if key.name == "hour_of_day":
            return KeyColumn(name, groups.hour)
        if key.name in TIME_BINS:
            return KeyColumn(name, groups.start.astype("datetime64[s]"))
        bits = self.keys.bits or 0
        used, place = np.unique(groups.prefix, return_inverse=True)
        texts = np.array([region_text(int(code), bits) for code in used], dtype=object)
        return KeyColumn(name, texts[place] if len(used) else np.zeros(0, object))

    def aligned(self, measure: Measure, other: Asking, missing: float) -> Measure:
        """A measure of another asking's groups for the groups of this one; groups that the other
        has not are ``missing``."""
        place = _places(self.groups, other.groups)
        here = place >= 0

        def moved(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            out = np.full(len(place), missing)
            out[here] = values[place[here]]
            return out

        kind = np.zeros(len(place), np.int8)
        kind[here] = measure.kind[place[here]]
        error = moved(measure.error)
        error[~here] = np.nan if np.isnan(missing) else 0.0
        return Measure(moved(measure.value), error, moved(measure.low), moved(measure.high), kind)


def _places(wanted: Groups, held: Groups) -> npt.NDArray[np.int64]:
    """Where each wanted group is among those held; -1 where it is not."""
    keys = {
        key: number
        for number, key in enumerate(
            zip(held.prefix.tolist(), held.start.tolist(), held.hour.tolist(), strict=True)
        )
    }
    asked = zip(wanted.prefix.tolist(), wanted.start.tolist(), wanted.hour.tolist(), strict=True)
    return np.array([keys.get(key, -1) for key in asked], np.int64)
