"""Runs over time (:class:`geoflux.bench.drs_step.Timeline`) as what figures 8 and 9 show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geoflux.bench.drs_figures import Changing, Stepping
from geoflux.bench.drs_step import Timeline
from geoflux.scale.decisions import shown


def changing(name: str, seen: Timeline, every: float = 5.0) -> Changing:
    """Mean sojourn times of so many seconds each, where inputs came, and the changes."""
    times, means = [], []
    end = float(seen.came[-1]) if len(seen.came) else 0.0
    for start in np.arange(0.0, end, every).tolist():
        mean = seen.mean(start, start + every)
        if np.isfinite(mean):
            times.append(start + every / 2)
            means.append(mean)
    changes = [(change.at - seen.began, shown(change.after)) for change in seen.changes]
    return Changing(name, times, means, changes)


def stepping(
    seen: Timeline, rates: Sequence[tuple[float, float]], target: tuple[float, float],
    every: float = 5.0,
) -> Stepping:  # fmt: skip
    """The same with ``rates`` as stretches of (seconds, inputs a second), the ``target`` as T_min
    and T_max, and the processors that epochs really had."""
    starts = np.cumsum([0.0, *(seconds for seconds, _ in rates)]).tolist()
    inputs = [(start, rate) for start, (_, rate) in zip(starts, rates, strict=False)]
    shortest, longest = target
    return Stepping(
        changing("", seen, every), inputs, processors(seen), longest, shortest, starts[-1]
    )


def processors(seen: Timeline) -> list[tuple[float, float]]:
    """Slots of all operators together, from when on."""
    now = {name: counts[0][1] for name, counts in seen.slots.items() if counts}
    out = [(0.0, float(sum(now.values())))]
    events = sorted((at, name, k) for name, counts in seen.slots.items() for at, k in counts)
    for at, name, k in events:
        if now[name] != k:
            now[name] = k
            out.append((at, float(sum(now.values()))))
    return out
