"""A sketch that is scaled out and in at known epochs, with slots too slow for what comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from geoflux import Config
from geoflux.balance.policy import Decision, Observed, Policy
from geoflux.engine.keyed_task import Emulated
from geoflux.engine.sketch_reader import sketch_of
from geoflux.plan import MergePrefix, Resize, SplitPrefix
from geoflux.workload.weather import FEATURES, made_up_weather

WEATHER = made_up_weather(4, 6_000, 1_774_396_800, 9 * 3600)
OUT, IN = 1, 3
"""The epochs that end with an operation."""
SLOW = Emulated(seconds_elsewhere=2e-4)
SKETCH = {"features": FEATURES, "tree_bits": 6, "region_bits": 10, "steady_rows": 40, "leaves": 4}


class Scripted(Policy):
    """Gives two regions to a new slot, and takes one of them back, and with it the other."""

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        if seen.epoch == OUT:
            cut = SplitPrefix(plan.partitions[0].id, ((0b01, 2, 1), (0b110, 3, 1)))
            return Decision((Resize(2), cut), "scale out"), state
        if seen.epoch == IN:
            return Decision((MergePrefix(0, 0, 0), Resize(1)), "scale in"), state
        return Decision((), ""), state


POLICY = Scripted()


def config(folder: Path) -> Config:
    return Config.from_dict(
        {
            "source": {"kind": "files", "path": str(folder / "weather")},
            "engine": {"slots": 1, "epoch_events": 1_000, "master": "local[2]", "memory": "1g"},
            "sketch": SKETCH, "synopsis": {"partitions": 1}, "flux": {"budget": "100ms"},
        }
    )  # fmt: skip


OPERATOR = sketch_of(Config.from_dict({"sketch": SKETCH}))


def write(folder: Path) -> None:
    (folder / "weather").mkdir(parents=True)
    pq.write_table(WEATHER.table(), folder / "weather" / "w.parquet", row_group_size=500)
