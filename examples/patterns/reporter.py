"""The patterns as they come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoflux.operators.keyed import Operator


@dataclass(frozen=True)
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
