"""The engine's knowledge of event time from one epoch to the next.

The watermark is the largest event time of earlier epochs less the lateness. While a source is
silent for longer than ``idle``, time goes on at the pace of the clock, so that no window stays
open for ever. What is closed stays closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from geoflux.operators.clock import Clock


@dataclass(frozen=True)
class EventTime:
    """What every manifest says of event time, in microseconds since 1970.

    ``heard`` is when (seconds since 1970, by the engine's clock) the last events came.

    >>> known = EventTime().after(Clock(), [(3_000_000, 9_000_000)], None, 100.0)
    >>> known.clock(lateness=2_000_000, silence=0).watermark
    7000000
    """

    max_time: int | None = None
    closed: int | None = None
    origin: int | None = None
    heard: float | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> EventTime:
        """As a manifest has it."""
        return cls(**{name: manifest[name] for name in cls.__dataclass_fields__})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return asdict(self)

    def silence(self, idle_seconds: float | None, now: float, started: float) -> int:
        """Microseconds by which time has gone on without events; 0 until ``idle_seconds``. A
        source is not blamed for the time before the engine was ``started``."""
        if idle_seconds is None or self.heard is None:
            return 0
        quiet = now - max(self.heard, started)
        return round(quiet * 1e6) if quiet >= idle_seconds else 0

    def clock(self, lateness: int | None, silence: int, final: bool = False) -> Clock:
        """The clock of the next epoch; without ``lateness`` there is no watermark."""
        watermark = None
        if lateness is not None and self.max_time is not None:
            watermark = self.max_time - lateness + silence
        closed = _largest(self.closed, watermark)
        return Clock(watermark, self.closed, closed, self.origin, self.max_time, final)

    def after(
        self, clock: Clock, spans: Iterable[tuple[int, int]], closed_until: int | None, now: float
    ) -> EventTime:
        """After an epoch that received events of these spans (smallest, largest) of time and
        closed windows up to ``closed_until``."""
        known = list(spans)
        closed = clock.closed
        if clock.final and self.max_time is not None:
            closed = _largest(_largest(closed, closed_until), self.max_time + 1)
        if not known:
            return EventTime(self.max_time, closed, self.origin, self.heard)
        first, last = min(low for low, _ in known), max(high for _, high in known)
        origin = first if self.origin is None else self.origin
        return EventTime(_largest(self.max_time, last), closed, origin, now)


def _largest(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
