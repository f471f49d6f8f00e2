"""The benchmark of SWARM on next to nothing: every figure is there, and drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from geoflux.bench import swarm
from geoflux.bench.emulated import Seen, capability, latency_ratio
from geoflux.bench.swarm_scenarios import Sizes, hotspots

TINY = Sizes((500,), 600, 8, 600, 12, 400, 300, 100, 0, 0)


def epoch(*busy: float, events: int = 100) -> Seen:
    return Seen(events, 10, busy, busy, 0.0, 0, 2, "")


def test_every_figure_that_needs_no_spark_is_there_and_drawn(tmp_path: Path) -> None:
    result = swarm.run_benchmark(Console(quiet=True), True, figures=tmp_path, sizes=TINY)
    assert set(swarm.BARS) - set(result) == {"wall_clock_vs_history"}
    assert result["hotspot_units_of_work_vs_history"] > 0
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["figure-6-5a.svg", "figure-6-5b.svg", "figure-6-8.svg"]
    for path in tmp_path.iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_an_epoch_costs_what_its_busiest_slot_takes() -> None:
    assert capability([epoch(1.0, 3.0), epoch(2.0, 2.0)]) == pytest.approx(200 / 5.0)
    assert epoch(1.0, 3.0).imbalance == pytest.approx(1.5)


def test_latency_is_compared_at_the_rate_that_fills_the_slower_plan_to_nine_tenths() -> None:
    slow, fast = [epoch(1.0, 3.0)], [epoch(1.0, 1.0)]
    assert latency_ratio(slow, fast) == pytest.approx((1 - 0.3) / (1 - 0.9))
    assert latency_ratio(slow, slow) == 1.0


def test_the_five_scenarios_share_what_the_document_says() -> None:
    spots = [spot for some in hotspots(1000).values() for spot in some]
    assert len(hotspots(1000)) == 5
    assert {spot["side"] for spot in spots} == {0.15}
    assert all(sum(s["queries"] for s in some) == 1000 for some in hotspots(1000).values())
    assert all(sum(s["peak"] for s in some) == pytest.approx(0.4) for some in hotspots(1).values())
