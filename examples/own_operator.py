"""A stateful operator written from nothing: a windowed join of two streams.

    python examples/own_operator.py

Taxis report where they are, people ask for a ride; both in zones of a city. A taxi and a request in
the same zone, at most a minute apart, are a pair. The tutorial in docs/tutorial-operator.md walks
through it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import geoflux


class WindowedJoin(geoflux.Operator[pd.DataFrame]):
    """Pairs of a taxi and a request of one zone, at most ``seconds`` apart.

    The state is a table of recent rows, in the order in which they came. A row meets those that
    came before it; one that is older than the latest of its zone by twice that time is forgotten.
    """

    key = "zone"
    columns = ("stream",)
    needs_time = True
    output = pa.schema([("taxi", pa.string()), ("request", pa.string()), ("apart", pa.float64())])

    def __init__(self, seconds: float) -> None:
        self._micros = round(seconds * 1e6)

    def empty(self) -> pd.DataFrame:
        """No rows yet."""
        kinds = {"zone": "str", "stream": "str", "@id": "str", "@time": "int64"}
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})

    def process(self, state: pd.DataFrame, rows: pa.Table) -> tuple[pd.DataFrame, pa.Table]:
        """Pair what came with what is there; all in columns, no loop over rows."""
        known = pd.concat([state, rows.to_pandas()[list(state.columns)]], ignore_index=True)
        known["place"] = np.arange(len(known))
        known["latest"] = known.groupby("zone")["@time"].cummax()
        pairs = known[len(state) :].merge(known, on="zone", suffixes=("", " before"))
        apart = (pairs["@time"] - pairs["@time before"]).abs()
        pairs = pairs[
            (pairs["place before"] < pairs["place"])
            & (pairs["stream before"] != pairs["stream"])
            & (pairs["@time before"] > pairs["latest"] - 2 * self._micros)
            & (apart <= self._micros)
        ]
        is_taxi = pairs["stream"] == "taxi"
        results = pa.table(
            [
                pairs["@id"].where(is_taxi, pairs["@id before"]),
                pairs["@id before"].where(is_taxi, pairs["@id"]),
                apart[pairs.index] / 1e6,
            ],
            schema=self.output,
        )
        newest = known.groupby("zone")["@time"].transform("max")
        recent = known[known["@time"] > newest - 2 * self._micros]
        return recent[state.columns], results

    def extract(self, state: pd.DataFrame) -> dict[str, Any]:
        """The columns, as arrays."""
        return {name: pa.array(state[name], from_pandas=True) for name in state.columns}

    def install(self, arrays: Any) -> pd.DataFrame:
        """The table again."""
        return pd.DataFrame({name: array.to_pandas() for name, array in arrays.items()})

    def size(self, state: pd.DataFrame) -> int:
        """Its bytes, about."""
        return int(state.memory_usage(deep=False).sum()) + 1


def main() -> int:
    """Make two streams, join them while partitions move, compare with one loop over all rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="operator-") as name:
        write_streams(Path(name) / "events", 20_000)
        config = geoflux.Config.from_dict(
            {
                "source": {"kind": "files", "path": f"{name}/events"},
                "engine": {"slots": 4, "epoch_events": 4_000},
                "flux": {"partitions": 8, "policy": "load", "collect": "100ms"},
            }
        )
        operator = WindowedJoin(seconds=60)
        out = given.out or Path(name) / "out"
        summary = geoflux.run_operator(operator, config, out)
        pairs = pq.read_table(out / "results").to_pandas()
        print(f"{summary.processed} rows in {summary.epochs} epochs, {summary.moves} moves")
        print(pairs.sort_values("apart").head(3).to_string(index=False))
        found = geoflux.verify_operator(operator, out)
    print(f"verified {found.results} pairs: {found.missing} missing, {found.unexpected} unexpected")
    return 0 if found.is_clean else 1


def write_streams(folder: Path, rows: int) -> None:
    """Taxis and requests in a hundred zones, most of them in a few; a quarter are requests."""
    draw = np.random.default_rng(7)
    is_taxi = draw.random(rows) < 0.75
    zone = np.minimum(draw.zipf(1.4, rows), 100)
    folder.mkdir(parents=True)
    table = pa.table(
        {
            "id": [f"{'taxi' if t else 'ride'}-{i}" for i, t in enumerate(is_taxi)],
            "stream": np.where(is_taxi, "taxi", "request"),
            "zone": [f"zone-{z}" for z in zone],
            "time": np.sort(draw.uniform(0, 7200, rows)) + draw.normal(0, 2, rows),
        }
    )
    for part in range(5):
        size = rows // 5
        pq.write_table(table.slice(part * size, size), folder / f"part-{part}.parquet")


if __name__ == "__main__":
    sys.exit(main())
