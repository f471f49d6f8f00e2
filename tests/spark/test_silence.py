"""Epochs without events: one that closes a drained stream, and ticks while a source is silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import handmade
from geoflux import api
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

ROWS = handmade.events(300)
WINDOWED = {"op": "register", "id": "windowed", "shape": handmade.queries()[0]["shape"],
            "aggregate": {"functions": ["count"], "window": "1 minute"}}  # fmt: skip


def _config(folder: Path, *records: dict[str, Any], **settings: Any) -> Config:
    handmade.write(folder, [handmade.queries()[0], *records], ROWS, files=1)
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return Config.load(handmade.toml(folder), {"engine.epoch_events": 200, **given}, {})


def _manifests(out: Path) -> list[Manifest]:
    return list(EpochLog(Store(str(out))).manifests())


def _told(out: Path) -> list[tuple[int, bool]]:
    """Of every epoch, what it received and whether it was the final one."""
    manifests = _manifests(out)
    assert [m["epoch"] for m in manifests] == list(range(len(manifests)))
    return [(m["received"], m["final"]) for m in manifests]


def _add(folder: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), folder / "events/zz.parquet")


def test_a_drained_stream_is_closed_once_and_again_when_more_came(
    tmp_path: Path, spark: SparkSession
) -> None:
    config, out = _config(tmp_path, WINDOWED), tmp_path / "out"
    closed = [(200, False), (100, False), (0, True)]
    for _ in range(2):  # the second time there is nothing left to do
        summary = api.run(config, out, spark=spark)
        assert _told(out) == closed
    assert (summary.received, summary.epochs) == (300, 3)
    _add(tmp_path, ROWS[:50])
    api.run(config, out, spark=spark)
    assert _told(out) == [*closed, (50, False), (0, True)]


@pytest.mark.parametrize("asked", [False, True])
def test_without_windows_or_where_not_asked_for_there_is_no_such_epoch(
    tmp_path: Path, spark: SparkSession, asked: bool
) -> None:
    records = [] if asked else [WINDOWED]
    config = _config(tmp_path, *records, engine__close_at_end=asked)
    api.run(config, tmp_path / "out", spark=spark)
    assert _told(tmp_path / "out") == [(200, False), (100, False)]


def test_a_run_that_was_stopped_is_not_closed(tmp_path: Path, spark: SparkSession) -> None:
    config, out = _config(tmp_path, WINDOWED), tmp_path / "out"
    streams: list[Any] = []
    api.run(config, out, spark=spark, on_start=streams.append, on_epoch=lambda _: streams[0].stop())
    assert _told(out) == [(200, False)]
    api.run(config, out, spark=spark)
    assert _told(out) == [(200, False), (100, False), (0, True)]


@pytest.mark.parametrize("point", ["open", "commit"])
def test_a_crash_in_the_final_epoch_leaves_it_the_final_one(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the intent Spark's offset log says so, after it the intent."""
    config, out = _config(tmp_path, WINDOWED), tmp_path / "out"
    real = getattr(Engine, point)

    def crash_in_epoch_2(engine: Engine, *given: Any, **named: Any) -> Any:
        if engine.last == 1:
            raise RuntimeError("crashed")
        return real(engine, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Engine, point, crash_in_epoch_2)
        with pytest.raises(RuntimeError, match="crashed"):
            api.run(config, out, spark=spark)
    assert _told(out) == [(200, False), (100, False)]
    _add(tmp_path, ROWS[:50])
    api.run(config, out, spark=spark)
    assert _told(out) == [(200, False), (100, False), (0, True), (50, False), (0, True)]


def test_a_paced_run_is_closed_too(tmp_path: Path, spark: SparkSession) -> None:
    handmade.write(tmp_path, [WINDOWED], [], files=0)
    config = Config.from_dict(
        {
            "simulate": {"rate": 1000, "queries": 0}, "run": {"duration": "1s"},
            "control": {"path": str(tmp_path / "queries.ndjson")},
        }
    )  # fmt: skip
    told, out = list[int](), tmp_path / "out"
    for _ in range(2):
        api.run(config, out, spark=spark, on_matches=lambda _, epoch: told.append(epoch))
        *before, last = _told(out)
        assert sum(received for received, _ in before) == 1000
        assert (last, any(final for _, final in before)) == ((0, True), False)
    assert told == sorted(set(told))


@pytest.mark.parametrize("lane", ["fast", "general"])
def test_epochs_go_on_while_a_followed_source_is_silent(
    tmp_path: Path, spark: SparkSession, lane: str
) -> None:
    config = _config(
        tmp_path, WINDOWED, run__mode="follow", run__duration="60s", engine__idle="300ms",
        engine__epoch_events=1000, engine__lane=lane,
    )  # fmt: skip
    streams: list[Any] = []
    received: list[int] = []

    def on_epoch(manifest: Manifest) -> None:
        received.append(manifest["received"])
        if len(received) == 3:
            _add(tmp_path, ROWS[:50])
        elif 50 in received[:-2]:
            streams[0].stop()

    out = tmp_path / "out"
    summary = api.run(config, out, spark=spark, on_epoch=on_epoch, on_start=streams.append)
    assert received[:3] == [300, 0, 0]
    assert received[-3:] == [50, 0, 0]
    assert summary.received == 350
    manifests = _manifests(out)
    assert not any(m["final"] for m in manifests)
    assert manifests[2]["opened"] - manifests[1]["committed"] >= 0.3


def _frame(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.option("maxFilesPerTrigger", "1")
    schema = spark.read.parquet(str(folder / "events")).schema
    return reader.schema(schema).parquet(str(folder / "events"))


def test_a_drained_dataframe_is_closed_when_nothing_more_came(
    tmp_path: Path, spark: SparkSession
) -> None:
    config, out = _config(tmp_path, WINDOWED), tmp_path / "out"
    received: list[int] = []

    def on_epoch(manifest: Manifest) -> None:
        received.append(manifest["received"])
        if received == [300]:  # too late for the query under way, but before the closing one
            _add(tmp_path, ROWS[:50])

    for _ in range(2):
        api.run(config, out, events=_frame(spark, tmp_path), on_epoch=on_epoch)
        assert _told(out) == [(300, False), (50, False), (0, True)]


def test_a_dataframe_that_keeps_rows_back_is_closed_after_them(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The counts of a minute come out of Spark's state one batch after the last event."""
    config, out = _config(tmp_path, WINDOWED, source__id="n"), tmp_path / "out"
    counted = _frame(spark, tmp_path).selectExpr("timestamp_seconds(time) AS at", "lon", "lat")
    counted = counted.withWatermark("at", "0 seconds").groupBy("at", "lon", "lat").count()
    frame = counted.selectExpr("at AS time", "lon", "lat", "CAST(at AS bigint) AS n")
    api.run(config, out, events=frame.where("n < 1700000250"))
    told = _told(out)
    assert sum(received for received, _ in told) == 250
    assert told[-1] == (0, True)
    assert [final for _, final in told].count(True) == 1
