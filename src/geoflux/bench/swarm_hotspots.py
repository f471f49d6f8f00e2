"""The five hotspots of `geoflux bench swarm`, and what each addition of geoflux brings.

What counts is the time in which there is a hotspot, from its first epoch on: the registration of
its queries and all that SWARM moves are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean, median
from typing import Any

from geoflux.bench import swarm_scenarios as scenes
from geoflux.bench.emulated import EPOCH_SECONDS, Seen, attainable, capability, latency_ratio
from geoflux.bench.figures import Curve, Words, draw_curves
from geoflux.bench.swarm_bench import COLOURS, Bench, table_of
from geoflux.config import Config

_STEP, _GROWING = "uniform_step", "uniform_normal"
_ROUND = 3
"""Epochs of a round."""
_FIGURES = {
    "uniform_normal": ("6.6", "A hotspot that comes and goes"),
    "normal_normal": ("6.7", "A dense hotspot that comes and goes"),
    "uniform_step": ("6.8", "A hotspot that is there at once"),
    "two_overlapping": ("6.9", "Two hotspots that overlap in time"),
    "two_in_sequence": ("6.10", "Two hotspots, one after the other"),
}
_ADDITIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "work_cost": (_STEP, {"cost": "published"}),
    "pairs": (_STEP, {"pairs": 1}),
    "multiway": (_STEP, {"multiway": False}),
    "forecast": (_GROWING, {"forecast": 1.0}),
}
"""The settings without each addition, and the scenario in which it should show; the forecast is off
by default and is switched on instead."""


def measure_hotspots(bench: Bench) -> None:
    """Every scenario under the plans that are compared in it (figures 6.6 to 6.11)."""
    table = table_of(
        "22 slots, during the hotspot: thousand events a second",
        "scenario", "uniform", "history", "published", "swarm", "swarm / history", "attainable",
    )  # fmt: skip
    scenarios = scenes.hotspots(bench.sizes.spot_queries)
    if bench.result["quick"]:
        scenarios = {_STEP: scenarios[_STEP]}
    figures: dict[str, list[float]] = {"units_of_work": [], "latency": [], "attainable": []}
    swarms, epochs = {}, bench.sizes.epochs
    for scenario, spots in scenarios.items():
        runs = {
            strategy: bench.run(f"{scenario}, {strategy}", _config(bench, strategy, spots), epochs)
            for strategy in _compared(scenario)
        }
        hot = scenes.during(spots, epochs)
        history, swarm = runs["history"][hot], runs["swarm"][hot]
        swarms[scenario] = swarm
        figures["units_of_work"].append(capability(swarm) / capability(history))
        figures["latency"].append(latency_ratio(history, swarm))
        figures["attainable"].append(capability(attainable(history)) / capability(history))
        bench.result[f"{scenario}_vs_history"] = figures["units_of_work"][-1]
        if scenario == _STEP:
            ratio = capability(runs["published"][hot]) / capability(history)
            bench.result["published_uniform_step_vs_history"] = ratio
            bench.result["rounds_to_recover_step"] = rounds_to_recover(swarm)
        rates = {name: f"{capability(seen[hot]) / 1000:,.0f}" for name, seen in runs.items()}
        table.add_row(
            scenario, *(rates.get(name, "") for name in list(COLOURS)[1:]),
            f"{figures['units_of_work'][-1]:.2f}", f"{figures['attainable'][-1]:.2f}",
        )  # fmt: skip
        _draw_timeline(bench, scenario, runs)
        if scenario == _GROWING:
            _draw_utilisation(bench, runs)
    bench.console.print(table)
    for name, values in figures.items():
        bench.result[f"hotspot_{name}_vs_history"] = fmean(values)
    if not bench.result["quick"]:
        _measure_additions(bench, swarms)


def _compared(scenario: str) -> tuple[str, ...]:
    """All of them in one scenario, the two that matter in the others."""
    if scenario == _STEP:
        return ("uniform", "history", "published", "swarm")
    return ("history", "swarm")


def _config(
    bench: Bench, strategy: str, spots: list[dict[str, Any]], **more: Any
) -> Config:  # fmt: skip
    sizes = bench.sizes
    return scenes.simulated(
        strategy, sizes.queries, sizes.events, sizes.epochs, spots, days=0.25, swarm=more
    )


def rounds_to_recover(hot: list[Seen]) -> int:
    """Rounds until 90 % of the rate that the same run settles at during the hotspot."""
    rounds = [hot[k : k + _ROUND] for k in range(0, len(hot) - _ROUND + 1, _ROUND)]
    rates = [median(e.rate for e in epochs) for epochs in rounds]
    settled = median(rates[-max(len(rates) // 3, 1) :])
    return next((k + 1 for k, rate in enumerate(rates) if rate >= 0.9 * settled), len(rates))


def _measure_additions(bench: Bench, swarms: Mapping[str, list[Seen]]) -> None:
    """SWARM with one addition switched off, or on, against SWARM as it is by default."""
    table = table_of(
        "22 slots, during the hotspot: what single additions change", "setting", "scenario",
        "thousand events a second", "by default", "changes of the plan", "by default",
    )  # fmt: skip
    for name, (scenario, settings) in _ADDITIONS.items():
        spots = scenes.hotspots(bench.sizes.spot_queries)[scenario]
        hot = scenes.during(spots, bench.sizes.epochs)
        shown = ", ".join(f"{key} = {value}" for key, value in settings.items())
        config = _config(bench, "swarm", spots, **settings)
        seen = bench.run(f"{scenario}, {shown}", config, bench.sizes.epochs)[hot]
        default = swarms[scenario]
        table.add_row(
            shown, scenario, *(f"{capability(run) / 1000:,.0f}" for run in (seen, default)),
            *(str(sum(e.changes for e in run)) for run in (seen, default)),
        )  # fmt: skip
        gain = capability(default) / capability(seen)
        bench.result[f"gain_of_{name}"] = 1.0 / gain if name == "forecast" else gain
    bench.console.print(table)


def _by_rounds(seen: list[Seen], value: Callable[[Seen], float]) -> tuple[list[float], list[float]]:
    """Minutes, and the mean of a round; the first round, in which queries come, is left out."""
    rounds = range(_ROUND, len(seen) - _ROUND + 1, _ROUND)
    minutes = [k * EPOCH_SECONDS / 60 for k in rounds]
    return minutes, [fmean(value(e) for e in seen[k : k + _ROUND]) for k in rounds]


def _draw_timeline(bench: Bench, scenario: str, runs: Mapping[str, list[Seen]]) -> None:
    number, title = _FIGURES[scenario]
    words = Words(
        f"{title} (figure {number})", "minutes", "units of work a second",
        "22 slots, mean of a round; the document's curves are lost, its text says who wins",
    )  # fmt: skip
    curves = [
        Curve(name, *_by_rounds(seen, lambda e: e.rate * e.queries), COLOURS[name])
        for name, seen in runs.items()
    ]
    draw_curves(bench.figures / f"figure-{number.replace('.', '-')}.svg", words, curves)


def _draw_utilisation(bench: Bench, runs: Mapping[str, list[Seen]]) -> None:
    """How busy the slots are while the busiest is busy all the time, and what comes in then."""
    shares: dict[str, Callable[[Seen], float]] = {
        "busiest": lambda e: 100.0,
        "mean": lambda e: 100.0 * fmean(e.busy) / max(e.busy),
        "idlest": lambda e: 100.0 * min(e.busy) / max(e.busy),
    }
    traffic: dict[str, Callable[[Seen], float]] = {
        "mean": lambda e: fmean(e.bytes_in) / max(e.busy) / 1e6,
        "most": lambda e: max(e.bytes_in) / max(e.busy) / 1e6,
    }
    drawn = (
        ("a", "Processor utilisation", "percent", shares),
        ("b", "Network utilisation", "MB a second into a slot", traffic),
    )
    for letter, title, unit, lines in drawn:
        words = Words(
            f"{title} (figure 6.11{letter})", "minutes", unit,
            "22 slots at full load, uniform hotspot; the document's curves are lost",
        )  # fmt: skip
        curves = [
            Curve(f"{name}, {line}", *_by_rounds(seen, value), COLOURS[name], line != "mean")
            for name, seen in runs.items()
            for line, value in lines.items()
            if line != "busiest"
        ]
        draw_curves(bench.figures / f"figure-6-11{letter}.svg", words, curves)
