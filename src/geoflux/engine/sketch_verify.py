"""Verification of a sketch: everything that the run received, added up by brute force, against
what its sketchlets hold.

Counts, least and greatest values must be equal by region and time bin, moments to 1e-12 of the
values that they are made of; leaves must lie in their bins; sets must be those of the rows, bit for
bit; densities must have the rows' counts, ends, means and variances. Which edges a tree chose is
its own affair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.engine.sketch_oracle import Ints, Parts, Places, differing
from geoflux.operators.sketching import Sketch
from geoflux.sketch import times
from geoflux.sketch.edges import bins_of
from geoflux.sketch.forest import Forest
from geoflux.sketch.leaves import EXACT, MISSING, Leaves
from geoflux.sketch.observations import Observations
from geoflux.sketch.relational import region_text
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.set_arrays import Bound, to_bytes
from geoflux.sketch.set_blocks import Block
from geoflux.sketch.sets import Sets
from geoflux.spatial import geohash

_EXAMPLES = 5
_DENSITY = 1e-9


@dataclass
class SketchVerification:
    """What the comparison found: observations that are ``missing``, counted again (``doubled``) or
    made up (``extra``); ``wrong_bins`` of region and time, whose values are not those observed;
    ``wrong_leaves``, whose values lie outside of their bins; trees with ``wrong_sets`` and
    ``wrong_densities``."""

    epochs: int = 0
    observations: int = 0
    quarantined: int = 0
    waiting: int = 0
    """Rows that were received and not yet taken in."""
    sketchlets: int = 0
    trees: int = 0
    bins: int = 0
    """Combinations of region and time bin."""
    leaves: int = 0
    missing: int = 0
    doubled: int = 0
    extra: int = 0
    wrong_bins: int = 0
    wrong_leaves: int = 0
    wrong_sets: int = 0
    wrong_densities: int = 0
    problems: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether the sketch is that of the rows."""
        wrong = (self.missing, self.doubled, self.extra, self.wrong_bins, self.wrong_leaves,
                 self.wrong_sets, self.wrong_densities)  # fmt: skip
        return not any(wrong) and not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "clean": self.is_clean}


def compare(
    operator: Sketch, rows: Observations, forests: Sequence[Forest], result: SketchVerification
) -> None:
    """Compare sketchlets with all rows that they should hold."""
    schema = operator.schema
    result.observations = len(rows)
    result.sketchlets = len(forests)
    result.trees = sum(len(forest.trees) for forest in forests)
    leaves = _all_leaves([layer for f in forests for layer in (*f.layers, *f.fresh)], schema)
    places = Places.of(schema, rows, leaves)
    result.bins, result.leaves = len(places), len(leaves)
    should, there = Parts.of_rows(rows, places), Parts.of_leaves(leaves, places)
    surplus = there.counts() - should.counts()
    expected = should.counts() > 0
    result.missing = int(-surplus[surplus < 0].sum())
    result.doubled = int(surplus[(surplus > 0) & expected].sum())
    result.extra = int(surplus[(surplus > 0) & ~expected].sum())
    _note(result, (
        f"{_place(schema.region_bits, places, g)}: {there.counts()[g]} observations, should be "
        f"{should.counts()[g]}" for g in np.flatnonzero(surplus).tolist()
    ))  # fmt: skip
    wrong = differing(should, there)
    anything = np.logical_or.reduce(list(wrong.values()))
    result.wrong_bins = int(anything.sum())
    _note(result, (
        f"{_place(schema.region_bits, places, g)}: wrong "
        + ", ".join(name for name, which in wrong.items() if which[g])
        for g in np.flatnonzero(anything).tolist()
    ))  # fmt: skip
    for forest in forests:
        result.wrong_leaves += _misplaced(forest)
    _compare_trees(operator, rows, forests, result)


def _all_leaves(layers: Sequence[Leaves], schema: SketchSchema) -> Leaves:
    """Layers one below the other, nothing merged."""
    every = (*layers, Leaves.empty(len(schema.features)))
    return Leaves(**{
        column.name: np.concatenate([getattr(layer, column.name) for layer in every])
        for column in fields(Leaves)
    })  # fmt: skip


def _note(result: SketchVerification, lines: Iterator[str]) -> None:
    result.examples += itertools.islice(lines, max(0, _EXAMPLES - len(result.examples)))


def _place(bits: int, places: Places, group: int) -> str:
    region = region_text(int(places.region[group]), bits)
    key = places.time[group : group + 1]
    start = np.datetime64(int(times.starts(key)[0]), "s")
    return f"region {region}, {times.LEVELS[int(times.levels(key)[0])]} of {start}"


def _misplaced(forest: Forest) -> int:
    """Leaves whose values lie outside of the bins that their keys name."""
    schema = forest.schema
    leaves = _all_leaves([*forest.layers, *forest.fresh], schema)
    index = np.searchsorted(forest.trees, leaves.region >> (schema.region_bits - schema.tree_bits))
    outside = np.zeros(len(leaves), np.bool_)
    known = index < forest.trees.size
    if not known.all():
        return len(leaves)
    binned = (leaves.bins != MISSING) & (leaves.bins != EXACT)
    binned &= forest.edges.quantised[index][:, None]
    for values in (leaves.lows, leaves.highs):
        found = bins_of(forest.edges, index, values) >> leaves.grain[:, None]
        outside |= (binned & (found != leaves.bins)).any(axis=1)
    outside |= ((leaves.lows > leaves.mean) | (leaves.mean > leaves.highs)).any(axis=1)
    return int(outside.sum())


def _compare_trees(
    operator: Sketch, rows: Observations, forests: Sequence[Forest], result: SketchVerification
) -> None:
    """What belongs to trees: how many rows they count, their densities and sets."""
    schema = operator.schema
    tree = geohash.codes(rows.x, rows.y, schema.tree_bits)
    values = rows.finite_values
    order = np.argsort(tree, kind="stable")
    codes, starts = np.unique(tree[order], return_index=True)
    ends = np.append(starts[1:], tree.size)
    mine = {
        int(code): order[begin:end]
        for code, begin, end in zip(codes, starts, ends, strict=True)
    }  # fmt: skip
    sets = Sets.empty(schema).updated(tree, rows.time, values)
    seen: set[int] = set()
    for forest in forests:
        rebuilt = sets.cut(forest.trees)
        wrong = _wrong_sets(forest.sets, rebuilt)
        result.wrong_sets += len(wrong)
        _note(result, (f"tree {code}: its sets are not those of its rows" for code in wrong))
        for place, code in enumerate(forest.trees.tolist()):
            some = mine.get(code, order[:0])
            if code in seen:
                result.problems.append(f"tree {code} is in two sketchlets")
            seen.add(code)
            if forest.rows[place] != some.size:
                result.problems.append(
                    f"tree {code} says that it has {forest.rows[place]} rows, and has {some.size}"
                )
            if not _same_density(forest, place, values[some]):
                result.wrong_densities += 1
                _note(result, iter([f"tree {code}: its densities are not of its rows"]))
    lost = sorted(set(mine) - seen)
    if lost:
        result.problems.append(f"{len(lost)} trees are in no sketchlet; the first is {lost[0]}")


def _same_density(forest: Forest, place: int, values: npt.NDArray[np.float64]) -> bool:
    """Whether mixtures have the count, ends, mean and variance of the values of a tree."""
    totals = forest.densities.totals[place]
    weight = forest.densities.weight[place]
    mean, variance = forest.densities.mean[place], forest.densities.variance[place]
    for feature in range(values.shape[1]):
        some = values[~np.isnan(values[:, feature]), feature]
        if totals[feature, 0] != some.size:
            return False
        if not some.size:
            continue
        if totals[feature, 1] != some.min() or totals[feature, 2] != some.max():
            return False
        share = weight[feature] / some.size
        centre = float(share @ mean[feature])
        spread = float(share @ (variance[feature] + (mean[feature] - centre) ** 2))
        size, wide = float(np.abs(some).max()), float(np.ptp(some))
        if abs(centre - some.mean()) > _DENSITY * size:
            return False
        if abs(spread - some.var()) > _DENSITY * size * (wide + _DENSITY * size):
            return False
    return True


def _wrong_sets(held: Sets, rebuilt: Sets) -> list[int]:
    """Trees whose sets are not those of their rows. Bounds fold as they age, so those that touch
    each other are compared as one."""
    wrong = []
    trees = {key[0] for key in (*held.blocks, *rebuilt.blocks)}
    mine, theirs = _by_tree(held), _by_tree(rebuilt)
    for tree in sorted(trees):
        spans = _together([key[1:] for key in mine.get(tree, {})])
        one, other = (_merged(blocks.get(tree, {}), spans, held) for blocks in (mine, theirs))
        if to_bytes(held.shape, one) != to_bytes(held.shape, other):
            wrong.append(tree)
    return wrong


def _by_tree(sets: Sets) -> dict[int, dict[Bound, Block]]:
    found: dict[int, dict[Bound, Block]] = {}
    for key, block in sets.blocks.items():
        found.setdefault(key[0], {})[key] = block
    return found


def _together(spans: Sequence[tuple[int, int]]) -> Ints:
    """Stretches of time that overlap, as one."""
    found: list[list[int]] = []
    for first, last in sorted(spans):
        if found and first < found[-1][1]:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    return np.array(found, np.int64).reshape(-1, 2)


def _merged(blocks: dict[Bound, Block], spans: Ints, sets: Sets) -> dict[Bound, Block]:
    """Blocks that lie in one stretch, as one; others stay as they are."""
    out: dict[Bound, Block] = {}
    for (tree, first, last), block in blocks.items():
        place = int(np.searchsorted(spans[:, 0], first, "right")) - 1
        key = (tree, first, last)
        if place >= 0 and last <= spans[place, 1]:
            key = tree, int(spans[place, 0]), int(spans[place, 1])
        out[key] = out[key].merged(block, sets.shape) if key in out else block
    return out
