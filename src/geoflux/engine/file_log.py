"""The durable list of what was found in a folder, which gives every row a position for ever.

An append-only NDJSON file: a header, then one line per *entry*, a range of one file, in the order
of discovery. Positions run through all entries: the units (rows of Parquet, bytes of NDJSON)
before an entry, plus the unit inside it. Invariant: a complete line never changes, so a position
that was handed out means the same row in every process and after every crash. A last line torn by
a crash was never handed out: readers ignore it and the next append overwrites it.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from geoflux.errors import SourceError, StateError

_VERSION = 1


@dataclass(frozen=True)
class Found:
    """A readable range of a file that no entry covers yet: ``units`` rows or bytes."""

    path: str
    kind: str
    begin: int
    units: int
    size: int


@dataclass(frozen=True)
class Entry:
    """A range of one file: ``units`` from ``begin`` on, at the positions from ``first`` on.

    ``size`` is the length of the file in bytes and ``found`` the time (seconds since 1970) when
    the entry was written.
    """

    index: int
    path: str
    kind: str
    begin: int
    units: int
    first: int
    size: int
    found: float

    @property
    def stop(self) -> int:
        """The position after the last one of the entry."""
        return self.first + self.units


@dataclass(frozen=True)
class _Content:
    header: Mapping[str, Any] | None
    notes: Mapping[str, Any]
    entries: tuple[Entry, ...]
    firsts: tuple[int, ...]
    valid_bytes: int


_NOTHING = _Content(None, {}, (), (), 0)


class FileLog:
    """The log at ``path``, read by anybody, appended to by one process.

    >>> import tempfile
    >>> log = FileLog(Path(tempfile.mkdtemp()) / "files.log")
    >>> log.append([Found("a.ndjson", "ndjson", 0, 120, 120)], at=1.5, header={"schema": ""})
    >>> log.append([Found("b.parquet", "parquet", 0, 10, 900)], at=2.5)
    >>> log.end(), [(e.path, start, stop) for e, start, stop in log.pieces(100, 125)]
    (130, [('a.ndjson', 100, 120), ('b.parquet', 0, 5)])
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self) -> Mapping[str, Any] | None:
        """What the first append wrote down beside its entries; ``None`` before it."""
        return self._content().header

    def notes(self) -> Mapping[str, Any]:
        """All notes so far; of two with one name the later."""
        return self._content().notes

    def entries(self) -> tuple[Entry, ...]:
        """All entries in the order of their positions."""
        return self._content().entries

    def end(self) -> int:
        """The position after the last one."""
        entries = self.entries()
        return entries[-1].stop if entries else 0

    def entry(self, index: int) -> Entry:
        """The entry with that index."""
        entries = self.entries()
        if not 0 <= index < len(entries):
            raise StateError(
                f"{self.path} has {len(entries)} entries, number {index} was asked for; the log "
                "must be the one that the positions come from"
            )
        return entries[index]

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Entry, int, int]]:
        """The entries that a range of positions touches, each with its units ``[from, to)``."""
        content = self._content()
        if stop > start and stop > self.end():
            raise StateError(
                f"{self.path} ends at position {self.end()}, rows up to {stop} were asked for; the "
                "log must be the one that the positions come from"
            )
        index = max(bisect_right(content.firsts, start) - 1, 0)
        for entry in content.entries[index:]:
            if entry.first >= stop:
                return
            yield entry, max(start - entry.first, 0), min(stop - entry.first, entry.units)

    def append(
        self, found: Iterable[Found], at: float, header: Mapping[str, Any] | None = None
    ) -> None:
        """Give positions to what was found at time ``at``; on disk when this returns."""
        content = self._content()
        lines: list[Mapping[str, Any]] = []
        if content.header is None:
            lines.append({"file_log": _VERSION, **(header or {})})
        index, first = len(content.entries), self.end()
        for item in found:
            lines.append({"index": index, **asdict(item), "first": first, "found": at})
            index, first = index + 1, first + item.units
        self._write(lines, content.valid_bytes)

    def note(self, name: str, value: Any) -> None:
        """Write down a value under a name; on disk when this returns."""
        content = self._content()
        if content.header is None:
            raise StateError(f"{self.path} has no entries yet; nothing can be noted about them")
        self._write([{"note": name, "value": value}], content.valid_bytes)

    def _write(self, lines: list[Mapping[str, Any]], offset: int) -> None:
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        created = not self.path.exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            with open(descriptor, "r+b") as file:
                file.truncate(offset)
                file.seek(offset)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if created:
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise StateError(
                f"{self.path} cannot be written: {error.strerror}; make room or give the run "
                "another directory"
            ) from error

    def _content(self) -> _Content:
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            return _NOTHING
        return _parsed(str(self.path), stat.st_ino, stat.st_size, stat.st_mtime_ns)


def resolved(root: Path, entry: Entry) -> Path:
    """The file of an entry, once it is sure that it still is the one that was logged."""
    path = root / entry.path
    try:
        size = path.stat().st_size
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read any more: {error.strerror}; restore it and run again"
        ) from error
    if size < entry.size or (entry.kind == "parquet" and size != entry.size):
        raise SourceError(
            f"{path} has {size} bytes, it had {entry.size} when it was logged; files may be added "
            "and NDJSON may grow, nothing else: restore it and run again"
        )
    return path


@lru_cache(maxsize=16)
def _parsed(path: str, inode: int, size: int, modified: int) -> _Content:
    """The log's complete lines; an append-only file of the same size and time is the same."""
    with open(path, "rb") as file:
        data = file.read(size)
    header: Mapping[str, Any] | None = None
    notes: dict[str, Any] = {}
    entries: list[Entry] = []
    offset = 0
    while (end := data.find(b"\n", offset)) >= 0:
        try:
            line = json.loads(data[offset:end])
            if header is None:
                if line["file_log"] != _VERSION:
                    raise StateError(
                        f"{path} is a file log of version {line['file_log']}, this program "
                        f"reads version {_VERSION}; use the program that wrote it"
                    )
                header = line
            elif "note" in line:
                notes[line["note"]] = line["value"]
            else:
                entries.append(Entry(**line))
        except (ValueError, KeyError, TypeError) as error:
            if end + 1 == len(data):
                break  # blocks of a torn write can reach the disk out of order
            raise StateError(
                f"{path} is damaged at byte {offset}: {error}; restore it or use a new directory"
            ) from error
        offset = end + 1
    return _Content(header, notes, tuple(entries), tuple(e.first for e in entries), offset)
