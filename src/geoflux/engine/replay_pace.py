"""Replay: rows become available as their event time passes, ``speed`` times as fast as it did.

Event times are known at *knots*: the least and the largest of each row group of Parquet, sampled
lines of NDJSON; between two knots time runs evenly. Files are taken to follow each other in time:
a row never becomes available before one at a smaller position, so a single time that is far ahead
of its neighbours holds up all rows after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoflux.engine.file_log import FileLog, resolved
from geoflux.engine.log_content import Entry
from geoflux.engine.ndjson_lines import Span, line_blocks
from geoflux.engine.ndjson_rows import sample_records
from geoflux.errors import SourceError

_UNIT_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SAMPLES = 256
_SAMPLE_BYTES = 1 << 14


@dataclass(frozen=True)
class TimeColumn:
    """The column of the event time: timestamps, ISO 8601 texts, or numbers of ``unit`` since 1970.

    A time without a zone is UTC.
    """

    name: str
    unit: str = "s"

    def seconds(self, value: Any) -> float | None:
        """A value of the column in seconds since 1970; ``None`` where it is no time.

        >>> TimeColumn("t", "ms").seconds(1500), TimeColumn("t").seconds("1970-01-01T00:01:00Z")
        (1.5, 60.0)
        """
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return None
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            return value * _UNIT_SECONDS[self.unit]
        return None


@dataclass
class EventTimes:
    """Event times over the positions of a log, learned file by file as far as they are needed."""

    root: Path
    log: FileLog
    column: TimeColumn
    _positions: list[int] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _entries: int = 0

    def first(self) -> float:
        """The time of the first row."""
        while not self._times and self._learn():
            pass
        if not self._times:
            raise SourceError(
                f"no row of {self.root} has a time in column {self.column.name!r}, which "
                "source.speed > 0 needs; mend source.time or source.time_unit, or set speed to 0"
            )
        return self._times[0]

    def position(self, time: float) -> int:
        """The end of the rows up to an event time."""
        while (not self._times or self._times[-1] <= time) and self._learn():
            pass
        after = bisect_right(self._times, time)
        if after == len(self._times):
            return self.log.end()
        if after == 0:
            return 0
        low, high = self._positions[after - 1], self._positions[after]
        share = (time - self._times[after - 1]) / (self._times[after] - self._times[after - 1])
        return low + int((high - low) * share) + 1

    def time(self, position: int) -> float:
        """The event time of the row at a position."""
        first = self.first()
        while self._positions[-1] < position and self._learn():
            pass
        after = bisect_right(self._positions, position)
        if after == 0:
            return first
        if after == len(self._times):
            return self._times[-1]
        low, high = self._positions[after - 1], self._positions[after]
        share = (position - low) / (high - low)
        return self._times[after - 1] + share * (self._times[after] - self._times[after - 1])

    def _learn(self) -> bool:
        if self._entries >= self.log.count():
            return False
        entry = self.log.entry(self._entries)
        self._entries += 1
        path = resolved(self.root, entry)
        knots = (
            _groups(path, self.column)
            if entry.kind == "parquet"
            else _lines(path, entry, self.column)
        )
        for unit, time in knots:
            position = entry.first + unit
            latest = max(time, self._times[-1]) if self._times else time
            if self._positions and self._positions[-1] == position:
                self._times[-1] = latest
            else:
                self._positions.append(position)
                self._times.append(latest)
        return True


def _groups(path: Path, column: TimeColumn) -> Iterator[tuple[int, float]]:
    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        if column.name not in names:
            return
        at, row = names.index(column.name), 0
        for group in range(metadata.num_row_groups):
            part = metadata.row_group(group)
            statistics = part.column(at).statistics
            least = largest = None
            if statistics is not None and statistics.has_min_max:
                least, largest = column.seconds(statistics.min), column.seconds(statistics.max)
            if least is None or largest is None:
                values = file.read_row_group(group, columns=[column.name]).column(0)
                span = pc.min_max(values).as_py()
                least, largest = column.seconds(span["min"]), column.seconds(span["max"])
            if least is not None and largest is not None and part.num_rows:
                yield row, least
                yield row + part.num_rows - 1, largest
            row += part.num_rows


def _lines(path: Path, entry: Entry, column: TimeColumn) -> Iterator[tuple[int, float]]:
    span = Span(path, entry.begin, entry.begin + entry.units)
    count = min(_SAMPLES, entry.units // 1024 + 1)
    last = -1
    for i in range(count + 1):
        # The last look is at the end: its last line, not its first, closes the range.
        low = entry.units * i // count if i < count else max(entry.units - _SAMPLE_BYTES, 0)
        times = _timed(span, low, min(low + _SAMPLE_BYTES, entry.units), column)
        for offset, time in times if i < count else reversed(list(times)):
            if offset > last:
                yield offset, time
                last = offset
            break


def _timed(span: Span, low: int, high: int, column: TimeColumn) -> Iterator[tuple[int, float]]:
    for block in line_blocks(span, low, high, _SAMPLE_BYTES, _SAMPLE_BYTES):
        offset = block.offset
        for line in block.data.split(b"\n"):
            for row in sample_records(line, offset):
                time = column.seconds(row.get(column.name))
                if time is not None:
                    yield offset - span.begin, time
            offset += len(line) + 1
