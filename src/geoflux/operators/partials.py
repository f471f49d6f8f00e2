"""Partial aggregates: for each (query, key) what its events came to so far.

The key is the start of a *pane* (a stretch of time that no window of the query cuts) while events
are collected, and the end of a window once panes are put together. Everything is columns over the
groups. :func:`regrouped` is the whole algebra: merging partials of several partitions or epochs,
and making windows of panes, are both "put equal keys together"; associative and commutative to the
last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators import bags, measures
from geoflux.operators.bags import Bag
from geoflux.operators.measures import Measure

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Partials:
    """Groups by (``number`` of the query, ``key``), how many events each has, and what their
    columns came to: measures by column, bags by kind and column (see :func:`bag_name`)."""

    number: Longs
    key: Longs
    count: Longs
    measures: Mapping[str, Measure] = field(default_factory=dict)
    bags: Mapping[str, Bag] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.number.size)

    @classmethod
    def none(cls) -> Partials:
        """No groups."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))

    def pruned(self) -> Partials:
        """With no more values in the dictionaries than occur."""
        return replace(self, bags={name: bag.pruned() for name, bag in self.bags.items()})

    def taken(self, rows: npt.NDArray[np.int64]) -> Partials:
        """Some of the groups, as they are."""
        return Partials(
            self.number[rows], self.key[rows], self.count[rows],
            {name: m.taken(rows) for name, m in self.measures.items()},
            {name: b.taken(rows) for name, b in self.bags.items()},
        )  # fmt: skip


def regrouped(
    parts: Sequence[Partials], rows: Sequence[npt.NDArray[Any]], number: Longs, key: Longs
) -> Partials:
    """Rows of several partials, ``rows[k]`` of ``parts[k]``, counted for (``number[i]``,
    ``key[i]``) where ``i`` counts over all of them; equal ones put together. A row may be named
    several times (a pane lies in several windows) or not at all. The result is ordered by number,
    then key."""
    if not parts:
        return Partials.none()
    order = np.lexsort((key, number))
    number, key = number[order], key[order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (number[1:] != number[:-1]) | (key[1:] != key[:-1])
    groups = int(new.sum())
    target = np.empty(order.size, np.int32)
    target[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    targets = np.split(target, np.cumsum([some.size for some in rows])[:-1])
    where = [(some.astype(np.int32), to) for some, to in zip(rows, targets, strict=True)]
    count = np.zeros(groups, np.int64)
    for part, (some, to) in zip(parts, where, strict=True):
        _count(some, to, part.count, count)
    made_measures, made_bags = {}, {}
    for name in _names([part.measures for part in parts]):
        columns = [part.measures.get(name) for part in parts]
        made_measures[name] = measures.regrouped(list(zip(columns, where, strict=True)), groups)
    for name in _names([part.bags for part in parts]):
        given = [part.bags.get(name) for part in parts]
        made_bags[name] = bags.regrouped(list(zip(given, where, strict=True)), groups)
    return Partials(number[new], key[new], count, made_measures, made_bags)


def merged(parts: Sequence[Partials]) -> Partials:
    """Several partials as one, equal keys put together."""
    none = np.empty(0, np.int64)
    return regrouped(
        parts,
        [np.arange(len(part)) for part in parts],
        np.concatenate([none, *(part.number for part in parts)]),
        np.concatenate([none, *(part.key for part in parts)]),
    )


def _names(given: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for some in given for name in some))


def bag_name(kind: str, column: str) -> str:
    """Distinct values are told apart as they are, quantiles are taken of numbers: two bags."""
    return f"{'distinct' if kind == 'distinct' else 'numbers'}:{column}"


@numba.njit(cache=True)
def _count(rows: Any, target: Any, source: Any, out: Any) -> None:
    for i in range(rows.size):
        out[target[i]] += source[rows[i]]


def to_arrays(parts: Sequence[Partials]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays for a segment that holds several partials, and what has to be noted about them. The
    dictionaries of bags lie one below the other, so that each part can be read by itself."""
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("number", "key", "count")
    }
    arrays["offsets"] = offsets_of([len(part) for part in parts])
    shapes = []
    for i, name in enumerate(_names([part.measures for part in parts])):
        m = measures.joined([(len(part), part.measures.get(name)) for part in parts])
        shapes.append([name, *m.shape])
        arrays |= {f"m{i}.n": m.n, f"m{i}.low": m.low, f"m{i}.high": m.high}
        arrays |= {f"m{i}.sums": m.sums.reshape(-1), f"m{i}.squares": m.squares.reshape(-1)}
    names = _names([part.bags for part in parts])
    for i, name in enumerate(names):
        given = [part.bags.get(name) or Bag.empty(len(part)) for part in parts]
        values = bags.of_one_kind([bag.values for bag in given if len(bag.values)])
        sizes = [np.diff(bag.offsets) for bag in given]
        arrays |= {
            f"b{i}.offsets": offsets_of(np.concatenate(sizes)),
            f"b{i}.codes": np.concatenate([bag.codes for bag in given]),
            f"b{i}.counts": np.concatenate([bag.counts for bag in given]),
            f"b{i}.values": pa.concat_arrays(values) if values else pa.nulls(0),
            f"b{i}.values.offsets": offsets_of([len(bag.values) for bag in given]),
        }
    return arrays, {"measures": shapes, "bags": names}


def offsets_of(sizes: Any) -> Longs:
    """Where each begins, and where the last one ends."""
    offsets: Longs = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def from_segment(segment: Any, place: int) -> Partials:
    """One of the partials that :func:`to_arrays` stored, as views into the segment."""
    array, about = segment.array, segment.about
    here = slice(*array("offsets")[place : place + 2])
    found_measures, found_bags = {}, {}
    for i, (name, limbs, base, limbs2, base2) in enumerate(about["measures"]):
        n = array(f"m{i}.n")
        found_measures[name] = Measure(
            n[here], array(f"m{i}.low")[here], array(f"m{i}.high")[here],
            array(f"m{i}.sums").reshape(n.size, limbs)[here], base,
            array(f"m{i}.squares").reshape(n.size, limbs2)[here], base2,
        )  # fmt: skip
    for i, name in enumerate(about["bags"]):
        offsets = array(f"b{i}.offsets")[here.start : here.stop + 1]
        codes = slice(offsets[0], offsets[-1])
        first, last = array(f"b{i}.values.offsets")[place : place + 2]
        found_bags[name] = Bag(
            offsets - offsets[0], array(f"b{i}.codes")[codes], array(f"b{i}.counts")[codes],
            segment.columns[f"b{i}.values"].slice(first, last - first),
        )  # fmt: skip
    return Partials(
        array("number")[here], array("key")[here], array("count")[here], found_measures, found_bags
    )
