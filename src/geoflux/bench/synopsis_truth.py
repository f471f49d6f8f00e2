"""Answers of a sketch against the raw observations: how often the stated error covers the truth.

Boxes and times fall where they may; every fourth question is about whole regions and hours, where
answers must be exact. How wide errors are is told beside how often they hold: a wide one covers
anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.bench.synopsis_queries import times_of
from geoflux.bench.table import Bars
from geoflux.sketch.evaluate import prepare
from geoflux.sketch.forest import Forest
from geoflux.sketch.leaves import EXACT, MISSING, Leaves
from geoflux.spatial.geohash import codes
from geoflux.workload.weather import FEATURES, Weather

BARS: Bars = {
    "covered_mean": (">=", 0.95), "covered_stddev": (">=", 0.95), "covered_corr": (">=", 0.95),
    "exact_on_whole_bins": (">=", 1.0), "quantiles_within_one_bin": (">=", 1.0),
}  # fmt: skip
_NAMES = ("mean", "stddev", "corr")
_ASKED = "mean(t2m_k), stddev(t2m_k), corr(t2m_k, msl_pa)"
_PRESSURE = FEATURES.index("msl_pa")
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_FEWEST = 30
"""Of fewer observations nothing is asked."""


@dataclass(frozen=True)
class Asked:
    """A box and a time; ``whole``: of whole regions and hours."""

    west: float
    south: float
    wide: float
    high: float
    first: int
    last: int
    whole: bool

    @classmethod
    def random(cls, dice: np.random.Generator, seen: Weather, whole: bool) -> Asked:
        """Somewhere and some time."""
        a, b = times_of(dice, seen)
        if whole:
            wide, high = 11.25 * int(dice.integers(1, 10)), 5.625 * int(dice.integers(1, 10))
            west = -180 + 11.25 * int(dice.integers(0, 16))
            south = -90 + 5.625 * int(dice.integers(2, 16))
            return cls(west, south, wide, high, a // 3600 * 3600, b // 3600 * 3600 + 3599, True)
        west, south = float(dice.uniform(-170, 100)), float(dice.uniform(-80, 40))
        wide, high = float(dice.uniform(5, 70)), float(dice.uniform(5, 40))
        return cls(west, south, wide, high, a, b, False)

    def inside(self, seen: Weather) -> npt.NDArray[np.bool_]:
        """Which observations are meant."""
        return (
            (seen.lon >= self.west) & (seen.lon < self.west + self.wide)
            & (seen.lat >= self.south) & (seen.lat < self.south + self.high)
            & (seen.time >= self.first) & (seen.time <= self.last)
        )  # fmt: skip

    @property
    def where(self) -> str:
        """In words of the language."""
        east, north = (
            float(np.nextafter(v, -999)) for v in (self.west + self.wide, self.south + self.high)
        )
        first, last = (np.datetime64(t, "s") for t in (self.first, self.last))
        return (
            f"WHERE region IN bbox({self.west}, {self.south}, {east!r}, {north!r}) "
            f"AND time BETWEEN '{first}' AND '{last}'"
        )


@dataclass
class Verdicts:
    """What was found so far."""

    covered: dict[str, list[bool]] = field(default_factory=lambda: {n: [] for n in _NAMES})
    width: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in _NAMES})
    exact: list[bool] = field(default_factory=list)

    def judge(self, name: str, got: float, error: float, truth: float, whole: bool) -> None:
        """One number beside the truth. Width is the error as a share of the value, of a
        correlation as it is."""
        if whole:
            self.exact.append(abs(got - truth) <= 1e-6 * max(abs(truth), 1.0))
            return
        self.covered[name].append(abs(got - truth) <= error + 1e-9 * max(abs(truth), 1.0))
        self.width[name].append(error if name == "corr" else error / max(abs(got), 1e-12))


def measure_truth(whole: Forest, seen: Weather, count: int) -> dict[str, Any]:
    """Over ``count`` random regions and times, asked of 16 sketchlets together."""
    parts = [whole.cut(code, 4).compacted() for code in range(16)]
    dice, found = np.random.default_rng(6), Verdicts()
    for number in range(count):
        asked = Asked.random(dice, seen, number % 4 == 0)
        truth = seen.values[asked.inside(seen)]
        if len(truth) < _FEWEST:
            continue
        answer = prepare(f"SELECT {_ASKED} {asked.where}", parts[0].schema).run(parts)
        air, pressure = truth[:, 0], truth[:, _PRESSURE]
        wanted = (air.mean(), air.std(ddof=1), np.corrcoef(air, pressure)[0, 1])
        for name, column, value in zip(_NAMES, answer.columns, wanted, strict=True):
            got = column.only  # type: ignore[union-attr]
            found.judge(name, float(got.value[0]), float(got.error[0]), float(value), asked.whole)
    return {
        **{f"covered_{name}": float(np.mean(hits)) for name, hits in found.covered.items() if hits},
        **{f"error_width_{n}": float(np.median(w)) for n, w in found.width.items() if w},
        "exact_on_whole_bins": float(np.mean(found.exact)) if found.exact else None,
        "questions_compared": sum(map(len, found.covered.values())) // 3,
        **_quantiles(whole, seen, count),
    }


def _quantiles(whole: Forest, seen: Weather, count: int) -> dict[str, Any]:
    """Whether quantiles of whole trees are at most one bin away from those of the observations: in
    the bin of the true one or next to it, where a bin is as wide as the leaves around the true one
    have it (those of a busy region have merged bins). Beside it: by the finest bins of the tree,
    and whether the answer's own bounds hold the truth."""
    dice = np.random.default_rng(8)
    schema = whole.schema
    tree = np.searchsorted(whole.trees, codes(seen.lon, seen.lat, schema.tree_bits))
    near, finest, bounded = [], [], []
    asked = ", ".join(f"quantile(t2m_k, {share})" for share in _SHARES)
    for place in dice.integers(0, len(whole.trees), max(count // 10, 10)):
        values = np.sort(seen.values[tree == place, 0])
        edges = whole.edges.of(int(place), 0)
        if len(values) < _FEWEST or edges.size < 3:
            continue
        one = whole.cut(int(whole.trees[place]), schema.tree_bits)
        answer = prepare(f"SELECT {asked}", schema).run([one])
        for share, column in zip(_SHARES, answer.columns, strict=True):
            got = column.only  # type: ignore[union-attr]
            truth = float(np.quantile(values, share, method="inverted_cdf"))
            bins = np.searchsorted(edges[1:-1], [got.value[0], truth], side="right")
            wide = bins >> widest_grain(one.leaves(), int(bins[1]))
            near.append(abs(int(wide[0]) - int(wide[1])) <= 1)
            finest.append(abs(int(bins[0]) - int(bins[1])) <= 1)
            bounded.append(got.low[0] - 1e-9 <= truth <= got.high[0] + 1e-9)
    return {
        "quantiles_within_one_bin": float(np.mean(near)) if near else None,
        "quantiles_within_finest_bin": float(np.mean(finest)) if finest else None,
        "quantiles_within_bounds": float(np.mean(bounded)) if bounded else None,
    }


def widest_grain(leaves: Leaves, place: int, feature: int = 0) -> int:
    """The grain of the widest bin, among those of some leaves, that holds the finest bin at a
    place."""
    grain, bins = leaves.grain.astype(np.int64), leaves.bins[:, feature]
    binned = (bins != EXACT) & (bins != MISSING)
    holds = binned & (place >> grain == bins.astype(np.int64))
    return int(grain[holds].max(initial=0))
