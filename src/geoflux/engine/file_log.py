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
from pathlib import Path
from typing import Any

from geoflux.engine.log_content import VERSION, Entry, content_of
from geoflux.errors import SourceError, StateError


@dataclass(frozen=True)
class Found:
    """A readable range of a file that no entry covers yet: ``units`` rows or bytes."""

    path: str
    kind: str
    begin: int
    units: int
    size: int
    there_since: float | None = None
    """When it was there to be read, where that is known better than by finding it."""


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
        return content_of(str(self.path)).header

    def notes(self) -> Mapping[str, Any]:
        """All notes so far; of two with one name the later."""
        return content_of(str(self.path)).notes

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """The entries in the order of their positions, from the one with index ``start`` on."""
        content = content_of(str(self.path))
        return (content.entry(index) for index in range(start, len(content.firsts)))

    def count(self) -> int:
        """How many entries there are."""
        return len(content_of(str(self.path)).firsts)

    def end(self) -> int:
        """The position after the last one."""
        return content_of(str(self.path)).end

    def entry(self, index: int) -> Entry:
        """The entry with that index."""
        content = content_of(str(self.path))
        if not 0 <= index < len(content.firsts):
            raise StateError(
                f"{self.path} has {len(content.firsts)} entries, number {index} was asked for; the "
                "log must be the one that the positions come from"
            )
        return content.entry(index)

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Entry, int, int]]:
        """The entries that a range of positions touches, each with its units ``[from, to)``."""
        content = content_of(str(self.path))
        if stop > start and stop > content.end:
            raise StateError(
                f"{self.path} ends at position {content.end}, rows up to {stop} were asked for; "
                "the log must be the one that the positions come from"
            )
        index = max(bisect_right(content.firsts, start) - 1, 0)
        for at in range(index, len(content.firsts)):
            if content.firsts[at] >= stop:
                return
            entry = content.entry(at)
            yield entry, max(start - entry.first, 0), min(stop - entry.first, entry.units)

    def append(
        self, found: Iterable[Found], at: float, header: Mapping[str, Any] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Give positions to what was found at time ``at``, and then note something; on disk when
        this returns. Of a torn append a part may be there: notes only after all entries."""
        content = content_of(str(self.path))
        lines: list[Mapping[str, Any]] = []
        if content.header is None:
            lines.append({"file_log": VERSION, **(header or {})})
        index, first = len(content.firsts), content.end
        for item in found:
            about = asdict(item)
            since = about.pop("there_since")
            since = at if since is None else since
            lines.append({"index": index, **about, "first": first, "found": since})
            index, first = index + 1, first + item.units
        lines += [{"note": name, "value": value} for name, value in (notes or {}).items()]
        self._write(lines, content.valid_bytes)

    def note(self, name: str, value: Any) -> None:
        """Write down a value under a name; on disk when this returns."""
        content = content_of(str(self.path))
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
