"""Runs on Spark: exact on hand-made files, for every plan, slot count and lane; resumable."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import handmade
import snapshots_by_hand
import windows_by_hand
from geoflux import Snapshots, api
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.errors import ConfigError, StateError
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

ROWS = handmade.events(400)
RECORDS = handmade.queries()
EXPECTED = handmade.expected(RECORDS, ROWS)


@pytest.mark.parametrize("slots", [1, 2, 4, 22])
@pytest.mark.parametrize("balance", ["uniform", "history", "replicated"])
def test_hand_made_files_give_the_brute_force_result(
    tmp_path: Path, spark: SparkSession, slots: int, balance: str
) -> None:
    handmade.write(tmp_path, RECORDS, ROWS)
    config = Config.load(handmade.toml(tmp_path, slots, balance), environment={})
    summary = api.run(config, tmp_path / "out", spark=spark)
    assert handmade.matches(tmp_path / "out") == EXPECTED
    assert summary.received == summary.processed == len(ROWS)
    assert summary.matches == EXPECTED.total()
    if slots == 22:
        assert api.verify(tmp_path / "out").is_clean


def test_counts_add_up_to_the_matches(tmp_path: Path, spark: SparkSession) -> None:
    handmade.write(tmp_path, RECORDS, ROWS)
    path = handmade.toml(tmp_path, 4)
    config = Config.load(path, {"output.matches": "counts", "engine.epoch_events": 150}, {})
    api.run(config, tmp_path / "out", spark=spark)
    counted: Counter[Any] = Counter()
    for name in (tmp_path / "out/counts").glob("*.parquet"):
        for row in pq.read_table(name).to_pylist():
            counted[row["query_id"]] += row["count"]
    by_query: Counter[Any] = Counter()
    for (query, _), count in EXPECTED.items():
        by_query[query] += count
    assert counted == by_query
    assert api.verify(tmp_path / "out").is_clean


@pytest.mark.parametrize(("slots", "mode"), [(1, "rows"), (4, "counts"), (22, "rows")])
def test_windows_and_snapshots_give_the_brute_force_result(
    tmp_path: Path, spark: SparkSession, slots: int, mode: str
) -> None:
    """Followed, so that snapshots are asked while it goes, two after each epoch; then drained."""
    rows, records, out = handmade.disordered(400), windows_by_hand.asking(RECORDS), tmp_path / "out"
    handmade.write(tmp_path, records, rows, in_turn=True)
    given = {"engine.epoch_events": 60, "engine.lateness": "1 minute", "run.duration": "100s",
             "retention.time": "2 minutes", "output.matches": mode}  # fmt: skip
    queries = snapshots_by_hand.asked_of_everything()
    streams: list[Any] = []
    received: list[int] = []

    def on_epoch(manifest: Manifest) -> None:
        handmade.ask(tmp_path, queries[2 * len(received) :][:2])
        received.append(manifest["received"])
        if sum(received) == len(rows):
            streams[0].stop()

    config = Config.load(handmade.toml(tmp_path, slots, mode="follow"), given, {})
    api.run(config, out, spark=spark, on_epoch=on_epoch, on_start=streams.append)
    config = Config.load(handmade.toml(tmp_path, slots), given, {})
    summary = api.run(config, out, spark=spark)
    assert summary.received == summary.processed == len(rows)
    *manifests, final = EpochLog(Store(str(out))).manifests()
    assert final["final"]
    epochs = handmade.epochs(rows, [m["received"] for m in manifests])
    assert windows_by_hand.written(out) == windows_by_hand.expected(records, epochs, 60)
    expected = handmade.expected(records, rows, windows_by_hand.watermarks(epochs, 60))
    assert summary.matches == expected.total()
    answers = snapshots_by_hand.answers(out)
    assert [answers[q["id"]].epochs for q in queries] == [{1 + k // 2} for k in range(len(queries))]
    for place, query in enumerate(queries):
        seen = snapshots_by_hand.visible(epochs[: 1 + place // 2], 120)
        snapshots_by_hand.check(query, answers[query["id"]], seen)
    _check_reader(out, snapshots_by_hand.visible(epochs, 120))
    assert api.verify(out).is_clean


def _check_reader(out: Path, seen: list[dict[str, Any]]) -> None:
    """The questions of a reader beside the run."""
    reader = Snapshots(out)
    for query in snapshots_by_hand.asked_of_everything():
        snapshots_by_hand.check(query, snapshots_by_hand.answer_of(reader.ask(query)), seen)


def test_a_dataframe_of_the_users_own_and_matches_as_a_dataframe(
    tmp_path: Path, spark: SparkSession
) -> None:
    handmade.write(tmp_path, RECORDS, ROWS, files=1)
    frame = spark.readStream.schema(spark.read.parquet(str(tmp_path / "events")).schema).parquet(
        str(tmp_path / "events")
    )
    config = Config.load(handmade.toml(tmp_path), {"output.record_input": True}, {})
    told: Counter[Any] = Counter()

    def on_matches(df: DataFrame, epoch: int) -> None:
        for row in df.collect():
            assert row["epoch"] == epoch
            told[row["query_id"], row["event_id"]] += 1

    api.run(config, tmp_path / "out", events=frame, on_matches=on_matches)
    assert told == EXPECTED == handmade.matches(tmp_path / "out")
    assert api.verify(tmp_path / "out").is_clean

    streamed: list[Any] = []
    schema = spark.read.parquet(str(tmp_path / "out/matches")).schema
    query = (
        spark.readStream.schema(schema).parquet(str(tmp_path / "out/matches"))
        .writeStream.foreachBatch(lambda df, _: streamed.extend(df.collect()))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert len(streamed) == EXPECTED.total()


@pytest.mark.parametrize("kind", ["parquet", "ndjson"])
def test_the_general_lane_over_files_gives_the_same(
    tmp_path: Path, spark: SparkSession, kind: str
) -> None:
    records = windows_by_hand.asking(RECORDS)
    handmade.write(tmp_path, records, ROWS, files=1)
    if kind == "ndjson":
        (tmp_path / "events/part0.parquet").unlink()
        lines = "".join(json.dumps(row) + "\n" for row in ROWS)
        (tmp_path / "events/a.ndjson").write_text(lines + '{"id": oops\n')
    given = {"engine.lane": "general", "retention.bytes": "1 MB"}
    config = Config.load(handmade.toml(tmp_path), given, {})
    summary = api.run(config, tmp_path / "out", spark=spark)
    assert handmade.matches(tmp_path / "out") == EXPECTED
    windows = windows_by_hand.expected(records, [ROWS])
    assert windows_by_hand.written(tmp_path / "out") == windows
    _check_reader(tmp_path / "out", ROWS)
    assert summary.reasons == ({"malformed_json": 1} if kind == "ndjson" else {})
    with pytest.raises(StateError, match="record_input"):
        api.verify(tmp_path / "out")


def test_a_drained_run_goes_on_when_there_is_more(tmp_path: Path, spark: SparkSession) -> None:
    handmade.write(tmp_path, RECORDS, ROWS[:200])
    config = Config.load(handmade.toml(tmp_path), environment={})
    api.run(config, tmp_path / "out", spark=spark)
    pq.write_table(pa.Table.from_pylist(ROWS[200:]), tmp_path / "events/zz.parquet")
    summary = api.run(config, tmp_path / "out", spark=spark)
    assert summary.received == 400
    assert handmade.matches(tmp_path / "out") == EXPECTED
    assert api.verify(tmp_path / "out").is_clean
    with pytest.raises(ConfigError, match=r"engine\.slots"):
        api.run(
            Config.load(handmade.toml(tmp_path, 5), environment={}), tmp_path / "out", spark=spark
        )


def test_no_events_at_all_still_reads_the_control_records(
    tmp_path: Path, spark: SparkSession
) -> None:
    handmade.write(tmp_path, [{"op": "dance", "id": "q"}, *RECORDS], [])
    (tmp_path / "events/part0.parquet").unlink()
    config = Config.load(handmade.toml(tmp_path), environment={})
    summary = api.run(config, tmp_path / "out", spark=spark)
    assert (summary.received, summary.epochs) == (0, 1)
    assert summary.reasons == {"unknown_operation": 1}
    assert summary.live_queries > 50


def test_the_simulator_runs_paced_with_churn(tmp_path: Path, spark: SparkSession) -> None:
    # Long enough for a slow machine to be still in it when the first epoch is opened.
    config = Config.from_dict(
        {
            "simulate": {"rate": 4_000, "queries": 500, "query_rate": 200},
            "run": {"duration": "20s"}, "space": {"grid": [200, 200]},
            "engine": {"epoch_events": 30_000},
        }
    )  # fmt: skip
    summary = api.run(config, tmp_path / "out", spark=spark)
    assert summary.processed == 80_000
    assert summary.epochs >= 2
    assert summary.registered > 500
    assert summary.ended > 0
    assert summary.latency_p50_seconds is not None
    assert api.verify(tmp_path / "out").is_clean
