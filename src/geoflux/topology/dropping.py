"""Files of streams that everybody has read, deleted while an application goes on.

Invariant: a file goes only after every operator that reads its stream has committed an epoch beyond
it, so that no replay asks for it again, and after its writer has committed another one, which might
have to publish it again; results that nobody in the application reads stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from geoflux.engine.log_content import Entry
from geoflux.engine.staging import epoch_of
from geoflux.state.store import Store
from geoflux.topology.draining import Progress
from geoflux.topology.nodes import Stream
from geoflux.topology.topology import Topology

_NOTE = "dropped.json"
_BETWEEN_NOTES = 256
"""Files that are looked at again, at most, when the application is started again."""


class Logged(Protocol):
    """What an operator reads, as far as its files are concerned."""

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """The files that have positions, in their order, from that number on."""
        ...


class Dropping:
    """Deletes what was read. ``progress`` tells how far operators have committed."""

    def __init__(
        self, topology: Topology, readers: Mapping[str, Logged], store: Store,
        progress: Mapping[str, Progress],
    ) -> None:  # fmt: skip
        self._topology = topology
        self._readers = readers
        self._store = store
        self._progress = progress
        known = store.read_json(_NOTE) if store.exists(_NOTE) else {}
        self._noted = {name: int(known.get(name, 0)) for name in readers}
        self._next = dict(self._noted)
        self._waiting: dict[str, dict[str, int]] = {}
        """By file that is still there: those who have read it, and its number in their logs."""

    def look(self) -> int:
        """Delete what everybody has read since the last look; returns how many files."""
        for name, reader in self._readers.items():
            self._read_by(name, reader)
        over = [path for path, numbers in self._waiting.items() if self._is_over(path, numbers)]
        for path in over:
            self._store.delete(path)
            del self._waiting[path]
        if over and max(self._next[n] - self._noted[n] for n in self._next) >= _BETWEEN_NOTES:
            self._noted = {name: self._safe(name) for name in self._next}
            self._store.write_json(_NOTE, self._noted)
        return len(over)

    def _safe(self, name: str) -> int:
        """Before that number an operator has nothing that is still there."""
        held = [numbers[name] for numbers in self._waiting.values() if name in numbers]
        return min([*held, self._next[name]])

    def _read_by(self, name: str, reader: Logged) -> None:
        for entry in reader.entries(self._next[name]):
            if entry.stop > self._progress[name].position:
                break
            self._next[name] = entry.index + 1
            self._waiting.setdefault(entry.path, {})[name] = entry.index

    def _is_over(self, path: str, numbers: Mapping[str, int]) -> bool:
        """Whether everybody has read a file, and its writer has committed something after it."""
        epoch = self._progress[path.partition("/")[0]].epoch
        done = epoch is not None and epoch_of(path) < epoch
        return done and set(numbers) >= set(self._topology.readers(self._stream(path)))

    def _stream(self, path: str) -> Stream:
        """The stream of a file, by its name."""
        operator, folder, file = path.split("/")
        streams = self._topology.node(operator).work.streams
        if folder in streams and folder != "results":
            return Stream(operator, folder)
        named = [stream for stream in streams if file.endswith(f"-{stream}.parquet")]
        return Stream(operator, named[0] if len(streams) > 1 else streams[0])
