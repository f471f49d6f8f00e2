"""Synthetic rows drawn from leaves, so that marginals and correlations hold.

Leaves are chosen by the observations of theirs that match, evenly (systematic sampling), so each
gets its share to within one row. Within a leaf a normal vector with the leaf's correlations is
bent, feature by feature, into the leaf's low and high by a curve that keeps mean and variance
exactly, whatever the ends; the correlations before are chosen such that they are right after. A
leaf of one observation gives that observation. Place and time are even within region and bin, and
within the scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.errors import QueryError
from geoflux.sketch.cover import Covered, ScopePlan
from geoflux.sketch.expressions import Synthetic
from geoflux.sketch.leaf_draws import drawn
from geoflux.sketch.leaves import MISSING
from geoflux.sketch.region_cover import Shapes
from geoflux.sketch.region_kernels import RADIUS_KM
from geoflux.sketch.time_cover import Combs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_TRIES = 30


def synthetic_table(asked: Synthetic, plan: ScopePlan, covers: Sequence[Covered]) -> pa.Table:
    """``lon``, ``lat``, ``time`` and the features, in random order; the same seed gives the same
    rows."""
    rng = np.random.default_rng(asked.seed)
    weights = [
        np.where(c.items.whole, c.items.most, c.rows.count[c.items.row] * c.items.share)
        for c in covers
    ]
    total = float(sum(w.sum() for w in weights))
    rows = asked.rows
    if rows is None:
        rows = round(total * float(asked.percent or 0.0) / 100)
    if total <= 0 and rows:
        raise QueryError(
            "nothing that was observed matches, so there is nothing to draw from; widen the WHERE"
        )
    chosen = _systematic(np.concatenate(weights), rows, rng)
    ends = np.cumsum([0, *(len(w) for w in weights)])
    parts = []
    for cover, begin, end in zip(covers, ends[:-1], ends[1:], strict=True):
        mine = chosen[(chosen >= begin) & (chosen < end)] - begin
        parts.append(_rows(cover, plan, mine, rng))
    order = rng.permutation(rows)
    columns = {}
    for name in parts[0]:
        column = np.concatenate([part[name] for part in parts])[order]
        if name == "time":
            columns[name] = pa.array(column.astype("datetime64[s]"), pa.timestamp("s", "UTC"))
        else:
            gone = np.isnan(column)
            columns[name] = pa.array(column, mask=gone if gone.any() else None)
    return pa.table(columns)


def _systematic(weights: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Numbers of items, ascending, each as often as its weight asks, to within one."""
    sums = np.cumsum(weights)
    points = (np.arange(rows) + rng.random()) * (sums[-1] / max(rows, 1)) if rows else np.zeros(0)
    return np.minimum(np.searchsorted(sums, points, "right"), len(weights) - 1)


def _rows(
    cover: Covered, plan: ScopePlan, chosen: Ints, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    view, rows = cover.view, cover.rows
    row = cover.items.row[chosen]
    values = drawn(cover, row, rng)
    values[view.leaves.bins[row] == MISSING] = np.nan
    x, y = _places(view.cells, rows.region[row], plan.shapes, rng)
    time = _times(view.combs, rows.time[row], plan, rng)
    found: dict[str, npt.NDArray[Any]] = {"lon": x, "lat": y, "time": time}
    for f, name in enumerate(view.schema.features):
        found[name] = values[:, f]
    return found


def _places(
    cells: Any, region: Any, shapes: tuple[Shapes, ...], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    x, y = np.empty(len(region)), np.empty(len(region))
    left = np.arange(len(region))
    for _ in range(_TRIES):
        r = region[left]
        x[left] = rng.uniform(cells.west[r], cells.east[r])
        y[left] = rng.uniform(cells.south[r], cells.north[r])
        hit = np.ones(len(left), bool)
        for one in shapes:
            hit &= _inside(x[left], y[left], one)
        left = left[~hit]
        if not len(left):
            break
    return x, y


def _inside(x: Floats, y: Floats, shapes: Shapes) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(x), bool)
    for west, south, east, north in shapes.boxes:
        found |= (x >= west) & (x <= east) & (y >= south) & (y <= north)
    for lon, lat, km in np.asarray(shapes.circles):
        a, b, c, d = np.radians(x), np.radians(y), np.radians(lon), np.radians(lat)
        near = np.sin(b) * np.sin(d) + np.cos(b) * np.cos(d) * np.cos(a - c)
        found |= near >= np.cos(min(km / RADIUS_KM, np.pi))
    return found


def _times(combs: Combs, time: Any, plan: ScopePlan, rng: np.random.Generator) -> Ints:
    found = np.empty(len(time), np.int64)
    left = np.arange(len(time))
    for _ in range(_TRIES):
        t = time[left]
        day = combs.day[t] + rng.integers(0, combs.days[t])
        found[left] = day * 86400 + combs.offset[t] + rng.integers(0, combs.length[t])
        if plan.always:
            break
        asked = found[left]
        place = np.searchsorted(plan.spans[:, 0], asked, "right") - 1
        hit = (place >= 0) & (asked < plan.spans[place, 1]) & plan.hours[asked // 3600 % 24]
        left = left[~hit]
        if not len(left):
            break
    return found
