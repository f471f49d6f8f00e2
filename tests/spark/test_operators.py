"""Keyed operators on Spark: exact while partitions move, rows are handed back, and after SIGKILL."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import operators_by_hand as by_hand
from geoflux import run, run_operator, verify_operator
from geoflux.errors import ConfigError, OperatorError, StateError
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

ROWS = by_hand.rows(2000)
SCRIPT = str(Path(__file__).parent / "killed_operator.py")


def check(out: Path) -> list[dict[str, Any]]:
    """Every row once, with the right value, and every epoch adds up."""
    assert by_hand.found(out) == pytest.approx(by_hand.expected(ROWS), rel=1e-12)
    manifests = list(EpochLog(Store(str(out))).manifests())
    for m in manifests:
        came = m["received"] + m["carried_in"]
        assert came == m["processed"] + m["quarantined"] + m["carried_out"]
    assert sum(m["received"] for m in manifests) == len(ROWS)
    assert sum(m["reasons"].get("missing_key", 0) for m in manifests) == len(ROWS) // 50
    assert verify_operator(by_hand.OPERATOR, out).is_clean
    return manifests


def test_a_slow_slot_hands_rows_back_and_gives_partitions_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    by_hand.write(tmp_path, ROWS)
    told: list[int] = []
    summary = run_operator(
        by_hand.OPERATOR, by_hand.config(tmp_path), tmp_path / "out", spark=spark,
        on_results=lambda results, epoch: told.append(results.count()), emulated=by_hand.SLOW,
    )  # fmt: skip
    manifests = check(tmp_path / "out")
    assert sum(told) == summary.results == len(by_hand.expected(ROWS))
    assert any(m["carried_out"] for m in manifests)
    moved = [c for m in manifests for c in m["decision"]["changes"]]
    assert len(moved) == summary.moves >= 1
    assert manifests[-1]["carried_out"] == 0


def test_partitions_without_room_in_memory_take_turns(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand.write(tmp_path, ROWS)
    config = by_hand.config(tmp_path, policy="static", memory="600 B")
    summary = run_operator(by_hand.OPERATOR, config, tmp_path / "out", spark=spark, display=True)
    told = capsys.readouterr().out
    assert re.search(r"epoch 0: .* rows/s, latency .*, [\d,]+ rows, [\d,]+ results", told)
    assert "partitions on disk at the end" in told
    assert "<h2>States</h2>" in (tmp_path / "out" / "report.html").read_text()
    manifests = check(tmp_path / "out")
    assert summary.spilled > 0
    assert any(slot["spilled_bytes"] for m in manifests for slot in m["slots"])


@pytest.mark.long
def test_killed_and_started_again(tmp_path: Path) -> None:
    by_hand.write(tmp_path, ROWS)
    points = ["after-job", "before-manifest", "after-manifest", "mid-publish"]
    for epoch, point in enumerate([*points, "never"]):
        done = subprocess.run(
            [sys.executable, SCRIPT, point, str(epoch + 1), str(tmp_path)],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == (0 if point == "never" else -9), done.stderr[-2000:]
        assert (f"killed at {point}" in done.stdout) == (point != "never")
    check(tmp_path / "out")


def test_an_operator_that_fails_says_where_and_goes_on_once_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    def broken(values: Any, starts: Any, ends: Any) -> Any:
        raise ValueError("no statistics today")

    by_hand.write(tmp_path, ROWS)
    config = by_hand.config(tmp_path)
    failing = replace(by_hand.OPERATOR, statistic=broken)
    with pytest.raises(OperatorError, match=r"WindowedGroupBy.*epoch 0: ValueError: no statist"):
        run_operator(failing, config, tmp_path / "out", spark=spark)
    run_operator(by_hand.OPERATOR, config, tmp_path / "out", spark=spark)
    check(tmp_path / "out")


def test_a_directory_belongs_to_one_kind_of_work(spark: SparkSession, tmp_path: Path) -> None:
    by_hand.write(tmp_path, ROWS[:100])
    config = by_hand.config(tmp_path)
    run_operator(by_hand.OPERATOR, config, tmp_path / "out", spark=spark)
    with pytest.raises(StateError, match=r"the operator .*, and this one is of standing queries"):
        run(config, tmp_path / "out", spark=spark)
    other = replace(config, flux=replace(config.flux, partitions=config.flux.partitions + 1))
    with pytest.raises(ConfigError, match=r"other settings \(flux.partitions\)"):
        run_operator(by_hand.OPERATOR, other, tmp_path / "out", spark=spark)
