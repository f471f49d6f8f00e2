"""A sketch on Spark under a rate that rises and falls, as figure 8: slots come and go, and whoever
asks meanwhile gets the answers of the raw observations. In a second run memory is short instead, as
figure 7b. How it is run: :mod:`geoflux.bench.synopsis_scaling_run`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from geoflux.bench.synopsis_scaling_figures import draw_memory, draw_scaling, draw_slot
from geoflux.bench.synopsis_scaling_run import Run, ScalingSizes, Seen, rates, stream_of
from geoflux.bench.synopsis_scaling_truth import (
    QUESTIONS,
    Compared,
    compared,
    misplaced,
    same,
    undisturbed,
)
from geoflux.bench.table import Bars
from geoflux.engine.sketch_reader import open_sketch, sketch_of
from geoflux.sections import EngineConfig
from geoflux.spark.session import build_session, stop_session, warm_workers
from geoflux.workload.weather import Weather

BARS: Bars = {
    "scale_outs": (">=", 1),
    "scale_ins": (">=", 1),
    "memory_scale_outs": (">=", 1),
    "answers_compared": (">=", 51),
    "answers_wrong": ("<=", 0),
    "memory_answers_wrong": ("<=", 0),
    "rows_lost_or_doubled": ("<=", 0),
    "split_merge_count_exact": (">=", 1),
    "split_merge_moments_error": ("<=", 1e-12),
}
FULL = ScalingSizes()
QUICK = ScalingSizes(
    epochs=20, calm=100, peak=1_400, budget=0.3, hold=1, calm_for=1, most_slots=4, memory_epochs=0,
    ask_every=0.4,
)  # fmt: skip


def measure_scaling(
    console: Console, seen: Weather, figures: Path, sizes: ScalingSizes,
    session: SparkSession | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Figures by name; draws into ``figures``. Without a session one is made, with as many threads
    as there may be slots."""
    with _session(session, sizes.most_slots) as spark, tempfile.TemporaryDirectory() as folder:
        bench = _Bench(sizes, Path(folder), spark, figures)
        console.print(f"[dim]Spark, up to {sizes.most_slots} slots, a rate that rises and falls")
        result = bench.rate(stream_of(seen, sizes))
        if sizes.memory_epochs:
            console.print("[dim]the same with a steady rate, short of memory")
            result |= bench.memory(seen)
    return result


@contextmanager
def _session(given: SparkSession | None, threads: int) -> Iterator[SparkSession]:
    if given is not None:
        yield given
        return
    own = build_session(EngineConfig(master=f"local[{threads}]", memory="1g"))
    try:
        warm_workers(own)
        yield own
    finally:
        stop_session(own)


@dataclass(frozen=True)
class _Bench:
    sizes: ScalingSizes
    folder: Path
    spark: SparkSession
    figures: Path

    def rate(self, stream: Weather) -> dict[str, Any]:
        """The rate rises and falls; answers are compared while it does."""
        run = Run(self.sizes, self.folder / "rate")
        seen = run.ran(stream, self.spark)
        judged = _judged(seen, stream)
        whole, end = open_sketch(run.out).whole(), undisturbed(sketch_of(run.config()), stream)
        kept = same(whole, end)
        draw_scaling(seen.epochs, rates(self.sizes), self.figures)
        draw_slot(seen.epochs, 0, self.figures)
        outs, ins = seen.operations("scale out"), seen.operations("scale in")
        during = {m["epoch"] for m in (*outs, *ins)}
        return {
            "emulated_service_ms": self.sizes.row_seconds * 1e3,
            "scaling_rows": len(stream), "scaling_epochs": len(seen.epochs),
            "rate_most_over_least": self.sizes.peak / self.sizes.calm,
            "scale_outs": len(outs), "scale_ins": len(ins),
            "slots_most": max(len(m["slots"]) for m in seen.epochs),
            "slots_at_end": len(seen.epochs[-1]["slots"]),
            "sketchlets_most": max(
                sum(slot["partitions"] for slot in m["slots"]) for m in seen.epochs),
            "backlog_most_over_peak": max(m["carried_out"] for m in seen.epochs) / self.sizes.peak,
            "answers_compared": len(judged),
            "answers_wrong": sum(not one.is_right for one in judged),
            "answers_moments_error": max((one.error for one in judged), default=0.0),
            "answers_right_after_operations": sum(
                one.is_right for one, (epoch, _, _) in zip(judged, seen.answers, strict=True)
                if epoch in during),
            "rows_lost_or_doubled": misplaced(whole, end),
            "split_merge_count_exact": kept.exact,
            "split_merge_moments_error": kept.error,
        }  # fmt: skip

    def memory(self, weather: Weather) -> dict[str, Any]:
        """A steady rate that one slot keeps up with, and little memory."""
        sizes = replace(self.sizes, epochs=self.sizes.memory_epochs, calm=self.sizes.memory_rate,
                        peak=self.sizes.memory_rate)  # fmt: skip
        stream, capacity = stream_of(weather, sizes), int(sizes.memory_megabytes * 1e6)
        run = Run(sizes, self.folder / "memory", f"{capacity} B")
        seen = run.ran(stream, self.spark)
        judged = _judged(seen, stream)
        kept = same(open_sketch(run.out).whole(), undisturbed(sketch_of(run.config()), stream))
        draw_memory(seen.epochs, capacity, self.figures)
        last = seen.epochs[-1]["slots"]
        return {
            "memory_scale_outs": len(seen.operations("scale out")),
            "memory_slots_at_end": len(last),
            "memory_fullest_share_at_end": max(s["state_bytes"] for s in last) / capacity,
            "memory_answers_compared": len(judged),
            "memory_answers_wrong": sum(not one.is_right for one in judged),
            "memory_split_merge_count_exact": kept.exact,
        }


def _judged(seen: Seen, stream: Weather) -> list[Compared]:
    """Every answer, compared with the observations that it is of."""
    found, epoch, known = [], -1, stream
    for at, number, answer in seen.answers:
        if at != epoch:
            epoch, known = at, seen.taken[at].among(stream)
        found.append(compared(QUESTIONS[number], answer, known))
    return found
