"""The three operators: candidates that enter and leave, which of them are maximal, and since when.

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
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.errors import ConfigError
from geoflux.operators.keyed import Operator
from patterns.itemsets import MOST_WORDS, Bags, Ints

_CHANGE = [
    ("itemset", pa.string()),
    ("seen", pa.int64()),
    ("covered", pa.int64()),
    ("at", pa.int64()),
]
"""By how much a count goes up, by how much the number of frequent sets with one word more does, and
the sentence that did it."""


class Generator(Operator[pd.DataFrame]):
    """All sets of words of sentences that enter the window (+1) and of those that leave it (-1).

    Keyed by lane: the sentence that enters pushes out the one that was in its lane. Sets that are
    in both are left out. Of a sentence the first ``longest`` (1 to 12) different words count.
    """

    key = "lane"
    columns = ("number", "text")
    output = pa.schema([*_CHANGE, ("@row", pa.int64())])

    def __init__(self, longest: int = 8) -> None:
        if not 1 <= longest <= MOST_WORDS:
            raise ConfigError(
                f"longest = {longest}: a sentence of n words has 2^n - 1 sets of words; "
                f"give a number from 1 to {MOST_WORDS}"
            )
        self._longest = longest

    def empty(self) -> pd.DataFrame:
        """No sentences in any lane."""
        return pd.DataFrame({"lane": np.empty(0, np.int64), "text": pd.Series(dtype="str")})

    def process(self, state: pd.DataFrame, rows: pa.Table) -> tuple[pd.DataFrame, pa.Table]:
        """Each sentence goes in, the one before it in its lane goes out."""
        line = pd.concat([state, rows.select(["lane", "text"]).to_pandas()], ignore_index=True)
        before = line.groupby("lane")["text"].shift().iloc[len(state) :]
        leaving, left = self._sets(pa.array(before, pa.string(), from_pandas=True))
        entering, entered = self._sets(rows.column("text").combine_chunks())
        sets = pa.concat_arrays([entering, leaving]).dictionary_encode()
        row, change = np.concatenate([entered, left]), np.ones(len(sets), np.int64)
        change[len(entered) :] = -1
        kinds = max(len(sets.dictionary), 1)
        groups, inverse = np.unique(row * kinds + sets.indices.to_numpy(), return_inverse=True)
        net = np.bincount(inverse, change, len(groups)).astype(np.int64)
        groups, net = groups[net != 0], net[net != 0]
        row, itemset = np.divmod(groups, kinds)
        at = rows.column("number").to_numpy()[row]
        columns = [sets.dictionary.take(pa.array(itemset)), net, np.zeros_like(net), at, row]
        last = line.drop_duplicates("lane", keep="last").reset_index(drop=True)
        return last, pa.table(columns, schema=self.output)

    def _sets(self, texts: pa.Array) -> tuple[pa.Array, Ints]:
        return Bags.of_sentences(texts, self._longest).subsets()

    def extract(self, state: pd.DataFrame) -> Mapping[str, Any]:
        """Lanes and their sentences."""
        return {"lane": state["lane"].to_numpy(), "text": pa.array(state["text"], pa.string())}

    def install(self, arrays: Mapping[str, Any]) -> pd.DataFrame:
        """The lanes again."""
        return pd.DataFrame({name: arrays[name].to_pandas() for name in ("lane", "text")})

    def size(self, state: pd.DataFrame) -> int:
        """Their bytes, about."""
        return int(state.memory_usage(deep=False).sum()) + 1


@dataclass(frozen=True, eq=False)
class Counts:
    """Sets of words, in how many sentences each is, and how many frequent sets with one word more
    there are. Those with nothing but zeros are not kept."""

    itemsets: pa.Array
    seen: Ints
    covered: Ints


class Detector(Operator[Counts]):
    """Which sets of words are in at least ``threshold`` sentences, and no larger set is.

    Reads candidates and, from its own stream ``around``, which sets have become frequent or are no
    longer. ``maximal`` tells what has become, or is no longer, a maximal frequent pattern.
    """

    key = "itemset"
    columns = ("seen", "covered", "at")
    streams = ("around", "maximal")
    output = pa.schema(
        [
            *_CHANGE,
            ("is_maximal", pa.bool_()),
            ("support", pa.int64()),
            ("@stream", pa.string()),
            ("@row", pa.int64()),
        ]
    )

    def __init__(self, threshold: int) -> None:
        if threshold < 1:
            raise ConfigError(f"threshold = {threshold}: give the fewest sentences, at least 1")
        self._threshold = threshold

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
        was, now = seen.before >= self._threshold, seen.after >= self._threshold
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


class Reporter(Operator[pd.DataFrame]):
    """The maximal frequent patterns, as they come and go; the last row of a pattern says whether
    it is one. ``since`` is the sentence that made it one, ``at`` the one that changed it."""

    key = "itemset"
    columns = ("is_maximal", "support", "at")
    output = pa.schema(
        [
            ("itemset", pa.string()),
            ("is_maximal", pa.bool_()),
            ("support", pa.int64()),
            ("since", pa.int64()),
            ("at", pa.int64()),
            ("@row", pa.int64()),
        ]
    )

    def empty(self) -> pd.DataFrame:
        """No patterns."""
        return pd.DataFrame({"itemset": pd.Series(dtype="str"), "since": np.empty(0, np.int64)})

    def process(self, state: pd.DataFrame, rows: pa.Table) -> tuple[pd.DataFrame, pa.Table]:
        """Changes alternate: a pattern that ends began with the row before it."""
        came = rows.select(["itemset", "is_maximal", "at"]).to_pandas()
        held = state.rename(columns={"since": "at"}).assign(is_maximal=True)
        line = pd.concat([held, came], ignore_index=True)
        began = line.groupby("itemset")["at"].shift(fill_value=0).iloc[len(held) :].to_numpy()
        since = np.where(came["is_maximal"], came["at"], began)
        columns = [rows.column(name) for name in ("itemset", "is_maximal", "support")]
        columns += [since, rows.column("at"), np.arange(len(rows))]
        last = line.drop_duplicates("itemset", keep="last")
        last = last[last["is_maximal"]].rename(columns={"at": "since"})
        state = last[["itemset", "since"]].reset_index(drop=True)
        return state, pa.table(columns, schema=self.output)

    def extract(self, state: pd.DataFrame) -> Mapping[str, Any]:
        """The patterns and since when they are."""
        itemsets = pa.array(state["itemset"], pa.string(), from_pandas=True)
        return {"itemset": itemsets, "since": state["since"].to_numpy()}

    def install(self, arrays: Mapping[str, Any]) -> pd.DataFrame:
        """The patterns again."""
        return pd.DataFrame({name: arrays[name].to_pandas() for name in ("itemset", "since")})

    def size(self, state: pd.DataFrame) -> int:
        """Their bytes, about."""
        return int(state.memory_usage(deep=False).sum()) + 1


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
