"""Attackers who hide, and innocent users who look like attackers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from geoflux.bench.guard_bench import CROWDED, Bench, average
from geoflux.bench.guard_runs import CROWDS, Scene, run_scene
from geoflux.bench.swarm_bench import table_of
from geoflux.guard.tuning import Mode
from geoflux.workload.attackers import VARIANTS, Attack

_CROWD_MINUTES = 15.0
"""In which crowds come, stay and go."""


def measure_variants(bench: Bench) -> None:
    """Attackers who hide."""
    table = table_of(
        "Attackers who hide", "variant", "attackers", "hotspots made", "blocked", "missed",
        "missed, published", "blocked after minutes", "hotspots before",
    )  # fmt: skip
    for name in bench.sizes.variants:
        crowd = CROWDS["arriving"].gathering if name == CROWDED else None
        attack = Attack(first=(0.5, 0.5)) if name == CROWDED else VARIANTS[name]
        outcomes, published = bench.attacked(name, attack, crowd)
        missed = sum(len(one.missed) for one in published)
        table.add_row(
            name, str(attack.users * len(outcomes)), str(sum(one.made for one in outcomes)),
            str(sum(one.blocked for one in outcomes)),
            str(sum(len(one.missed) for one in outcomes)), str(missed),
            f"{average(outcomes, 'block_minutes'):.2f}",
            f"{average(outcomes, 'before_block'):.2f}",
        )  # fmt: skip
    bench.console.print(table)


def measure_crowds(bench: Bench) -> None:
    """Innocent ones, and normal users who do more: nobody is to be blocked."""
    scenes: Mapping[str, Scene] = {**CROWDS, "more_activity": Scene(extra=1200.0)}
    minutes = min(bench.sizes.scale.minutes, _CROWD_MINUTES)
    scale = replace(bench.sizes.scale, minutes=minutes)
    table = table_of(
        "Innocent crowds", "crowd", "runs", "hotspots", "blocked", "blocked, published"
    )
    blocked: dict[Mode, int] = {"robust": 0, "published": 0}
    for name, scene in scenes.items():
        counts: dict[Mode, int] = {"robust": 0, "published": 0}
        hotspots = 0
        for seed in bench.sizes.crowd_seeds:
            for mode in counts:
                if mode == "published" and seed not in bench.sizes.seeds:
                    continue
                bench.console.print(f"[dim]crowd {name}, {mode}, seed {seed}")
                one = run_scene(scene, mode, seed, scale)
                counts[mode] += len(one.wrongly)
                hotspots += one.hotspots if mode == "robust" else 0
        for mode, count in counts.items():
            blocked[mode] += count
        table.add_row(
            name, str(len(bench.sizes.crowd_seeds)), str(hotspots), str(counts["robust"]),
            str(counts["published"]),
        )  # fmt: skip
    bench.console.print(table)
    bench.result["innocent_crowds_blocked"] = blocked["robust"]
    bench.result["published_innocent_crowds_blocked"] = blocked["published"]
