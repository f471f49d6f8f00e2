"""Control records from a file or folder of NDJSON and Parquet, in one order that never changes.

The order is that of a file log, as for events: by discovery, then by relative path. An offset is
therefore one number, ``{"position": p}``, however many files were read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from geoflux.engine.file_discovery import Discovery, Finder
from geoflux.engine.file_log import FileLog, resolved
from geoflux.engine.ndjson_lines import Span, line_blocks, split_lines
from geoflux.engine.parquet_files import read_rows

_LINES = 50_000


@dataclass(eq=False)
class ControlFiles:
    """The control records under ``path``; a path that does not exist yet is empty.

    Lines are handed over as they are, however long or wrong they may be, without their newline;
    only blank ones are left out. A last line without a newline is read at once when ``complete``,
    otherwise once it kept its length for ``settle_seconds``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> control = ControlFiles(folder / "queries", folder / "control.log", complete=True)
    >>> control.poll({})
    {}
    >>> (folder / "queries").mkdir()
    >>> _ = (folder / "queries" / "1.ndjson").write_text('{"op": "register"}\\n{"op": "end"}')
    >>> control.poll({})
    {'position': 32}
    >>> list(control.read({}, {"position": 32}))
    [[b'{"op": "register"}', b'{"op": "end"}']]
    """

    path: Path
    log_path: Path
    complete: bool = False
    settle_seconds: float = 1.0
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.path, self.log_path = Path(self.path), Path(self.log_path)
        self._connect()

    def _connect(self) -> None:
        self._finder = Finder(self.path, "auto", self.complete, self.settle_seconds, self.clock)
        self._log = FileLog(self.log_path)
        self._discovery = Discovery(self._finder, self._log)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def problems(self) -> list[tuple[str, str]]:
        """Files that could not be taken when last looked at, with the reason; tried again."""
        return sorted(self._discovery.problems.items())

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        """The offset of all that is there now; looks for new files and writes them down first."""
        found = self._discovery.look() if self.path.exists() else []
        if found:
            self._log.append(found, self.clock())
        end = self._log.end()
        return {"position": end} if end > _position(after) else after

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[pa.Table | list[bytes]]:
        """The records between two offsets: tables of Parquet, lists of up to 50,000 lines."""
        for entry, low, high in self._log.pieces(_position(after), _position(upto)):
            path = resolved(self._finder.root, entry)
            if entry.kind == "parquet":
                for _, table, _ in read_rows(path, low, high):
                    yield table
                continue
            span = Span(path, entry.begin, entry.begin + entry.units)
            for block in line_blocks(span, low, high):
                lines = [line for _, line in split_lines(block)]
                for first in range(0, len(lines), _LINES):
                    yield lines[first : first + _LINES]


def _position(offset: dict[str, Any]) -> int:
    return int(offset.get("position", 0))
