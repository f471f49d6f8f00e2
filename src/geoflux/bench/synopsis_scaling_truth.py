"""What a sketch must answer: the same questions asked of the raw observations, in plain NumPy.

Questions fall on whole bins (regions, hours), so that answers are exact: counts and ends are those
of the observations, moments to 1e-12. Also whether two sketches of the same observations are the
same, region by region and hour by hour, however they were split, merged and cut into batches.
Which observations an epoch is of is read from its manifest: all up to its position, without those
that slots had handed back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_holdings import KeyedHoldings
from geoflux.engine.keyed_rows import read_carried
from geoflux.operators.keyed import ID
from geoflux.operators.sketching import Sketch
from geoflux.sketch.answers import Answer, KeyColumn
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.leaves import Leaves
from geoflux.spatial.geohash import codes, to_text
from geoflux.state.store import Store
from geoflux.workload.weather import FEATURES, Weather

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
TOLERANCE = 1e-12
_HOUR, _LETTER = 3600, 5
_ALL = ""
_BATCH = 65_536


@dataclass(frozen=True)
class Question:
    """Count, ends, mean and deviation of a feature, and its correlation with another, of what
    ``where`` (SQL) and ``holds`` (the same for observations) say; by letter of the geohash, or of
    all together."""

    feature: str
    other: str
    where: str
    holds: Callable[[Weather], Mask]
    by_letter: bool = False

    @property
    def sql(self) -> str:
        """As a sketch is asked."""
        f, keys = self.feature, "geohash(1), " if self.by_letter else ""
        text = (
            f"SELECT {keys}count(*), min({f}), max({f}), mean({f}), stddev({f}), "
            f"corr({f}, {self.other})"
        )
        text += f" WHERE {self.where}" if self.where else ""
        return text + (" GROUP BY geohash(1)" if self.by_letter else "")


def _hours_of(seen: Weather) -> npt.NDArray[np.int64]:
    return seen.time // _HOUR % 24


def _northwest(seen: Weather) -> Mask:
    return (seen.lon < 0) & (seen.lat >= 0)


def _all(seen: Weather) -> Mask:
    return np.ones(len(seen), np.bool_)


_WEST = "region IN geohash('8', '9', 'b', 'c', 'd', 'e', 'f', 'g')"
QUESTIONS = (
    Question("t2m_k", "msl_pa", "", _all),
    Question("u10_ms", "v10_ms", _WEST, _northwest),
    Question("dew_k", "t2m_k", "hour BETWEEN 6 AND 11",
             lambda seen: (_hours_of(seen) >= 6) & (_hours_of(seen) <= 11)),
    Question("wind_ms", "tp_m", f"{_WEST} AND hour BETWEEN 0 AND 2",
             lambda seen: _northwest(seen) & (_hours_of(seen) <= 2)),
    Question("msl_pa", "wind_deg", "", _all, by_letter=True),
)  # fmt: skip
"""Asked again and again while a sketch grows."""


@dataclass(frozen=True)
class Taken:
    """What had been taken in when an epoch was committed: up to which row the stream had been read,
    and which of these rows waited."""

    position: int
    waiting: npt.NDArray[np.int64]

    @classmethod
    def of(cls, manifest: Manifest, store: Store, sketch: Sketch) -> Taken:
        """As the last manifest of a run has it; what waited is deleted some epochs later."""
        waiting = [
            read_carried(store, sketch, ref)[0].column(ID).to_numpy().astype(np.int64)
            for refs in KeyedHoldings.from_dict(manifest).carried.refs.values()
            for ref in refs
        ]
        return cls(manifest["position"], np.concatenate([*waiting, np.empty(0, np.int64)]))

    def among(self, stream: Weather) -> Weather:
        """These observations."""
        mine = np.arange(len(stream)) < self.position
        mine[self.waiting] = False
        return Weather(stream.lon[mine], stream.lat[mine], stream.time[mine], stream.values[mine])


@dataclass(frozen=True)
class Compared:
    """Whether counts and ends are the same, and the largest relative error of a moment."""

    exact: bool
    error: float

    @property
    def is_right(self) -> bool:
        """Within what merging may lead to."""
        return bool(self.exact and self.error <= TOLERANCE)


def compared(question: Question, answer: Answer, seen: Weather) -> Compared:
    """An answer with what the observations themselves say."""
    wanted, found = _wanted(question, seen), _found(answer)
    exact, error = set(wanted) == set(found) or not wanted, 0.0
    for key, (count, low, high, mean, deviation, correlation) in wanted.items():
        got = found.get(key)
        if got is None:
            continue
        exact &= got[:3] == (count, low, high)
        error = max(error, _relative(got[3], mean))
        if count > 1:
            error = max(error, _relative(got[4], deviation), abs(got[5] - correlation))
    return Compared(exact, error)


def _wanted(question: Question, seen: Weather) -> dict[str, tuple[float, ...]]:
    mine = question.holds(seen)
    values, others = (
        seen.values[mine, FEATURES.index(name)] for name in (question.feature, question.other)
    )
    if not question.by_letter:
        return {_ALL: _told(values, others)} if len(values) else {}
    letter = codes(seen.lon[mine], seen.lat[mine], _LETTER)
    return {
        to_text(code, _LETTER): _told(values[letter == code], others[letter == code])
        for code in np.unique(letter).tolist()
    }


def _told(values: Floats, others: Floats) -> tuple[float, ...]:
    count, mean = len(values), float(values.mean())
    a, b = values - values.mean(), others - others.mean()
    m2, m2_other = float(a @ a), float(b @ b)
    deviation = np.sqrt(m2 / (count - 1)) if count > 1 else np.nan
    correlation = float(a @ b) / np.sqrt(m2 * m2_other) if m2 * m2_other else np.nan
    return count, float(values.min()), float(values.max()), mean, float(deviation), correlation


def _found(answer: Answer) -> dict[str, tuple[float, ...]]:
    keys = [column for column in answer.columns if isinstance(column, KeyColumn)]
    numbers = [column.only.value for column in answer.columns if not isinstance(column, KeyColumn)]
    names = keys[0].values.tolist() if keys else [_ALL]
    return dict(zip(names, zip(*(some.tolist() for some in numbers), strict=True), strict=True))


def _relative(found: float, wanted: float) -> float:
    return abs(found - wanted) / abs(wanted) if wanted else abs(found)


def same(one: Forest, other: Forest) -> Compared:
    """Whether two sketches say the same of every region and hour: counts and ends of all features,
    and their moments, relative to the sizes of the values that they are made of."""
    a, b = (_by_bin(forest.leaves()) for forest in (one, other))
    if not np.array_equal(a["keys"], b["keys"]):
        return Compared(False, np.inf)
    exact = all(np.array_equal(a[name], b[name]) for name in ("count", "low", "high"))
    size = np.maximum(np.abs(a["low"]), np.abs(a["high"]))
    count = a["count"][:, None]
    first, second = np.triu_indices(size.shape[1], 1)
    scales = {
        "mean": size,
        "m2": count * size**2,
        "cross": count * size[:, first] * size[:, second],
    }
    errors = [
        np.abs(a[name] - b[name]) / np.where(scale > 0, scale, 1) for name, scale in scales.items()
    ]
    return Compared(exact, max((float(e.max()) for e in errors if e.size), default=0.0))


def _by_bin(leaves: Leaves) -> dict[str, Any]:
    """Leaves of the same region and time bin as one, by the formulas of Chan et al."""
    keys, place = np.unique(
        np.column_stack([leaves.region, leaves.time]), axis=0, return_inverse=True
    )
    order = np.argsort(place.ravel(), kind="stable")
    starts = np.searchsorted(place.ravel()[order], np.arange(len(keys)))
    counts = leaves.count[order].astype(np.float64)[:, None]
    means = leaves.mean[order]
    total = np.add.reduceat(counts, starts)
    mean = np.add.reduceat(counts * means, starts) / total
    apart = means - mean[place.ravel()[order]]
    heavy = leaves.heavy[order]
    first, second = np.triu_indices(leaves.features, 1)
    inner = {name: _spread(getattr(leaves, name), heavy) for name in ("m2", "cross")}
    return {
        "keys": keys, "count": total[:, 0].astype(np.int64), "mean": mean,
        "low": np.minimum.reduceat(leaves.lows[order], starts),
        "high": np.maximum.reduceat(leaves.highs[order], starts),
        "m2": np.add.reduceat(inner["m2"] + counts * apart**2, starts),
        "cross": np.add.reduceat(
            inner["cross"] + counts * apart[:, first] * apart[:, second], starts),
    }  # fmt: skip


def _spread(some: Floats, heavy: npt.NDArray[np.int64]) -> Floats:
    """What leaves of several observations have, and nothing for the others."""
    padded = np.vstack([some, np.zeros((1, some.shape[1]))])
    return padded[heavy]


def misplaced(one: Forest, other: Forest) -> int:
    """Observations that some tree has too few or too many of."""
    trees = np.union1d(one.trees, other.trees)
    counts = np.zeros((2, len(trees)), np.int64)
    for number, forest in enumerate((one, other)):
        counts[number, np.searchsorted(trees, forest.trees)] = forest.rows
    return int(np.abs(counts[0] - counts[1]).sum())


def undisturbed(sketch: Sketch, stream: Weather) -> Forest:
    """The same observations in one sketchlet that nobody ever split."""
    forest = sketch.empty()
    for first in range(0, len(stream), _BATCH):
        some = stream.between(first, first + _BATCH)
        forest = forest.ingest(Observations(some.lon, some.lat, some.time, some.values))
    return forest
