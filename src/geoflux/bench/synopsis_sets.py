"""Set structures within their stated bounds, and a sketch that was split and merged again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.bench.synopsis_ingest import schema_of, took_in
from geoflux.bench.table import Bars
from geoflux.sketch.forest import Forest
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.sets import Sets
from geoflux.spatial.geohash import codes
from geoflux.workload.weather import Weather

BARS: Bars = {
    "hll_within_bound": (">=", 0.95), "bloom_within_bound": (">=", 0.95),
    "countmin_within_bound": (">=", 0.99), "merge_counts_exact": (">=", 1.0),
    "merge_moments_error": ("<=", 1e-12),
}  # fmt: skip
Floats = npt.NDArray[np.float64]
_ABSENT = 2000
_LOOKED_UP = 20


def measure_sets(trials: int) -> dict[str, Any]:
    """Trials with random items, some of them often: the share of trials in which the cardinality
    lies within its bounds (stated: 95 %) and no more false members are found than four deviations
    above the stated probability; and the share of items whose frequency is within its bounds
    (stated: 99 %). Everything that was met must be found; that is no matter of chance."""
    schema = SketchSchema(("a", "b"), 0, 0)
    hll, bloom, countmin, missed = [], [], [], 0
    for trial in range(trials):
        dice = np.random.default_rng((11, trial))
        values = _items(dice, int(dice.integers(2_000, 40_000)))
        sets = _filled(schema, values)
        met, counts = np.unique(values, axis=0, return_counts=True)
        found = sets.cardinality()
        hll.append(found.low <= len(met) <= found.high)
        bloom.append(_no_more_than_stated(sets, dice))
        some = dice.integers(0, len(met), _LOOKED_UP)
        for row, count in zip(met[some], counts[some], strict=True):
            item = sets.shape.combination(row)
            told = sets.frequency(item)
            countmin.append(told.low <= count <= told.high)
            missed += not sets.member(item).found
    return {
        "hll_within_bound": float(np.mean(hll)), "bloom_within_bound": float(np.mean(bloom)),
        "countmin_within_bound": float(np.mean(countmin)), "members_missed": missed,
        "set_trials": trials,
    }  # fmt: skip


def _items(dice: np.random.Generator, rows: int) -> Floats:
    """Pairs of whole numbers; a tenth of the rows are of a few that come again and again."""
    values = dice.integers(0, 1 << 19, (rows, 2)).astype(float)
    often = dice.random(rows) < 0.1
    values[often] = dice.integers(0, 5, (int(often.sum()), 2))
    return values


def _filled(schema: SketchSchema, values: Floats) -> Sets:
    nowhere = np.zeros(len(values), np.int64)
    return Sets.empty(schema).updated(nowhere, nowhere, values)


def _no_more_than_stated(sets: Sets, dice: np.random.Generator) -> bool:
    """Of items that never came, so many are found as the stated probability says, within chance."""
    wrong, stated = 0, 0.0
    for row in dice.integers(1 << 19, 999_999, (_ABSENT, 2)).astype(float):
        got = sets.member(sets.shape.combination(row))
        wrong += got.found
        stated = max(stated, got.false_positive)
    return bool(wrong <= _ABSENT * stated + 4.0 * np.sqrt(_ABSENT * stated) + 1e-9)


def measure_merges(seen: Weather, splits: int) -> dict[str, Any]:
    """Sketches that are split at random prefixes halfway, take the rest in piece by piece, and are
    joined in random order, against the one that never was: counts, ends and sets are the same,
    moments to rounding."""
    half = len(seen) // 2
    begun = took_in(Forest.empty(schema_of(seen)), seen.between(0, half))
    rest = seen.between(half, len(seen))
    whole = took_in(begun, rest).compacted()
    dice, same, off = np.random.default_rng(12), [], 0.0
    for _ in range(splits):
        pieces = [_went_on(piece, rest, *area) for piece, *area in _split(begun, 0, 0, dice)]
        order = dice.permutation(len(pieces))
        joined = pieces[order[0]]
        for number in order[1:]:
            joined = joined.joined(pieces[number])
        got, want = joined.compacted().leaves(), whole.leaves()
        same.append(
            all(
                np.array_equal(getattr(got, name), getattr(want, name))
                for name in ("region", "time", "grain", "bins", "count", "low", "high")
            )
            and joined.sets.to_bytes() == whole.sets.to_bytes()
        )
        if same[-1]:
            parts = ("mean", "m2", "cross")
            off = max(off, *(_apart(getattr(got, n), getattr(want, n)) for n in parts))
    return {
        "merge_counts_exact": float(np.mean(same)), "merge_moments_error": off,
        "merge_splits": splits,
    }  # fmt: skip


def _went_on(piece: Forest, rest: Weather, code: int, bits: int) -> Forest:
    """With the observations of its prefix."""
    mine = codes(rest.lon, rest.lat, bits) == code if bits else np.ones(len(rest), bool)
    return took_in(piece, Weather(*(column[mine] for column in rest)))


def _split(
    forest: Forest, code: int, bits: int, dice: np.random.Generator
) -> list[tuple[Forest, int, int]]:
    """The trees of a prefix, cut in two where chance says so, with their prefixes."""
    if bits == forest.schema.tree_bits or (bits and dice.random() < 0.3):
        return [(forest, code, bits)]
    return [
        piece
        for half in (2 * code, 2 * code + 1)
        for piece in _split(forest.cut(half, bits + 1), half, bits + 1, dice)
    ]


def _apart(got: Floats, want: Floats) -> float:
    scale = np.maximum(np.abs(want), 1.0)
    return float((np.abs(got - want) / scale).max()) if want.size else 0.0
