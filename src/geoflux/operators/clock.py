"""Event time as an epoch sees it: what is closed, and what closes now.

Fixed when the epoch is opened, and in its intent: every slot, and every replay, uses the same.
"""

from __future__ import annotations

from dataclasses import dataclass

BEGINNING, END = -(2**62), 2**62
"""Instants before and after all others, with room to add a window's length."""


@dataclass(frozen=True)
class Clock:
    """Instants are microseconds since 1970; ``None`` is "not known yet".

    Windows that end at or before ``closed_before`` were closed in earlier epochs, those that end
    at or before ``closed`` close at the opening of this one. ``origin`` is the smallest event time
    of the first epoch with events, ``max_time`` the largest of all earlier epochs. ``final``: all
    events are in, and every window that holds any closes.
    """

    watermark: int | None = None
    closed_before: int | None = None
    closed: int | None = None
    origin: int | None = None
    max_time: int | None = None
    final: bool = False

    @property
    def floor(self) -> int:
        """What ends at or before this is closed once the epoch is open."""
        return BEGINNING if self.closed is None else self.closed

    @property
    def floor_before(self) -> int:
        """What ended at or before this was closed before the epoch."""
        return BEGINNING if self.closed_before is None else self.closed_before
