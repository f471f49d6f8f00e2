"""How an operator makes its epochs, out of its manifests: what the model of micro-batches needs.

Everything between the opening of an epoch and its commit that is not the work of the slowest slot
is what an epoch costs by itself. Where epochs follow one another, so is what Spark does between
two. Medians over the last epochs: a first one that starts workers must not count for long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from statistics import median
from typing import Any

import numpy as np

from geoflux.scale.epochs import Epochs
from geoflux.scale.services import ServiceSums

_KEPT = 32
_REGULAR = 0.2
_WAITS = 0.1


@dataclass(frozen=True)
class Beat:
    """One epoch: when it was opened and committed, what it cost beside the slots' work before and
    after that, and what Spark did between the last two (``None``: it was not asked)."""

    opened: float
    committed: float
    overhead: float
    commit: float
    between: float | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Beat:
        """As a manifest tells it."""
        opened, committed = manifest["opened"], manifest["committed"]
        took = max(committed - opened, 0.0)
        work = max((_served(slot).seconds for slot in manifest["slots"]), default=0.0)
        inside = manifest.get("open_seconds", 0.0) + manifest.get("job_seconds", took)
        return cls(
            opened, committed, max(min(inside, took) - work, 0.0), max(took - inside, 0.0),
            manifest.get("spark_seconds"),
        )  # fmt: skip


@dataclass(frozen=True)
class Rhythm:
    """The last epochs of an operator.

    >>> beats = [Beat(float(n), n + 0.4, 0.2, 0.1) for n in range(9)]
    >>> Rhythm().after(beats).epochs()
    Epochs(trigger=1.0, overhead=0.2, commit=0.1)
    """

    beats: tuple[Beat, ...] = field(default_factory=tuple)

    def after(self, beats: Sequence[Beat]) -> Rhythm:
        """With more epochs."""
        return Rhythm((*self.beats, *beats)[-_KEPT:])

    def epochs(self, trigger: float | None = None) -> Epochs | None:
        """How epochs are made; ``None``: there was none. ``trigger``: as the settings say,
        otherwise seen from how regularly they open with time to spare."""
        if not self.beats:
            return None
        overhead = median(beat.overhead for beat in self.beats)
        commit = median(beat.commit for beat in self.beats)
        trigger = self._trigger() if trigger is None else trigger
        if trigger == 0:
            overhead += self._between()
        return Epochs(trigger, overhead, commit)

    def _trigger(self) -> float:
        if len(self.beats) < 4:
            return 0.0
        opened = np.array([beat.opened for beat in self.beats])
        gaps = np.diff(opened)
        idle = opened[1:] - np.array([beat.committed for beat in self.beats[:-1]])
        low, usual, high = np.quantile(gaps, (0.25, 0.5, 0.75))
        regular = high - low <= _REGULAR * usual
        return float(usual) if regular and np.median(idle) > _WAITS * usual else 0.0

    def _between(self) -> float:
        """What Spark takes from a commit to the next opening; where it was not asked, what the
        quickest epochs show: the others may have waited for something to do."""
        told = [beat.between for beat in self.beats if beat.between is not None]
        if told:
            return median(told)
        pairs = zip(self.beats, self.beats[1:], strict=False)
        idle = [max(b.opened - a.committed, 0.0) for a, b in pairs]
        return float(np.quantile(idle, 0.25)) if idle else 0.0

    def to_list(self) -> list[list[Any]]:
        """Plain values."""
        return [list(astuple(beat)) for beat in self.beats]

    @classmethod
    def from_list(cls, values: Sequence[Sequence[Any]]) -> Rhythm:
        """What :meth:`to_list` gave."""
        return cls(tuple(Beat(*beat) for beat in values))


def _served(slot: Mapping[str, Any]) -> ServiceSums:
    return ServiceSums.from_list(slot.get("services", ()))
