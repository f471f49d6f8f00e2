"""What a process knows of a file log: it reads every line once, when it is new, and remembers only
where entries are and which positions they are about. A stream that adds entries for days costs
what is added, and 24 bytes an entry."""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geoflux.errors import StateError

VERSION = 1


@dataclass(frozen=True)
class Entry:
    """A range of one file: ``units`` from ``begin`` on, at the positions from ``first`` on.

    ``size`` is the length of the file in bytes and ``found`` the time (seconds since 1970) from
    which on it was there to be read: when it was found, unless its writer says better.
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


class LogContent:
    """What a process knows of a log: its header and notes, and where its entries are."""

    def __init__(self, path: str, inode: int) -> None:
        self.path, self.inode = path, inode
        self.header: Mapping[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        self.begins, self.ends, self.firsts = array("q"), array("q"), array("q")
        self.end = 0
        self.valid_bytes = 0
        self.looked = (0, 0)
        """Size and time of change of the file when it was last read."""

    def entry(self, index: int) -> Entry:
        begin, end = self.begins[index], self.ends[index]
        with open(self.path, "rb", buffering=0) as file:
            file.seek(begin)
            line = file.read(end - begin)
        try:
            return Entry(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise self._damaged(begin, error) from error

    def take_in(self, size: int) -> None:
        """Read what came since; the part of it that is complete."""
        with open(self.path, "rb") as file:
            file.seek(self.valid_bytes)
            data = file.read(size - self.valid_bytes)
        offset = 0
        while (end := data.find(b"\n", offset)) >= 0:
            try:
                self._take_line(json.loads(data[offset:end]), self.valid_bytes, end - offset)
            except (ValueError, KeyError, TypeError) as error:
                if end + 1 == len(data):
                    break  # blocks of a torn write can reach the disk out of order
                raise self._damaged(self.valid_bytes, error) from error
            self.valid_bytes += end + 1 - offset
            offset = end + 1

    def _damaged(self, at: int, error: Exception) -> StateError:
        return StateError(
            f"{self.path} is damaged at byte {at}: {error}; restore it or use a new directory"
        )

    def _take_line(self, line: Any, at: int, length: int) -> None:
        if self.header is None:
            if line["file_log"] != VERSION:
                raise StateError(
                    f"{self.path} is a file log of version {line['file_log']}, this program "
                    f"reads version {VERSION}; use the program that wrote it"
                )
            self.header = line
        elif "note" in line:
            self.notes[line["note"]] = line["value"]
        else:
            entry = Entry(**line)
            self.begins.append(at)
            self.ends.append(at + length)
            self.firsts.append(entry.first)
            self.end = entry.stop


_NOTHING = LogContent("", 0)
_known: dict[str, LogContent] = {}
_reading = threading.Lock()


def content_of(path: str) -> LogContent:
    """All complete lines of the log at ``path``; an append-only file of the same size and time is
    the same."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return _NOTHING
    looked = stat.st_size, stat.st_mtime_ns
    with _reading:
        known = _known.get(path)
        if known is None or known.inode != stat.st_ino or stat.st_size < known.valid_bytes:
            known = _known[path] = LogContent(path, stat.st_ino)
        if known.looked != looked:
            known.take_in(stat.st_size)
            known.looked = looked
        return known
