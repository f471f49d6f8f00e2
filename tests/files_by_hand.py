"""Files of events by hand: a folder, a clock that stands, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from geoflux.engine.files import FileEvents
from geoflux.engine.source import RawBatch


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def events_of(folder: Path, **options: Any) -> FileEvents:
    return FileEvents(folder, folder.parent / "state" / "files.log", **options)


def read(events: FileEvents, start: int, stop: int, columns: Any = None) -> list[RawBatch]:
    return [b for piece in events.slices(start, stop, 2) for b in events.read(piece, columns)]


def rows(batches: list[RawBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.table.to_pylist()]


def write_lines(path: Path, *values: Any) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def paths(events: FileEvents) -> list[str]:
    return [entry.path for entry in events._log.entries()]
