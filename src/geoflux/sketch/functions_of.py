"""What each function of a query answers, from one asking: names to measures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geoflux.errors import QueryError
from geoflux.sketch import density_answers, set_answers, statistics
from geoflux.sketch.asking import Asking
from geoflux.sketch.expressions import Call
from geoflux.sketch.inference import forecast, regress
from geoflux.sketch.measures import Measure
from geoflux.sketch.outliers import outliers
from geoflux.sketch.range_cover import feature_number
from geoflux.sketch.ranges import Range
from geoflux.sketch.scope import Condition, Scope

Measures = dict[str, Measure]
Notes = list[str]
_QUARTILES = (0.25, 0.5, 0.75)
_DECILES = tuple(k / 10 for k in range(1, 10))
_MAX_SET_GROUPS = 10_000


def measures_of(asking: Asking, call: Call, notes: Notes) -> Measures:
    """The numbers that a call answers with, by group; "" for a single one."""
    features = tuple(feature_number(asking.schema, name) for name in call.features)
    if call.name in _STATISTICS:
        return {"": _STATISTICS[call.name](asking, features)}
    if call.name in ("contains", "distinct", "frequency"):
        return {"": _set_function(asking, call, features, notes)}
    return _OTHERS[call.name](asking, call, features)


_STATISTICS: dict[str, Callable[[Asking, tuple[int, ...]], Measure]] = {
    "count": lambda a, f: statistics.count(a.pool, *f),
    "mean": lambda a, f: statistics.mean(a.pool, f[0]),
    "sum": lambda a, f: statistics.total(a.pool, f[0]),
    "min": lambda a, f: statistics.end(a.pool, f[0], False),
    "max": lambda a, f: statistics.end(a.pool, f[0], True),
    "stddev": lambda a, f: statistics.stddev(a.pool, f[0]),
    "variance": lambda a, f: statistics.variance(a.pool, f[0]),
    "corr": lambda a, f: statistics.corr(a.pool, f[0], f[1]),
    "covar": lambda a, f: statistics.covar(a.pool, f[0], f[1]),
}


def _quantiles(asking: Asking, feature: int, shares: tuple[float, ...]) -> Measures:
    found = density_answers.quantile(asking.leaf_pool, feature, shares)
    if len(shares) == 1:
        return {"": found[0]}
    return {f"{share:g}": one for share, one in zip(shares, found, strict=True)}


def _density(asking: Asking, call: Call, features: tuple[int, ...]) -> Measures:
    points = int(call.settings[0])
    if asking.ungrouped:
        chosen = density_answers.whole_trees(asking.plan, asking.views)
        if chosen is not None:
            return density_answers.tree_density(asking.views, chosen, features[0], points)
    return density_answers.density(asking.leaf_pool, features[0], points)


def _probability(asking: Asking, call: Call, features: tuple[int, ...]) -> Measures:
    if len(call.numbers) == 1:
        return {
            "": density_answers.probability_of_bin(asking.leaf_pool, features[0], call.numbers[0])
        }
    wanted = Range(call.numbers[0], call.numbers[1])
    held = asking.plan.scope.condition(call.features[0])
    if held is not None and not any(
        max(r.low, wanted.low) <= min(r.high, wanted.high) for r in held.ranges
    ):
        whole = statistics.count(asking.pool, features[0])
        return {"": density_answers.share_of(_nothing(whole), whole)}
    inner = asking.narrowed(Scope(conditions=(Condition(call.features[0], (wanted,)),)))
    part = asking.aligned(statistics.count(inner.pool, features[0]), inner, 0.0)
    return {"": density_answers.share_of(part, statistics.count(asking.pool, features[0]))}


def _nothing(like: Measure) -> Measure:
    zero = np.zeros_like(like.value)
    return Measure(zero, zero, zero, zero, np.zeros(zero.shape, np.int8))


def _set_function(asking: Asking, call: Call, features: tuple[int, ...], notes: Notes) -> Measure:
    plans = [asking.plan]
    if not asking.ungrouped:
        if len(asking.groups) > _MAX_SET_GROUPS:
            raise QueryError(
                f"{call.name} of {len(asking.groups):,} groups; at most {_MAX_SET_GROUPS:,} are "
                "made: group by fewer letters or a longer time"
            )
        plans = [asking.one_group(g) for g in range(len(asking.groups))]
    asked = dict(zip(features, call.numbers, strict=True))
    found, whole = [], True
    for plan in plans:
        parts = set_answers.touched(plan, asking.views)
        whole = whole and parts.whole
        if call.name == "distinct":
            found.append(set_answers.distinct(parts))
        elif call.name == "contains":
            found.append(set_answers.contains(parts, asking.views, asked))
        else:
            found.append(set_answers.frequency(parts, asking.views, asked))
    if not whole:
        seconds = asking.schema.set_seconds
        notes.append(set_answers.COVERING.format(f"{seconds} s each"))
    if 1 < len(asked) < len(asking.schema.features):
        notes.append(set_answers.SOME_FEATURES)
    names = ("value", "error", "low", "high", "kind")
    columns = [np.concatenate([getattr(m, name) for m in found] or [np.zeros(0)]) for name in names]
    return Measure(
        columns[0], columns[1], columns[2], columns[3], columns[4].astype(np.int8),
        truth=call.name == "contains",
    )  # fmt: skip


_OTHERS: dict[str, Callable[[Asking, Call, tuple[int, ...]], Measures]] = {
    "outliers": lambda a, c, f: outliers(a.leaf_pool, f[0], c.settings[0]),
    "density": _density,
    "probability": _probability,
    "quantile": lambda a, c, f: _quantiles(a, f[0], (c.numbers[0],)),
    "median": lambda a, c, f: _quantiles(a, f[0], (0.5,)),
    "quartiles": lambda a, c, f: _quantiles(a, f[0], _QUARTILES),
    "deciles": lambda a, c, f: _quantiles(a, f[0], _DECILES),
    "regress": lambda a, c, f: regress(a.pool, f[0], f[1]),
    "forecast": lambda a, c, f: {"": forecast(a.pool, f[0], f[1], *c.settings)},
}
