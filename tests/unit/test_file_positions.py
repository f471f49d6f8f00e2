"""Events from files: positions and the log that keeps them, also after crashes and on workers."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files_by_hand import events_of, read, rows, write_lines
from geoflux.errors import SourceError, StateError


def test_what_was_found_but_not_written_down_is_found_again(folder: Path) -> None:
    (folder / "a.ndjson").write_text('{"id": 1}\n{"id"')
    events = events_of(folder)
    assert events._discovery.look() == events._discovery.look() != []


def test_limits_are_rows(folder: Path) -> None:
    write_lines(folder / "a.ndjson", *({"id": i, "lon": 0.5} for i in range(10_000, 20_000)))
    pq.write_table(pa.table({"id": range(1000), "lon": [0.5] * 1000}), folder / "b.parquet")
    events = events_of(folder)
    counts, at = [], 0
    while (stop := events.latest(at, 900)) > at:
        counts.append(len(rows(read(events, at, stop))))
        at = stop
    assert sum(counts) == 11_000
    assert max(counts) <= 910
    assert len(counts) <= 14


def test_slices_are_of_about_equal_size(folder: Path) -> None:
    pq.write_table(pa.table({"id": range(1000)}), folder / "a.parquet")
    pq.write_table(pa.table({"id": range(500)}), folder / "b.parquet")
    events = events_of(folder)
    events.latest(0, None)
    assert [(s.stream, s.start, s.stop) for s in events.slices(0, 1500, 3)] == [
        (0, 0, 500), (0, 500, 1000), (1, 0, 500)]  # fmt: skip


def test_workers_need_only_the_log(folder: Path) -> None:
    write_lines(folder / "a.ndjson", *({"id": i} for i in range(100)))
    events = events_of(folder)
    end = events.latest(0, None)
    worker = pickle.loads(pickle.dumps(events))
    assert worker.slices(0, end, 4) == events.slices(0, end, 4)
    assert rows(read(worker, 0, end)) == [{"id": i} for i in range(100)]


@pytest.mark.parametrize("torn", [b'{"index": 1, "pa', b"\x00\x00\x00\n", b'{"index": 1}\n'])
def test_a_torn_log_is_mended(folder: Path, torn: bytes) -> None:
    write_lines(folder / "a.ndjson", {"id": 1})
    events = events_of(folder)
    end = events.latest(0, None)
    clean = events.log_path.read_bytes()
    events.log_path.write_bytes(clean + torn)
    again = events_of(folder)
    assert again.latest(end, None) == end
    write_lines(folder / "b.ndjson", {"id": 2})
    assert rows(read(again, 0, again.latest(end, None))) == [{"id": 1}, {"id": 2}]
    assert again.log_path.read_bytes().startswith(clean + b'{"index": 1, "path": "b.ndjson"')


def test_a_damaged_log_is_refused(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"id": 1})
    events = events_of(folder)
    events.latest(0, None)
    events.log_path.write_bytes(b"\x00\n" + events.log_path.read_bytes())
    with pytest.raises(StateError, match="damaged at byte"):
        events_of(folder).latest(0, None)


def test_positions_of_another_log_are_refused(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"id": 1})
    events = events_of(folder)
    with pytest.raises(StateError, match="the run is at 500"):
        events.latest(500, None)
    with pytest.raises(StateError, match="up to 500"):
        events.slices(0, 500, 1)


def test_files_that_changed_after_they_were_logged_are_refused(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"id": 1}, {"id": 2})
    pq.write_table(pa.table({"id": [1, 2]}), folder / "b.parquet")
    events = events_of(folder)
    end = events.latest(0, None)
    slices = events.slices(0, end, 1)
    write_lines(folder / "a.ndjson", {"id": 1})
    pq.write_table(pa.table({"id": [1, 2, 3]}), folder / "b.parquet")
    events.latest(0, None)
    assert [name for name, _ in events.problems()] == ["a.ndjson"]
    for piece in slices:
        with pytest.raises(SourceError, match="when it was logged"):
            list(events.read(piece))
    os.remove(folder / "a.ndjson")
    with pytest.raises(SourceError, match="restore it"):
        list(events.read(slices[0]))
