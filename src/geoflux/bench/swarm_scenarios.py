"""What `geoflux bench swarm` runs: strategies, the day-and-night stream, five hotspots.

After the dissertation (004), section 6.3: people in the cities of the contiguous United States,
tweets by day and by night; hotspots are squares of 15 % of the side, lower left and upper right,
with up to 40 % of the events (20 % each for two), whose queries come within one minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geoflux.bench.emulated import EPOCH_SECONDS
from geoflux.config import Config

SLOTS = 22
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "replicated": {"engine": {"balance": "replicated"}},
    "uniform": {"engine": {"balance": "uniform"}},
    "history": {"engine": {"balance": "history"}},
    "published": {"engine": {"balance": "swarm"}, "swarm": {"mode": "published"}},
    "swarm": {"engine": {"balance": "swarm"}},
}
"""``published`` is SWARM to the letter, ``swarm`` with what geoflux adds."""
_BOUNDS = [-125.0, 24.0, -66.0, 50.0]
LOWER_LEFT, _UPPER_RIGHT = [0.02, 0.05], [0.83, 0.80]


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    sweep: tuple[int, ...]
    sweep_events: int
    """Events of an epoch while the number of queries is varied."""
    sweep_epochs: int
    events: int
    """Events of an epoch in the other runs."""
    epochs: int
    queries: int
    spot_queries: int
    taxi_events: int
    """Events of an epoch of taxis."""
    taxi_queries: int
    wall_events: int
    wall_queries: int
    wall_spot_queries: int


FULL = Sizes(
    (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000), 300_000, 30,
    150_000, 144, 1_000_000, 1_000_000, 150_000, 1_000_000, 20_000_000, 500_000, 2_000_000,
)  # fmt: skip
QUICK = Sizes((200_000,), 50_000, 12, 50_000, 24, 100_000, 100_000, 20_000, 50_000, 0, 0, 0)


def spot(at: list[float], start: float, stop: float, peak: float, **more: Any) -> dict[str, Any]:
    """A hotspot as the settings have it."""
    return {"at": at, "side": 0.15, "start": start, "stop": stop, "peak": peak, **more}


def hotspots(queries: int) -> dict[str, list[dict[str, Any]]]:
    """The five scenarios of figures 6.6 to 6.10; each has these many queries altogether."""
    two = queries // 2
    return {
        "uniform_normal": [spot(LOWER_LEFT, 0.25, 0.85, 0.4, queries=queries)],
        "normal_normal": [
            spot(LOWER_LEFT, 0.25, 0.85, 0.4, inside="normal", queries=queries)
        ],
        "uniform_step": [
            spot(LOWER_LEFT, 0.25, 0.85, 0.4, intensity="step", queries=queries)
        ],
        "two_overlapping": [
            spot(LOWER_LEFT, 0.25, 0.70, 0.2, queries=two),
            spot(_UPPER_RIGHT, 0.40, 0.85, 0.2, queries=two),
        ],
        "two_in_sequence": [
            spot(LOWER_LEFT, 0.25, 0.55, 0.2, queries=two),
            spot(_UPPER_RIGHT, 0.55, 0.85, 0.2, queries=two),
        ],
    }  # fmt: skip


def during(spots: list[dict[str, Any]], epochs: int) -> slice:
    """The epochs in which a scenario has a hotspot."""
    first = min(s["start"] for s in spots)
    last = max(s["stop"] for s in spots)
    return slice(round(first * epochs), round(last * epochs))


def simulated(
    strategy: str, queries: int, events: int, epochs: int,
    spots: list[dict[str, Any]] | None = None, days: float = 0.5, slots: int = SLOTS,
    swarm: Mapping[str, Any] | None = None,
) -> Config:  # fmt: skip
    """A run of the simulator over so many days; with 0 the load never changes."""
    length = epochs * EPOCH_SECONDS
    chosen = STRATEGIES[strategy]
    return Config.from_dict(
        {
            "space": {"bounds": _BOUNDS, "grid": [1000, 1000]},
            "simulate": {
                "region": "us", "rate": round(events / EPOCH_SECONDS), "queries": queries,
                "query_rate": 0, "time_speed": days * 86_400 / length, "hotspots": spots or [],
            },
            "engine": {"slots": slots, "epoch_events": events, **chosen["engine"]},
            "swarm": {**chosen.get("swarm", {}), **(swarm or {})},
            "output": {"matches": "counts"},
            "run": {"duration": f"{length}s"},
        }
    )  # fmt: skip
