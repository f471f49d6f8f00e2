"""Was a combination of values met, how many different ones, how often one: from the set structures.

Structures belong to a tree and a stretch of time (a day, unless set otherwise). A scope that cuts
through one, or asks something of features or hours, is answered for all that its structures cover:
a "no" and an upper bound still hold, and the answer says so. Structures know combinations of all
features and values of single ones; a combination of some is looked for in the leaves too, which can
rule it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from geoflux.sketch.cover import ScopePlan
from geoflux.sketch.measures import FALSE_POSITIVE, Measure, bounded, uncertain
from geoflux.sketch.region_cover import NONE, PART, cells_of
from geoflux.sketch.sets import Sets
from geoflux.sketch.view import View

Floats = npt.NDArray[np.float64]
COVERING = (
    "sets answer for whole trees and times ({}): what was asked is part of that, so upper bounds "
    "and 'no' hold, the rest is of the larger part"
)
SOME_FEATURES = (
    "sets know combinations of all features and values of single ones; of this combination of some "
    "features a 'no' is certain, a 'yes' only where its probability of being wrong is 0"
)


@dataclass(frozen=True, eq=False)
class SetParts:
    """The structures that a scope touches, of all forests together, and whether it is just what
    they cover."""

    sets: Sets
    whole: bool


def touched(plan: ScopePlan, views: Sequence[View]) -> SetParts:
    """The structures of the trees and times of a scope."""
    whole = plan.ranges is None and plan.scope.hours is None
    joined: Sets | None = None
    for view in views:
        cells = cells_of(view.trees, view.schema.tree_bits)
        state = plan.shares(cells).state
        whole = whole and not (state == PART).any()
        trees = set(view.trees[state != NONE].tolist())
        kept = {}
        for key, block in view.sets.blocks.items():
            if key[0] not in trees:
                continue
            if plan.scope.times is None:
                kept[key] = block
                continue
            begin, end = np.maximum(plan.spans[:, 0], key[1]), np.minimum(plan.spans[:, 1], key[2])
            seconds = int(np.maximum(end - begin, 0).sum())
            if seconds:
                kept[key] = block
                whole = whole and seconds == key[2] - key[1]
        mine = replace(view.sets, blocks=kept)
        joined = mine if joined is None else joined.joined(mine)
    assert joined is not None, "a query is asked of at least one forest"
    return SetParts(joined, whole)


def distinct(parts: SetParts) -> Measure:
    """How many different combinations there were."""
    found = parts.sets.cardinality()
    value, high = np.array([found.value]), np.array([found.high])
    if not parts.whole:
        return bounded(value, np.zeros(1), high)
    low = np.array([found.low])
    return uncertain(value, (high - low) / 4, low, high)


def contains(parts: SetParts, views: Sequence[View], asked: Mapping[int, float]) -> Measure:
    """Whether a combination was met; the error is the probability that a yes is wrong."""
    sets, features = parts.sets, parts.sets.shape.features
    if len(asked) == features:
        values = np.array([asked[f] for f in range(features)])
        got = sets.member(sets.shape.combination(values))
        return _yes(got.found, got.false_positive)
    single = [sets.member(sets.shape.value(f, v)) for f, v in asked.items()]
    found = all(one.found for one in single)
    if len(asked) == 1:
        return _yes(found, single[0].false_positive)
    if found:
        certain, possible = _in_leaves(parts, views, asked)
        return _yes(possible > 0, 0.0 if certain else 1.0)
    return _yes(False, 0.0)


def frequency(parts: SetParts, views: Sequence[View], asked: Mapping[int, float]) -> Measure:
    """How often a combination came: never more than stated."""
    sets, features = parts.sets, parts.sets.shape.features
    if len(asked) == features:
        values = np.array([asked[f] for f in range(features)])
        found = [sets.frequency(sets.shape.combination(values))]
    else:
        found = [sets.frequency(sets.shape.value(f, v)) for f, v in asked.items()]
    high = min(one.high for one in found)
    low = found[0].low if len(found) == 1 else 0.0
    if len(found) > 1:
        certain, possible = _in_leaves(parts, views, asked)
        low, high = float(certain), min(high, float(possible))
    if not parts.whole:
        low = 0.0
    return bounded(np.array([high]), np.array([low]), np.array([high]))


def _yes(found: bool, wrong: float) -> Measure:
    value, error = np.array([float(found)]), np.array([wrong if found else 0.0])
    low = value if error[0] == 0 else np.zeros(1)
    return Measure(value, error, low, value, np.array([FALSE_POSITIVE], np.int8), truth=True)


def _in_leaves(
    parts: SetParts, views: Sequence[View], asked: Mapping[int, float]
) -> tuple[int, int]:
    """Observations that certainly are the combination, and those that may be, of the trees and
    times of the structures."""
    certain = possible = 0
    digits = parts.sets.shape.digits
    keys = np.array(list(parts.sets.blocks), np.int64).reshape(-1, 3)
    for view in views:
        leaves = view.leaves
        start, end = view.combs.start[view.rows.time], view.combs.end[view.rows.time]
        tree = view.trees[view.tree]
        near = np.zeros(len(leaves), bool)
        for code in np.unique(keys[:, 0]):
            mine = keys[keys[:, 0] == code]
            near |= (tree == code) & (start < mine[:, 2].max()) & (end > mine[:, 1].min())
        for f, value in asked.items():
            # Values count as equal if they round alike: half a unit of the last digit.
            half = 0.5 * 10.0 ** (np.floor(np.log10(abs(value) or 1.0)) - digits + 1)
            here = (view.rows.present >> np.uint32(f)) & np.uint32(1) == 1
            near &= (
                here & (leaves.lows[:, f] <= value + half) & (leaves.highs[:, f] >= value - half)
            )
        counts = leaves.count[near]
        possible += int(counts.sum())
        certain += int((counts == 1).sum())
    return certain, possible
