"""Events from files, replayed: rows come as their time passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files_by_hand import Clock, events_of, read, rows, write_lines
from geoflux.errors import SourceError

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
