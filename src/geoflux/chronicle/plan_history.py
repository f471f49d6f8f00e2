"""Which plan held when: the layouts of a run, from its manifests.

A plan gets a new version also when nothing but its lineage is cut; a layout lasts from one change
of partitions or owners to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoflux.chronicle.decision_words import Change, changes_of
from geoflux.chronicle.epoch_series import Manifest, partition_checks
from geoflux.engine.summary import busy_seconds
from geoflux.errors import ConfigError
from geoflux.plan import GridPlan, ReplicatedPlan, plan_from_dict
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


@dataclass(frozen=True)
class Layout:
    """A plan, the epochs that ran under it (none, if it was decided on last), and the changes
    that made it (none, if the run began with it)."""

    version: int
    first_epoch: int
    epochs: tuple[Manifest, ...]
    changes: tuple[Change, ...] = ()

    def checks_per_epoch(self) -> dict[int, float]:
        """Mean checks of each partition in an epoch under it."""
        total = partition_checks(list(self.epochs))
        return {partition: checks / len(self.epochs) for partition, checks in total.items()}

    def busiest_over_mean(self, slots: int) -> float | None:
        """Busy time of the busiest slot over the mean; ``None`` if nothing ran."""
        return busiest_over_mean(self.epochs, slots)


def layouts(manifests: Sequence[Manifest]) -> list[Layout]:
    """All layouts of a run in order; at least one where there is an epoch."""
    if not manifests:
        return []
    found: list[Layout] = []
    version, first, start = manifests[0]["plan"], manifests[0]["epoch"], 0
    changes: tuple[Change, ...] = ()
    for place, m in enumerate(manifests, start=1):
        decided = tuple(changes_of(m))
        if decided:
            found.append(Layout(version, first, tuple(manifests[start:place]), changes))
            version, first, start, changes = m["next_plan"], m["epoch"] + 1, place, decided
    return [*found, Layout(version, first, tuple(manifests[start:]), changes)]


def spread(found: Sequence[Layout], most: int) -> list[Layout]:
    """The first, the last, and those in between evenly, at most so many.

    >>> [l.version for l in spread([Layout(v, v, ()) for v in range(1, 12)], 4)]
    [1, 4, 8, 11]
    """
    if len(found) <= most:
        return list(found)
    places = np.round(np.linspace(0, len(found) - 1, most)).astype(int)
    return [found[place] for place in places]


def busiest_over_mean(manifests: Sequence[Manifest], slots: int) -> float | None:
    """Busy time of the busiest slot over the mean of all; ``None`` if nobody was busy. Every epoch
    counts the same: a slow first one would drown the others. A slot that was not there all the time
    counts by the epochs in which it was."""
    most = busy_seconds(list(manifests), slots).size
    shares, there = np.zeros(most), np.zeros(most)
    for m in manifests:
        busy = busy_seconds([m], len(m["slots"]))
        if busy.sum() > 0:
            shares[: busy.size] += busy / busy.mean()
            there[: busy.size] += 1
    known = shares[there > 0] / there[there > 0]
    return float(known.max() / known.mean()) if known.size else None


def asked_epoch(log: EpochLog, out: str | Path, epoch: int | None) -> tuple[int, int, int]:
    """The epoch that is asked for (``None``: the one that comes next), the one that comes next, and
    the version of the plan that is asked for with it."""
    last = log.last()
    following = 0 if last is None else last + 1
    number = following if epoch is None else epoch
    if not 0 <= number <= following:
        known = "it has run none yet" if last is None else f"it has run 0 to {last}"
        raise ConfigError(
            f"epoch {number} of {out} does not exist; {known}, and {following} comes next"
        )
    if number < following:
        return number, following, log.manifest(number)["plan"]
    return number, following, 1 if last is None else log.manifest(last)["next_plan"]


def plan_of(store: Store, version: int) -> GridPlan | ReplicatedPlan | None:
    """A version of the plan of a run of standing queries, if it is there."""
    found: GridPlan | ReplicatedPlan | None = read_plan(store, version)
    return found


def read_plan(store: Store, version: int) -> Any:
    """A version of a run's plan, of whichever kind, if it is there."""
    name = f"plans/{version:08d}.json"
    return plan_from_dict(store.read_json(name)) if store.exists(name) else None
