"""Scaling on Spark: an operator that cannot keep up gets another slot while it runs, and every row
is still processed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from geoflux.bench.drs_apps import App, Part
from geoflux.bench.drs_step import timeline
from geoflux.scale.scaler import ScaleRecord
from geoflux.state.store import Store

ONE = App("one", (Part("work", 0.05, {"results": 0.0}),), rate=30.0, epoch_events=40)


@pytest.mark.long
def test_a_slot_is_added_while_it_runs_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen = timeline(
        ONE, spark, tmp_path, "one", {"work": 1}, [(15.0, ONE.rate)], mode="on", longest="5s",
        processors=8, look="1s", apart="0s", patience=1, settle="1s", payback="600s", window=2,
    )  # fmt: skip
    assert seen.clean
    assert len(seen.took) == seen.inputs, "every input was followed to its end"
    assert (seen.took > 0).all()
    assert seen.changes, [decision.reason for decision in seen.decisions]
    first = seen.changes[0]
    assert (first.action, dict(first.before), dict(first.after)) == (
        "scale_out", {"work": 1}, {"work": 2},
    )  # fmt: skip
    assert {count for _, count in seen.slots["work"]} == {1, 2}, "local[2] has no more"
    noted = ScaleRecord(Store(str(tmp_path / "one-out"))).decisions()
    assert [line["reason"] for line in noted] == [decision.reason for decision in seen.decisions]
