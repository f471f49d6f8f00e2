"""Events from the committed streams of other operators: durable, in one order for ever.

A stream is what an operator's manifests name, epoch after epoch. Whoever reads one or several of
them writes the files down in a log of its own, which gives rows their positions as for any folder:
splits, joins and loops need nothing more. Invariant: every committed row of a stream that is read
gets exactly one position, whatever crashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.epochs import Manifest
from geoflux.engine.file_log import FileLog, Found
from geoflux.engine.files import FileEvents
from geoflux.engine.log_content import Entry
from geoflux.engine.row_types import schema_to_text
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

_NOTE = "streams"
_MOST_EPOCHS = 256
"""Manifests of one operator that a look goes through."""
_PASSED = 64
"""Epochs without a row for us after which it is noted that they need no second look."""


@dataclass(frozen=True)
class Upstream:
    """Streams of one operator that somebody reads: its folder in the application's directory, its
    store, and which of its streams."""

    folder: str
    store: Store
    streams: tuple[str, ...]

    def files(self, manifest: Manifest) -> list[tuple[str, int | None]]:
        """The files of an epoch that are read, each with its rows, where the manifest has them."""
        if "streams" in manifest:
            return [(f, rows) for s in self.streams for f, rows in manifest["streams"].get(s, ())]
        kinds = tuple(f"{stream}/" for stream in self.streams)  # standing queries name their files
        return [(name, None) for name in manifest["files"] if name.startswith(kinds)]

    def with_rows(self, names: Sequence[tuple[str, int | None]]) -> Iterator[tuple[str, int]]:
        """The same, with rows as the files themselves tell where nobody else does."""
        for name, rows in names:
            if rows is None:
                rows = int(pq.read_metadata(self.store.path(name)).num_rows)
            yield name, rows

    def found(self, manifest: Manifest) -> list[Found] | None:
        """The files of an epoch that are read, once all are at their place: publishing follows the
        manifest. Those of other streams may have gone already."""
        names, since = self.files(manifest), manifest["committed"]
        if not all(self.store.exists(name) for name, _ in names):
            return None
        return [
            Found(f"{self.folder}/{name}", "parquet", 0, rows, self.store.size(name), since)
            for name, rows in self.with_rows(names)
            if rows
        ]


class StreamDiscovery:
    """Goes through upstream manifests; looking changes nothing but what it need not look at again.

    The log notes, after the entries of every look, the next epoch of each operator. Entries after
    the last note are those of an append that was torn: they count, and are not found again.
    """

    def __init__(self, upstreams: Sequence[Upstream], log: FileLog) -> None:
        self._upstreams = upstreams
        self._log = log
        self._passed: dict[str, int] = {}

    def look(self) -> tuple[list[Found], Mapping[str, Any]]:
        """What no entry of the log covers, and the notes to append with it."""
        noted = self._log.notes().get(_NOTE, {"next": {}, "entries": 0})
        torn = {entry.path for entry in self._log.entries(noted["entries"])}
        found: list[Found] = []
        ends = {}
        for upstream in self._upstreams:
            folder, new = upstream.folder, list[Found]()
            begin = max(noted["next"].get(folder, 0), self._passed.get(folder, 0))
            epoch = begin
            for epoch, some in self._epochs(upstream, begin):
                new += [item for item in some if item.path not in torn]
                if not new:
                    self._passed[folder] = epoch
            found += new
            ends[folder] = epoch
        idle = any(ends[f] - noted["next"].get(f, 0) >= _PASSED for f in ends)
        if not (found or torn or idle):
            return [], {}
        return found, {_NOTE: {"next": ends, "entries": self._log.count() + len(found)}}

    def _epochs(self, upstream: Upstream, begin: int) -> Iterator[tuple[int, list[Found]]]:
        """Epoch by epoch the number of the next one, and the files."""
        log = EpochLog(upstream.store)
        for epoch in range(begin, begin + _MOST_EPOCHS):
            if not log.is_committed(epoch):
                return
            some = upstream.found(log.manifest(epoch))
            if some is None:
                return
            yield epoch + 1, some


@dataclass(eq=False)
class StreamEvents(FileEvents):
    """The rows of one or several upstream streams, each exactly once.

    ``path`` is the application's directory, ``log_path`` the reader's own log. ``columns`` are
    those of all streams together; a column that a stream does not have is null in its rows.
    Positions count rows. Nobody knows when a stream ends, until :meth:`end` is called.
    """

    upstreams: tuple[Upstream, ...] = ()
    columns: pa.Schema = field(default_factory=lambda: pa.schema([]))

    def _connect(self) -> None:
        super()._connect()
        self._streams = StreamDiscovery(self.upstreams, self._log)
        self._ended = False

    def schema(self) -> pa.Schema:
        """As it was given: known from the operators, not inferred."""
        return self.columns

    def waiting(self) -> int:
        """Rows that are committed upstream and have no position yet; writes nothing."""
        return sum(item.units for item in self._streams.look()[0])

    def logged(self) -> int:
        """The position after the last row that has one."""
        return self._log.end()

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """The files that have positions, in their order, from that number on."""
        return self._log.entries(start)

    def end(self) -> None:
        """From now on the streams are known to be over."""
        self._ended = True

    def total(self) -> int | None:
        """All rows, once the streams are over."""
        return self._log.end() if self._ended else None

    def arrivals(self, start: int, stop: int) -> tuple[float, float] | None:
        """When the first and the last row of a range were committed upstream."""
        if stop <= start:
            return None
        [(first, _, _)] = self._log.pieces(start, start + 1)
        [(last, _, _)] = self._log.pieces(stop - 1, stop)
        return first.found, max(first.found, last.found)

    def _discover(self) -> None:
        found, notes = self._streams.look()
        if found or notes:
            header = {"schema": schema_to_text(self.columns)}
            self._log.append(found, self.clock(), header, notes)


def stream_events(
    folder: str, log_path: Path, upstreams: Sequence[Upstream], columns: pa.Schema
) -> StreamEvents:
    """The streams that an operator of the application in ``folder`` reads."""
    return StreamEvents(
        Path(folder), log_path, "parquet", upstreams=tuple(upstreams), columns=columns
    )
