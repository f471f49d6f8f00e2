"""What the parts of `geoflux bench guard` have in common: sizes, runs that are made once, means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from geoflux.bench.guard_runs import Outcome, Scale, Scene, pooled, run_scene
from geoflux.guard.tuning import Mode
from geoflux.workload.attackers import Attack, Gathering

RATES = (150, 300, 600, 1200)
GROUPS = (1, 5, 10, 20, 40)
_GROUP = 10
ATTACK_MINUTE = 5
CROWDED = "in_a_crowd"


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    scale: Scale
    seeds: tuple[int, ...]
    crowd_seeds: tuple[int, ...]
    rates: tuple[int, ...] = RATES
    groups: tuple[int, ...] = GROUPS
    variants: tuple[str, ...] = ("rotating", "joining_late", "low_and_slow", "mimicking",
                                 "snapshots", CROWDED)  # fmt: skip


FULL = Sizes(Scale(), (1, 2, 3, 4, 5), tuple(range(1, 21)))
QUICK = Sizes(
    Scale(0.1, 12.0), (1,), (1,), (1200,), (_GROUP,), ("rotating",)
)  # fmt: skip


@dataclass
class Bench:
    """One run of the benchmark; figures are added to ``result`` by name."""

    console: Console
    sizes: Sizes
    figures: Path
    result: dict[str, Any] = field(default_factory=dict)
    attacks: dict[Mode, dict[Any, Outcome]] = field(default_factory=dict)
    """What came of attacks, by mode; each once."""
    _known: dict[Any, Outcome] = field(default_factory=dict)

    def runs(self, told: str, scene: Scene, mode: Mode | None = "robust") -> list[Outcome]:
        """The outcomes of all seeds; what was run before is not run again."""
        outcomes = []
        for seed in self.sizes.seeds:
            key = (scene, mode, seed)
            if key not in self._known:
                self.console.print(f"[dim]{told}, {mode or 'no Guard'}, seed {seed}")
                self._known[key] = run_scene(scene, mode, seed, self.sizes.scale)
            outcomes.append(self._known[key])
            # What becomes of their queries afterwards is no further attack.
            if scene.attack is not None and mode is not None and scene.placed == "expire":
                self.attacks.setdefault(mode, {})[key] = self._known[key]
        return outcomes

    def attacked(
        self, told: str, attack: Attack, crowd: Gathering | None = None
    ) -> tuple[list[Outcome], list[Outcome]]:
        """An attack in robust and in published mode."""
        scene = Scene(attack, crowd)
        return self.runs(told, scene), self.runs(told, scene, "published")


def average(outcomes: Sequence[Outcome], name: str) -> float:
    """Of all attackers; 0 if there is none to tell of."""
    values = pooled(outcomes, name)
    return fmean(values) if values else 0.0


def mean_rate(outcome: Outcome) -> float:
    return fmean(outcome.throughput)


def over_time(outcomes: Sequence[Outcome]) -> list[float]:
    """Minute by minute, the mean of the seeds."""
    return [fmean(values) for values in zip(*(one.throughput for one in outcomes), strict=True)]
