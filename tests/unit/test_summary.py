"""The summary: totals that add up, and latencies weighted by the events that had them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from geoflux.chronicle.epoch_series import EpochSeries
from geoflux.chronicle.plan_history import busiest_over_mean
from geoflux.config import Config
from geoflux.engine.summary import busy_seconds, evenness, latencies, summarised
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


def epoch(
    processed: int, opened: float, committed: float, arrivals: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "processed": processed, "opened": opened, "committed": committed, "arrivals": arrivals,
        "received": processed, "quarantined": 0, "carried_out": 0, "matches": 0, "late": 0, "aggregates": 0, "snapshots": 0, "held": [], "registered": 0,
        "ended": 0, "live_queries": 0, "next_plan": 1, "reasons": {}, "control_rejected": {},
        "slots": [], **more,
    }  # fmt: skip


def slot(number: int, busy: float, load: float, checks: int) -> dict[str, Any]:
    return {"slot": number, "busy_seconds": busy, "load_seconds": load, "checks": checks}


def test_without_arrivals_an_event_waits_for_its_whole_epoch() -> None:
    assert latencies([epoch(10, 100.0, 102.5)]) == (2.5, 2.5)


def test_no_events_have_no_latency() -> None:
    assert latencies([]) == (None, None)
    assert latencies([epoch(0, 0.0, 5.0)]) == (None, None)


def test_arrivals_within_an_epoch_are_even() -> None:
    p50, p99 = latencies([epoch(1000, 10.0, 12.0, [0.0, 10.0])])
    assert p50 == pytest.approx(7.0, abs=0.5)
    assert p99 == pytest.approx(12.0, abs=0.5)


def test_an_epoch_counts_by_its_events() -> None:
    few, many = epoch(1, 0.0, 100.0), epoch(10_000, 0.0, 1.0)
    assert latencies([few, many]) == (1.0, 1.0)
    assert latencies([epoch(150, 0.0, 100.0), many]) == (1.0, 100.0)
    assert latencies([epoch(20_000, 0.0, 100.0), many]) == (100.0, 100.0)
    assert latencies([many, epoch(0, 0.0, 1e6), few]) == (1.0, 1.0)


def test_busy_time_is_without_loading() -> None:
    manifests = [
        epoch(1, 0, 1, slots=[slot(0, 2.0, 0.5, 1), slot(2, 1.0, 0.0, 1)]),
        epoch(1, 1, 2, slots=[slot(0, 1.0, 0.25, 1)]),
    ]
    assert busy_seconds(manifests, 3).tolist() == [2.25, 0.0, 1.0]


def test_slots_that_come_and_go_count_while_they_are_there() -> None:
    grown = {"decision": {"reason": "", "changes": [{"kind": "resize", "slots": 3}]}}
    manifests = [
        epoch(1, 0, 1, slots=[slot(0, 2.0, 0.0, 1)], **grown),
        epoch(1, 1, 2, slots=[slot(n, 2.0, 0.0, 1) for n in range(3)]),
    ]
    assert busy_seconds(manifests, 1).tolist() == [4.0, 2.0, 2.0]
    assert evenness(manifests, 1) == 1.0
    assert busiest_over_mean(manifests, 1) == 1.0
    assert EpochSeries.of(manifests).busiest_over_mean(3).tolist() == [1.0, 1.0]


def test_totals(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    log = EpochLog(store)
    config = Config.from_dict({"engine": {"slots": 2}})
    empty = summarised(config, store)
    assert (empty.epochs, empty.received, empty.latency_p50_seconds) == (0, 0, None)
    log.commit(0, epoch(
        90, 10.0, 12.0, received=100, quarantined=10, matches=7, registered=3, live_queries=3,
        reasons={"bad_time": 4, "outside_space": 6}, control_rejected={"bad_id": 1},
        slots=[slot(0, 3.0, 1.0, 500), slot(1, 1.0, 0.0, 100)],
    ))  # fmt: skip
    log.commit(1, epoch(
        10, 20.0, 21.0, received=10, matches=1, ended=1, live_queries=2, next_plan=2,
        reasons={}, control_rejected={"bad_id": 2}, slots=[slot(0, 1.0, 0.0, 0)],
    ))  # fmt: skip
    found = summarised(config, store)
    assert (found.epochs, found.received, found.processed, found.quarantined) == (2, 110, 100, 10)
    assert (found.matches, found.live_queries, found.registered, found.ended) == (8, 2, 3, 1)
    assert found.control_rejected == 3
    assert found.reasons == {"bad_id": 3, "bad_time": 4, "outside_space": 6}
    assert found.seconds == 11.0
    assert found.events_per_second == pytest.approx(100 / 3)
    assert found.checks_per_second_core == pytest.approx(600 / 4)
    assert found.busiest_over_mean == pytest.approx(3 / 2)
    assert (found.plan_version, found.slots, found.balance) == (2, 2, "uniform")
    assert (found.latency_p50_seconds, found.latency_p99_seconds) == (2.0, 2.0)
    assert found.as_dict()["reasons"] == found.reasons
