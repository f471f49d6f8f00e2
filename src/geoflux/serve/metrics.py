"""``/metrics`` for Prometheus and ``/health``: how the run and the server are doing, in numbers.

Counters count since the server started. Names of users are in none of them.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from geoflux.engine.summary import latencies
from geoflux.serve.limits import ASGI, Message, Receive, Scope, Send
from geoflux.serve.parts import Parts

_WINDOW_SECONDS = 60.0
_UNMATCHED = "(none)"


@dataclass
class HttpCounts:
    """Requests by method, route and status, and the time that they took."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(frozen=True)
class Counting:
    """Counts the requests of an ASGI application."""

    app: ASGI
    counts: HttpCounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", _UNMATCHED)
            method = scope["method"] if route != _UNMATCHED else _UNMATCHED
            self.counts.requests[method, route, status] += 1
            self.counts.seconds[route] += time.perf_counter() - began


def health(parts: Parts) -> dict[str, Any]:
    """Whether the server lives, and how old the newest epoch is."""
    recent = parts.follower.recent
    newest = recent[-1] if recent else None
    return {
        "status": "stuck" if parts.follower.fault else "ok",
        "run": "following" if parts.run.is_there else "waiting",
        "last_epoch": None if newest is None else newest["epoch"],
        "last_commit_age_seconds": None if newest is None
        else max(0.0, parts.follower.clock() - newest["committed"]),
    }  # fmt: skip


def metrics(parts: Parts, http: HttpCounts) -> str:
    """All figures, as Prometheus reads them."""
    follower = parts.follower
    lines: list[str] = []

    def put(name: str, kind: str, doc: str, values: Iterable[tuple[str, float | None]]) -> None:
        told = [
            f"geoflux_{name}{labels} {value:.10g}" for labels, value in values if value is not None
        ]
        if told:
            lines.extend((f"# HELP geoflux_{name} {doc}", f"# TYPE geoflux_{name} {kind}", *told))

    recent = [m for m in follower.recent if m["committed"] > follower.clock() - _WINDOW_SECONDS]
    newest = follower.recent[-1] if follower.recent else None
    put("last_epoch", "gauge", "The newest epoch that counts.",
        [("", None if newest is None else newest["epoch"])])  # fmt: skip
    put("last_commit_timestamp_seconds", "gauge", "When it was committed.",
        [("", None if newest is None else newest["committed"])])  # fmt: skip
    for name, doc in _TOTALS.items():
        put(f"{name}_total", "counter", doc, [("", float(follower.totals[name]))])
    span = recent[-1]["committed"] - recent[0]["opened"] if recent else 0.0
    rate = sum(m["processed"] for m in recent) / span if span > 0 else 0.0
    put("events_per_second", "gauge", "Events processed, over the last minute.", [("", rate)])
    p50, p99 = latencies(recent)
    put("latency_seconds", "gauge", "From arrival to commit, over the last minute.",
        [('{quantile="0.5"}', p50), ('{quantile="0.99"}', p99)])  # fmt: skip
    if newest is not None:
        put("live_queries", "gauge", "Standing queries.", [("", newest.get("live_queries"))])
        put("backlog_rows", "gauge", "Rows handed on to the next epoch.",
            [("", newest.get("carried_out", 0))])  # fmt: skip
        put("plan_version", "gauge", "The plan of the next epoch.", [("", newest.get("next_plan"))])
        busy = [(f'{{slot="{s["slot"]}"}}', s.get("busy_seconds")) for s in newest["slots"]]
        put("slot_busy_seconds", "gauge", "Busy time of a slot in the newest epoch.", busy)
        events = [(f'{{slot="{s["slot"]}"}}', s.get("processed")) for s in newest["slots"]]
        put("slot_events", "gauge", "Events of a slot in the newest epoch.", events)
        guard = newest.get("guard")
        put("blocked_users", "gauge", "Users whose requests Guard refuses.",
            [("", None if guard is None else guard["blocked"])])  # fmt: skip
    states = [(f'{{state="{state}"}}', float(n)) for state, n in follower.registry.counts()]
    put("subscriptions", "gauge", "Subscriptions placed here, by state.", states)
    put("streams", "gauge", "Open streams of matches.", [("", float(parts.seats.taken.total()))])
    put("match_reads_total", "counter", "Epochs whose matches were read from files.",
        [("", float(parts.history.reads))])  # fmt: skip
    put("http_requests_total", "counter", "Requests.",
        [(f'{{method="{m}",route="{r}",status="{s}"}}', float(n))
         for (m, r, s), n in sorted(http.requests.items())])  # fmt: skip
    put("http_request_seconds_total", "counter", "Time that requests took.",
        [(f'{{route="{r}"}}', n) for r, n in sorted(http.seconds.items())])  # fmt: skip
    return "\n".join(lines) + "\n"


_TOTALS = {
    "epochs": "Epochs.", "received": "Events received.", "processed": "Events processed.",
    "quarantined": "Events quarantined.", "matches": "Matches.", "aggregates": "Rows of windows.",
    "late": "Late events.", "registered": "Queries that came.", "ended": "Queries that ended.",
    "control_rejected": "Control records refused.", "changes": "Changes of the plan.",
}  # fmt: skip
