"""`geoflux bench guard`: attacks on the balancer, with and without Guard; figures 6.14 to 6.23.

The timelines run the real balancing and Guard on a simulated clock and 22 simulated slots, which
are charged what the engine's kernels were measured to take just before. The population is a quarter
of the dissertation's, each query standing for four; `--quick` has a tenth and one seed. What Guard
takes of an epoch and what encryption costs are measured on the real engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from geoflux.bench import guard_engine
from geoflux.bench.encryption import encryption_slowdown
from geoflux.bench.figures import FOLDER
from geoflux.bench.guard_activity import measure_activity, measure_groups
from geoflux.bench.guard_bench import FULL, QUICK, Bench, average
from geoflux.bench.guard_costs import measured_costs
from geoflux.bench.guard_engine import guard_share
from geoflux.bench.guard_overhead import overheads
from geoflux.bench.guard_runs import Outcome
from geoflux.bench.guard_variants import measure_crowds, measure_variants
from geoflux.bench.table import Bars, check_parts

BARS: Bars = {
    "false_positives": ("<=", 0), "false_negatives": ("<=", 0), "detect_rounds_mean": ("<=", 1),
    "block_minutes_mean": ("<=", 2.5), "malicious_hotspots_before_block_mean": ("<=", 2.5),
    "throughput_vs_no_attack_mean": (">=", 0.93), "throughput_vs_no_attack_worst": (">=", 0.90),
    "unguarded_throughput_1200": ("<=", 0.65), "availability_mean": (">=", 0.90),
    "innocent_crowds_blocked": ("<=", 0), "receive_us_per_request": ("<=", 4),
    "detector_ms_110_users": ("<=", 5), "detector_seconds_100k_users": ("<=", 2),
    "guard_share_of_epoch": ("<=", 0.02),
}  # fmt: skip
_FOR_THE_FULL_SIZE = (
    "throughput_vs_no_attack_mean", "throughput_vs_no_attack_worst", "unguarded_throughput_1200",
    "false_negatives", "guard_share_of_epoch",
)  # fmt: skip
QUICK_BARS: Bars = {name: bar for name, bar in BARS.items() if name not in _FOR_THE_FULL_SIZE}
"""Twelve minutes end before a slow attack has come to its second hotspot or the mean recovers."""


def run_benchmark(
    console: Console, quick: bool = False, figures: Path = FOLDER, parts: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything, one after the other; returns the figures by name and draws into ``figures``."""
    check_parts(parts, PARTS)
    sizes = QUICK if quick else FULL
    wanted = parts or tuple(PARTS)
    bench = Bench(console, sizes, figures, {"quick": quick})
    if any(part in _SIMULATED for part in wanted):
        _calibrate(bench)
    for part in wanted:
        PARTS[part](bench)
    if bench.attacks:
        both = ([*bench.attacks[mode].values()] for mode in ("robust", "published"))
        bench.result |= detection(*both)
    return bench.result


def _calibrate(bench: Bench) -> None:
    """The simulated slots are charged what this machine's kernels take."""
    costs = measured_costs()
    bench.sizes = replace(bench.sizes, scale=replace(bench.sizes.scale, costs=costs))
    bench.result |= {
        "population_share": bench.sizes.scale.share, "cost_event_ns": costs.event * 1e9,
        "cost_check_ns": costs.check * 1e9, "cost_request_us": costs.request * 1e6,
        "cost_moved_us": costs.moved * 1e6,
    }  # fmt: skip


def _overhead(bench: Bench) -> None:
    bench.result |= overheads(bench.figures, bench.result["quick"])


def _engine(bench: Bench) -> None:
    """What Guard takes of an epoch."""
    quick = bench.result["quick"]
    bench.result |= guard_share(guard_engine.QUICK if quick else guard_engine.FULL)


def _encryption(bench: Bench) -> None:
    """What it costs that nothing can be read on the way."""
    quick = bench.result["quick"]
    with tempfile.TemporaryDirectory(prefix="geoflux-bench-") as folder:
        found = encryption_slowdown(bench.console, Path(folder), quick, spark=not quick)
    bench.result |= found


def detection(guarded: Sequence[Outcome], published: Sequence[Outcome]) -> dict[str, Any]:
    """What all attacks together show, attacker by attacker."""
    figures: dict[str, Any] = {}
    for prefix, outcomes in (("", guarded), ("published_", published)):
        if outcomes:
            figures[f"{prefix}false_positives"] = sum(len(one.wrongly) for one in outcomes)
            figures[f"{prefix}false_negatives"] = sum(len(one.missed) for one in outcomes)
            figures[f"{prefix}blocked"] = sum(one.blocked for one in outcomes)
    figures["malicious_hotspots"] = sum(one.made for one in guarded)
    figures["detect_rounds_mean"] = average(guarded, "detect_rounds")
    figures["malicious_hotspots_before_block_mean"] = average(guarded, "before_block")
    figures["plan_changes_before_block_mean"] = average(guarded, "changes_before")
    return figures


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "activity": measure_activity, "groups": measure_groups, "variants": measure_variants,
    "crowds": measure_crowds, "overhead": _overhead, "engine": _engine,
    "encryption": _encryption,
}  # fmt: skip
"""By name; the last two are measured on the real engine."""
_SIMULATED = ("activity", "groups", "variants", "crowds")
