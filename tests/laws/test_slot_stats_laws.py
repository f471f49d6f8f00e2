"""Statistics that slots keep while a run goes, against brute force: through changes of the plan,
queries that come and end, retention, restarts, crashes, and workers that forget."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counted_stats import Counting, per_line
from hypothesis import given, settings
from hypothesis import strategies as st
from restless import Restless, change_of
from test_engine_laws import records
from test_retention_laws import (
    PHASES,
    RETENTIONS,
    events,
    is_in_degrees,
    shapes_over_the_antimeridian,
)
from test_window_laws import Crash, Run, Workers, crash, crashing
from watched_run import COLUMNS, ROWS, crash_before_the_manifest, table_of

from geoflux.engine.slot_stats import Weights
from geoflux.plan import GridPlan
from geoflux.stats import KnownQueries, TrioStat, inherited
from geoflux.stats import trio_kernels as k


@st.composite
def batches(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Control records of every shape, some over the antimeridian."""
    found = draw(records()) if draw(st.integers(0, 3)) else []
    for record in found:
        if record["op"] == "register" and draw(st.integers(0, 3)) == 0:
            record["shape"] = draw(shapes_over_the_antimeridian())
        if record["op"] == "register" and draw(st.integers(0, 5)) == 0:
            record["aggregate"] = {"functions": ["count"], "window": "20s"}
    return [r for r in found if r["op"] != "register" or is_in_degrees(r["shape"])]


CRASHES = ("opened", "collected", "executed", "decided")


def crashed(run: Run, number: int, span: tuple[int, int], when: str) -> None:
    """An epoch that ends in the middle: when statistics are collected but not saved, when slots
    have done their work, when all is decided."""
    if when == "decided":
        crash_before_the_manifest(run, number, span)
    elif when == "collected":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("geoflux.engine.slot_stats.SlotStats.finish", crash)
            with pytest.raises(Crash):
                run.epoch(number, span)
        run.recover()
    else:
        crashing(run, number, span, late=when == "executed")


@st.composite
def stories(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "rows": draw(events()), "slots": draw(st.sampled_from([2, 4, 7])),
        "batches": draw(st.lists(batches(), min_size=3, max_size=9)),
        "retention": draw(RETENTIONS) if draw(st.booleans()) else None,
        "changes": draw(st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=9)),
        "every": draw(st.integers(1, 4)), "memory": draw(st.sampled_from([0.0, 0.0, 0.5])),
        "incidents": draw(st.dictionaries(
            st.integers(0, 8), st.sampled_from(["restart", *CRASHES]))),
        "workers": draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)),
        "tiers": draw(st.sampled_from([(2, 2, 1 << 20), (3, 4, 20), (8, 8192, 1 << 20)])),
        "weights": Weights(
            draw(st.sampled_from([1.0, 3.0])), 16.0, draw(st.sampled_from([0.0, 5.0])),
            draw(st.sampled_from([0.0, 1000.0])),
        ),
        "mode": draw(st.sampled_from(["rows", "counts"])),
    }  # fmt: skip


class Forgetful(Workers):
    """Workers whose memory of statistics is their own as well."""

    def become(self, worker: int) -> None:
        super().become(worker)
        memory = self._memories[worker, "slot_stats"]
        self._patch.setattr("geoflux.engine.slot_stats._cache", memory)


def counting(folder: Path, story: dict[str, Any]) -> Counting:
    config: dict[str, Any] = {
        "engine": {"slots": story["slots"], "lateness": "30s"}, "run": {"mode": "follow"},
        "output": {"matches": story["mode"]},
    }  # fmt: skip
    if story["retention"]:
        config["retention"] = story["retention"]
    policy = Restless(story["changes"], story["every"], story["memory"])
    run = Run(folder, config, GridPlan.initial(COLUMNS, ROWS, story["slots"]), policy)
    run.start(table_of(story["rows"], pa.int64()), [])
    return Counting(run, story["rows"], bool(story["retention"]), story["memory"], story["weights"])


@pytest.mark.long
@settings(max_examples=30, phases=PHASES, deadline=None)
@given(stories())
def test_statistics_equal_brute_force_through_changes_expiry_restarts_and_crashes(
    story: dict[str, Any],
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for limit, value in zip(
            ("FAN_IN", "SMALLEST_TIER", "MOST_ROWS"), story["tiers"], strict=True
        ):
            patch.setattr(f"geoflux.operators.compaction.{limit}", value)
        weights = dict.fromkeys(("rows", "counts"), story["weights"])
        patch.setattr("geoflux.engine.slot_stats.WEIGHTS", weights)
        workers = Forgetful(patch)
        watch = counting(Path(name), story)
        run, count = watch.run, len(story["batches"])
        for number, batch in enumerate(story["batches"]):
            run.tell(batch)
            first, last = (run.end * j // count for j in (number, number + 1))
            workers.become(story["workers"][number % len(story["workers"])])
            happens = story["incidents"].get(number)
            if happens == "restart":
                run.recover()
            elif happens is not None:
                crashed(run, number, (first, last), happens)
            watch.epoch(number, (first, last))
        report = run.verified()
        assert report.is_clean, report


def test_what_expired_before_a_restart_is_counted_out_and_deleted_after_it(tmp_path: Path) -> None:
    rows = [
        {"id": k, "lon": 20.0 * (k % 4), "lat": 0.0, "time": 100 * (k // 4), "speed": 1.0,
         "kind": "bus", "serial": k}
        for k in range(24)
    ]  # fmt: skip
    story = {
        "rows": rows, "slots": 2, "retention": {"time": "10s"}, "changes": [[]], "every": 2,
        "memory": 0.0, "mode": "rows", "weights": Weights(2.0, 4.0, 0.0, 40.0),
    }  # fmt: skip
    watch = counting(tmp_path, story)
    for number in range(6):
        if number == 3:
            watch.run.recover()
        watch.epoch(number, (4 * number, 4 * number + 4))


@settings(max_examples=60, phases=PHASES, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), min_size=4, max_size=12),
)
def test_estimates_from_which_points_expire_stay_of_the_size_of_the_points(
    points: list[tuple[int, int]], steps: list[tuple[int, int]]
) -> None:
    """What was shared out may be less than what then expires; it is shared out all the same."""
    plan = GridPlan.initial(6, 6, 1)
    stats = {p.id: TrioStat.empty(p) for p in plan.partitions}
    (whole,) = stats.values()
    whole.receive(*columns_and_rows(points), np.ones(1))
    whole.close_round(retained=True)
    left, most = list(points), len(points)
    for number, count in steps:
        before = stats
        for change in change_of(plan, number):
            with contextlib.suppress(ValueError, KeyError):
                plan = plan.apply(change)
        none = KnownQueries.none()
        stats = {
            p.id: before[p.id] if p.id in before else inherited(p, before.values(), none)
            for p in plan.partitions
        }
        gone, left = left[:count], left[count:]
        for stat in stats.values():
            stat.expire(*columns_and_rows(gone), np.ones(len(gone)))
            stat.close_round(retained=True)
            assert stat.along("rows")[-1, k.N] == pytest.approx(
                stat.along("columns")[-1, k.N], abs=1e-6
            )
            assert np.abs(per_line(stat, k.N)).max() <= 2 * most
        total = sum(stat.total.points for stat in stats.values())
        assert total == pytest.approx(len(left), abs=1e-6)


def columns_and_rows(cells: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([c for c, _ in cells], np.int32), np.array([r for _, r in cells], np.int32)
