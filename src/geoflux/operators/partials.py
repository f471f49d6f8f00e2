"""Partial aggregates: for each (query, key) what its events came to so far.

The key is the start of a *pane* (a stretch of time that no window of the query cuts) while events
are collected, and the end of a window once panes are put together. Everything is columns over the
groups. :func:`joined` and :meth:`Partials.regrouped` are the whole algebra: merging partials of
several partitions or epochs, and making windows of panes, are both "one below the other, then put
equal keys together"; associative and commutative to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.operators import bags
from geoflux.operators.bags import Bag
from geoflux.operators.measures import Joining, Measure

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

    def cut(self, start: int, stop: int) -> Partials:
        """Some consecutive groups, without copying."""
        return Partials(
            self.number[start:stop], self.key[start:stop], self.count[start:stop],
            {name: m.taken(slice(start, stop)) for name, m in self.measures.items()},
            {name: b.cut(start, stop) for name, b in self.bags.items()},
        )  # fmt: skip

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

    def regrouped(self, rows: npt.NDArray[Any], number: Longs, key: Longs) -> Partials:
        """Row ``rows[i]`` counted for (``number[i]``, ``key[i]``); equal ones put together. A row
        may be named several times (a pane lies in several windows) or not at all. The result is
        ordered by number, then key."""
        order = np.lexsort((key, number))
        number, key = number[order], key[order]
        new = np.ones(order.size, np.bool_)
        new[1:] = (number[1:] != number[:-1]) | (key[1:] != key[:-1])
        target = np.cumsum(new, dtype=np.int32) - np.int32(1)
        groups = int(new.sum())
        source = rows[order].astype(np.int32)
        count = np.zeros(groups, np.int64)
        _count(source, target, self.count, count)
        return Partials(
            number[new], key[new], count,
            {n: m.regrouped(source, target, groups) for n, m in self.measures.items()},
            {n: b.regrouped(source, target, groups) for n, b in self.bags.items()},
        )  # fmt: skip

    def merged(self) -> Partials:
        """Equal keys put together."""
        return self.regrouped(np.arange(len(self)), self.number, self.key)


def joined(parts: Sequence[Partials]) -> Partials:
    """Several partials, one below the other; equal keys are not put together yet."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return Partials.none()
    if len(parts) == 1:
        return parts[0]
    measures = {}
    for name in dict.fromkeys(name for part in parts for name in part.measures):
        joining = Joining()
        for part in parts:
            joining.add(len(part), part.measures.get(name))
        measures[name] = joining.joined()
    return Partials(
        np.concatenate([part.number for part in parts]),
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.count for part in parts]),
        measures,
        {
            name: bags.joined([(len(part), part.bags.get(name)) for part in parts])
            for name in dict.fromkeys(name for part in parts for name in part.bags)
        },
    )


def merged(parts: Sequence[Partials]) -> Partials:
    """Several partials as one, equal keys put together."""
    return joined(parts).merged()


def bag_name(kind: str, column: str) -> str:
    """Distinct values are told apart as they are, quantiles are taken of numbers: two bags."""
    return f"{'distinct' if kind == 'distinct' else 'numbers'}:{column}"


@numba.njit(cache=True)
def _count(rows: Any, target: Any, source: Any, out: Any) -> None:
    for i in range(rows.size):
        out[target[i]] += source[rows[i]]


def to_arrays(partials: Partials) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays for a segment, and what has to be noted about them."""
    arrays: dict[str, Any] = {
        "number": partials.number, "key": partials.key, "count": partials.count
    }  # fmt: skip
    shapes, names = [], []
    for i, (name, m) in enumerate(partials.measures.items()):
        shapes.append([name, *m.shape])
        arrays |= {f"m{i}.n": m.n, f"m{i}.low": m.low, f"m{i}.high": m.high}
        arrays |= {f"m{i}.sums": m.sums.reshape(-1), f"m{i}.squares": m.squares.reshape(-1)}
    for i, (name, given) in enumerate(partials.bags.items()):
        bag = given.pruned()
        names.append(name)
        arrays |= {f"b{i}.offsets": bag.offsets, f"b{i}.codes": bag.codes}
        arrays |= {f"b{i}.counts": bag.counts, f"b{i}.values": bag.values}
    return arrays, {"measures": shapes, "bags": names}


def from_segment(segment: Any) -> Partials:
    """The partials that :func:`to_arrays` stored, as views into the segment."""
    array, about = segment.array, segment.about
    measures, found = {}, {}
    for i, (name, limbs, base, limbs2, base2) in enumerate(about["measures"]):
        n = array(f"m{i}.n")
        measures[name] = Measure(
            n, array(f"m{i}.low"), array(f"m{i}.high"),
            array(f"m{i}.sums").reshape(n.size, limbs), base,
            array(f"m{i}.squares").reshape(n.size, limbs2), base2,
        )  # fmt: skip
    for i, name in enumerate(about["bags"]):
        found[name] = Bag(
            array(f"b{i}.offsets"), array(f"b{i}.codes"), array(f"b{i}.counts"),
            segment.columns[f"b{i}.values"],
        )  # fmt: skip
    return Partials(array("number"), array("key"), array("count"), measures, found)
