"""Events from files: what is taken, in which order, and when."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files_by_hand import Clock, events_of, paths, read, rows, write_lines
from geoflux.engine.files import FileEvents
from geoflux.engine.source import EventSource
from geoflux.errors import SourceError


def test_it_is_an_event_source(folder: Path) -> None:
    source: EventSource = events_of(folder)
    assert source.latest(0, None) == 0
    assert source.schema() == pa.schema([])
    assert source.slices(0, 0, 4) == []


def test_files_are_taken_by_relative_path_and_hidden_ones_are_not(folder: Path) -> None:
    for name in [
        "b.jsonl",
        "a/z.json",
        "a/b/c.ndjson",
        "_tmp/x.json",
        ".x.json",
        "_x.json",
        "x.csv",
    ]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines(folder / name, {"name": name})
    pq.write_table(pa.table({"name": ["p"]}), folder / "a2.parquet")
    events = events_of(folder)
    end = events.latest(0, None)
    assert [row["name"] for row in rows(read(events, 0, end))] == [
        "a/b/c.ndjson", "a/z.json", "p", "b.jsonl"]  # fmt: skip
    write_lines(folder / "0.ndjson", {"name": "later, so last"})
    assert rows(read(events, end, events.latest(end, None))) == [{"name": "later, so last"}]


def test_its_own_log_is_no_event(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"id": 1})
    events = FileEvents(folder, folder / "log.ndjson")
    end = events.latest(0, None)
    assert events.latest(end, None) == end


@pytest.mark.parametrize(("format", "taken"), [("parquet", "b.parquet"), ("ndjson", "a.json")])
def test_a_format_leaves_the_other_one_out(folder: Path, format: str, taken: str) -> None:
    write_lines(folder / "a.json", {"id": 1})
    pq.write_table(pa.table({"id": [1]}), folder / "b.parquet")
    events = events_of(folder, format=format)
    events.latest(0, None)
    assert paths(events) == [taken]


def test_one_file_of_any_name(tmp_path: Path) -> None:
    write_lines(tmp_path / "events.txt", {"id": 1})
    log = tmp_path / "log"
    with pytest.raises(SourceError, match=r"source\.format"):
        FileEvents(tmp_path / "events.txt", log).latest(0, None)
    events = FileEvents(tmp_path / "events.txt", log, format="ndjson")
    assert rows(read(events, 0, events.latest(0, None))) == [{"id": 1}]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file or folder"):
        FileEvents(tmp_path / "none", tmp_path / "log").latest(0, None)


def test_unfinished_and_damaged_parquet_is_named_and_tried_again(folder: Path) -> None:
    pq.write_table(pa.table({"id": range(10)}), folder / "a.parquet")
    whole = (folder / "a.parquet").read_bytes()
    (folder / "a.parquet").write_bytes(whole[:-20])
    (folder / "b.parquet").write_bytes(b"")
    events = events_of(folder)
    assert events.latest(0, None) == 0
    [(name, reason)] = events.problems()
    assert name == "a.parquet"
    assert "footer" in reason
    (folder / "a.parquet").write_bytes(whole)
    assert events.latest(0, None) == 10
    assert events.problems() == []


def test_a_last_line_waits_until_it_settled(folder: Path) -> None:
    clock = Clock()
    path = folder / "a.ndjson"
    path.write_text('{"id": 1}\n{"id"')
    events = events_of(folder, clock=clock, settle_seconds=5)
    assert events.latest(0, None) == 10
    clock.now += 4
    assert events.latest(0, None) == 10
    path.write_text('{"id": 1}\n{"id": 2')  # still being written
    clock.now += 4
    assert events.latest(0, None) == 10
    path.write_text('{"id": 1}\n{"id": 2}')
    assert events.latest(0, None) == 10
    clock.now += 5
    assert events.latest(0, None) == 19
    path.write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    assert rows(read(events, 0, events.latest(0, None))) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert paths(events) == ["a.ndjson"] * 3


def test_a_complete_source_takes_the_last_line_at_once(folder: Path) -> None:
    (folder / "a.ndjson").write_text('{"id": 1}\n{"id": 2}')
    events = events_of(folder, complete=True)
    assert rows(read(events, 0, events.latest(0, None))) == [{"id": 1}, {"id": 2}]
