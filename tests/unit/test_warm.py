"""Warming up does a little of everything; what it leaves out is compiled while users wait."""

from __future__ import annotations

from geoflux.spark.warm import warm_up


def test_warming_up_uses_every_part_of_the_engine() -> None:
    *manifests, keyed = warm_up()
    assert sum(m["matches"] for m in manifests) > 0
    assert sum(m["aggregates"] for m in manifests) > 0
    assert sum(m["snapshots"] for m in manifests) == 4
    assert sum(m["ended"] for m in manifests) == 2
    assert any(m["expired"] for m in manifests), "retained events expire"
    assert any(m["next_plan"] != m["plan"] for m in manifests), "the plan changes"
    assert all(slot["cost"] is not None for m in manifests for slot in m["slots"])
    assert keyed["results"] > 0
    assert keyed["roots"], "inputs are followed"
    assert not any(m["control_rejected"] or m["quarantined"] for m in manifests)
