"""The benchmark of SWARM on next to nothing: every figure is there, and drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from geoflux.bench import swarm
from geoflux.bench.emulated import Seen, attainable, capability, latency_ratio, mean_latency
from geoflux.bench.swarm_scenarios import Sizes, hotspots

TINY = Sizes((500,), 600, 8, 600, 12, 400, 300, 600, 100, 0, 0, 0)


def epoch(*busy: float, events: int = 100) -> Seen:
    return Seen(events, 10, busy, busy, (0,) * len(busy), 0.0, 0, 2, "")


@pytest.mark.long
def test_every_figure_that_needs_no_spark_is_there_and_drawn(tmp_path: Path) -> None:
    result = swarm.run_benchmark(Console(quiet=True), True, figures=tmp_path, sizes=TINY)
    assert set(swarm.BARS) - set(result) == {"wall_clock_vs_history"}
    assert result["hotspot_units_of_work_vs_history"] > 0
    drawn = {path.stem.removeprefix("figure-") for path in tmp_path.iterdir()}
    assert drawn == {"6-5a", "6-5b", "6-8", "6-12", "6-13"}
    for path in tmp_path.iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_an_epoch_costs_what_its_busiest_slot_takes() -> None:
    assert capability([epoch(1.0, 3.0), epoch(2.0, 2.0)]) == pytest.approx(200 / 5.0)
    assert epoch(1.0, 3.0).imbalance == pytest.approx(1.5)


def test_latency_is_compared_at_nine_tenths_of_what_the_slower_plan_can_carry() -> None:
    slow, fast = [epoch(1.0, 3.0)] * 100, [epoch(1.0, 1.0)] * 100
    assert latency_ratio(slow, fast) == pytest.approx((1 - 0.3) / (1 - 0.9), rel=0.02)
    assert latency_ratio(slow, slow) == 1.0


def test_whoever_is_overloaded_for_a_while_delays_what_comes_later() -> None:
    calm, rush = [0.5] * 40, [3.0] * 10
    waits = mean_latency([*calm, *rush, *calm], 1.0)
    assert waits > 5 * (40 * mean_latency(calm, 1.0) * 2 + 10 * 2.0) / 90
    assert mean_latency([*calm, *calm], 1.0) == pytest.approx(mean_latency(calm, 1.0), rel=0.01)


def test_no_plan_can_do_better_than_to_share_the_same_work_evenly() -> None:
    shared = attainable([epoch(1.0, 3.0), epoch(2.0, 2.0)])
    assert [e.busy for e in shared] == [(2.0, 2.0), (2.0, 2.0)]
    assert capability(shared) == pytest.approx(200 / 4.0)


def test_the_five_scenarios_share_what_the_document_says() -> None:
    spots = [spot for some in hotspots(1000).values() for spot in some]
    assert len(hotspots(1000)) == 5
    assert {spot["side"] for spot in spots} == {0.15}
    assert all(sum(s["queries"] for s in some) == 1000 for some in hotspots(1000).values())
    assert all(sum(s["peak"] for s in some) == pytest.approx(0.4) for some in hotspots(1).values())
