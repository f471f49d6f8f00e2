"""Reading the committed streams of other operators: each row once, whatever is torn or late."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.engine import log_content, stream_events
from geoflux.engine.file_log import FileLog, Found
from geoflux.engine.stream_events import StreamEvents, Upstream
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

COLUMNS = pa.schema([("n", pa.int64()), ("word", pa.string())])


def committed(
    folder: Path, epoch: int, streams: dict[str, list[dict[str, Any]]], published: bool = True
) -> list[Path]:
    """An epoch of an operator, with one file per stream that has rows."""
    named, files = {}, []
    for stream, rows in streams.items():
        name = f"results/e{epoch:08d}-s0000-{stream}.parquet"
        named[stream] = [[name, len(rows)]] if rows else []
        if rows:
            files.append(name)
            if published:
                (folder / "results").mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.Table.from_pylist(rows), folder / name)
    manifest = {"epoch": epoch, "files": files, "streams": named, "committed": 100.0 + epoch}
    EpochLog(Store(str(folder))).commit(epoch, manifest)
    return [folder / name for name in files]


def reader(folder: Path, **streams: tuple[str, ...]) -> StreamEvents:
    upstreams = tuple(Upstream(n, Store(str(folder / n)), s) for n, s in streams.items())
    return StreamEvents(
        folder, folder / "reader" / "source.log", upstreams=upstreams, columns=COLUMNS
    )


def rows_of(events: StreamEvents) -> list[dict[str, Any]]:
    stop = events.latest(0, None)
    found = []
    for piece in events.slices(0, stop, 3):
        for batch in events.read(piece):
            found += batch.table.to_pylist()
    return found


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["n"] for row in rows]


def test_only_the_named_streams_in_the_order_of_epochs(tmp_path: Path) -> None:
    for epoch in range(3):
        some = {"left": [{"n": epoch}], "right": [{"n": 10 + epoch}], "none": []}
        committed(tmp_path / "a", epoch, some)
    assert numbers(rows_of(reader(tmp_path, a=("left",)))) == [0, 1, 2]
    both = reader(tmp_path / "..", **{f"{tmp_path.name}/a": ("right", "left", "none")})
    both.log_path = tmp_path / "both.log"
    assert numbers(rows_of(pickle.loads(pickle.dumps(both)))) == [10, 0, 11, 1, 12, 2]


def test_several_operators_and_columns_that_one_of_them_has_not(tmp_path: Path) -> None:
    committed(tmp_path / "a", 0, {"results": [{"n": 1}]})
    events = reader(tmp_path, a=("results",), b=("results",))
    assert rows_of(events) == [{"n": 1, "word": None}]
    committed(tmp_path / "b", 0, {"results": [{"word": "x", "more": 3.5}]})
    committed(tmp_path / "a", 1, {"results": [{"n": 2}]})
    assert rows_of(events)[1:] == [{"n": 2, "word": None}, {"n": None, "word": "x"}]
    assert rows_of(reader(tmp_path, a=("results",), b=("results",))) == rows_of(events)
    assert events.arrivals(0, 2) == (100.0, 101.0)
    assert events.latest(0, 2) == 2


def test_an_epoch_counts_when_all_its_files_are_published(tmp_path: Path) -> None:
    events = reader(tmp_path, a=("results",))
    committed(tmp_path / "a", 0, {"results": [{"n": 1}]}, published=False)
    committed(tmp_path / "a", 1, {"results": [{"n": 2}]})
    assert events.latest(0, None) == events.waiting() == 0
    committed(tmp_path / "a", 0, {"results": [{"n": 1}]})
    assert events.waiting() == 2
    assert events.logged() == 0, "looking writes nothing"
    assert numbers(rows_of(events)) == [1, 2]
    assert events.waiting() == 0


def test_what_a_torn_append_left_is_not_found_again(tmp_path: Path) -> None:
    events = reader(tmp_path, a=("left", "right"))
    committed(tmp_path / "a", 0, {"left": [{"n": 1}], "right": [{"n": 2}]})
    events.latest(0, None)
    committed(tmp_path / "a", 1, {"left": [{"n": 3}], "right": [{"n": 4}]})
    events.latest(0, None)
    lines = events.log_path.read_bytes().splitlines(keepends=True)
    assert "note" in json.loads(lines[-1])
    # The crash came after the first entry of the second look; a process that starts anew reads it.
    events.log_path.write_bytes(b"".join(lines[:-2]) + lines[-2][:10])
    log_content._known.clear()
    assert numbers(rows_of(reader(tmp_path, a=("left", "right")))) == [1, 2, 3, 4]
    assert [entry.index for entry in FileLog(events.log_path).entries()] == [0, 1, 2, 3]


def test_epochs_without_rows_are_noted_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_events, "_PASSED", 3)
    monkeypatch.setattr(stream_events, "_MOST_EPOCHS", 4)
    events = reader(tmp_path, a=("results",))
    for epoch in range(7):
        committed(tmp_path / "a", epoch, {"results": []})
    for _ in range(3):
        events.latest(0, None)
    assert FileLog(events.log_path).notes()["streams"]["next"] == {"a": 7}
    again = reader(tmp_path, a=("results",))
    committed(tmp_path / "a", 7, {"results": [{"n": 7}]})
    assert numbers(rows_of(again)) == numbers(rows_of(events)) == [7]


def test_standing_queries_are_a_stream_too(tmp_path: Path) -> None:
    [file] = committed(tmp_path / "q", 0, {"matches": [{"n": 5}]})
    (tmp_path / "q" / "matches").mkdir()
    file.rename(tmp_path / "q" / "matches" / "e0.parquet")
    named = {"files": ["matches/e0.parquet"], "committed": 1.0}
    EpochLog(Store(str(tmp_path / "q"))).commit(0, named)
    assert numbers(rows_of(reader(tmp_path, q=("matches",)))) == [5]
    assert reader(tmp_path, q=("aggregates",)).waiting() == 0


def test_a_stream_ends_when_it_is_said_to(tmp_path: Path) -> None:
    committed(tmp_path / "a", 0, {"results": [{"n": 1}]})
    events = reader(tmp_path, a=("results",))
    assert events.total() is None
    events.latest(0, None)
    events.end()
    assert events.total() == 1
    assert pickle.loads(pickle.dumps(events)).total() is None


def test_a_log_is_read_line_by_line_as_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, taken = FileLog(tmp_path / "files.log"), []
    real = log_content.LogContent._take_line

    def counted(self: Any, *given: Any) -> None:
        taken.append(given)
        real(self, *given)

    monkeypatch.setattr(log_content.LogContent, "_take_line", counted)
    for number in range(50):
        log.append([Found(f"{number}.parquet", "parquet", 0, 10, 5)], at=1.0)
        assert log.end() == 10 * (number + 1)
    assert len(taken) == 51, "a header and 50 entries, each read once"
    assert [e.path for e, _, _ in log.pieces(95, 115)] == [
        "9.parquet", "10.parquet", "11.parquet",
    ]  # fmt: skip
