"""Events from files: what is taken, in which order, with which types, and when."""

from __future__ import annotations

import json
import os
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.engine.files import FileEvents
from geoflux.engine.source import EventSource, RawBatch
from geoflux.errors import SourceError, StateError


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def events_of(folder: Path, **options: Any) -> FileEvents:
    return FileEvents(folder, folder.parent / "state" / "files.log", **options)


def read(events: FileEvents, start: int, stop: int, columns: Any = None) -> list[RawBatch]:
    return [b for piece in events.slices(start, stop, 2) for b in events.read(piece, columns)]


def rows(batches: list[RawBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.table.to_pylist()]


def write_lines(path: Path, *values: Any) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def paths(events: FileEvents) -> list[str]:
    return [entry.path for entry in events._log.entries()]


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


def test_parquet_without_rows_or_with_columns_of_one_name(folder: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), folder / "a.parquet")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(twice, folder / "b.parquet")
    events = events_of(folder)
    assert events.latest(0, None) == events.latest(0, None) == 0
    assert events.problems() == [("b.parquet", "two columns have the same name: x; rename one")]


def test_parquet_columns_and_positions(folder: Path) -> None:
    table = pa.table({"id": range(1000), "lon": [float(i) for i in range(1000)], "x": ["x"] * 1000})
    pq.write_table(table, folder / "a.parquet", row_group_size=300)
    pq.write_table(table.drop_columns(["lon"]), folder / "b.parquet")
    events = events_of(folder)
    assert events.latest(0, 700) == 700
    assert events.latest(700, None) == 2000
    assert events.total() is None  # more may come
    batches = read(events, 250, 1010, frozenset({"id", "lon", "none"}))
    assert {tuple(b.table.column_names) for b in batches} == {("id", "lon")}
    assert [p for b in batches for p in b.positions] == list(range(250, 1010))
    assert [r["id"] for r in rows(batches)] == [*range(250, 1000), *range(10)]
    assert [r["lon"] for r in rows(batches)][-12:] == [998.0, 999.0, *[None] * 10]
    nothing = read(events, 250, 1010, frozenset())
    assert [p for b in nothing for p in b.positions] == list(range(250, 1010))


def test_parquet_types_are_merged_and_misfits_are_shown(folder: Path) -> None:
    words = pa.array(["a", "b"]).dictionary_encode()
    first = {
        "n": [1, 1 << 60],
        "w": words,
        "t": pa.array([1, 2], pa.timestamp("ms")),
    }
    second = {
        "n": [0.5, 2.0],
        "w": ["c", None],
        "t": pa.array([3, 4], pa.timestamp("us", "UTC")),
    }
    pq.write_table(pa.table(first), folder / "a.parquet")
    pq.write_table(pa.table(second), folder / "b.parquet")
    events = events_of(folder)
    end = events.latest(0, None)
    wanted = [("n", pa.float64()), ("w", pa.string()), ("t", pa.timestamp("us", "UTC"))]
    assert events.schema() == pa.schema(wanted)
    assert [r["n"] for r in rows(read(events, 0, end))] == [1.0, float(1 << 60), 0.5, 2.0]
    pq.write_table(pa.table({"n": ["7.5", "oops"], "extra": [1, 2]}), folder / "c.parquet")
    batches = read(events, end, events.latest(end, None))
    assert [r["n"] for r in rows(batches)] == [7.5, None]
    assert [json.loads(r["@raw"]) for r in rows(batches) if r.get("@raw")] == [{"n": "oops"}]


def test_types_of_json_come_from_a_sample_and_survive_a_restart(folder: Path) -> None:
    write_lines(
        folder / "a.ndjson",
        {"whole": 1, "number": 1, "text": "2026-01-01T00:00:00Z", "flag": True, "mixed": 1},
        {
            "number": 0.5,
            "mixed": "x",
            "nested": {"a": [1]},
            "big": 1 << 70,
            "none": None,
            "@raw": 1,
        },
    )
    events = events_of(folder)
    end = events.latest(0, None)
    types = {"whole": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
    names = ["whole", "number", "text", "flag", "mixed", "nested", "big", "none"]
    assert events.schema() == pa.schema([(n, types.get(n, pa.string())) for n in names])
    found = rows(read(events, 0, end))
    assert [r["mixed"] for r in found] == ["1", "x"]
    assert [r["text"] for r in found] == ["2026-01-01T00:00:00Z", None]
    assert found[1]["nested"] == '{"a": [1]}'
    assert found[1]["big"] == str(1 << 70)
    write_lines(folder / "b.ndjson", {"whole": "one", "number": "1", "new": 5})
    again = events_of(folder)
    [batch] = read(again, end, again.latest(end, None))
    assert again.schema() == events.schema()
    [row] = batch.table.to_pylist()
    assert (row["whole"], row["number"]) == (None, None)
    assert json.loads(row["@raw"]) == {"whole": "one", "number": "1", "new": 5}


def test_types_can_be_given(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"lon": 1, "n": 1})
    events = events_of(folder, types={"lon": pa.float64(), "absent": pa.float64()})
    assert events.schema() == pa.schema([("lon", pa.float64()), ("n", pa.int64())])


def test_json_after_parquet_takes_its_types(folder: Path) -> None:
    time = pa.timestamp("ms", "UTC")
    table = pa.table({"n": pa.array([1], pa.int32()), "f": pa.array([1], pa.float32()),
                      "t": pa.array([0], time)})  # fmt: skip
    pq.write_table(table, folder / "a.parquet")
    events = events_of(folder)
    events.latest(0, None)
    write_lines(folder / "b.ndjson", {"n": 5, "f": 0.5, "t": "2026-01-01T00:00:00Z"})
    write_lines(folder / "c.ndjson", {"n": 1 << 40, "f": 1, "t": "yesterday"})
    one, other = read(events, 1, events.latest(1, None))
    assert one.table.to_pylist() == [{"n": 5, "f": 0.5, "t": datetime(2026, 1, 1, tzinfo=UTC)}]
    raw = (folder / "c.ndjson").read_text().strip()
    assert other.table.to_pylist() == [{"n": None, "f": 1.0, "t": None, "@raw": raw}]


def test_bad_lines_are_rejected_and_the_rest_is_read(folder: Path) -> None:
    good = '{"id": "a", "lon": 1.5}'
    long = '{"id": "' + "x" * 3000 + '"}'
    text = "\n".join([good, "{oops", "", "[1]", long, '{"id": "b", "lon": NaN}', good]) + "\n"
    (folder / "a.ndjson").write_text(text)
    events = events_of(folder, max_record_bytes=1000)
    batches = read(events, 0, events.latest(0, None))
    assert [r.code for b in batches for r in b.rejected] == [
        "malformed_json", "malformed_json", "oversized_record"]  # fmt: skip
    assert [r.row for b in batches for r in b.rejected] == ["{oops", "[1]", long[:1000]]
    assert [r["id"] for r in rows(batches)] == ["a", "b", "a"]
    positions = [p for b in batches for p in b.positions]
    assert [text[p : p + 9] for p in positions] == ['{"id": "a', '{"id": "b', '{"id": "a']


def test_a_line_of_many_blocks_is_not_kept_in_memory(folder: Path) -> None:
    (folder / "a.ndjson").write_bytes(b'{"id":1}\n' + b"x" * (10 << 20) + b'\n{"id":2}\n')
    events = events_of(folder)
    batches = read(events, 0, events.latest(0, None))
    assert [r["id"] for r in rows(batches)] == [1, 2]
    assert [(r.code, len(r.row)) for b in batches for r in b.rejected] == [
        ("oversized_record", 1000)
    ]


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


def test_what_was_found_but_not_written_down_is_found_again(folder: Path) -> None:
    (folder / "a.ndjson").write_text('{"id": 1}\n{"id"')
    events = events_of(folder)
    assert events._discovery.look() == events._discovery.look() != []


def test_a_complete_source_takes_the_last_line_at_once(folder: Path) -> None:
    (folder / "a.ndjson").write_text('{"id": 1}\n{"id": 2}')
    events = events_of(folder, complete=True)
    assert rows(read(events, 0, events.latest(0, None))) == [{"id": 1}, {"id": 2}]


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


START = datetime(2026, 1, 1, tzinfo=UTC)


def times(count: int) -> list[datetime]:
    return [START + timedelta(seconds=i) for i in range(count)]


@pytest.mark.parametrize("kind", ["timestamp", "iso", "number", "ndjson", "no statistics"])
def test_a_replay_offers_rows_as_their_time_passes(folder: Path, kind: str) -> None:
    clock = Clock(5000.0)
    if kind == "ndjson":
        write_lines(folder / "a.ndjson", *({"time": t.isoformat()} for t in times(1000)))
    else:
        values: Any = times(1000)
        if kind in ("iso", "number"):
            values = [t.isoformat() if kind == "iso" else int(t.timestamp()) for t in times(1000)]
        table = pa.table({"time": values})
        statistics = kind != "no statistics"
        pq.write_table(table, folder / "a.parquet", 300, write_statistics=statistics)
    events = events_of(folder, speed=10.0, clock=clock)
    assert len(rows(read(events, 0, events.latest(0, None)))) == 1
    end = events._log.end()
    unit = end / 1000  # positions a row
    clock.now += 20
    at = events.latest(0, None)
    assert abs(at / unit - 201) < 3
    clock.now += 10
    events = events_of(folder, speed=10.0, clock=clock)  # a restart goes on
    assert abs(events.latest(at, None) / unit - 301) < 3
    assert events.latest(at, 10) <= at + 11 * unit
    first, last = events.arrivals(0, at) or (0, 0)
    assert first == 5000.0
    assert abs(last - 5020) < 0.3
    clock.now += 1000
    assert events.latest(at, None) == end


def test_rows_arrive_no_earlier_than_their_file(folder: Path) -> None:
    clock = Clock(5000.0)
    pq.write_table(pa.table({"time": times(10)}), folder / "a.parquet")
    events = events_of(folder, speed=1.0, clock=clock)
    assert events.arrivals(0, 1) is None
    events.latest(0, None)
    clock.now += 100
    pq.write_table(pa.table({"time": times(20)[10:]}), folder / "b.parquet")
    assert events.latest(0, None) == 20
    assert events.arrivals(5, 15) == (5005.0, 5100.0)


def test_without_a_replay_there_are_no_arrivals(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"id": 1})
    events = events_of(folder)
    assert events.arrivals(0, events.latest(0, None)) is None


def test_a_replay_needs_times(folder: Path) -> None:
    write_lines(folder / "a.ndjson", {"id": 1})
    with pytest.raises(SourceError, match=r"no row .* has a time in column 'time'"):
        events_of(folder, speed=1.0).latest(0, None)
