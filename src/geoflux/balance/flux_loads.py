"""What a site tells the controller after a collection phase: idle time, tuples, memory.

A site is what we call a slot. Nothing here decides anything; it is what the policies read.

Source: Flux 5.1 (idle time, tuples per partition), 6.1 (sizes, free memory, spilled partitions).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SiteReport:
    """What one site saw in a collection phase.

    >>> report = SiteReport(0, idle=0.5, tuples={3: 30, 4: 10}, capacity=100, sizes={3: 80, 4: 40})
    >>> report.processed, report.utilisation(2.0), report.excess
    (40, 0.75, -20)
    """

    slot: int
    idle: float
    """Seconds of the phase in which it waited for input."""
    tuples: Mapping[int, int]
    """Tuples processed per partition that it owns, those without any included."""
    capacity: int | None = None
    """Bytes of memory for the states of partitions; ``None``: no limit."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Bytes of each partition's state, on disk or not."""
    spilled: Mapping[int, int] = field(default_factory=dict)
    """The partitions that are on disk, with the bytes of their unprocessed input."""

    @property
    def processed(self) -> int:
        """Tuples of all its partitions."""
        return sum(self.tuples.values())

    def utilisation(self, elapsed: float) -> float:
        """The share of the phase in which it did not wait; 0 to 1."""
        if elapsed <= 0:
            raise ValueError(f"a collection phase of {elapsed} s has no utilisation")
        return min(1.0, max(0.0, 1.0 - self.idle / elapsed))

    @property
    def bytes_held(self) -> int:
        """Bytes of all its states, on disk or not."""
        return sum(self.sizes.values())

    @property
    def excess(self) -> float:
        """Bytes of memory that would be free with every state in memory; below 0 when they do not
        fit, infinite without a limit."""
        return math.inf if self.capacity is None else self.capacity - self.bytes_held

    @property
    def fullness(self) -> float:
        """Its states as a share of its memory; above 1 when they do not fit."""
        if self.capacity is None:
            return 0.0
        if self.capacity > 0:
            return self.bytes_held / self.capacity
        return math.inf if self.bytes_held else 0.0


def any_spilled(reports: Sequence[SiteReport]) -> bool:
    """Whether any site has a partition on disk."""
    return any(report.spilled for report in reports)


def rate_when_full(reports: Sequence[SiteReport], elapsed: float) -> float | None:
    """Tuples per second that the stage would process with its busiest site fully busy, ``None``
    where nothing was done. For a saturated source it is the throughput; otherwise a quiet night
    is not read as a bad partitioning.

    >>> rate_when_full([SiteReport(0, 0.5, {0: 30}), SiteReport(1, 0.8, {1: 10})], 1.0)
    80.0
    """
    busiest = max((report.utilisation(elapsed) for report in reports), default=0.0)
    processed = sum(report.processed for report in reports)
    return processed / (busiest * elapsed) if busiest > 0 and processed else None
