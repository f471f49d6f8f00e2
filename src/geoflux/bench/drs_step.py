"""Applications whose load changes while they run, with scaling on: what is seen and done, and when.

Runs on Spark with emulated services, like `drs_spark.py`. Sojourn times are those of all inputs,
by when they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from geoflux.bench.drs_apps import Allocation, App, config_of, write_inputs
from geoflux.engine.epochs import Manifest
from geoflux.scale.acks import Trees
from geoflux.scale.decisions import ScaleDecision
from geoflux.scale.sojourns import began_at
from geoflux.topology_api import run_topology, verify_topology

Floats = npt.NDArray[np.float64]
_SEED = 12


@dataclass(frozen=True)
class Timeline:
    """A run over time; all times in seconds since it began."""

    came: Floats
    """When each input came, ascending."""
    took: Floats
    """Its total sojourn time."""
    decisions: Sequence[ScaleDecision]
    began: float
    slots: Mapping[str, Sequence[tuple[float, int]]] = field(default_factory=dict)
    """By operator when its epochs were opened, and with how many slots."""
    inputs: int = 0
    clean: bool = False

    @property
    def changes(self) -> list[ScaleDecision]:
        """Decisions that were carried out."""
        return [d for d in self.decisions if d.carried_out]

    def mean(self, start: float, stop: float) -> float:
        """Of inputs that came in a stretch of time."""
        here = (self.came >= start) & (self.came < stop)
        return float(self.took[here].mean()) if here.any() else float("nan")

    def reallocations(self) -> list[float]:
        """Seconds from each change until the last operator that it is about had committed an epoch
        with its new slots."""
        found = []
        for change in self.changes:
            at, last = change.at - self.began, 0.0
            for name, count in change.after.items():
                if count != change.before[name]:
                    with_new = [t for t, k in self.slots[name] if t > at and k == count]
                    last = max(last, with_new[0] - at) if with_new else float("nan")
            found.append(last)
        return found

    def spike(self) -> float:
        """The longest mean of 5 s within 20 s after a change over the mean of the 20 s before;
        the worst of all changes. 1: nothing is felt."""
        worst = 1.0
        for change in self.changes:
            at = change.at - self.began
            before = self.mean(at - 20, at)
            after = [self.mean(at + k, at + k + 5) for k in range(0, 20, 5)]
            worst = max(worst, float(np.nanmax([*after, before])) / before)
        return worst


def timeline(
    app: App, session: SparkSession, folder: Path, name: str, start: Allocation,
    rates: Sequence[tuple[float, float]], **scale: Any,
) -> Timeline:  # fmt: skip
    """One run with scaling on; ``rates`` are stretches of (seconds, inputs a second)."""
    inputs, out = folder / f"{name}-in", folder / f"{name}-out"
    count = write_inputs(inputs, rates, _SEED)
    heard: dict[str, list[Manifest]] = {part.name: [] for part in app.parts}
    decisions: list[ScaleDecision] = []
    run_topology(
        app.topology(start), config_of(app, inputs, **scale), out, session,
        lambda operator, m: heard[operator].append(m), emulated=app.emulated,
        on_decision=lambda decision, _: decisions.append(decision),
    )  # fmt: skip
    came, took = sojourns(heard)
    began = float(came.min()) if len(came) else 0.0
    order = np.argsort(came)
    slots = {
        n: [(m["committed"] - began, len(m["slots"])) for m in some] for n, some in heard.items()
    }
    clean = verify_topology(out, app.operators).is_clean
    return Timeline(came[order] - began, took[order], decisions, began, slots, count, clean)


def sojourns(heard: Mapping[str, Sequence[Manifest]]) -> tuple[Floats, Floats]:
    """When inputs came and what they took, of all that were followed to their end."""
    trees, came, took = Trees(), [np.empty(0)], [np.empty(0)]
    for some in heard.values():
        position = 0
        for m in some:
            roots = np.array(m.get("roots", ()), np.uint64).reshape(-1, 3)
            began = began_at(m, roots[:, 2].astype(np.float64), position)
            position = m.get("position") or position
            acks = np.array(m.get("acks", ()), np.uint64).reshape(-1, 2)
            at = np.full(len(acks), m["committed"])
            trees, first = trees.begun(roots[:, 0], roots[:, 1], began)
            trees, then = trees.acknowledged(acks[:, 0], acks[:, 1], at)
            came += [first.began, then.began]
            took += [first.sojourns, then.sojourns]
    return np.concatenate(came), np.concatenate(took)


def step_figures(seen: Timeline, steps: tuple[float, float], longest: float) -> dict[str, Any]:
    """What a step up and a step down came to: ``steps`` are when they happened, ``longest`` the
    target."""
    up, down = steps
    out = [d for d in seen.changes if d.action == "scale_out" and d.at - seen.began >= up]
    back = [d for d in seen.changes if d.action == "scale_in" and d.at - seen.began >= down]
    settled = out[-1].at - seen.began + 20 if out else up
    return {
        "shortage_seconds": out[0].at - seen.began - up if out else None,
        "overprovision_seconds": back[0].at - seen.began - down if back else None,
        "sojourn_after_shortage": seen.mean(settled, down),
        "longest_met_again": float(bool(out) and seen.mean(settled, down) <= longest),
        "processors_given_back": (
            sum(back[0].before.values()) - sum(back[-1].after.values()) if back else 0
        ),
        "changes": len(seen.changes),
        "reallocation_seconds": median(seen.reallocations()) if seen.changes else None,
        "sojourn_spike": seen.spike(),
        "tuples_lost_or_doubled": abs(seen.inputs - len(seen.took)) + (not seen.clean),
    }
