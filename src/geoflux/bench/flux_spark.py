"""Flux on Spark: four slots, one of them slow or short of memory, with nothing moved and with Flux.

Four slots behave like four machines on any number of cores, since the service time of a row is
emulated: the slot sleeps. So is the disk: partitions without room in memory take a time of their
own to be read and written. All else is a run as a user's: files in, a windowed group-by, results
and states on disk. The results of every run are compared with those of one loop over all rows.
Throughput is rows over the time between commits, in the second half of the epochs of a run.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_task import Emulated
from geoflux.keyed_api import operated, verify_operator
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.operators.keyed import ID, TIME
from geoflux.sections import EngineConfig
from geoflux.spark.session import build_session, stop_session, warm_workers
from geoflux.spark.stream import Listener

_SLOTS = 4
_SLOWER = 3.0
_SEED = 5
_FILLED = 0.75
"""States as a share of memory, as in the paper: 768 MB of 1 GB."""
_LEFT = 0.5


@dataclass(frozen=True)
class SparkSizes:
    """How large the runs are."""

    epoch_rows: int
    row_seconds: float
    """Emulated service time."""
    partition_seconds: float
    """Emulated time to read or write a partition that is on disk."""
    per_slot: int
    groups: int
    history: int
    epochs: Mapping[str, int] = field(default_factory=dict)
    """Of each run, by name."""


FULL = SparkSizes(
    epoch_rows=12_000, row_seconds=1e-3, partition_seconds=0.25, per_slot=16, groups=4096,
    history=10,
    epochs={
        "warm-up": 2, "unperturbed": 10, "slow, static": 8, "slow, flux": 30, "memory, static": 14,
        "memory, flux": 26,
    },
)  # fmt: skip
QUICK = SparkSizes(
    epoch_rows=1_600, row_seconds=1e-3, partition_seconds=0.1, per_slot=8, groups=256, history=8,
    epochs={
        "warm-up": 1, "unperturbed": 3, "slow, static": 2, "slow, flux": 8, "memory, static": 3,
        "memory, flux": 7,
    },
)  # fmt: skip


@dataclass(frozen=True)
class _Ran:
    rate: float
    """Rows per second, once settled."""
    spilled_most: int
    spilled_end: int
    moves: int
    clean: bool


def run_on_spark(console: Console, sizes: SparkSizes, folder: Path) -> dict[str, Any]:
    """All runs one after the other, in a session of their own; returns the figures by name."""
    config = EngineConfig(master=f"local[{_SLOTS}]", memory="1g")
    session = build_session(config)
    try:
        warm_workers(session)
        return measured(console, sizes, folder, session)
    finally:
        stop_session(session)


def measured(
    console: Console, sizes: SparkSizes, folder: Path, session: SparkSession
) -> dict[str, Any]:
    """The same in a session that is there, with as many cores as there are slots or more."""
    bench = _Bench(console, sizes, folder)
    bench.write()
    bench.run("warm-up", "static", Emulated(), session)
    return _figures(sizes, _runs(bench, session))


def _runs(bench: _Bench, session: SparkSession) -> dict[str, _Ran]:
    equal = dict.fromkeys(range(_SLOTS), bench.sizes.row_seconds)
    slow = Emulated({**equal, 0: _SLOWER * equal[0]})
    memory = bench.slot_memory()
    rate = bench.partition_bytes() / bench.sizes.partition_seconds
    short = Emulated(equal, rate, {0: int(_LEFT * memory)})
    ran = {"unperturbed": bench.run("unperturbed", "hybrid", Emulated(equal), session)}
    for policy in ("static", "hybrid"):
        name = "flux" if policy == "hybrid" else policy
        ran[f"slow, {name}"] = bench.run(f"slow, {name}", policy, slow, session)
        ran[f"memory, {name}"] = bench.run(f"memory, {name}", policy, short, session, memory)
    return ran


def _figures(sizes: SparkSizes, ran: Mapping[str, _Ran]) -> dict[str, Any]:
    static, flux, calm = ran["slow, static"], ran["slow, flux"], ran["unperturbed"]
    memory = ran["memory, flux"]
    return {
        "spark_emulated_service_ms": sizes.row_seconds * 1e3,
        "spark_epoch_rows": sizes.epoch_rows,
        "spark_unperturbed_rows_per_second": calm.rate,
        "spark_overhead_share": 1 - calm.rate * sizes.row_seconds / _SLOTS,
        "spark_flux_vs_static": flux.rate / static.rate,
        "spark_flux_vs_unperturbed": flux.rate / calm.rate,
        "spark_moves_slow_slot": flux.moves,
        "spark_memory_vs_static": memory.rate / ran["memory, static"].rate,
        "spark_memory_vs_unperturbed": memory.rate / calm.rate,
        "spark_moves_memory": memory.moves,
        "spark_spilled_static": ran["memory, static"].spilled_end,
        "spark_spilled_most": memory.spilled_most,
        "spark_spilled_at_end": memory.spilled_end,
        "spark_oracle_clean": all(one.clean for one in ran.values()),
    }


@dataclass(frozen=True)
class _Bench:
    console: Console
    sizes: SparkSizes
    folder: Path

    @property
    def operator(self) -> WindowedGroupBy:
        return WindowedGroupBy("group", "value", "stddev", rows=self.sizes.history)

    def write(self) -> None:
        """Rows for the longest run; a shorter one reads fewer of the files."""
        for epoch in range(max(self.sizes.epochs.values())):
            table = self._rows(epoch)
            for name in {n for n, epochs in self.sizes.epochs.items() if epoch < epochs}:
                path = self.folder / name / f"part-{epoch:04d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(table, path)

    def _rows(self, epoch: int) -> pa.Table:
        draw = np.random.default_rng([_SEED, epoch])
        count = self.sizes.epoch_rows
        first = epoch * count
        return pa.table(
            {
                "id": [f"r{i}" for i in range(first, first + count)],
                "group": draw.integers(0, self.sizes.groups, count),
                "value": draw.normal(size=count),
                "time": np.arange(first, first + count, dtype=np.float64),
            }
        )

    def slot_memory(self) -> int:
        """What a slot has when nobody is short: its states fill three quarters of it."""
        return int(self._state_bytes() / _SLOTS / _FILLED)

    def partition_bytes(self) -> float:
        """The mean of a mini-partition."""
        return self._state_bytes() / (_SLOTS * self.sizes.per_slot)

    def _state_bytes(self) -> int:
        """Of all histories, once they are full."""
        groups = np.repeat(np.arange(self.sizes.groups), self.sizes.history)
        numbers = np.arange(groups.size)
        rows = pa.table({"group": groups, "value": groups * 1.0, ID: numbers, TIME: numbers})
        state, _ = self.operator.process(self.operator.empty(), rows)
        return self.operator.size(state)

    def config(self, policy: str, name: str, memory: int | None) -> Config:
        return Config.from_dict(
            {
                "source": {"kind": "files", "path": str(self.folder / name)},
                "engine": {
                    "slots": _SLOTS, "epoch_events": self.sizes.epoch_rows,
                },
                "flux": {
                    "partitions": self.sizes.per_slot, "policy": policy, "collect": "100ms",
                    "memory": "" if memory is None else f"{memory} B",
                },
            }
        )  # fmt: skip

    def run(
        self, name: str, policy: str, emulated: Emulated, session: SparkSession,
        memory: int | None = None,
    ) -> _Ran:  # fmt: skip
        self.console.print(f"[dim]Spark, {_SLOTS} slots, {name}")
        out = self.folder / f"out, {name}"
        shutil.rmtree(out, ignore_errors=True)
        seen: list[Manifest] = []
        config, listener = self.config(policy, name, memory), Listener(seen.append)
        operated(self.operator, config, out, listener, spark=session, emulated=emulated)
        found = verify_operator(self.operator, out)
        clean = found.is_clean and found.rows == sum(m["received"] for m in seen)
        if not clean:
            self.console.print(f"[bold red]{name}: not what one loop gives: {found}")
        spilled = [len(m["spilled"]) for m in seen]
        moves = sum(len(m["decision"]["changes"]) for m in seen)
        return _Ran(_settled_rate(seen), max(spilled), spilled[-1], moves, clean)


def _settled_rate(seen: list[Manifest]) -> float:
    """Rows per second from the commit in the middle to the last one."""
    late = seen[len(seen) // 2 - 1 :]
    rows = sum(m["processed"] for m in late[1:])
    return float(rows / (late[-1]["committed"] - late[0]["committed"]))
