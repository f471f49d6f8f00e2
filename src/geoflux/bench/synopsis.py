"""`geoflux bench synopsis`: what a sketch takes in, holds, and answers, with weather.

With a file of real weather (`--data`), replayed and perturbed for as long as it takes; without one
weather is made up. The parts ``spark`` and ``training`` run on Spark with two cores, all others in
one plain process (and ``clients`` in several). Seeds are fixed, times are those of the machine.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from geoflux.bench import (
    synopsis_bins,
    synopsis_growth,
    synopsis_ingest,
    synopsis_queries,
    synopsis_scaling,
    synopsis_sets,
    synopsis_truth,
)
from geoflux.bench.figures import FOLDER
from geoflux.bench.synopsis_ingest import schema_of, took_in
from geoflux.bench.synopsis_scaling_run import ScalingSizes
from geoflux.bench.table import Bars, check_parts
from geoflux.sketch.forest import Forest
from geoflux.workload.weather import Weather, WeatherStream, made_up_weather, read_weather

BARS: Bars = {
    **synopsis_ingest.BARS, **synopsis_bins.BARS, **synopsis_growth.BARS, **synopsis_queries.BARS,
    **synopsis_truth.BARS, **synopsis_sets.BARS, **synopsis_scaling.BARS,
    "spark_obs_per_second": (">=", 1.0),
    "rmse_ratio_10": ("<=", 1.03), "rmse_ratio_20": ("<=", 1.03), "r2_real": (">=", 0.5),
    "training_time_share_10": ("<=", 1.0), "training_time_share_20": ("<=", 1.0),
}  # fmt: skip
_NEED_ROWS = (
    "quantised", "values", "growth", "quantiles", "hll", "bloom", "countmin", "rmse", "r2",
    "training_time",
)  # fmt: skip
QUICK_BARS: Bars = {name: bar for name, bar in BARS.items() if not name.startswith(_NEED_ROWS)}
"""Without what needs more observations than there are, and more trials."""
_START, _WEEK = 1_774_396_800, 7 * 86_400


@dataclass(frozen=True)
class Sizes:
    """How much is taken in and asked."""

    rows: int = 1_563_840
    """Of made-up weather, a week of it; of real weather, at most."""
    weeks: int = 3
    """Whose ingest is timed."""
    steps: int = 52
    """Weeks of the long stream."""
    questions: int = 1000
    compared: int = 1000
    set_trials: int = 100
    splits: int = 5
    split_rows: int = 260_640
    clients: tuple[int, ...] = (1, 2, 4, 8)
    client_seconds: float = 4.0
    spark_epochs: int = 24
    spark_epoch_rows: int = 130_320
    trees: int = 20
    scaling: ScalingSizes = synopsis_scaling.FULL


FULL = Sizes()
QUICK = Sizes(
    rows=130_320, weeks=1, steps=8, questions=100, compared=60, set_trials=10, splits=2,
    split_rows=65_160, clients=(1, 2), client_seconds=0.5, spark_epochs=6, spark_epoch_rows=32_580,
    trees=5, scaling=synopsis_scaling.QUICK,
)  # fmt: skip


@dataclass
class Bench:
    """What the parts have in common, made when the first of them needs it."""

    sizes: Sizes
    data: Path | None
    figures: Path
    console: Console
    until_end: contextlib.ExitStack
    result: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def seen(self) -> Weather:
        """The observations of a week."""
        if self.data is None:
            return made_up_weather(7, self.sizes.rows, _START, _WEEK)
        return read_weather(self.data).between(0, self.sizes.rows)

    @cached_property
    def stream(self) -> WeatherStream:
        """The same, for as long as it takes."""
        return WeatherStream(self.seen)

    @cached_property
    def forest(self) -> Forest:
        """The sketch of the week."""
        self.console.print("[dim]a sketch of a week")
        return took_in(Forest.empty(schema_of(self.seen)), self.seen)

    @cached_property
    def sketchlet(self) -> Forest:
        """The largest of 16 parts of it."""
        return synopsis_queries.largest_of(self.forest)

    def ingest(self) -> None:
        """Observations a second of one core."""
        self.result |= synopsis_ingest.measure_ingest(self.stream, self.sizes.weeks)

    def memory(self) -> None:
        """Table 1."""
        found = synopsis_ingest.measure_memory(self.seen, self.forest)
        self.console.print(synopsis_ingest.table_1(found))
        self.result |= found

    def bins(self) -> None:
        """Figures 4 and 9."""
        self.result |= synopsis_bins.measure_bins(self.forest, self.seen, self.figures)

    def growth(self) -> None:
        """Figure 10."""
        found = synopsis_growth.measure_growth(self.stream, self.sizes.steps, self.figures)
        self.result |= found

    def queries(self) -> None:
        """Table 2."""
        found = synopsis_queries.measure_queries(
            self.sketchlet, self.seen, self.sizes.questions, self.figures
        )
        self.console.print(synopsis_queries.table_2(found))
        self.result |= found

    def truth(self) -> None:
        """Answers against the raw observations."""
        self.result |= synopsis_truth.measure_truth(self.forest, self.seen, self.sizes.compared)

    def sets(self) -> None:
        """Set structures within their bounds; splits and merges."""
        self.result |= synopsis_sets.measure_sets(self.sizes.set_trials)
        some = self.seen.between(0, self.sizes.split_rows)
        self.result |= synopsis_sets.measure_merges(some, self.sizes.splits)

    def clients(self) -> None:
        """Figure 11."""
        from geoflux.bench.synopsis_clients import measure_clients

        self.result |= measure_clients(
            self.sketchlet, self.seen, self.sizes.clients, self.sizes.client_seconds, self.figures
        )

    @cached_property
    def session(self) -> Any:
        """Spark on two cores, until the benchmark ends."""
        from geoflux.bench.synopsis_spark import two_cores

        return self.until_end.enter_context(two_cores())

    def folder(self) -> Path:
        """Somewhere to write, until the benchmark ends."""
        return Path(self.until_end.enter_context(tempfile.TemporaryDirectory()))

    def spark(self) -> None:
        """The whole of it on Spark."""
        from geoflux.bench.synopsis_spark import measure_spark

        sizes = self.sizes
        self.result |= measure_spark(
            self.session, self.stream, sizes.spark_epochs, sizes.spark_epoch_rows, self.folder()
        )

    def training(self) -> None:
        """Table 3."""
        from geoflux.bench.synopsis_training import measure_training, table_3

        found = measure_training(self.session, self.seen, self.sizes.trees, self.folder())
        self.console.print(table_3(found))
        self.result |= found

    def scaling(self) -> None:
        """Figures 7 and 8, in a session with threads for all slots."""
        self.result |= synopsis_scaling.measure_scaling(
            self.console, self.seen, self.figures, self.sizes.scaling
        )


_RUNS: dict[str, Callable[[Bench], None]] = {
    "ingest": Bench.ingest, "memory": Bench.memory, "bins": Bench.bins, "growth": Bench.growth,
    "queries": Bench.queries, "truth": Bench.truth, "sets": Bench.sets, "clients": Bench.clients,
    "scaling": Bench.scaling, "spark": Bench.spark, "training": Bench.training,
}  # fmt: skip
"""Processes of clients are forked, so they come before Spark is started; scaling has a session of
its own, which has ended when the other begins."""
PARTS = tuple(_RUNS)


def run_benchmark(
    console: Console, quick: bool = False, figures: Path = FOLDER, parts: Sequence[str] = PARTS,
    data: Path | None = None, sizes: Sizes | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Figures by name; draws into ``figures``."""
    check_parts(parts, PARTS)
    took: dict[str, float] = {}
    with contextlib.ExitStack() as until_end:
        bench = Bench(sizes or (QUICK if quick else FULL), data, figures, console, until_end)
        bench.result |= {"quick": quick, "rows": len(bench.seen), "real": data is not None}
        for part in PARTS:
            if part in parts:
                console.print(f"[dim]{part}")
                began = time.perf_counter()
                _RUNS[part](bench)
                took[part] = round(time.perf_counter() - began, 1)
    return bench.result | {"part_seconds": took}
