"""When Synopsis scales out and in: thresholds, and for how long they must hold.

The paper gives one number, 0.45 of a process's memory as the upper threshold, where that memory
also has all else that a process needs. Ours is a share of what states may have (``flux.memory``),
so that it can be higher. Between the thresholds for giving away and for taking back there is room
enough that neither leads to the other: what is left after giving away is at most ``headroom`` of
what a slot can do, and taking back must leave less than ``return_below`` of it.

Source: Synopsis 3.6, 3.7.
"""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.errors import ConfigError


@dataclass(frozen=True)
class SynopsisTuning:
    """The knobs of the loop.

    >>> SynopsisTuning(hold=5).hold, SynopsisTuning().memory_aim
    (5, 0.575)
    """

    observe: float = 1.0
    """Seconds that an observation takes at least; 0: every epoch is one."""
    hold: int = 3
    """Observations in a row that must call for scaling out; at least 1."""
    calm: int = 6
    """Observations in a row that must allow scaling in; at least 1."""
    rest: int = 5
    """Observations after every operation in which nothing is judged; from 0."""
    growth: float = 0.02
    """A backlog grows when it gains more than this share of the rows that came; above 0."""
    behind: float = 0.5
    """A backlog of so many observations' worth of rows that does not shrink is as bad as one that
    grows: it got there slowly, or grows no more because sources are held back; above 0."""
    low_backlog: float = 0.1
    """What may wait in a slot that takes something back, as a share of the rows that came."""
    memory_high: float = 0.75
    """The share of its memory above which a slot scales out; above 0, to 1."""
    memory_low: float = 0.4
    """The share below which it may scale in; from 0, below ``memory_high``."""
    headroom: float = 0.7
    """What giving away leaves a slot with, and what a receiver has then at most, as a share of the
    rows that it can do; above 0, below 1."""
    return_below: float = 0.6
    """Taking back must leave a slot with less than this share; above 0, below ``headroom``."""
    most_pieces: int = 8
    """Prefixes given away by one operation; at least 1."""
    most_slots: int | None = None
    """Slots are added up to this number where nobody can take anything, and go again when they own
    nothing; ``None``: somebody else decides how many there are."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {getattr(self, name)!r}: expected {expected}"
            for name, good, expected in (
                ("observe", self.observe >= 0, "0 seconds or more"),
                ("hold", self.hold >= 1, "at least 1 observation"),
                ("calm", self.calm >= 1, "at least 1 observation"),
                ("rest", self.rest >= 0, "0 observations or more"),
                ("growth", self.growth > 0, "more than 0"),
                ("behind", self.behind > 0, "more than 0"),
                ("low_backlog", self.low_backlog >= 0, "0 or more"),
                ("memory_high", 0 < self.memory_high <= 1, "above 0, up to 1"),
                ("memory_low", 0 <= self.memory_low < self.memory_high, "less than memory_high"),
                ("headroom", 0 < self.headroom < 1, "above 0, below 1"),
                ("return_below", 0 < self.return_below < self.headroom, "less than headroom"),
                ("most_pieces", self.most_pieces >= 1, "at least 1 prefix"),
                ("most_slots", self.most_slots is None or self.most_slots >= 1, "at least 1 slot"),
            )
            if not good
        ]
        if problems:
            raise ConfigError.of(problems)

    @property
    def memory_aim(self) -> float:
        """The share of memory that giving away leaves, and that taking back may lead to."""
        return (self.memory_high + self.memory_low) / 2
