"""Epochs without events: while a source is silent, and once when a stream has been drained.

Spark runs a micro-batch only when some offset has changed. So a source of ours lets its offset go
on without a row: by a ``tick`` for every stretch of silence, and by an ``end`` that names the epoch
which is to close the stream. Both are in Spark's offset log before the epoch begins, and a batch
that is offered again after a crash is the same epoch again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoflux.errors import StateError

Offset = dict[str, Any]

_VERSION = "v1"


@dataclass(frozen=True)
class Beat:
    """When offsets go on without events: after every ``idle_seconds`` of silence (0: never), or
    once, to close the stream with the epoch ``closing``."""

    idle_seconds: float = 0.0
    closing: int | None = None


class Pulse:
    """Counts the silence of a source and says its offset when there is nothing new.

    Silence counts from the first time that nothing new was found, which is after the last epoch
    was committed: between that commit and a tick lies the full time.

    >>> now = 0.0
    >>> pulse = Pulse(Beat(idle_seconds=5), clock=lambda: now)
    >>> pulse.quiet({"position": 7})
    {'position': 7}
    >>> now = 5.0
    >>> pulse.quiet({"position": 7})
    {'position': 7, 'tick': 1}
    >>> Pulse(Beat(closing=12)).quiet({"position": 7, "tick": 1})
    {'position': 7, 'end': 12}
    """

    def __init__(self, beat: Beat, clock: Callable[[], float] = time.monotonic) -> None:
        self._beat = beat
        self._clock = clock
        self._since: float | None = None

    def heard(self) -> None:
        """Something came; silence begins anew."""
        self._since = None

    def quiet(self, start: Offset) -> Offset:
        """The offset after ``start`` when nothing came: ``start`` itself, a tick, or the end."""
        position = start["position"]
        if self._beat.closing is not None:
            return {"position": position, "end": self._beat.closing}
        now = self._clock()
        if self._since is None:
            self._since = now
        idle = self._beat.idle_seconds
        if idle <= 0 or now - self._since < idle:
            return start
        self._since = None
        return {"position": position, "tick": start.get("tick", 0) + 1}


def is_closing(checkpoint: Path, epoch: int) -> bool:
    """Whether Spark's offset log says that an epoch was made to close the stream.

    The log of a batch is a line with its version, one with settings, and one for the offset of
    each source in the order of the plan; ours is the last.
    """
    version, _, *offsets = (checkpoint / "offsets" / str(epoch)).read_text().splitlines()
    if version != _VERSION or not offsets:
        raise StateError(
            f"{checkpoint}/offsets/{epoch} is of version {version!r}, expected {_VERSION!r}; leave "
            "spark.sql.streaming.offsetLog.formatVersion as it is"
        )
    return bool(json.loads(offsets[-1]).get("end") == epoch)
