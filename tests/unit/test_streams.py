"""Streams of an operator: one file per slot and stream, named by the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_streams import check_streams, split, stream_schema
from geoflux.engine.source import EventSource, RawBatch, Slice
from geoflux.errors import OperatorError
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.plan import HashPlan
from geoflux.state.store import Store
from streams_by_hand import Countdown


class Given:
    """A source of one table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)] if stop > start else []

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        count = piece.stop - piece.start
        yield RawBatch(self._table.slice(piece.start, count), np.arange(piece.start, piece.stop))


def ran(folder: Path, operator: Any, table: pa.Table) -> dict[str, Any]:
    setting = KeyedSetting(Store(str(folder)), operator, KeyedIntake(operator, "@position", "", ""))
    engine = KeyedEngine.recovered(setting, lambda: HashPlan.initial(2, per_slot=2))
    return run_epoch(engine, cast("EventSource", Given(table)), 0, (0, len(table)))


def test_rows_go_to_the_stream_that_they_name(tmp_path: Path) -> None:
    keys = [f"k{i}" for i in range(20)]
    left = [i % 2 for i in range(20)]
    table = pa.table({"key": keys, "left": left, "value": list(range(20))})
    manifest = ran(tmp_path, Countdown(), table)
    streams = manifest["streams"]
    assert list(streams) == ["again", "done"]
    for name, odd in (("again", 1), ("done", 0)):
        files = streams[name]
        assert [rows for _, rows in files] == [
            pq.read_metadata(tmp_path / f).num_rows for f, _ in files
        ]
        slots = [file.split("-")[1] for file, _ in files]
        assert slots == sorted(slots), "slot after slot"
        rows = pa.concat_tables([pq.read_table(tmp_path / f) for f, _ in files])
        assert rows.column_names == ["key", "left", "value", "seen", "epoch"]
        assert sorted(rows.column("value").to_pylist()) == [i for i in range(20) if i % 2 == odd]
    named = {file for files in streams.values() for file, _ in files}
    assert named == set(manifest["files"])


def test_an_operator_with_one_output_has_the_stream_results(tmp_path: Path) -> None:
    operator = WindowedGroupBy("key", "value", "count", rows=2)
    table = pa.table({"key": ["a", "b"], "value": [1.0, 2.0], "time": [1, 2]})
    setting = KeyedIntake(operator, "@position", "time", "s")
    engine = KeyedEngine.recovered(
        KeyedSetting(Store(str(tmp_path)), operator, setting), lambda: HashPlan.initial(1, 2)
    )
    manifest = run_epoch(engine, cast("EventSource", Given(table)), 0, (0, 2))
    assert manifest["streams"] == {"results": [[manifest["files"][0], 2]]}


def test_a_row_for_no_stream_is_an_error() -> None:
    with pytest.raises(OperatorError, match=r"'up'.*expected left or right"):
        split(("left", "right"), pa.table({"@stream": ["left", "up"]}))
    with pytest.raises(OperatorError, match=r"None.*expected left or right"):
        split(("left", "right"), pa.table({"@stream": pa.array(["left", None], pa.string())}))


def test_streams_and_columns_go_together() -> None:
    class Silent(Countdown):
        output = pa.schema([("key", pa.string())])

    check_streams(Countdown())
    assert stream_schema(Countdown()).names == ["key", "left", "value", "seen"]
    with pytest.raises(OperatorError, match="needs a text column @stream"):
        check_streams(Silent())
    with pytest.raises(OperatorError, match="all different"):
        check_streams(replace(Countdown(), streams=("one", "one")))
    with pytest.raises(OperatorError, match="no name of a stream"):
        check_streams(replace(Countdown(), streams=("one", "two three")))
    with pytest.raises(OperatorError, match="needs no column @stream"):
        check_streams(replace(Countdown(), streams=("results",)))
