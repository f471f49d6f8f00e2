"""What Synopsis sees of its slots: backlog and memory, and for how long it has been so.

Epochs add up to an observation. A rule counts only when it was satisfied by several observations in
a row; while the stage settles after an operation nothing is judged.

Source: Synopsis 3.6 (monitor, analyse), 3.7 (lower thresholds).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from geoflux.balance.parts import Part, added
from geoflux.balance.policy import Observed, SlotLoad
from geoflux.balance.synopsis_tuning import SynopsisTuning


@dataclass(frozen=True)
class SlotSeen:
    """What an observation showed of a slot."""

    slot: int
    seconds: float
    """From the end of the observation before it."""
    arrivals: int
    processed: int
    busy: float
    waiting: int
    """Its backlog: rows that it has handed back."""
    growth: int
    """Of the backlog."""
    bytes: int
    capacity: int | None
    """Bytes of memory for states; ``None``: no limit."""

    def is_behind(self, tuning: SynopsisTuning) -> bool:
        """Whether the slot does not keep up with what comes."""
        much = tuning.growth * max(self.arrivals, 1)
        stuck = self.waiting > tuning.behind * max(self.processed, 1) and self.growth > -much
        return self.growth > much or stuck

    def is_full(self, tuning: SynopsisTuning) -> bool:
        """Whether its states take too much of its memory."""
        return self.capacity is not None and self.bytes > tuning.memory_high * self.capacity

    def is_calm(self, tuning: SynopsisTuning) -> bool:
        """Whether it could do with more."""
        roomy = self.capacity is None or self.bytes <= tuning.memory_low * self.capacity
        idle = self.waiting <= tuning.low_backlog * self.arrivals
        return roomy and idle and not self.is_behind(tuning)


Counts = Mapping[int, int]
Parts = Mapping[int, tuple[Part, ...]]
"""Of partitions, by their ids."""


@dataclass(frozen=True)
class Watch:
    """All that is remembered between epochs: the observation under way, and how many in a row were
    behind, full or calm, by slot."""

    since: float | None = None
    """When the last observation ended; ``None``: there was none."""
    sums: Mapping[int, tuple[int, int, float]] = field(default_factory=dict)
    """Arrivals, processed rows and busy seconds since then."""
    waited: Counts = field(default_factory=dict)
    """The backlogs when it ended."""
    behind: Counts = field(default_factory=dict)
    full: Counts = field(default_factory=dict)
    calm: Counts = field(default_factory=dict)
    rest: int = 0
    """Observations until slots are judged again."""
    parts: Parts = field(default_factory=dict)
    """What the parts of partitions got since the last observation ended, and hold."""

    def with_epoch(self, seen: Observed) -> Watch:
        """With one more epoch in the observation."""
        sums, parts = dict(self.sums), dict(self.parts)
        for load in seen.loads:
            for p, told in load.parts.items():
                parts[p] = added(parts.get(p, ()), told)
            arrivals, processed, busy = sums.get(load.slot, (0, 0, 0.0))
            sums[load.slot] = (
                arrivals + load.arrivals, processed + load.events, busy + load.busy_seconds,
            )  # fmt: skip
        return replace(self, sums=sums, parts=parts)

    def slots(self, seen: Observed) -> tuple[SlotSeen, ...]:
        """What the observation that ends now showed."""
        assert self.since is not None
        return tuple(
            self._slot(load, max(seen.now - self.since, 1e-9))
            for load in seen.loads
            if load.site is not None
        )

    def _slot(self, load: SlotLoad, seconds: float) -> SlotSeen:
        assert load.site is not None
        arrivals, processed, busy = self.sums[load.slot]
        growth = load.waiting - self.waited.get(load.slot, 0)
        return SlotSeen(
            load.slot, seconds, arrivals, processed, busy, load.waiting, growth,
            load.site.bytes_held, load.site.capacity,
        )  # fmt: skip

    def judged(self, slots: tuple[SlotSeen, ...], seen: Observed, tuning: SynopsisTuning) -> Watch:
        """After an observation: the next one begins, and what called for something did so once
        more; nothing did, while the stage settles."""
        waited = {load.slot: load.waiting for load in seen.loads}
        if self.rest > 0:
            return Watch(seen.now, waited=waited, rest=self.rest - 1)
        return Watch(
            seen.now, {}, waited,
            _counted(self.behind, {s.slot: s.is_behind(tuning) for s in slots}),
            _counted(self.full, {s.slot: s.is_full(tuning) for s in slots}),
            _counted(self.calm, {s.slot: s.is_calm(tuning) for s in slots}),
        )  # fmt: skip

    def rested(self, rest: int) -> Watch:
        """After an operation: nothing that was seen before it counts."""
        return Watch(self.since, waited=self.waited, rest=rest)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "since": self.since, "rest": self.rest,
            "sums": {str(slot): list(sums) for slot, sums in self.sums.items()},
            "parts": {str(p): [list(part) for part in some] for p, some in self.parts.items()},
            **{name: _as_text(getattr(self, name)) for name in _COUNTS},
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Watch:
        """What :meth:`to_dict` gave, also by way of JSON."""
        counts = {name: {int(s): n for s, n in values[name].items()} for name in _COUNTS}
        sums = {int(s): (a, p, b) for s, (a, p, b) in values["sums"].items()}
        parts = {int(p): tuple(Part(*part) for part in some) for p, some in values["parts"].items()}
        return cls(values["since"], sums, rest=values["rest"], parts=parts, **counts)


_COUNTS = ("waited", "behind", "full", "calm")


def _counted(known: Counts, found: Mapping[int, bool]) -> dict[int, int]:
    """How many observations in a row had it, by slot."""
    return {slot: known.get(slot, 0) + 1 for slot, holds in found.items() if holds}


def _as_text(counts: Counts) -> dict[str, int]:
    return {str(slot): count for slot, count in counts.items()}
