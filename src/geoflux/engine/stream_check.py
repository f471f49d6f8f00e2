"""Whether a reader received what its upstreams committed: nothing lost, doubled or made up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from geoflux.engine.stream_events import StreamEvents
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


@dataclass(frozen=True)
class StreamCheck:
    """Rows of all streams that an operator reads.

    ``committed`` by those who write them, ``read`` by the operator, ``waiting`` for a later epoch
    of it; ``lost``, ``doubled`` and ``unknown`` (read, but never committed) should be none.
    """

    committed: int
    read: int
    waiting: int
    lost: int
    doubled: int
    unknown: int

    @property
    def is_clean(self) -> bool:
        """Whether every row came over exactly once, as far as the operator has come."""
        return self.lost == self.doubled == self.unknown == 0


def check_streams_of(events: StreamEvents, store: Store) -> StreamCheck:
    """Compare upstream manifests, the reader's log, and the slices that its epochs took in."""
    entries = [(entry.path, entry.units) for entry in events.entries()]
    logged = Counter(path for path, _ in entries)
    committed: dict[str, int] = {}
    passed_over = waiting = 0
    for upstream in events.upstreams:
        unseen = 0
        for manifest in EpochLog(upstream.store).manifests():
            named = upstream.with_rows(upstream.files(manifest))
            files = {f"{upstream.folder}/{name}": rows for name, rows in named}
            committed |= files
            missing = sum(rows for path, rows in files.items() if path not in logged)
            if any(path in logged for path in files):  # epochs are logged in their order, and whole
                passed_over, unseen = passed_over + unseen + missing, 0
            else:
                unseen += missing
        waiting += unseen
    unknown = sum(rows for path, rows in entries if path not in committed)
    wrong = sum(abs(rows - committed[path]) for path, rows in entries if path in committed)
    twice = sum((count - 1) * committed.get(path, 0) for path, count in logged.items())
    read, again, position = _taken(store, [rows for _, rows in entries])
    left = sum(rows for _, rows in entries) - position
    return StreamCheck(
        sum(committed.values()), read, waiting + left, passed_over + position - read + wrong,
        again + twice, unknown,
    )  # fmt: skip


def _taken(store: Store, sizes: list[int]) -> tuple[int, int, int]:
    """Rows that a run's epochs took in at least once; how often again; and how far they came."""
    pieces: dict[int, list[tuple[int, int]]] = {}
    for manifest in EpochLog(store).manifests():
        for stream, start, stop in manifest["slices"]:
            pieces.setdefault(stream, []).append((start, stop))
    firsts = [0, *accumulate(sizes)]
    once = taken = position = 0
    for stream, some in pieces.items():
        reach = 0
        for start, stop in sorted(some):
            taken += stop - start
            once += max(stop - max(start, reach), 0)
            reach = max(reach, stop)
        position = max(position, firsts[stream] + reach)
    return once, taken - once, position
