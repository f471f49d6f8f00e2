"""When the streams between operators are over.

A stream is over when all who write it are done, and done is who has read to the end of what is
over. Operators of a loop wait for each other, so they are looked at together: when all outside of
the loop that feed it are done, and nobody in it has anything left to do, nothing can ever come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from geoflux.topology.topology import Topology


class Reading(Protocol):
    """What an operator reads, as far as its end is concerned."""

    def logged(self) -> int:
        """The position after the last row that has one."""
        ...

    def waiting(self) -> int:
        """Rows that are committed upstream and have no position yet."""
        ...

    def end(self) -> None:
        """From now on the streams are known to be over."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far an operator has come: its last epoch, the position it has read to, and the rows that
    it handed back to itself."""

    epoch: int | None = None
    position: int = 0
    carried: int = 0

    @classmethod
    def of(cls, manifest: Mapping[str, Any] | None) -> Progress:
        """By its last manifest."""
        if manifest is None:
            return cls()
        return cls(manifest["epoch"], manifest.get("position", 0), manifest["carried_out"])


class Draining:
    """Ends streams when they are over. ``progress`` is kept by whoever hears of epochs, and is
    told only once an epoch's files are published."""

    def __init__(self, topology: Topology, readers: Mapping[str, Reading]) -> None:
        self._topology = topology
        self._readers = readers
        self._ended: set[str] = set()
        self.progress: dict[str, Progress] = {node.name: Progress() for node in topology.nodes}

    def look(self, over: frozenset[str]) -> None:
        """End what is over, given the operators that are done."""
        for name in self._readers:
            group = self._topology.loop(name)
            if name not in self._ended and self._topology.before(group) <= over:
                if not self._is_quiet(group):
                    continue
                for member in group:
                    self._ended.add(member)
                    self._readers[member].end()

    def _is_quiet(self, group: frozenset[str]) -> bool:
        """Whether nobody of a group has anything left to do. An epoch under way has read less than
        it has positions for, so that it is enough that nothing was committed meanwhile."""
        before = {name: self.progress[name] for name in group}
        idle = all(self._is_idle(name) for name in group)
        return idle and before == {name: self.progress[name] for name in group}

    def _is_idle(self, name: str) -> bool:
        reader, now = self._readers[name], self.progress[name]
        return now.carried == 0 and now.position == reader.logged() and reader.waiting() == 0

    def waiting(self, name: str) -> int:
        """Rows that an operator has yet to read or to get to."""
        reader, now = self._readers.get(name), self.progress[name]
        unread = 0 if reader is None else reader.logged() - now.position + reader.waiting()
        return max(unread, 0) + now.carried
