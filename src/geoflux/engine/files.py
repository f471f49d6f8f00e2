"""Events from a folder (or one file) of Parquet and NDJSON, while files are added and grow.

A durable file log gives every row a position (see :mod:`geoflux.engine.file_log`), so that any
range of positions can be read again after a crash, on any worker, and gives the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.file_discovery import Discovery, Finder
from geoflux.engine.file_log import FileLog, Found, resolved
from geoflux.engine.log_content import Entry
from geoflux.engine.ndjson_lines import Span, line_blocks
from geoflux.engine.ndjson_rows import parse, sample_records
from geoflux.engine.parquet_files import read_rows
from geoflux.engine.replay_pace import EventTimes, TimeColumn
from geoflux.engine.row_types import merged, schema_from_text, schema_to_text, types_of_rows
from geoflux.engine.source import RawBatch, Slice
from geoflux.errors import StateError

_SAMPLED_FILES = 16
_SAMPLED_BYTES = 1 << 20
_MEASURED_BYTES = 1 << 16


@dataclass(eq=False)
class FileEvents:
    """The rows of all files under ``path``, each exactly once, in the order of their positions.

    Files lie directly in the folder or in its subfolders and are taken in the order of their
    relative paths; names that start with ``.`` or ``_`` and other endings than ``.parquet``,
    ``.ndjson``, ``.jsonl``, ``.json`` are ignored. A Parquet file is taken when it is finished and
    may not change afterwards; NDJSON may grow at its end. Positions count rows of Parquet and
    bytes of NDJSON, where a row is named by the first byte of its line.

    The schema is inferred from the first files found and then kept for ever: columns that are not
    in it are dropped, columns that a file does not have are null, and a value that does not fit
    its column (a text in a column of numbers) is null. For the last case a batch has a further
    column ``@raw`` with the row as it came (a line of NDJSON, or a row of Parquet as JSON text),
    null for rows where nothing was in doubt; a batch without any such row does not have it.
    A line that is no JSON object or is longer than ``max_record_bytes`` is handed over as
    rejected; blank lines are no records.

    Parameters: ``format`` is ``auto``, ``parquet`` or ``ndjson``; ``types`` fixes the types of
    columns instead of the sample (give float64 for coordinates, or whole numbers in the first
    file decide); ``speed`` > 0 replays, see :mod:`geoflux.engine.replay_pace`; ``complete`` says
    that nobody writes any more, so a last line without a newline is read at once and otherwise
    once it kept its length for ``settle_seconds``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.ndjson").write_text('{"lon": 1.5, "lat": 2}\\n{"lon": 3, "lat": oops}\\n')
    >>> events = FileEvents(folder, folder / "_log", complete=True)
    >>> stop = events.latest(0, None)
    >>> [batch] = [b for piece in events.slices(0, stop, 1) for b in events.read(piece)]
    >>> batch.table.column("lon").to_pylist(), [r.code for r in batch.rejected]
    ([1.5], ['malformed_json'])
    """

    path: Path
    log_path: Path
    format: str = "auto"
    max_record_bytes: int = 1 << 20
    speed: float = 0.0
    time_column: str = "time"
    time_unit: str = "s"
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    complete: bool = False
    settle_seconds: float = 1.0
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.path, self.log_path = Path(self.path), Path(self.log_path)
        self._connect()

    def _connect(self) -> None:
        self._finder = Finder(
            self.path, self.format, self.complete, self.settle_seconds, self.clock
        )
        self._log = FileLog(self.log_path)
        self._discovery = Discovery(self._finder, self._log)
        column = TimeColumn(self.time_column, self.time_unit)
        self._times = EventTimes(self._finder.root, self._log, column)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def schema(self) -> pa.Schema:
        """Columns and types; none at all before the first file is there."""
        if self._log.header() is None:
            self._discover()
        header = self._log.header()
        return pa.schema([]) if header is None else schema_from_text(header["schema"])

    def problems(self) -> list[tuple[str, str]]:
        """Files that could not be taken when last looked at, with the reason; tried again."""
        return sorted(self._discovery.problems.items())

    def latest(self, start: int, limit: int | None) -> int:
        """The end of what can be read now; looks for new files and writes them down first."""
        self._discover()
        stop = self._log.end()
        if start > stop:
            raise StateError(
                f"{self.log_path} ends at position {stop}, the run is at {start}; the log must be "
                "the one that the run began with"
            )
        if self.speed > 0 and stop > 0:
            begun = self._begun(note=True)
            assert begun is not None
            passed = (self.clock() - begun["wall"]) * self.speed
            stop = min(stop, self._times.position(begun["event"] + max(passed, 0.0)))
        if limit is not None:
            stop = min(stop, self._further(start, limit))
        return max(start, stop)

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        """Slices of about equal size, at least one per entry that the range touches."""
        size = max((stop - start) / max(parts, 1), 1.0)
        slices = []
        for entry, low, high in self._log.pieces(start, stop):
            count = max(round((high - low) / size), 1)
            cuts = [low + (high - low) * i // count for i in range(count + 1)]
            slices += [Slice(entry.index, a, b) for a, b in pairwise(cuts)]
        return slices

    def span(self, pieces: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        """From the first to the last position of slices."""
        firsts = {stream: self._log.entry(stream).first for stream, _, _ in pieces}
        return (
            min(firsts[stream] + start for stream, start, _ in pieces),
            max(firsts[stream] + stop for stream, _, stop in pieces),
        )

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        """The rows of a slice in batches of up to 262,144 rows or 4 MiB of lines."""
        entry = self._log.entry(piece.stream)
        schema = self.schema()
        if columns is not None:
            schema = pa.schema([f for f in schema if f.name in columns])
        path = resolved(self._finder.root, entry)
        if entry.kind == "parquet":
            for rows, table, marks in read_rows(path, piece.start, piece.stop, schema):
                positions = np.arange(rows.start, rows.stop, dtype=np.int64) + entry.first
                yield RawBatch(table, positions, marks=marks)
            return
        span = _span(path, entry)
        for block in line_blocks(span, piece.start, piece.stop, self.max_record_bytes):
            parsed = parse(block, schema, self.max_record_bytes)
            positions = parsed.offsets + (entry.first - entry.begin)
            if len(positions) or parsed.rejected:
                yield RawBatch(parsed.table, positions, parsed.rejected)

    def arrivals(self, start: int, stop: int) -> tuple[float, float] | None:
        """When the rows of a range became available by the replay; ``None`` without one."""
        begun = self._begun() if self.speed > 0 else None
        if begun is None or stop <= start:
            return None
        first, last = (self._arrival(at, begun) for at in (start, stop - 1))
        return first, max(first, last)

    def total(self) -> int | None:
        """The end of what is there, when it is complete; otherwise nobody knows."""
        return self._log.end() if self.complete else None

    def _arrival(self, position: int, begun: Mapping[str, float]) -> float:
        [(entry, _, _)] = self._log.pieces(position, position + 1)
        due = begun["wall"] + (self._times.time(position) - begun["event"]) / self.speed
        return max(due, entry.found)

    def _begun(self, note: bool = False) -> Mapping[str, float] | None:
        """When the replay began, and at which event time; noted once for all restarts."""
        begun: Mapping[str, float] | None = self._log.notes().get("replay")
        if begun is None and note:
            begun = {"wall": self.clock(), "event": self._times.first()}
            self._log.note("replay", begun)
        return begun

    def _discover(self) -> None:
        found = self._discovery.look()
        if found:
            header = None
            if self._log.header() is None:
                header = {"schema": schema_to_text(self._inferred(found))}
            self._log.append(found, self.clock(), header)

    def _inferred(self, found: list[Found]) -> pa.Schema:
        schemas: list[pa.Schema | Mapping[str, pa.DataType]] = []
        rows: list[dict[str, Any]] = []
        sampled = 0
        for item in found:
            path = self._finder.root / item.path
            if item.kind == "parquet":
                schemas.append(pq.read_schema(path))
            elif sampled < _SAMPLED_FILES:
                sampled += 1
                high = min(item.units, _SAMPLED_BYTES)
                for block in line_blocks(Span(path, 0, item.units), 0, high, self.max_record_bytes):
                    rows += sample_records(block.data)
        schemas.append(types_of_rows(rows))
        schema = merged(schemas)
        return pa.schema([(f.name, self.types.get(f.name, f.type)) for f in schema])

    def _further(self, start: int, limit: int) -> int:
        """The position about ``limit`` rows after ``start``."""
        left = max(limit, 1)
        for entry, low, high in self._log.pieces(start, self._log.end()):
            bytes_a_row = 1.0 if entry.kind == "parquet" else self._mean_line(entry, low)
            units = int(left * bytes_a_row)
            if units <= high - low:
                return entry.first + low + units
            left = max(left - int((high - low) / bytes_a_row), 1)
        return self._log.end()

    def _mean_line(self, entry: Entry, low: int) -> float:
        span = _span(resolved(self._finder.root, entry), entry)
        high = min(low + _MEASURED_BYTES, entry.units)
        size = lines = 0
        for block in line_blocks(span, low, high, self.max_record_bytes):
            size, lines = size + len(block.data), lines + max(block.data.count(b"\n"), 1)
        return max(size / lines, 1.0) if lines else float(high - low)


def _span(path: Path, entry: Entry) -> Span:
    return Span(path, entry.begin, entry.begin + entry.units)
