"""What somebody who watches a run knows of it, from its manifests alone.

One value serves both who runs it and who looks on from another process: manifests go in one by
one, figures come out. There is no clock and no store in here; hearing the same manifests in the
same order gives the same figures, wherever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from geoflux.chronicle.decision_words import changes_of, is_decision, reason_of, told_round
from geoflux.chronicle.guard_words import blocks_of
from geoflux.chronicle.plan_history import busiest_over_mean
from geoflux.engine.epochs import Manifest
from geoflux.engine.summary import busy_seconds, latencies
from geoflux.guard import Block

_RECENT = 8
_LAST_DECISIONS = 5
_LAST_BLOCKS = 3
_COUNTED = ("received", "processed", "quarantined", "matches", "aggregates", "results")


@dataclass
class Watched:
    """A run of standing queries, of an operator, or of an operator within an application.

    >>> slots = [{"slot": s, "busy_seconds": 0.5 * s, "load_seconds": 0.0} for s in range(2)]
    >>> made = {"opened": 10.0, "committed": 11.0, "processed": 300, "slots": slots}
    >>> watched = Watched.of([made | {"epoch": 0}])
    >>> watched.rate(now=11.0), watched.rate(now=13.0), watched.loads()
    (300.0, 100.0, [0.0, 0.5])
    """

    recent: list[Manifest] = field(default_factory=list)
    """The last epochs, which rates and latencies go by."""
    totals: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    """Rows on each of its streams."""
    decisions: list[tuple[float, Manifest]] = field(default_factory=list)
    """The last ones, and when, in seconds since the first epoch was opened."""
    blocks: list[tuple[float, Block]] = field(default_factory=list)
    round: str = ""
    note: str = ""
    began: float | None = None
    _since: float = 0.0
    """When the epoch before the recent ones was committed."""

    @classmethod
    def of(cls, manifests: Iterable[Manifest]) -> Watched:
        """All epochs of a run, in order."""
        watched = cls()
        for manifest in manifests:
            watched.hear(manifest)
        return watched

    def hear(self, manifest: Manifest) -> None:
        """An epoch was committed; one that is told again, as after a crash, changes nothing."""
        if manifest["epoch"] < self.epochs:
            return
        if self.began is None:
            self.began = self._since = manifest["opened"]
        self.recent.append(manifest)
        if len(self.recent) > _RECENT:
            self._since = self.recent.pop(0)["committed"]
        for name in _COUNTED:
            self.totals[name] += manifest.get(name, 0)
        self.written.update(_written(manifest))
        self._hear_decision(manifest)
        at = manifest["committed"] - self.began
        self.blocks += [(at, block) for block in blocks_of(manifest)]
        self.blocks = self.blocks[-_LAST_BLOCKS:]

    def _hear_decision(self, manifest: Manifest) -> None:
        """Remember what was decided; the same decision over and over is a note."""
        assert self.began is not None
        at, self.note = manifest["committed"] - self.began, ""
        if manifest.get("round"):
            self.round = told_round(manifest["round"])
        if changes_of(manifest) or manifest.get("round"):
            self.decisions.append((at, manifest))
        elif self.decisions and is_decision(manifest):
            if reason_of(manifest) != reason_of(self.decisions[-1][1]):
                self.decisions.append((at, manifest))
        else:
            self.note = reason_of(manifest)
        self.decisions = self.decisions[-_LAST_DECISIONS:]

    @property
    def last(self) -> Manifest | None:
        """The last epoch."""
        return self.recent[-1] if self.recent else None

    @property
    def epochs(self) -> int:
        """How many there have been."""
        return 0 if self.last is None else int(self.last["epoch"]) + 1

    @property
    def results(self) -> int:
        """What it came to: results, or matches and windows."""
        return sum(self.totals[name] for name in ("results", "matches", "aggregates"))

    @property
    def carried(self) -> int:
        """Rows that were handed back for the next epoch."""
        return 0 if self.last is None else int(self.last.get("carried_out", 0))

    @property
    def position(self) -> int:
        """How far the source has been read."""
        return 0 if self.last is None else int(self.last.get("position", 0))

    @property
    def quietest(self) -> float:
        """The longest time between two of the recent commits, or that the first one took."""
        times = [self._since, *(m["committed"] for m in self.recent)]
        return max((b - a for a, b in pairwise(times)), default=0.0)

    def span(self, now: float) -> float:
        """Seconds that the recent epochs cover up to now."""
        until = now if self.last is None else max(now, self.last["committed"])
        return max(until - self._since, 1e-9)

    def rate(self, now: float) -> float:
        """Rows a second lately; it sinks while nothing is committed."""
        return float(sum(m["processed"] for m in self.recent)) / self.span(now)

    def capacity(self) -> float:
        """Rows a second while an epoch was under way."""
        spent = sum(m["committed"] - m["opened"] for m in self.recent)
        return float(sum(m["processed"] for m in self.recent)) / max(spent, 1e-9)

    def advance(self) -> float:
        """Positions of the source a second, lately."""
        if len(self.recent) < 2:
            return self.capacity()
        first, last = self.recent[0], self.recent[-1]
        gone = last.get("position", 0) - first.get("position", 0)
        return float(gone) / max(last["committed"] - first["committed"], 1e-9)

    def latency(self) -> tuple[float | None, float | None]:
        """Median and 99th percentile, lately."""
        return latencies(self.recent)

    def loads(self) -> list[float]:
        """The share of the recent epochs' time that each slot of the last one was busy."""
        if self.last is None:
            return []
        slots = len(self.last["slots"])
        spent = sum(m["committed"] - m["opened"] for m in self.recent)
        busy = busy_seconds(self.recent, slots)[:slots]
        return [float(b) / max(spent, 1e-9) for b in busy]

    def busiest_over_mean(self) -> float | None:
        """Of the slots, lately; ``None`` if nobody was busy."""
        if self.last is None:
            return None
        return busiest_over_mean(self.recent, len(self.last["slots"]))


def _written(manifest: Manifest) -> dict[str, int]:
    """Rows that an epoch put on each stream; standing queries have two of their own."""
    if "streams" in manifest:
        return {s: sum(rows for _, rows in files) for s, files in manifest["streams"].items()}
    return {name: manifest.get(name, 0) for name in ("matches", "aggregates")}
