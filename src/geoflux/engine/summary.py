"""The summary of a run: totals, rates and latencies, from its manifests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from geoflux.config import Config
from geoflux.state.epoch_log import EpochLog
from geoflux.state.held import Held
from geoflux.state.store import Store


@dataclass(frozen=True)
class Summary:
    """What a run did. Rates are over the time from the first opening to the last commit; latency
    is from an event's arrival (its epoch's opening, where the source is not paced) to the commit
    that made its matches count."""

    epochs: int
    received: int
    processed: int
    quarantined: int
    carried_out: int
    control_rejected: int
    matches: int
    late: int
    aggregates: int
    snapshots: int
    retained: int
    live_queries: int
    registered: int
    ended: int
    seconds: float
    events_per_second: float
    checks_per_second_core: float
    latency_p50_seconds: float | None
    latency_p99_seconds: float | None
    busiest_over_mean: float | None
    plan_version: int
    slots: int
    """The most that any epoch had."""
    balance: str
    reasons: dict[str, int]
    blocked: int = 0
    """Users whose requests Guard refuses at the end, or an operator."""
    refused: int = 0
    """Requests that were refused because of that."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def summarised(config: Config, store: Store) -> Summary:
    """The summary of all committed epochs."""
    manifests = list(EpochLog(store).manifests())

    def total(name: str) -> int:
        return sum(m[name] for m in manifests)

    reasons: dict[str, int] = {}
    for m in manifests:
        for code, count in (*m["reasons"].items(), *m["control_rejected"].items()):
            reasons[code] = reasons.get(code, 0) + count
    busy = busy_seconds(manifests, config.engine.slots)
    even = evenness(manifests, config.engine.slots)
    checks = sum(s["checks"] for m in manifests for s in m["slots"])
    elapsed = sum(m["committed"] - m["opened"] for m in manifests)
    span = manifests[-1]["committed"] - manifests[0]["opened"] if manifests else 0.0
    p50, p99 = latencies(manifests)
    return Summary(
        len(manifests), total("received"), total("processed"), total("quarantined"),
        manifests[-1]["carried_out"] if manifests else 0,
        sum(sum(m["control_rejected"].values()) for m in manifests),
        total("matches"), total("late"), total("aggregates"), total("snapshots"),
        sum(Held(*held).rows for held in manifests[-1]["held"]) if manifests else 0,
        manifests[-1]["live_queries"] if manifests else 0,
        total("registered"), total("ended"), span,
        total("processed") / elapsed if elapsed else 0.0,
        checks / float(busy.sum()) if busy.sum() else 0.0,
        p50, p99, even,
        manifests[-1]["next_plan"] if manifests else 1,
        busy.size, config.engine.balance, dict(sorted(reasons.items())),
        (manifests[-1].get("guard") or {"blocked": 0})["blocked"] if manifests else 0,
        reasons.get("blocked_user", 0),
    )  # fmt: skip


def busy_seconds(manifests: list[dict[str, Any]], slots: int) -> Any:
    """Busy seconds of every slot over all epochs, without the time to load state; of more than
    ``slots`` where there have been more."""
    busy = np.zeros(max([slots, *(s["slot"] + 1 for m in manifests for s in m["slots"])]))
    for m in manifests:
        for s in m["slots"]:
            busy[s["slot"]] += s["busy_seconds"] - s["load_seconds"]
    return busy


def evenness(manifests: list[dict[str, Any]], slots: int) -> float | None:
    """Busy time of the busiest slot over the mean; ``None`` if nobody was busy. Where the number of
    slots has changed, a slot counts by the epochs in which it was there."""
    busy = busy_seconds(manifests, slots)
    decided = (change for m in manifests for change in m.get("decision", {}).get("changes", ()))
    if any(change["kind"] == "resize" for change in decided):
        there = np.zeros(busy.size)
        for m in manifests:
            there[[s["slot"] for s in m["slots"]]] += 1
        busy = busy[there > 0] / there[there > 0]
    mean = float(busy.mean()) if busy.size else 0.0
    return float(busy.max()) / mean if mean else None


def latencies(manifests: list[dict[str, Any]]) -> tuple[float | None, float | None]:
    """Median and 99th percentile over events, taking arrivals within an epoch as even."""
    values, weights = [], []
    for m in manifests:
        if m["processed"] == 0:
            continue
        first, last = m.get("arrivals") or (m["opened"], m["opened"])
        share = np.linspace(0, 1, 21)
        values.append(m["committed"] - (first + (last - first) * share))
        weights.append(np.full(share.size, m["processed"] / share.size))
    if not values:
        return None, None
    value, weight = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(value)
    cumulative = np.cumsum(weight[order]) / weight.sum()
    p50, p99 = (float(value[order][np.searchsorted(cumulative, q)]) for q in (0.5, 0.99))
    return p50, p99
