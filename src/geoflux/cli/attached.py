"""A run seen from another process: its directory is read, nothing is ever written.

Manifests say what happened, the summary that it is over, an intent that an epoch is under way; no
process is asked, so that it works for a run on another machine and for one that crashed long ago.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoflux import run_notes
from geoflux.chronicle.decision_words import changes_of, reason_of
from geoflux.chronicle.plan_history import plan_of
from geoflux.chronicle.scaling_words import told_scaling
from geoflux.chronicle.wording import count, duration
from geoflux.cli.application_view import (
    Line,
    application_view,
    reads_by_tables,
    waiting_by_manifests,
)
from geoflux.cli.reach import Reach
from geoflux.cli.run_view import Beside, run_view
from geoflux.cli.watched import Watched
from geoflux.scale.scaler import ScaleRecord
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import RUN, TOPOLOGY, store_of
from geoflux.state.store import Store

_PATIENCE_SECONDS = 15.0
_PATIENCE_TIMES = 4.0
"""So many times the longest recent gap between commits a run may be silent and count as going."""
_SUMMARY = "summary.json"


@dataclass(frozen=True)
class Standing:
    """Whether a run goes on: ``starting``, ``running``, ``silent`` or ``over``; the seconds since
    its last commit (its start, before the first one), and the epoch that is under way, if any."""

    state: str
    seconds: float
    under_way: int | None = None

    @classmethod
    def of(cls, watched: Watched, started: float, now: float, summary: int | None,
           under_way: bool) -> Standing:  # fmt: skip
        """By the epochs, those that the summary counts (``None``: there is no summary), and
        whether an intent waits for its manifest.

        >>> Standing.of(Watched(), 100.0, 103.0, None, False).state
        'starting'
        """
        at = None if watched.last is None else watched.last["committed"]
        since = max(now - (started if at is None else at), 0.0)
        epoch = watched.epochs if under_way else None
        if summary == watched.epochs and not under_way:
            return cls("over", since)
        patience = max(_PATIENCE_SECONDS, _PATIENCE_TIMES * watched.quietest)
        if at is None:
            return cls("starting" if since < 8 * _PATIENCE_SECONDS else "silent", since, epoch)
        return cls("running" if since < patience else "silent", since, epoch)

    def words(self) -> str:
        """In a few words."""
        ago = duration(round(self.seconds)) if self.seconds >= 1 else "1 s"
        match self.state:
            case "over":
                return f"over since {ago}"
            case "starting":
                return f"starting, no epoch yet after {ago}"
            case "running":
                return f"running, last commit {ago} ago"
        return f"not running any more? last commit {ago} ago"

    def advice(self, out: str | Path) -> str:
        """What to do next, where there is something to do."""
        if self.state == "over":
            return f"geoflux verify {out} checks it; {out}/report.html shows it"
        if self.state == "silent" and self.under_way is not None:
            return (
                f"epoch {count(self.under_way)} was begun and not committed; if its process is "
                f"gone, the same geoflux run with --out {out} goes on there"
            )
        if self.state == "silent":
            return f"without input, or stopped: then the same geoflux run with --out {out} goes on"
        return ""


class Attached:
    """One run: of standing queries, or of an operator."""

    def __init__(self, out: str | Path) -> None:
        run_notes.config_of(out)  # says so where there is no run
        self.out = out
        self._store = store_of(out)
        self._log = EpochLog(self._store)
        self._started = float(Store(str(out)).read_json(RUN)["started"])
        self._reach: Reach | None = None
        self._partitions: tuple[int, int] | None = None
        self.watched = Watched()

    def look(self) -> bool:
        """Read what was committed since the last look; whether there was anything."""
        last = self._log.last()
        before = self.watched.epochs
        for epoch in range(before, before if last is None else last + 1):
            self.watched.hear(self._log.manifest(epoch))
        return self.watched.epochs > before

    def standing(self, now: float) -> Standing:
        """Whether it goes on."""
        plain = Store(self._store.root)
        told = plain.read_json(_SUMMARY)["epochs"] if plain.exists(_SUMMARY) else None
        begun = self._log.intent(self.watched.epochs) is not None
        return Standing.of(self.watched, self._started, now, told, begun)

    def beside(self, now: float, standing: Standing) -> Beside:
        """What is known beside the manifests; time stands still when the run does."""
        watched = self.watched
        going = standing.state in ("starting", "running")
        if watched.last is not None and not going:
            now = watched.last["committed"]
        self._reach = self._reach or Reach.of(self.out)
        return Beside(
            now, max(now - (watched.began or self._started), 0.0),
            total=self._reach.total(),
            unread=self._reach.unread(watched.position) if going else None,
            partitions=self._count_partitions(), standing=standing.words(),
            note=standing.advice(self.out),
        )  # fmt: skip

    def _count_partitions(self) -> int | None:
        version = 1 if self.watched.last is None else self.watched.last["next_plan"]
        if self._partitions is None or self._partitions[0] != version:
            plan = plan_of(self._store, version)
            self._partitions = None if plan is None else (version, len(plan.partitions))
        return None if self._partitions is None else self._partitions[1]

    def view(self, now: float, width: int) -> Any:
        """For a terminal of that width."""
        return run_view(self.watched, self.beside(now, self.standing(now)), width)

    def told(self, now: float) -> dict[str, Any]:
        """Plain values, for machines."""
        standing = self.standing(now)
        return _standing(standing) | told_of(self.watched, self.beside(now, standing))


class AttachedApplication:
    """An application: every operator is a run in a directory of its own."""

    def __init__(self, out: str | Path) -> None:
        self.out = out
        self._tables = Store(str(out)).read_json(TOPOLOGY)["operators"]
        self._operators = {t["name"]: Attached(Path(out) / t["name"]) for t in self._tables}
        self._scaled: list[dict[str, Any]] = []
        """The last decision about slots, if there was one."""

    def look(self) -> bool:
        """Read what was committed since the last look; whether there was anything."""
        self._scaled = ScaleRecord(Store(str(self.out))).decisions()[-1:]
        news = [one.look() for one in self._operators.values()]  # all of them, not only up to one
        return any(news)

    def standing(self, now: float) -> Standing:
        """As that of the operator which committed last; over when all are."""
        found = [one.standing(now) for one in self._operators.values()]
        order = ("running", "starting", "silent", "over")
        return min(found, key=lambda one: (order.index(one.state), one.seconds))

    def _lines(self) -> list[Line]:
        watched = {name: one.watched for name, one in self._operators.items()}
        return [
            Line(name, reads_by_tables(self._tables, name), one,
                 waiting_by_manifests(self._tables, watched, name))
            for name, one in watched.items()
        ]  # fmt: skip

    def _beside(self, now: float, standing: Standing) -> Beside:
        lines = self._lines()
        outer = next(line.name for line in lines if line.reads == ["outside"])
        known = self._operators[outer].beside(now, standing)
        last = [o.watched.last["committed"] for o in self._operators.values() if o.watched.last]
        until = max(last, default=now) if standing.state in ("silent", "over") else now
        return Beside(
            until, known.elapsed + max(until - known.now, 0.0), total=known.total,
            standing=known.standing, note=standing.advice(self.out),
        )  # fmt: skip

    def view(self, now: float, width: int) -> Any:
        """For a terminal of that width."""
        scaling = " ".join(told_scaling(one) for one in self._scaled)
        beside = self._beside(now, self.standing(now))
        return application_view(self._lines(), beside, scaling, width)

    def told(self, now: float) -> dict[str, Any]:
        """Plain values, for machines."""
        standing = self.standing(now)
        beside = self._beside(now, standing)
        return _standing(standing) | {
            "elapsed_seconds": beside.elapsed,
            "scaling": self._scaled[0] if self._scaled else None,
            "operators": {
                line.name: told_of(line.watched, Beside(beside.now, beside.elapsed))
                | {"waiting": line.waiting}
                for line in self._lines()
            },
        }


def attached(out: str | Path) -> Attached | AttachedApplication:
    """The run or the application that a directory holds; a :class:`StateError` where none is."""
    plain = Store(str(out))
    if plain.exists(TOPOLOGY) and not plain.exists(RUN):
        return AttachedApplication(out)
    return Attached(out)


def _standing(standing: Standing) -> dict[str, Any]:
    return {
        "state": standing.state, "seconds_since_commit": standing.seconds,
        "epoch_under_way": standing.under_way,
    }  # fmt: skip


def told_of(watched: Watched, beside: Beside) -> dict[str, Any]:
    """A run in plain values."""
    p50, p99 = watched.latency()
    last = watched.last
    return {
        "elapsed_seconds": beside.elapsed, "epochs": watched.epochs,
        "processed": watched.totals["processed"], "quarantined": watched.totals["quarantined"],
        "results": watched.results, "rows_per_second": watched.rate(beside.now),
        "capacity_per_second": watched.capacity(), "latency_p50_seconds": p50,
        "latency_p99_seconds": p99, "waiting": watched.carried + (beside.unread or 0),
        "position": watched.position, "total": beside.total, "slots": watched.loads(),
        "busiest_over_mean": watched.busiest_over_mean(),
        "plan": None if last is None else last["next_plan"],
        "decision": None if not watched.decisions else {
            "at_seconds": watched.decisions[-1][0],
            "reason": reason_of(watched.decisions[-1][1]),
            "changes": changes_of(watched.decisions[-1][1]),
        },
    }  # fmt: skip
