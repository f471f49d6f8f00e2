"""What ranges of features leave of the leaves that a scope covers.

A leaf whose low and high lie in one range matches wholly. One that a range cuts matches in part:
the share is that of a normal distribution with the leaf's mean and deviation between its low and
high; the fewest and most matching observations are what its mean, low and high allow (Markov's
inequality from both ends, and that low and high are observations themselves), so they always hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.errors import QueryError
from geoflux.sketch.functions import nearest
from geoflux.sketch.items import VALUES, Items
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.scope import Condition
from geoflux.sketch.view import Rows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Ranges:
    """Conditions on features: condition ``c`` is on ``feature[c]`` and holds for the ranges
    ``first[c]`` to ``first[c + 1]`` (ascending, disjoint), and for no value if ``missing[c]``."""

    feature: Ints
    missing: Flags
    first: Ints
    low: Floats
    high: Floats
    low_closed: Flags
    high_closed: Flags

    def hull(self, feature: int) -> tuple[float, float]:
        """The ends between which values of a feature lie if they match."""
        for c, f in enumerate(self.feature):
            if f == feature and self.first[c] < self.first[c + 1]:
                return float(self.low[self.first[c]]), float(self.high[self.first[c + 1] - 1])
        return -math.inf, math.inf


def feature_number(schema: SketchSchema, name: str) -> int:
    """The place of a feature in the schema; one sentence if it has none of that name."""
    if name not in schema.features:
        raise QueryError(
            f"the sketch has no feature {name!r}{nearest(name, schema.features)}; its features "
            f"are {', '.join(schema.features)}"
        )
    return schema.features.index(name)


def ranges_of(conditions: tuple[Condition, ...], schema: SketchSchema) -> Ranges | None:
    """The conditions as arrays; nothing if there are none."""
    if not conditions:
        return None
    ranges = [r for c in conditions for r in c.ranges]
    ends = np.cumsum([0, *(len(c.ranges) for c in conditions)])
    return Ranges(
        np.array([feature_number(schema, c.feature) for c in conditions], np.int64),
        np.array([c.missing for c in conditions], bool),
        ends.astype(np.int64),
        np.array([r.low for r in ranges], float),
        np.array([r.high for r in ranges], float),
        np.array([r.low_closed for r in ranges], bool),
        np.array([r.high_closed for r in ranges], bool),
    )


def refined(rows: Rows, ranges: Ranges, items: Items) -> Items:
    """The items that the ranges leave, with their shares and possible counts."""
    kept, of_values, whole, fewest, most, cut = _refined(
        items.row, items.whole, rows.count, rows.present, rows.mean, rows.heavy, rows.m2,
        rows.low, rows.high, ranges.feature, ranges.missing, ranges.first, ranges.low,
        ranges.high, ranges.low_closed, ranges.high_closed,
    )  # fmt: skip
    shares = items.shares[:, kept]
    shares[VALUES] = of_values[kept]
    return Items(
        items.row[kept], items.unit[kept], shares, whole[kept], fewest[kept], most[kept], cut[kept]
    )


@numba.njit(cache=True)
def normal_below(value: float, mean: float, deviation: float, low: float, high: float) -> float:
    """The share below ``value`` of a normal distribution cut off at ``low`` and ``high``."""
    if value <= low:
        return 0.0
    if value >= high:
        return 1.0
    scale = deviation * math.sqrt(2.0)
    start = math.erf((low - mean) / scale)
    size = math.erf((high - mean) / scale) - start
    if size < 1e-9:
        return (value - low) / (high - low)
    return (math.erf((value - mean) / scale) - start) / size


@numba.njit(cache=True)
def counts_above(value: float, n: float, mean: float, low: float, high: float, closed: bool) -> Any:
    """The fewest and most of ``n`` observations with this mean, low and high that lie above
    ``value`` (or on it, if ``closed``)."""
    if low > value or (closed and low == value):
        return n, n
    if high < value or (not closed and high == value):
        return 0.0, 0.0
    if n == 2.0:  # they are the low and the high
        return 1.0, 1.0
    slack = 1e-12 * (abs(low) + abs(high))
    most = n - 1.0
    if value > low:
        most = min(most, math.floor(n * (mean - low + slack) / (value - low) + 1e-9))
    fewest = 1.0
    if high > value:
        fewest = max(fewest, math.ceil(n * (mean - value - slack) / (high - value) - 1e-9))
    return min(fewest, n - 1.0), max(most, 1.0)


@numba.njit(cache=True)
def _one_range(
    n: float, mean: float, deviation: float, low: float, high: float,
    bottom: float, top: float, from_bottom: bool, to_top: bool,
) -> Any:  # fmt: skip
    """Share, fewest and most of a leaf's observations in one range."""
    above_few, above_many = counts_above(bottom, n, mean, low, high, from_bottom)
    over_few, over_many = counts_above(top, n, mean, low, high, not to_top)
    most = max(min(above_many - over_few, n), 0.0)
    fewest = max(above_few - over_many, 0.0)
    if most == 0.0 or fewest == n:
        return fewest / n, fewest, most
    share = normal_below(top, mean, deviation, low, high)
    share -= normal_below(bottom, mean, deviation, low, high)
    return min(max(share, fewest / n), most / n), fewest, most


@numba.njit(cache=True)
def _refined(
    row: Any, whole: Any, count: Any, present: Any, mean: Any, heavy: Any, m2: Any,
    low: Any, high: Any, feature: Any, missing: Any, first: Any, bottom: Any, top: Any,
    from_bottom: Any, to_top: Any,
) -> Any:  # fmt: skip
    size = row.size
    kept = np.zeros(size, np.bool_)
    shares, wholes = np.ones(size, np.float64), whole.copy()
    fewest = np.zeros(size, np.float64)
    most = np.zeros(size, np.float64)
    cut = np.full(size, -1, np.int8)
    for k in range(size):
        i = row[k]
        n = float(count[i])
        few, many, part = n, n, 1.0
        for c in range(feature.size):
            f = feature[c]
            if not (present[i] >> f) & 1:
                if not missing[c]:
                    few, many = 0.0, 0.0
                    break
                continue
            h = heavy[i]
            lo = low[h, f] if h >= 0 else mean[i, f]
            hi = high[h, f] if h >= 0 else mean[i, f]
            deviation = math.sqrt(m2[h, f] / n) if h >= 0 else 0.0
            got, least, best = 0.0, 0.0, 0.0
            for r in range(first[c], first[c + 1]):
                a, b, d = _one_range(
                    n, mean[i, f], deviation, lo, hi, bottom[r], top[r], from_bottom[r], to_top[r]
                )
                got, least, best = got + a, least + b, best + d
            best = min(best, n)
            if best == 0.0:
                few, many = 0.0, 0.0
                break
            if least < n and cut[k] < 0:
                cut[k] = f
            part *= min(got, 1.0)
            few = max(few + least - n, 0.0)  # those that match both: at least so many
            many = min(many, best)
        if many == 0.0:
            continue
        kept[k] = True
        wholes[k] = whole[k] and few == n
        shares[k] = min(max(part, few / n), many / n)
        fewest[k] = few if whole[k] else 0.0
        most[k] = many
    return kept, shares, wholes, fewest, most, cut
