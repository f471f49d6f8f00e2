"""Control records from files: one order that never changes, complete lines only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.engine.control_files import ControlFiles
from geoflux.engine.source import ControlSource
from geoflux.errors import StateError


def control_of(tmp_path: Path, **options: bool) -> ControlFiles:
    return ControlFiles(tmp_path / "control", tmp_path / "control.log", **options)


def test_a_path_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    control: ControlSource = control_of(tmp_path)
    assert control.poll({}) == {}
    assert list(control.read({}, {})) == []


def test_a_file_that_appears_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "control.ndjson"
    control = ControlFiles(path, tmp_path / "log")
    assert control.poll({}) == {}
    path.write_bytes(b'{"id": 1}\n{"id"')
    first = control.poll({})
    assert first == {"position": 10}
    assert control.poll(first) == first
    path.write_bytes(b'{"id": 1}\n{"id": 2}\r\n\n{"id": 3')
    second = ControlFiles(path, tmp_path / "log").poll(first)
    assert list(control.read({}, first)) == [[b'{"id": 1}']]
    assert list(control.read(first, second)) == [[b'{"id": 2}\r']]
    last = ControlFiles(path, tmp_path / "log", complete=True).poll(second)
    assert list(control.read(second, last)) == [[b'{"id": 3']]


def test_parquet_and_lines_in_the_order_of_discovery(tmp_path: Path) -> None:
    folder = tmp_path / "control"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.ndjson").write_bytes(b"two\n")
    pq.write_table(pa.table({"id": ["x", "y"]}), folder / "a.parquet")
    control = control_of(tmp_path)
    first = control.poll({})
    (folder / "0.ndjson").write_bytes(b"three\n")
    (folder / "c.parquet").write_bytes(b"PAR1 half a file")
    second = control.poll(first)
    assert [name for name, _ in control.problems()] == ["c.parquet"]
    table, two, three = control_of(tmp_path).read({}, second)
    assert isinstance(table, pa.Table)
    assert table.to_pydict() == {"id": ["x", "y"]}
    assert (two, three) == ([b"two"], [b"three"])
    assert list(control.read(first, second)) == [[b"three"]]


def test_many_lines_come_in_several_lists_and_long_ones_whole(tmp_path: Path) -> None:
    long = b"x" * (5 << 20)
    (tmp_path / "control").mkdir()
    (tmp_path / "control/a.json").write_bytes(b"1\n" * 120_000 + long + b"\n2\n")
    control = control_of(tmp_path)
    parts = list(control.read({}, control.poll({})))
    assert all(0 < len(part) <= 50_000 for part in parts)
    lines = [line for part in parts for line in part]
    assert len(lines) == 120_002
    assert lines[-2:] == [long, b"2"]


def test_an_offset_of_another_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    with pytest.raises(StateError, match="ends at position 0"):
        list(control_of(tmp_path).read({}, {"position": 9}))
