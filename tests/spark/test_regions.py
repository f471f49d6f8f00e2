"""An operator over places on Spark: regions are split and merged while it runs, and nothing of what
comes out changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import regions_by_hand
from geoflux import Config, keyed_api, run_operator, verify_operator
from geoflux.balance.policy import Decision, Observed, Policy
from geoflux.cli.operator_plan import OperatorPlan
from geoflux.engine.keyed_task import Emulated
from geoflux.plan import MergePrefix, SplitPrefix
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from regions_by_hand import Regions, expected

ROWS = [(float(-180 + 37 * i % 360), float(-90 + 11 * i % 180), float(i % 7)) for i in range(400)]
ROWS[250] = (200.0, 0.0, 1.0)


class Scripted(Policy):
    """Cuts two regions off the first partition, and takes them back later."""

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        if seen.epoch == 0:
            cut = ((0b000, 3, 1), (0b0111, 4, 1))
            return Decision((SplitPrefix(plan.partitions[0].id, cut),), "cut off"), state
        if seen.epoch == 2:
            return Decision((MergePrefix(0, 1, 0),), "taken back"), state
        return Decision((), ""), state


def test_regions_are_split_and_merged_while_it_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_api, "policy_of", lambda *given: Scripted())
    cloudpickle.register_pickle_by_value(regions_by_hand)  # workers do not know the tests
    lon, lat, value = zip(*ROWS, strict=True)
    ids = [str(n) for n in range(len(ROWS))]
    (tmp_path / "events").mkdir()
    pq.write_table(
        pa.table({"id": ids, "lon": lon, "lat": lat, "value": value}),
        tmp_path / "events" / "part.parquet",
    )
    config = Config.from_dict({
        "source": {"kind": "files", "path": str(tmp_path / "events")},
        "engine": {"slots": 2, "epoch_events": 80, "master": "local[2]", "memory": "1g"},
        "synopsis": {"partitions": 1}, "flux": {"budget": "10ms"},
    })  # fmt: skip
    out = tmp_path / "out"
    run_operator(Regions(), config, out, spark=spark, emulated=Emulated({0: 1e-3}))
    manifests = list(EpochLog(Store(str(out))).manifests())
    kinds = [change["kind"] for m in manifests for change in m["decision"]["changes"]]
    assert kinds == ["splitprefix", "mergeprefix"]
    assert any(ref[4:] for m in manifests for refs in m["carried"].values() for ref in refs)
    found = [row for file in (out / "results").iterdir() for row in pq.read_table(file).to_pylist()]
    assert {row["id"]: (row["code"], row["count"], row["trail"]) for row in found} == expected(ROWS)
    assert len(found) == len(ROWS) - 1
    assert verify_operator(Regions(), out).is_clean
    plan = OperatorPlan.of(out, "Regions", None).as_dict()
    assert plan["kind"] == "prefix"
    assert [(p["code"], p["bits"]) for p in plan["partitions"]] == [(0, 1), (1, 1)]
