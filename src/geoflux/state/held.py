"""What is retained: which segments hold the events that can still be asked about, and since when.

A retained segment belongs for ever to the partition that received it, also after that partition
was split, merged or retired. The list is in every manifest, so it is as durable as the epoch.
Segments are dropped as a whole, oldest first, when a limit says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from geoflux.sections import RetentionConfig
from geoflux.settings import bytes_of, seconds


class Held(NamedTuple):
    """A retained segment: its partition and size, the times of its events (microseconds since
    1970, both ends included) and the epochs that it came from."""

    segment: str
    partition: int
    rows: int
    bytes: int
    first_time: int
    last_time: int
    first_epoch: int
    last_epoch: int

    @property
    def age(self) -> tuple[int, int, int]:
        """Sorts the oldest first; no two segments are of the same age."""
        return self.last_epoch, self.first_epoch, self.partition


class Kept(NamedTuple):
    """A segment that was written, and the names of those whose events it took over."""

    held: Held
    replaces: tuple[str, ...] = ()

    def to_list(self) -> list[Any]:
        """Plain values, for a report."""
        return [list(self.held), list(self.replaces)]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Kept:
        """What :meth:`to_list` gave."""
        return cls(Held(*values[0]), tuple(values[1]))


@dataclass(frozen=True)
class Limits:
    """How much is retained; ``None`` where there is no such limit.

    >>> Limits.of(RetentionConfig(time="1 minute")).cut(90_000_000)
    30000000
    """

    time_micros: int | None = None
    events: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, config: RetentionConfig) -> Limits:
        """The limits that the settings name."""
        return cls(
            round(seconds(config.time) * 1e6) if config.time else None,
            config.events or None,
            bytes_of(config.bytes) if config.bytes else None,
        )

    @property
    def is_on(self) -> bool:
        """Whether anything is retained at all."""
        return not (self.time_micros is None and self.events is None and self.bytes is None)

    def cut(self, max_time: int | None) -> int | None:
        """Events before this time are not seen any more; ``None``: all are."""
        if self.time_micros is None or max_time is None:
            return None
        return max_time - self.time_micros


@dataclass(frozen=True)
class Retained:
    """The retained segments, oldest first.

    >>> one = Held("state/a", 1, 10, 400, 0, 9, 0, 0)
    >>> two = Held("state/b", 1, 10, 400, 10, 19, 1, 1)
    >>> left, dropped = Retained().added([two, one]).expired(Limits(events=5), 19)
    >>> left.segments(), rows_by_partition(dropped)
    (frozenset({'state/b'}), {1: 10})
    """

    held: tuple[Held, ...] = ()

    def __len__(self) -> int:
        return len(self.held)

    def added(self, news: Iterable[Held]) -> Retained:
        """With segments that were written."""
        return Retained(tuple(sorted((*self.held, *news), key=lambda held: held.age)))

    def replaced(self, kept: Iterable[Kept]) -> Retained:
        """With segments that were written, some of them in place of others."""
        news = tuple(kept)
        gone = {name for item in news for name in item.replaces}
        left = Retained(tuple(held for held in self.held if held.segment not in gone))
        return left.added(item.held for item in news)

    def expired(
        self, limits: Limits, max_time: int | None
    ) -> tuple[Retained, tuple[Held, ...]]:  # fmt: skip
        """What the limits leave, and what they drop: segments that lie wholly before the cut, those
        after which enough events came (so that the newest are always there, whatever was compacted
        with whatever), then the oldest while the rest is too large."""
        cut = limits.cut(max_time)
        left = [held for held in self.held if cut is None or held.last_time >= cut]
        size = sum(held.bytes for held in left)
        first = 0
        while first < len(left):
            oldest = left[first]
            newer = sum(held.rows for held in left if held.first_epoch > oldest.last_epoch)
            enough = limits.events is not None and newer >= limits.events
            too_large = limits.bytes is not None and size > limits.bytes
            if not (enough or too_large):
                break
            size, first = size - oldest.bytes, first + 1
        kept = Retained(tuple(left[first:]))
        names = kept.segments()
        return kept, tuple(held for held in self.held if held.segment not in names)

    @cached_property
    def by_partition(self) -> Mapping[int, tuple[Held, ...]]:
        """The segments of every partition that has some, oldest first."""
        found: dict[int, list[Held]] = {}
        for held in self.held:
            found.setdefault(held.partition, []).append(held)
        return {partition: tuple(segments) for partition, segments in found.items()}

    def segments(self) -> frozenset[str]:
        """The names of all segments."""
        return frozenset(held.segment for held in self.held)

    @cached_property
    def rows(self) -> int:
        """Retained events."""
        return sum(held.rows for held in self.held)

    @cached_property
    def bytes(self) -> int:
        """Bytes of all segments."""
        return sum(held.bytes for held in self.held)

    def to_list(self) -> list[list[Any]]:
        """Plain values, for the manifest."""
        return [list(held) for held in self.held]

    @classmethod
    def from_list(cls, values: Iterable[Sequence[Any]]) -> Retained:
        """What :meth:`to_list` gave."""
        return cls(tuple(Held(*given) for given in values))


def rows_by_partition(dropped: Iterable[Held]) -> dict[int, int]:
    """How many events every partition lost: what its statistics have to forget."""
    rows: dict[int, int] = {}
    for held in dropped:
        rows[held.partition] = rows.get(held.partition, 0) + held.rows
    return rows
