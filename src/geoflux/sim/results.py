"""What a simulated run gave: per second, per site, and every tuple accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.plan.changes import Move
from geoflux.sim import columns as c
from geoflux.sim.state import State


@dataclass(frozen=True)
class Moved:
    """The moves of one round."""

    start: float
    end: float
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Where:
    """Where the tuples are that were produced; :attr:`total` equals what was produced."""

    processed: int
    in_service: int
    in_connections: int
    in_buffers: int
    spooled: int

    @property
    def total(self) -> int:
        """All of them."""
        return (
            self.processed + self.in_service + self.in_connections + self.in_buffers + self.spooled
        )


@dataclass(frozen=True)
class Run:
    """The results of a run, by second of simulated time where it says so."""

    throughput: npt.NDArray[np.float64]
    """Tuples processed in each second."""
    latency: tuple[float | None, ...]
    """Mean seconds from Flux-Cons to processed, of each second; ``None``: nothing was processed."""
    rounds: tuple[Moved, ...]
    """Those in which something moved."""
    phases: tuple[tuple[float, float], ...]
    """When each collection phase began, and how long it was to take."""
    site_tuples: npt.NDArray[np.int64]
    """Tuples processed per site."""
    utilisation: npt.NDArray[np.float64]
    """Per site, the share of the run in which its consumer did not wait for input."""
    owners: npt.NDArray[np.int64]
    """The site of each partition at the end."""
    on_disk: npt.NDArray[np.bool_]
    """Which partitions are on disk at the end."""
    disk_operations: int
    produced: int
    where: Where

    @property
    def moved(self) -> int:
        """Partitions that moved, counted every time."""
        return sum(len(one.moves) for one in self.rounds)

    def rate(self, start: int = 0, end: int | None = None) -> float:
        """Mean tuples per second over whole seconds."""
        return float(np.mean(self.throughput[start:end]))

    def mean_latency(self, start: int = 0, end: int | None = None) -> float | None:
        """Mean latency over whole seconds, each tuple counted once."""
        stop = len(self.latency) if end is None else end
        pairs = [
            (late, self.throughput[i])
            for i, late in enumerate(self.latency[:stop])
            if i >= start and late is not None
        ]
        tuples = sum(count for _, count in pairs)
        return float(sum(late * count for late, count in pairs) / tuples) if pairs else None


def result_of(
    state: State, seconds: int, rounds: Sequence[Moved], phases: Sequence[tuple[float, float]]
) -> Run:
    """The run's results, from the state at its end."""
    done, late = state.per_second[:seconds].T
    latency = tuple(
        float(total / count / c.SECOND) if count else None
        for count, total in zip(done, late, strict=True)
    )
    site, part = state.site, state.part
    where = Where(
        processed=int(state.totals[c.PROCESSED]),
        in_service=int(site[site[:, c.TURN_KIND] == c.TUPLES, c.TURN_COUNT].sum()),
        in_connections=int(state.conn[:, :, c.CONN_TUPLES].sum()),
        in_buffers=int(site[:, c.USED].sum() + np.count_nonzero(site[:, c.HAND] != c.NONE)),
        spooled=int(part[:, c.SPOOL].sum()),
    )
    now = seconds * c.SECOND
    waited = site[:, c.SITE_IDLE] + np.maximum(now - site[:, c.IDLE_SINCE], 0)
    return Run(
        done.copy(), latency, tuple(rounds), tuple(phases), site[:, c.SITE_DONE].copy(),
        1 - waited / now, part[:, c.OWNER].copy(), part[:, c.ON_DISK] == 1,
        int(state.totals[c.DISK_OPERATIONS]), int(state.totals[c.PRODUCED]), where,
    )  # fmt: skip
