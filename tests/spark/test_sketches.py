"""A sketch on Spark: taken in by slots, asked from its directory, and read as a data source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import scaled_sketch
from geoflux import (
    Config,
    continuous_answers,
    follow_sketch,
    keyed_api,
    open_sketch,
    run_operator,
    run_sketch,
    verify_sketch,
)
from geoflux.bench.synopsis_scaling_truth import (
    QUESTIONS,
    Taken,
    compared,
    misplaced,
    same,
    undisturbed,
)
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.workload.weather import FEATURES, made_up_weather

KILLED = str(Path(__file__).parent / "killed_operator.py")
WEATHER = made_up_weather(9, 9_000, 1_774_396_800, 6 * 3600)


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sketches")
    (folder / "weather").mkdir()
    pq.write_table(WEATHER.table(), folder / "weather" / "w.parquet", row_group_size=2000)
    config = Config.from_dict(
        {
            "source": {"kind": "files", "path": str(folder / "weather")},
            "engine": {"slots": 3, "epoch_events": 4_000},
            "sketch": {"features": FEATURES, "tree_bits": 6, "region_bits": 10,
                       "steady_rows": 200, "leaves": 4,
                       "continuous": [{"name": "counted", "query": "SELECT count(*)"}]},
        }
    )  # fmt: skip
    summary = run_sketch(config, folder / "out", spark=spark)
    assert summary.processed == len(WEATHER)
    return folder / "out"


def test_whole_regions_are_answered_exactly(out: Path) -> None:
    sketch = open_sketch(out)
    assert sketch.observations == len(WEATHER)
    answer = sketch.query("SELECT count(*), mean(t2m_k), stddev(t2m_k), corr(t2m_k, msl_pa)")
    air, pressure = WEATHER.values[:, 0], WEATHER.values[:, FEATURES.index("msl_pa")]
    expected = (len(air), air.mean(), air.std(ddof=1), np.corrcoef(air, pressure)[0, 1])
    for name, value in zip(answer.names, expected, strict=True):
        assert answer[name].value[0] == pytest.approx(value, rel=1e-9)
        assert answer[name].error[0] == 0
    assert sum(len(forest.trees) for forest in sketch.forests) == 64


def test_every_epoch_was_answered_and_all_of_it_is_verified(out: Path) -> None:
    told = [(one["epoch"], one["rows"][0]["count(*)"]) for one in continuous_answers(out)]
    assert told == [(0, 4_000), (1, 8_000), (2, 9_000)]
    followed = [one.epoch for one in follow_sketch(out, "SELECT count(*)")]
    assert followed == [2], "the run is over"
    assert verify_sketch(out).is_clean


def test_leaves_and_synthetic_rows_are_a_data_source(out: Path, spark: SparkSession) -> None:
    def loaded(**options: str) -> DataFrame:
        source = spark.read.format("geoflux_sketch").option("path", str(out))
        return source.options(**options).load()

    leaves = loaded()
    assert leaves.rdd.getNumPartitions() == len(open_sketch(out).forests)
    assert leaves.agg({"count": "sum"}).collect()[0][0] == len(WEATHER)
    rows = loaded(rows="1000", seed="5").toPandas()
    assert len(rows) == 1000
    assert abs(rows["t2m_k"].mean() - WEATHER.values[:, 0].mean()) < 2.5
    warm = loaded(where="t2m_k > 290")
    assert warm.agg({"t2m_k_max": "min"}).collect()[0][0] > 290


def answers_are_right(out: Path) -> dict[str, int]:
    """Answers are those of what was taken in up to the last epoch; returns some of its counts."""
    store, sketch = Store(str(out)), open_sketch(out)
    manifest = EpochLog(store).manifest(sketch.epoch)
    taken = Taken.of(manifest, store, scaled_sketch.OPERATOR).among(scaled_sketch.WEATHER)
    assert sketch.observations == len(taken) > 0
    for question in QUESTIONS:
        found = compared(question, sketch.query(question.sql), taken)
        assert found.is_right, (question.sql, found)
    return {name: manifest[name] for name in ("epoch", "carried_out")}


@pytest.mark.long
def test_killed_while_scaled_out_and_in_and_asked_all_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when scaling out was decided and not yet committed, and when scaling in was committed
    and not yet published; asked while nothing runs, and after every epoch."""
    scaled_sketch.write(tmp_path)
    out, found = tmp_path / "out", []
    for point, epoch in (
        ("before-manifest", scaled_sketch.OUT), ("after-manifest", scaled_sketch.IN)
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, KILLED, point, str(epoch), str(tmp_path), "scaled_sketch"],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == -9, done.stderr[-2000:]
        found.append(answers_are_right(out))
    assert [one["epoch"] for one in found] == [scaled_sketch.OUT - 1, scaled_sketch.IN]
    assert all(one["carried_out"] for one in found), "rows wait for slots that are too slow"
    monkeypatch.setattr(keyed_api, "policy_of", lambda *given: scaled_sketch.POLICY)
    config = scaled_sketch.config(tmp_path)
    run_operator(
        scaled_sketch.OPERATOR, config, out, spark=spark, emulated=scaled_sketch.SLOW,
        on_epoch=lambda manifest: found.append(answers_are_right(out)),
    )  # fmt: skip
    kinds = [[c["kind"] for c in m["decision"]["changes"]]
             for m in EpochLog(Store(str(out))).manifests()]  # fmt: skip
    assert [some for some in kinds if some] == [
        ["resize", "splitprefix"],
        ["mergeprefix", "resize"],
    ]
    assert found[-1]["carried_out"] == 0
    whole, end = (
        open_sketch(out).whole(),
        undisturbed(scaled_sketch.OPERATOR, scaled_sketch.WEATHER),
    )
    assert misplaced(whole, end) == 0
    assert same(whole, end).is_right
