"""What Guard takes of an epoch is measured on a run in which it has something to do."""

from __future__ import annotations

from geoflux.bench.guard_engine import Sizes, guard_share


def test_a_small_run_has_rounds_and_hotspots() -> None:
    found = guard_share(Sizes(queries=5_000, events=3_000, requests=300, slots=4, epochs=16))
    assert 0 < found["guard_share_of_epoch"] < 1
    assert found["guard_rounds"] >= 1
    assert found["guard_hotspots"] >= 1
    assert found["guard_sensor_ms"] > 0
    assert found["guard_ms_per_epoch"] < found["epoch_ms"]
