"""Which sets of words are maximal frequent patterns, kept up to date by a loop.

A set of words is maximal if it is frequent and no set with one word more is: a set with two words
more cannot be frequent unless those in between are. So a detector needs to know of each set its
own count, and how many of the sets with one word more are frequent. When a set becomes frequent,
or is no longer, that is sent round to the sets with one word less, whoever holds them. Both numbers
are sums of what came in, so the order in which things come in from several senders does not matter:
when nothing is on its way any more, both are right, and so is what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.errors import ConfigError
from geoflux.operators.keyed import Operator
from patterns.generator import CHANGE
from patterns.itemsets import Bags, Ints


@dataclass(frozen=True, eq=False)
class Counts:
    """Sets of words, in how many sentences each is, and how many frequent sets with one word more
    there are. Those with nothing but zeros are not kept."""

    itemsets: pa.Array
    seen: Ints
    covered: Ints


@dataclass(frozen=True)
class Detector(Operator[Counts]):
    """Which sets of words are in at least ``threshold`` sentences, and no larger set is.

    Reads candidates and, from its own stream ``around``, which sets have become frequent or are no
    longer. ``maximal`` tells what has become, or is no longer, a maximal frequent pattern.
    """

    threshold: int
    key = "itemset"
    columns = ("seen", "covered", "at")
    streams = ("around", "maximal")
    output = pa.schema(
        [
            *CHANGE,
            ("is_maximal", pa.bool_()),
            ("support", pa.int64()),
            ("@stream", pa.string()),
            ("@row", pa.int64()),
        ]
    )

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise ConfigError(
                f"threshold = {self.threshold}: give the fewest sentences, at least 1"
            )

    def empty(self) -> Counts:
        """Nothing seen."""
        nothing = np.empty(0, np.int64)
        return Counts(pa.array([], pa.string()), nothing, nothing)

    def process(self, state: Counts, rows: pa.Table) -> tuple[Counts, pa.Table]:
        """Every change row by row, but all in columns: sorted by set, summed up in order."""
        coded = rows.column("itemset").combine_chunks().dictionary_encode()
        codes = coded.indices.to_numpy()
        known = pc.index_in(coded.dictionary, value_set=state.itemsets)
        place = known.fill_null(-1).to_numpy().astype(np.int64)
        order = np.argsort(codes, kind="stable")
        seen = _Sums(codes[order], _given(state.seen, place), _ints(rows, "seen")[order])
        covered = _Sums(codes[order], _given(state.covered, place), _ints(rows, "covered")[order])
        was, now = seen.before >= self.threshold, seen.after >= self.threshold
        was_maximal, is_maximal = was & (covered.before == 0), now & (covered.after == 0)
        turned = np.flatnonzero(was != now)
        flipped = np.flatnonzero(was_maximal != is_maximal)
        results = pa.concat_tables(
            [
                self._around(rows, order[turned], now[turned]),
                self._flips(rows, order[flipped], is_maximal[flipped], seen.after[flipped]),
            ]
        ).sort_by("@row")
        return _joined(state, place, coded.dictionary, seen.last, covered.last), results

    def _around(self, rows: pa.Table, row: Ints, is_frequent: Any) -> pa.Table:
        """To the sets with one word less: one more, or one less, of those above is frequent."""
        itemsets = rows.column("itemset").combine_chunks().take(pa.array(row))
        sets, of = Bags.of_itemsets(itemsets).without_one()
        change = np.where(is_frequent[of], 1, -1)
        return self._table(
            sets, np.zeros_like(change), change, _ints(rows, "at")[row[of]],
            pa.nulls(len(sets), pa.bool_()), pa.nulls(len(sets), pa.int64()), "around", row[of],
        )  # fmt: skip

    def _flips(self, rows: pa.Table, row: Ints, is_maximal: Any, support: Ints) -> pa.Table:
        itemsets = rows.column("itemset").combine_chunks().take(pa.array(row))
        nothing = pa.nulls(len(row), pa.int64())
        return self._table(
            itemsets, nothing, nothing, _ints(rows, "at")[row], is_maximal, support,
            "maximal", row,
        )  # fmt: skip

    def _table(self, *columns: Any) -> pa.Table:
        *first, stream, row = columns
        streams = pa.array(np.full(len(row), stream, object), pa.string())
        return pa.table([*first, streams, row], schema=self.output)

    def extract(self, state: Counts) -> Mapping[str, Any]:
        """The three columns."""
        return {"itemsets": state.itemsets, "seen": state.seen, "covered": state.covered}

    def install(self, arrays: Mapping[str, Any]) -> Counts:
        """The columns again."""
        numbers = (arrays[name].to_numpy() for name in ("seen", "covered"))
        itemsets = arrays["itemsets"]
        if isinstance(itemsets, pa.ChunkedArray):
            itemsets = itemsets.combine_chunks()
        return Counts(itemsets, *numbers)

    def size(self, state: Counts) -> int:
        """Their bytes."""
        return state.itemsets.nbytes + state.seen.nbytes + state.covered.nbytes + 1


class _Sums:
    """Sums per group, row by row: rows are sorted by group, and ``begin`` is what each has."""

    def __init__(self, groups: Ints, begin: Ints, changes: Ints) -> None:
        total = np.cumsum(changes)
        firsts = np.searchsorted(groups, np.arange(len(begin)))
        base = begin - (total[firsts] - changes[firsts])
        self.after = total + base[groups]
        self.before = self.after - changes
        self.last = self.after[np.append(firsts, len(groups))[1:] - 1]


def _joined(state: Counts, place: Ints, itemsets: Any, seen: Ints, covered: Ints) -> Counts:
    """The state with the new values in it, without sets of which nothing is left."""
    old = place >= 0
    counts = []
    for held, given in ((state.seen, seen), (state.covered, covered)):
        updated = held.copy()
        updated[place[old]] = given[old]
        counts.append(np.concatenate([updated, given[~old]]))
    names = pa.concat_arrays([state.itemsets, itemsets.filter(pa.array(~old))])
    kept = (counts[0] != 0) | (counts[1] != 0)
    if kept.all():
        return Counts(names, *counts)
    return Counts(names.filter(pa.array(kept)), counts[0][kept], counts[1][kept])


def _given(values: Ints, place: Ints) -> Ints:
    """The values at some places, 0 where there is none."""
    known = np.append(values, 0)
    return known[place]


def _ints(rows: pa.Table, name: str) -> Ints:
    return np.asarray(rows.column(name).to_numpy(), np.int64)
