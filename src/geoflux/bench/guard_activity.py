"""More and more activity, more and more attackers: figures 6.14 to 6.22."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from geoflux.bench import guard_figures as draw
from geoflux.bench.guard_bench import ATTACK_MINUTE, Bench, average, mean_rate, over_time
from geoflux.bench.guard_cluster import Placed
from geoflux.bench.guard_runs import Outcome, Scene, pooled, recovery_minutes
from geoflux.bench.swarm_bench import table_of
from geoflux.workload.attackers import Attack

_PLACED: tuple[Placed, ...] = ("stay", "remove")
"""What may become of what blocked users had placed, besides expiring."""
_LAST = 30.0
"""Minutes that are told where throughput never came back."""


def measure_activity(bench: Bench) -> None:
    """Figures 6.14 to 6.20 and 6.22: more and more activity of ten attackers."""
    rates = bench.sizes.rates
    calm = bench.runs("no attack", Scene())
    rows: dict[str, list[Any]] = {name: [] for name in (
        "extra", "guarded", "unguarded", "ratio", "bare", "detect", "block", "back", "with",
        "without", *_PLACED,
    )}  # fmt: skip
    table = table_of(
        "Ten attackers: throughput as a share of the run with as much more normal activity",
        "queries a second", "Guard", "worst seed", "no Guard", "available", "least, a minute",
        "blocked after minutes", "recovered after",
    )  # fmt: skip
    for rate in rates:
        told = f"{rate} more queries a second"
        extra = bench.runs(f"{told}, normal users", Scene(extra=float(rate)))
        attack = Attack(rate=float(rate))
        guarded, _ = bench.attacked(f"{told}, attackers", attack)
        bare = bench.runs(f"{told}, attackers", Scene(attack), None)
        left = {
            placed: bench.runs(f"{told}, what they placed: {placed}", Scene(attack, placed=placed))
            for placed in _PLACED
        }
        ratios, bites = _shares(guarded, extra), _shares(bare, extra)
        back = [
            recovery_minutes(a.throughput, c.throughput, ATTACK_MINUTE)
            for a, c in zip(guarded, extra, strict=True)
        ]
        for name, value in (
            ("extra", fmean(map(mean_rate, extra))), ("guarded", fmean(map(mean_rate, guarded))),
            ("unguarded", fmean(map(mean_rate, bare))), ("ratio", ratios), ("bare", fmean(bites)),
            ("detect", average(guarded, "detect_rounds")), ("back", back),
            ("block", average(guarded, "block_minutes")),
            ("with", pooled(guarded, "availability")), ("without", pooled(bare, "availability")),
            *((placed, fmean(_shares(some, extra))) for placed, some in left.items()),
        ):  # fmt: skip
            rows[name].append(value)
        known = [b for b in back if b is not None]
        table.add_row(
            f"{rate}", f"{fmean(ratios):.3f}", f"{min(ratios):.3f}", f"{fmean(bites):.3f}",
            f"{fmean(rows['with'][-1]):.3f}", f"{min(rows['with'][-1]):.3f}",
            f"{rows['block'][-1]:.2f}", f"{fmean(known):.1f}" if known else "never",
        )  # fmt: skip
        draw.timeline(
            bench.figures, rate, *(over_time(some) for some in (calm, extra, guarded, bare))
        )  # fmt: skip
    bench.console.print(table)
    everything = [ratio for some in rows["ratio"] for ratio in some]
    available = [value for some in rows["with"] for value in some]
    back = [value for some in rows["back"] for value in some]
    bench.result |= {
        "throughput_vs_no_attack_mean": fmean(everything),
        "throughput_vs_no_attack_worst": min(everything),
        **{f"unguarded_throughput_{r}": b for r, b in zip(rates, rows["bare"], strict=True)},
        **{
            f"throughput_{r}_placed_{placed}": value
            for placed in _PLACED for r, value in zip(rates, rows[placed], strict=True)
        },
        "availability_mean": fmean(available), "availability_min": min(available),
        "unguarded_availability_mean": fmean(v for some in rows["without"] for v in some),
        "recovery_minutes": fmean([v for v in back if v is not None] or [_LAST]),
        "never_recovered": sum(value is None for value in back),
    }  # fmt: skip
    draw.throughputs(bench.figures, rates, rows["extra"], rows["guarded"], rows["unguarded"])
    draw.availability(bench.figures, rates, rows["with"], rows["without"])
    draw.times(
        bench.figures, "6.20", "Until attackers are found, by activity",
        "malicious queries a second", rates, rows["detect"], rows["block"],
    )  # fmt: skip
    recovered = [fmean([v for v in some if v is not None] or [_LAST]) for some in rows["back"]]
    draw.recovery(bench.figures, rates, recovered)


def _shares(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> list[float]:
    """Mean throughput over that of other runs, seed by seed."""
    return [mean_rate(a) / mean_rate(b) for a, b in zip(outcomes, others, strict=True)]


def measure_groups(bench: Bench) -> None:
    """Figure 6.21: more and more attackers with the same activity."""
    detect, block = [], []
    for users in bench.sizes.groups:
        outcomes, _ = bench.attacked(f"{users} attackers", Attack(users=users))
        detect.append(average(outcomes, "detect_rounds"))
        block.append(average(outcomes, "block_minutes"))
    bench.result["block_minutes_mean"] = fmean(block)
    draw.times(
        bench.figures, "6.21", "Until attackers are found, by their number", "attackers",
        bench.sizes.groups, detect, block,
    )  # fmt: skip
