"""Epochs as arrays for plots: one entry per epoch, or per few epochs where there are very many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.engine.summary import latencies

Floats = npt.NDArray[np.float64]
Masked = Any  # np.ma is not typed
Manifest = dict[str, Any]

MOST_POINTS = 400
STAGES = ("open", "route", "execute", "rest", "commit")


@dataclass(frozen=True)
class EpochSeries:
    """What happened when. ``groups`` are consecutive epochs that are drawn as one.

    Time starts at the first opening. Where a run lay still between two epochs for very long (it
    was stopped, and resumed later) that pause is left out of the time axis and named in
    ``pauses``: (where on the axis, seconds left out).
    """

    groups: tuple[tuple[Manifest, ...], ...]
    starts: Floats
    ends: Floats
    pauses: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, manifests: list[Manifest], most_points: int = MOST_POINTS) -> EpochSeries:
        """Epochs in order, in at most so many groups of equal size."""
        opened = np.array([m["opened"] for m in manifests], dtype=np.float64)
        committed = np.array([m["committed"] for m in manifests], dtype=np.float64)
        shift, pauses = _without_pauses(opened, committed)
        size = max(1, -(-len(manifests) // most_points))
        firsts = np.arange(0, len(manifests), size)
        lasts = np.minimum(firsts + size, len(manifests)) - 1
        groups = tuple(tuple(manifests[a : b + 1]) for a, b in zip(firsts, lasts, strict=True))
        return cls(groups, (opened - shift)[firsts], (committed - shift)[lasts], pauses)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def epochs_per_point(self) -> int:
        """Epochs in a group (the last one may have fewer)."""
        return len(self.groups[0]) if self.groups else 0

    @cached_property
    def edges(self) -> Floats:
        """Where steps begin, and where the last one ends: one more than there are groups."""
        edges = np.append(self.starts, self.ends[-1:])
        # Clocks may stand still or step back; steps may not.
        return np.maximum.accumulate(edges)

    @cached_property
    def numbers(self) -> Floats:
        """Edges of the groups as epoch numbers."""
        firsts = [group[0]["epoch"] for group in self.groups]
        return np.array([*firsts, self.groups[-1][-1]["epoch"] + 1], dtype=np.float64)

    @cached_property
    def at_work_seconds(self) -> Floats:
        """From opening to commit, without the time between epochs."""
        return self._each(lambda m: max(m["committed"] - m["opened"], 0.0))

    @cached_property
    def processed(self) -> Floats:
        """Events processed."""
        return self._each(lambda m: m["processed"])

    def percentiles(self) -> tuple[Masked, Masked]:
        """Median and 99th percentile of latency; masked where no event was processed."""
        pairs = [latencies(list(group)) for group in self.groups]
        p50, p99 = (
            np.ma.masked_invalid([np.nan if p[i] is None else p[i] for p in pairs]) for i in (0, 1)
        )
        return p50, p99

    def busy(self, slots: int) -> Masked:
        """Busy seconds, slot by group; masked where a slot gave no report."""
        table: Masked = np.ma.array(np.zeros((slots, len(self))), mask=True)
        for column, group in enumerate(self.groups):
            for report in (s for m in group for s in m["slots"] if s["slot"] < slots):
                seconds = report["busy_seconds"] - report["load_seconds"]
                known = table[report["slot"], column]
                table[report["slot"], column] = seconds + (0 if known is np.ma.masked else known)
        return table

    def busy_per_epoch(self, slots: int) -> Masked:
        """Mean busy seconds in an epoch, so that a last group with fewer does not look idle."""
        return self.busy(slots) / np.array([len(group) for group in self.groups])

    def busiest_over_mean(self, slots: int, span: int = 1) -> Masked:
        """Busy time of the busiest slot over the mean of those that were there, over ``span``
        groups up to each (all count the same); masked where nobody was busy."""
        table = self.busy(slots)
        busy, mean = table.filled(0.0), table.mean(axis=0).filled(0.0)
        shares = np.divide(busy, mean, out=np.zeros_like(busy), where=mean > 0)
        total = np.cumsum(np.pad(np.vstack([shares, mean > 0]), ((0, 0), (span, 0))), axis=1)
        window = total[:, span:] - total[:, :-span]
        window, groups = window[:-1], window[-1]  # groups: those in which somebody was busy
        return np.ma.masked_where(groups < 0.5, window.max(axis=0)) / np.maximum(groups, 1.0)

    def stages(self) -> dict[str, Floats]:
        """Seconds of an epoch's stages (means within a group), each no less than 0, together the
        time from opening to commit. Stages that no epoch was timed for are left out."""
        rows = [[_stages(m) for m in group] for group in self.groups]
        means = np.array([np.mean(group, axis=0) for group in rows]).T
        timed = any("job_seconds" in m for group in self.groups for m in group)
        return {
            name: values
            for name, values in zip(STAGES, means, strict=True)
            if timed or name not in ("open", "commit")
        }

    def _each(self, of: Any) -> Floats:
        return np.array([sum(of(m) for m in group) for group in self.groups], dtype=np.float64)


def _stages(m: Manifest) -> tuple[float, ...]:
    """Routing tasks run side by side: their mean stands for all. So do slots: the busiest one is
    what the epoch waits for. What neither explains is the rest."""
    total = max(m["committed"] - m["opened"], 0.0)
    opening = min(m.get("open_seconds") or 0.0, total)
    job = min(m.get("job_seconds") or total - opening, total - opening)
    busiest = min(max((s["busy_seconds"] for s in m["slots"]), default=0.0), job)
    route = min(m.get("route_seconds", 0.0) / max(len(m.get("slices", ())), 1), job - busiest)
    return opening, route, busiest, job - busiest - route, total - opening - job


def _without_pauses(opened: Floats, committed: Floats) -> tuple[Floats, tuple[Any, ...]]:
    """What to take off each epoch's times, and the pauses that this leaves out."""
    if opened.size == 0:
        return opened, ()
    gaps = opened[1:] - committed[:-1]
    usual = float(np.median(np.diff(opened))) if opened.size > 1 else 0.0
    long = gaps > max(30.0, 20 * usual)
    taken = np.concatenate(([0.0], np.cumsum(np.where(long, gaps, 0.0)))) + opened[0]
    places = np.flatnonzero(long)
    return taken, tuple((float(opened[i + 1] - taken[i + 1]), float(gaps[i])) for i in places)


def partition_checks(manifests: list[Manifest]) -> dict[int, int]:
    """Checks of each partition over some epochs."""
    checks: dict[int, int] = {}
    for partition, amount in _pieces(manifests):
        checks[partition] = checks.get(partition, 0) + amount
    return checks


def _pieces(manifests: list[Manifest]) -> Iterator[tuple[int, int]]:
    for m in manifests:
        for slot in m["slots"]:
            for partition, (_, checks) in slot.get("per_partition", {}).items():
                yield int(partition), checks
