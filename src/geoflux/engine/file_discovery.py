"""What is new in a folder: files that became readable, NDJSON that grew.

Looking changes nothing: whoever asks writes what was found into the log, and the next look starts
from there. Invariant: the ranges found for one NDJSON file follow each other without gap or
overlap, so that no byte is lost and none is read twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from geoflux.engine.file_log import FileLog, Found
from geoflux.engine.log_content import Entry
from geoflux.engine.parquet_files import footer
from geoflux.errors import SourceError

_ENDINGS = {".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson"}
_SCAN_BYTES = 1 << 16


@dataclass(frozen=True)
class Finder:
    """How to look: where, for which ``format`` (``auto``, ``parquet``, ``ndjson``), how patiently.

    A last line without a newline may still be being written. It is taken when the file kept its
    size for ``settle_seconds`` by ``clock`` and at least from one look to the next; with
    ``complete`` at once.
    """

    path: Path
    format: str
    complete: bool
    settle_seconds: float
    clock: Callable[[], float]

    @property
    def root(self) -> Path:
        """What the relative paths of entries start from."""
        return self.path if self.path.is_dir() else self.path.parent

    def kind(self, name: str) -> str | None:
        """``parquet``, ``ndjson`` or, for a name that is not looked at, ``None``."""
        found = _ENDINGS.get(os.path.splitext(name)[1].lower())
        return found if self.format in ("auto", found) else None


@dataclass(frozen=True)
class _Tail:
    """The bytes ``[begin, end)`` of a file without a newline, of that length since a time."""

    begin: int
    end: int
    since: float


@dataclass
class Discovery:
    """Looks again and again; remembers between two looks only what saves work."""

    finder: Finder
    log: FileLog
    problems: dict[str, str] = field(default_factory=dict)
    _reach: dict[str, int] = field(default_factory=dict)
    _parquet: set[str] = field(default_factory=set)
    _known_entries: int = 0
    _tails: dict[str, _Tail] = field(default_factory=dict)
    _rowless: dict[str, int] = field(default_factory=dict)

    def look(self) -> list[Found]:
        """What no entry of the log covers, sorted by relative path; problems are kept aside."""
        self._catch_up()
        self.problems = {}
        found = []
        for name, path, kind in self._listed():
            try:
                new = (
                    self._parquet_file(name, path) if kind == "parquet" else self._lines(name, path)
                )
            except (OSError, pa.ArrowException, ValueError) as error:
                self.problems[name] = " ".join(str(error).split())
                continue
            if new is not None:
                found.append(new)
        return found

    def _catch_up(self) -> None:
        for entry in self.log.entries(self._known_entries):
            if entry.kind == "parquet":
                self._parquet.add(entry.path)
            else:
                self._reach[entry.path] = _end(entry)
            self._known_entries += 1

    def _listed(self) -> Iterator[tuple[str, Path, str]]:
        finder, path = self.finder, self.finder.path
        if path.is_dir():
            own = os.path.abspath(self.log.path)
            try:
                names = sorted(_walk(path))
            except OSError as error:
                raise SourceError(f"{path} cannot be listed: {error}; restore it") from error
            for name in names:
                kind = finder.kind(name)
                if kind is not None and os.path.abspath(path / name) != own:
                    yield name, path / name, kind
        elif path.exists():
            kind = finder.format if finder.format != "auto" else finder.kind(path.name)
            if kind is None:
                raise SourceError(
                    f"{path} ends in none of {', '.join(_ENDINGS)}; rename it, or say what it is "
                    'with source.format = "parquet" or "ndjson"'
                )
            yield path.name, path, kind
        else:
            raise SourceError(f"there is no file or folder {path}; create it or mend source.path")

    def _parquet_file(self, name: str, path: Path) -> Found | None:
        if name in self._parquet:
            return None
        size = path.stat().st_size
        if size == 0 or self._rowless.get(name) == size:
            return None
        rows = footer(path).num_rows
        if rows == 0:
            self._rowless[name] = size
            return None
        return Found(name, "parquet", 0, rows, size)

    def _lines(self, name: str, path: Path) -> Found | None:
        begin, size = self._reach.get(name, 0), path.stat().st_size
        if size < begin:
            raise ValueError(
                f"the file was cut short: {begin} bytes were read, it has {size}; restore it"
            )
        if size == begin:
            return None
        tail = self._tails.get(name)
        if tail is None or tail.begin != begin:
            tail = _Tail(begin, begin, 0.0)
        now = self.finder.clock()
        settled = tail.end == size and now - tail.since >= self.finder.settle_seconds
        if self.finder.complete or settled:
            return Found(name, "ndjson", begin, size - begin, size)
        end = _after_last_newline(path, tail.end, size) or begin
        if tail.end != size:
            self._tails[name] = _Tail(end, size, now)
        return Found(name, "ndjson", begin, end - begin, end) if end > begin else None


def _end(entry: Entry) -> int:
    return entry.begin + entry.units


def _walk(folder: Path, prefix: str = "") -> Iterator[str]:
    with os.scandir(folder) as items:
        for item in items:
            if item.name.startswith((".", "_")):
                continue
            if item.is_dir(follow_symlinks=False):
                yield from _walk(Path(item.path), f"{prefix}{item.name}/")
            elif item.is_file():
                yield prefix + item.name


def _after_last_newline(path: Path, low: int, high: int) -> int | None:
    """The offset after the last newline in ``[low, high)``; ``None`` where there is none."""
    with open(path, "rb", buffering=0) as file:
        while high > low:
            begin = max(low, high - _SCAN_BYTES)
            file.seek(begin)
            at = file.read(high - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            high = begin
    return None
