"""Applications on Spark: splits, joins and loops, exact to the last row, also after SIGKILL."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from geoflux import Ingest, Node, Queries, Topology, WindowedGroupBy, run_topology, verify_topology
from geoflux.errors import ConfigError, OperatorError, StateError
from streams_by_hand import Fragile
from topologies_by_hand import LOOP, ROWS, check_run, config_of, expected

SCRIPT = str(Path(__file__).parent / "killed_topology.py")


@pytest.mark.long
def test_a_split_and_a_loop_and_standing_queries(spark: SparkSession, tmp_path: Path) -> None:
    topology = Topology((*LOOP.nodes, Node("places", Queries(), reads="ingest")))
    config, out = config_of(tmp_path, ROWS, 250), tmp_path / "out"
    told: set[tuple[str, str | None]] = set()

    def heard(name: str, manifest: dict[str, Any]) -> None:
        told.add((name, spark.sparkContext.getLocalProperty("spark.scheduler.pool")))

    summary = run_topology(topology, config, out, spark=spark, on_epoch=heard)
    check_run(LOOP, ROWS, out)
    inside = [r for r in ROWS if r[2] % 180 <= 90 and r[1] <= 1]
    matches = [row for file in (out / "places" / "matches").iterdir()
               for row in pq.read_table(file).to_pylist()]  # fmt: skip
    assert len(matches) == summary.operators["places"]["matches"] == len(inside)
    assert verify_topology(out).operators["places"].is_clean
    assert told == {(name, name) for name in ("ingest", "rounds", "last", "places")}, "pools"
    noted = json.loads((out / "topology.json").read_text())
    assert [table["name"] for table in noted["operators"]] == ["ingest", "rounds", "last", "places"]
    rounds = summary.operators["rounds"]
    assert rounds["processed"] == expected(LOOP, ROWS)["rounds"].total()
    again = run_topology(topology, config, out, spark=spark)
    assert again.operators["rounds"]["received"] == rounds["received"], "it was over"
    with pytest.raises(StateError, match="of ingest, rounds, last, places, and not ingest, rounds"):
        run_topology(LOOP, config, out, spark=spark)
    other = replace(topology.node("last"), reads="rounds.done")
    changed = Topology((*LOOP.nodes[:2], other, topology.nodes[3]))
    with pytest.raises(StateError, match=r"another application .other in last"):
        run_topology(changed, config, out, spark=spark)


def test_who_fails_is_named_and_all_go_on_once_it_is_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    flag = tmp_path / "broken"
    flag.touch()
    last = replace(LOOP.node("last"), work=Fragile(breaks_with=str(flag)))
    topology = Topology((*LOOP.nodes[:2], last))
    config, out = config_of(tmp_path, ROWS, 250), tmp_path / "out"
    with pytest.raises(OperatorError, match=r"operator 'last': Fragile.process.*not today"):
        run_topology(topology, config, out, spark=spark)
    flag.unlink()
    run_topology(topology, config, out, spark=spark)
    check_run(topology, ROWS, out)


def test_what_cannot_run_is_said_before_anything_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    config = config_of(tmp_path, ROWS, 250)
    wrong = Node("means", WindowedGroupBy("key", "vlaue", rows=3), reads="ingest")
    with pytest.raises(ConfigError, match="'means' needs the column 'vlaue'"):
        run_topology(Topology((*LOOP.nodes, wrong)), config, tmp_path / "out", spark=spark)
    history = Node("places", Queries(), "ingest", settings={"engine": {"balance": "history"}})
    with pytest.raises(ConfigError, match=r"'places': engine.balance .*cannot be sampled"):
        run_topology(Topology((*LOOP.nodes, history)), config, tmp_path / "out", spark=spark)
    slots = Node("places", Ingest(), slots=5000)
    with pytest.raises(ConfigError, match="slots = 5000"):
        run_topology(Topology((slots,)), config, tmp_path / "out", spark=spark)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_and_started_again(tmp_path: Path) -> None:
    points = [("before", "rounds", 2), ("after", "rounds", 4)]
    for point, operator, epoch in [*points, ("never", "", 0)]:
        done = subprocess.run(
            [sys.executable, SCRIPT, point, operator, str(epoch), str(tmp_path)],
            capture_output=True, text=True, timeout=400,
        )  # fmt: skip
        assert done.returncode == (0 if point == "never" else -9), done.stderr[-2000:]
        assert (f"killed {point} {operator}" in done.stdout) == (point != "never")
    check_run(LOOP, ROWS, tmp_path / "out")
