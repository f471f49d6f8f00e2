"""Laws of the file source: every record once and in order, however it is cut or interrupted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geoflux.engine.control_files import ControlFiles
from geoflux.engine.files import FileEvents
from geoflux.engine.ndjson_lines import Block, Span, line_blocks
from geoflux.engine.ndjson_rows import Rows, _by_line, parse
from geoflux.engine.source import Rejected

LIMIT = 300
SCHEMA = pa.schema(
    [("id", pa.string()), ("lon", pa.float64()), ("n", pa.int64()), ("ok", pa.bool_())]
)
TYPICAL = b'{"id":"a","lon":1.5,"n":7,"ok":true}'

# What is written for a value, legal or not: the corners where two JSON parsers may differ.
tokens = st.sampled_from(
    ["1", "-0", "0.5", "-0.0", "5.0", "1e2", "1E400", "1e-400", "9" * 25, "9" * 150, "NaN", "-NaN",
     "Inf", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "true", "null", "nul", '"x"', '"2020"',
     r'"\ud800"', r'"\ud83d\ude00"', '"é"', r'"\u0000"', '"a\x01"', '"{"', '"}"', r'"\""', "{}",
     "[]", '{"lon":2}', "[[1],{}]", "9007199254740993", "9223372036854775808",
     "[" * 101 + "]" * 101, '"' + "[" * 101 + '"', "[" + "[]," * 40 + "1]"])  # fmt: skip
names = st.sampled_from(["id", "lon", "n", "ok", "other", r"\u006c" + "on", "é"])
objects = st.builds(
    lambda pairs, gap: ("{" + ",".join(f'"{k}":{gap}{v}' for k, v in pairs) + "}").encode(),
    st.lists(st.tuples(names, tokens), max_size=5),
    st.sampled_from(["", " "]),
)
lines = st.one_of(
    st.just(TYPICAL),
    st.just(TYPICAL),
    objects,
    st.sampled_from(
        [
            b"",
            b" ",
            b"\r",
            TYPICAL + b"\r",
            TYPICAL * 2,
            b"{",
            b"}",
            b"[1]",
            b"5",
            b"{}",
            b"nope",
            b" " + TYPICAL + b" ",
            b"\xff{}",
            b'{"id":"\xff"}',
            b"\xef\xbb\xbf" + TYPICAL,
            b"\x00",
            b'{"id":"' + b"x" * LIMIT + b'"}',
            b" " * (LIMIT + 1),
            b" " * 5000 + TYPICAL,
            b'{"id":',
            b'"b"}',
            b'{"other":{}',
            b"," + TYPICAL,
        ]
    ),
    st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")),
)
texts = st.builds(
    lambda parts, end: b"\n".join(parts) + end,
    st.lists(lines, max_size=25),
    st.sampled_from([b"", b"\n"]),
)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "in").mkdir()
        yield Path(name)


def naive(data: bytes) -> list[tuple[int, str]]:
    """First byte of each record, and what it is: the plainest reading there can be."""
    found, offset = [], 0
    for line in data.split(b"\n"):
        text = line.removeprefix(b"\xef\xbb\xbf") if offset == 0 else line
        if len(text) > LIMIT:
            found.append((offset, "oversized_record"))
        elif text.strip(b" \t\r"):
            try:
                good = isinstance(json.loads(text.decode()), dict) and not deep(text)
            except ValueError:
                good = False
            found.append((offset, "row" if good else "malformed_json"))
        offset += len(line) + 1
    return found


def deep(text: bytes) -> bool:
    return b"[" * 101 in text and b'"' + b"[" * 101 not in text


def events_in(where: Path, **options: Any) -> FileEvents:
    return FileEvents(where / "in", where / "log", max_record_bytes=LIMIT, **options)


def received(events: FileEvents, start: int, stop: int, parts: int) -> tuple[list[Any], list[str]]:
    rows: list[Any] = []
    rejected: list[str] = []
    for piece in events.slices(start, stop, parts):
        for batch in events.read(piece):
            columns = [batch.table.column(name).to_pylist() for name in SCHEMA.names]
            rows += zip(batch.positions.tolist(), *map(shown, columns), strict=True)
            rejected += [r.code for r in batch.rejected]
    return rows, rejected


def shown(values: Iterable[Any]) -> list[str]:
    return [repr(value) for value in values]  # NaN equals NaN, 0.0 differs from -0.0


def expected(data: bytes, first: int = 0) -> tuple[list[int], list[str]]:
    records = naive(data)
    return (
        [first + offset for offset, kind in records if kind == "row"],
        [kind for _, kind in records if kind != "row"],
    )


@settings(max_examples=150, deadline=None)
@given(data=texts, cuts=st.lists(st.floats(0, 1), max_size=4), parts=st.integers(1, 9))
def test_any_slicing_gives_every_record_once_and_in_order(
    data: bytes, cuts: list[float], parts: int
) -> None:
    with folder() as where:
        (where / "in/0.ndjson").write_bytes(TYPICAL + b"\n")  # fixes the types
        (where / "in/1.ndjson").write_bytes(data)
        events = events_in(where, complete=True)
        end = events.latest(0, None)
        first = len(TYPICAL) + 1
        assert end == first + len(data)
        bounds = sorted({0, end, *(int(cut * end) for cut in cuts)})
        pieces = [received(events, low, high, parts) for low, high in pairwise(bounds)]
        rows = [row for piece in pieces for row in piece[0]]
        positions, codes = expected(data, first)
        assert [row[0] for row in rows] == [0, *positions]
        assert [code for piece in pieces for code in piece[1]] == codes
        assert rows == received(events, 0, end, 1)[0]


@settings(max_examples=60, deadline=None)
@given(data=texts, cuts=st.lists(st.floats(0, 1), max_size=6), crashes=st.booleans())
def test_appended_bytes_are_read_once(data: bytes, cuts: list[float], crashes: bool) -> None:
    with folder() as where:
        path, done = where / "in/1.ndjson", 0
        rows: list[Any] = []
        rejected: list[str] = []
        (where / "in/0.ndjson").write_bytes(TYPICAL + b"\n")
        events, begin = events_in(where, settle_seconds=1e9), 0
        bounds = sorted(int(cut * len(data)) for cut in cuts)
        for low, high in zip([0, *bounds], [*bounds, len(data)], strict=True):
            with path.open("ab") as file:
                file.write(data[low:high])
            if crashes:
                events = events_in(where, settle_seconds=1e9)
            done = events.latest(begin, None)
            new = received(events, begin, done, 2)
            rows, rejected, begin = rows + new[0], rejected + new[1], done
        last = events_in(where, complete=True)
        new = received(last, begin, last.latest(begin, None), 2)
        rows, rejected = rows + new[0], rejected + new[1]
        positions, codes = expected(data, len(TYPICAL) + 1)
        assert ([row[0] for row in rows], rejected) == ([0, *positions], codes)
        assert rows == received(last, 0, last.total(), 1)[0]


@settings(max_examples=40, deadline=None)
@given(data=st.lists(texts, min_size=1, max_size=4), torn=st.binary(max_size=40))
def test_a_crash_changes_no_position(data: list[bytes], torn: bytes) -> None:
    with folder() as where:
        (where / "in/0.ndjson").write_bytes(TYPICAL + b"\n")
        for i, text in enumerate(data[1:]):
            (where / f"in/b{i}.jsonl").write_bytes(text)
        before = events_in(where, complete=True)
        end = before.latest(0, None)
        slices = before.slices(0, end, 3)
        rows = received(before, 0, end, 3)
        with (where / "log").open("ab") as log:
            log.write(b'{"index"' + torn.replace(b"\n", b""))
        (where / "in/a.ndjson").write_bytes(data[0])
        after = events_in(where, complete=True)
        grown = after.latest(end, None)
        assert after.slices(0, end, 3) == slices
        assert received(after, 0, end, 3) == rows
        positions, _ = expected(data[0], end)
        assert [row[0] for row in received(after, end, grown, 2)[0]] == positions


def outcome(rows: Rows) -> tuple[Any, ...]:
    columns = [shown(rows.table.column(name).to_pylist()) for name in SCHEMA.names]
    return columns, rows.offsets.tolist(), rows.rejected


@settings(max_examples=800, deadline=None)
@given(parts=st.lists(lines, min_size=1, max_size=6))
@example(parts=[b'{"lon":-0}', b'{"lon":' + b"9" * 150 + b"}"])
@example(parts=[b'{"other":Inf}'])
@example(parts=[b'{"lon":', b'1}{"lon":2}'])
@example(parts=[b'{"other":', b"{}}{}"])
@example(parts=[b'{"other":' + b"[" * 101 + b"]" * 101 + b"}"])
def test_a_line_means_the_same_whatever_its_neighbours_are(parts: list[bytes]) -> None:
    block = Block(1, b"\n".join(parts))
    assert outcome(parse(block, SCHEMA, LIMIT)) == outcome(_by_line(block, SCHEMA, LIMIT))


@settings(max_examples=100, deadline=None)
@given(data=texts, begin=st.integers(0, 30), size=st.integers(1, 40), cut=st.floats(0, 1))
def test_blocks_cover_the_lines_of_a_range(data: bytes, begin: int, size: int, cut: float) -> None:
    with folder() as where:
        path = where / "file"
        path.write_bytes(b"z" * begin + data + b"rest of a later entry")
        span = Span(path, begin, begin + len(data))
        middle = int(cut * len(data))
        blocks = [
            block
            for low, high in [(0, middle), (middle, len(data))]
            for block in line_blocks(span, low, high, None, size)
        ]
        assert b"".join(block.data for block in blocks) == data
        offset = begin
        for block in blocks:
            assert block.offset == offset
            offset += len(block.data)
            assert block.data.endswith(b"\n") or offset == span.end


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(1, 300), min_size=1, max_size=3),
    group=st.integers(1, 120),
    cuts=st.lists(st.floats(0, 1), max_size=3),
    parts=st.integers(1, 5),
)
def test_parquet_rows_come_once(
    counts: list[int], group: int, cuts: list[float], parts: int
) -> None:
    with folder() as where:
        for i, count in enumerate(counts):
            table = pa.table({"row": range(count), "file": [i] * count})
            pq.write_table(table, where / f"in/{i}.parquet", row_group_size=group)
        events = FileEvents(where / "in", where / "log")
        end = events.latest(0, None)
        assert end == sum(counts)
        rows = []
        bounds = sorted({0, end, *(int(cut * end) for cut in cuts)})
        for low, high in pairwise(bounds):
            for piece in events.slices(low, high, parts):
                for batch in events.read(piece):
                    got = (batch.table.column(n).to_pylist() for n in ("file", "row"))
                    rows += zip(batch.positions.tolist(), *got, strict=True)
        wanted = [(i, row) for i, count in enumerate(counts) for row in range(count)]
        assert rows == [(at, i, row) for at, (i, row) in enumerate(wanted)]


@settings(max_examples=40, deadline=None)
@given(data=texts, cuts=st.lists(st.floats(0, 1), max_size=5))
def test_control_lines_come_once_however_they_are_appended(data: bytes, cuts: list[float]) -> None:
    with folder() as where:
        path = where / "in/c.ndjson"
        bounds = sorted(int(cut * len(data)) for cut in cuts)
        offset: dict[str, Any] = {}
        got: list[bytes] = []
        for low, high in zip([0, *bounds], [*bounds, len(data)], strict=True):
            with path.open("ab") as file:
                file.write(data[low:high])
            control = ControlFiles(where / "in", where / "log", complete=high == len(data))
            new = control.poll(offset)
            got += [line for part in control.read(offset, new) for line in part]
            offset = new
        bare = data.removeprefix(b"\xef\xbb\xbf")
        assert got == [line for line in bare.split(b"\n") if line.strip(b" \t\r")]


@settings(max_examples=60)
@given(
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    length=st.integers(4990, 5010),
    end=st.sampled_from([b"", b"\n", b"\n{}"]),
)
def test_a_line_longer_than_a_block_is_judged_as_any_other(
    mark: bytes, length: int, end: bytes
) -> None:
    with folder() as where:
        path = where / "file"
        path.write_bytes(
            mark + b'{"id":"' + "€".encode() * 400 + b"x" * (length - 1209) + b'"}' + end
        )
        span, found = Span(path, 0, path.stat().st_size), []
        for size in (100, 1 << 22):
            blocks = line_blocks(span, 0, span.end, 5000, size)
            parsed = [outcome(parse(block, SCHEMA, 5000)) for block in blocks]
            found.append([sum((part[i] for part in parsed), type(parsed[0][i])()) for i in (1, 2)])
        assert found[0] == found[1]
        assert len(found[0][1]) == (length > 5000)


def test_rejected_rows_say_why() -> None:
    rows = _by_line(Block(0, b'{"lon":\n[1]\n' + b"x" * 400 + b"\n\xff"), SCHEMA, LIMIT)
    assert rows.rejected == (
        Rejected("malformed_json", "Expecting value at character 7", '{"lon":'),
        Rejected("malformed_json", "expected an object, found an array", "[1]"),
        Rejected("oversized_record", "the line is longer than max_record_bytes = 300", "x" * 400),
        Rejected("malformed_json", "the line is not UTF-8: invalid start byte at byte 0", "\ufffd"),
    )
