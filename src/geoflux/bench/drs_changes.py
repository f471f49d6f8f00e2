"""Scaling at work on Spark, for figures 8 and 9: from poor allocations to the best one, and a load
that rises and falls. A load that stays, begun with the best allocation, must lead to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from geoflux.bench import drs_figures as draw
from geoflux.bench.drs_apps import Allocation, App
from geoflux.bench.drs_step import Timeline, step_figures, timeline
from geoflux.bench.drs_timelines import changing, stepping
from geoflux.scale.decisions import shown

_PATIENT = {"look": "3s", "patience": 2, "settle": "9s", "window": 3, "payback": "120s"}
"""As hours of the paper are minutes here, so is patience."""


@dataclass(frozen=True)
class ChangeSizes:
    """How long the runs are."""

    processors: int = 14
    rearranged: float = 120.0
    apart: str = "30s"
    """Before the first change, and between two."""
    rates: tuple[tuple[float, float], ...] = ((50.0, 15.0), (80.0, 40.0), (80.0, 12.0))
    longest: float = 8.0
    shortest: float = 2.5
    share: float = 1.0
    """Of the application's inputs a second, where the load stays."""
    poor: int = 2
    """Allocations to begin with that are not the best."""


FULL = ChangeSizes()
QUICK = ChangeSizes(12, 5.0, "2s", ((3.0, 5.0), (3.0, 15.0), (3.0, 5.0)), share=0.25, poor=0)


def measure_changes(
    console: Console, session: SparkSession, folder: Path, figures: Path, app: App,
    best: Allocation, sizes: ChangeSizes = FULL,
) -> dict[str, Any]:  # fmt: skip
    """Figures by name. The first run begins with the best allocation, others with poor ones."""
    starts = [best, *poor(best)[: sizes.poor]]
    load = [(sizes.rearranged, app.rate * sizes.share)]
    runs = [
        timeline(
            app, session, folder, f"start-{place}", start, load,
            mode="on", goal="latency", processors=sum(start.values()), apart=sizes.apart,
            **_PATIENT,
        )
        for place, start in enumerate(starts)
    ]  # fmt: skip
    for start, run in zip(starts, runs, strict=True):
        console.print(f"[dim]{app.name} from {shown(start)}: {_told(run)}")
    drawn = [changing(shown(s), run) for s, run in zip(starts, runs, strict=True)]
    draw.rearranged(figures, app.name, drawn)
    lowest = half_busy(app, sizes.rates[0][1])
    seen = timeline(
        app, session, folder, "step", lowest, sizes.rates, mode="on", goal="processors",
        processors=sizes.processors, longest=f"{sizes.longest}s", shortest=f"{sizes.shortest}s",
        apart="9s", wait_down="20s", **_PATIENT,
    )  # fmt: skip
    console.print(f"[dim]{app.name}, steps: {_told(seen)}")
    ends = np.cumsum([seconds for seconds, _ in sizes.rates]).tolist()
    target = (sizes.shortest, sizes.longest)
    draw.stepped(figures, stepping(seen, sizes.rates, target))
    ends_at = [run.changes[-1].after if run.changes else start
               for start, run in zip(starts, runs, strict=True)]  # fmt: skip
    return {
        "decisions_on_constant_load": len(runs[0].changes),
        "rearranged_alike": float(len({shown(a) for a in ends_at}) == 1),
        "rearranged_to": [shown(a) for a in ends_at],
        "rearranged_lost_or_doubled": sum(
            abs(r.inputs - len(r.took)) + (not r.clean) for r in runs
        ),
        **step_figures(seen, (ends[0], ends[1]), sizes.longest),
    }


def poor(best: Allocation) -> list[dict[str, int]]:
    """Two allocations with as many processors, unlike the best: one has too few where the best has
    most, the other where it has second most.

    >>> poor({"a": 4, "b": 6, "c": 2})
    [{'a': 5, 'b': 4, 'c': 3}, {'a': 3, 'b': 6, 'c': 3}]
    """
    first, second, *rest = sorted(best, key=lambda name: -best[name])
    last = rest[-1] if rest else second
    one = {**best, first: best[first] - 2, second: best[second] + 1}
    one[last] += 1
    return [one, {**best, second: best[second] - 1, last: best[last] + 1}]


def half_busy(app: App, rate: float) -> dict[str, int]:
    """Slots with which every operator is about half busy.

    >>> from geoflux.bench.drs_apps import LOOP
    >>> half_busy(LOOP, 15.0)
    {'generate': 1, 'detect': 3, 'reporter': 1}
    """
    network = app.network(rate)
    return {
        operator.name: max(1, round(2 * at / operator.service_rate))
        for operator, at in zip(network.operators, network.rates.tolist(), strict=True)
    }


def _told(run: Timeline) -> str:
    changes = [f"{shown(d.before)} to {shown(d.after)} at {d.at - run.began:.0f} s"
               for d in run.changes]  # fmt: skip
    return ", ".join(changes) or "no change"
