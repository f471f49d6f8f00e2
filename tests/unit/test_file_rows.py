"""Events from files: rows and their types, and what is no row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from files_by_hand import events_of, read, rows, write_lines


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
