"""Candidates: the sets of words of sentences that enter the window, and of those that leave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoflux.errors import ConfigError
from geoflux.operators.keyed import Operator
from patterns.itemsets import MOST_WORDS, Bags, Ints

CHANGE = [
    ("itemset", pa.string()),
    ("seen", pa.int64()),
    ("covered", pa.int64()),
    ("at", pa.int64()),
]
"""By how much a count goes up, by how much the number of frequent sets with one word more does, and
the sentence that did it."""


@dataclass(frozen=True)
class Generator(Operator[pd.DataFrame]):
    """All sets of words of sentences that enter the window (+1) and of those that leave it (-1).

    Keyed by lane: the sentence that enters pushes out the one that was in its lane. Sets that are
    in both are left out. Of a sentence the first ``longest`` (1 to 12) different words count.
    """

    longest: int = 8
    key = "lane"
    columns = ("number", "text")
    output = pa.schema([*CHANGE, ("@row", pa.int64())])

    def __post_init__(self) -> None:
        if not 1 <= self.longest <= MOST_WORDS:
            raise ConfigError(
                f"longest = {self.longest}: a sentence of n words has 2^n - 1 sets of words; "
                f"give a number from 1 to {MOST_WORDS}"
            )

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
        return Bags.of_sentences(texts, self.longest).subsets()

    def extract(self, state: pd.DataFrame) -> Mapping[str, Any]:
        """Lanes and their sentences."""
        return {"lane": state["lane"].to_numpy(), "text": pa.array(state["text"], pa.string())}

    def install(self, arrays: Mapping[str, Any]) -> pd.DataFrame:
        """The lanes again."""
        return pd.DataFrame({name: arrays[name].to_pandas() for name in ("lane", "text")})

    def size(self, state: pd.DataFrame) -> int:
        """Their bytes, about."""
        return int(state.memory_usage(deep=False).sum()) + 1
