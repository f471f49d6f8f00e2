"""One node while the rate of its stream rises and falls, and while its memory fills: figure 7.

A model: the policy and the plan are the real ones, clock and slots are not. A slot does so many
rows a second as a core takes in, what it does not get to waits; rows come from the places of the
weather, and every row leaves as many bytes as one of the real sketch does on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.parts import DEEPER, Part
from geoflux.balance.policy import Observed, SlotLoad
from geoflux.balance.synopsis_policy import SynopsisPolicy
from geoflux.balance.synopsis_tuning import SynopsisTuning
from geoflux.bench.figure_groups import Row, draw_rows
from geoflux.bench.figures import Curve, Mark, Words
from geoflux.bench.table import Bars
from geoflux.plan import PrefixPlan
from geoflux.spatial.geohash import codes
from geoflux.workload.weather import Weather

BARS: Bars = {"node_backlog_seconds_most": ("<=", 30.0), "node_memory_most": ("<=", 1.0)}
BITS = 10
Floats = npt.NDArray[np.float64]
_SECONDS = 300
_MOST_SLOTS = 16
SPEED = 400_000.0
"""Rows that a slot takes in a second, where that was not measured before."""


@dataclass
class Stage:
    """Slots that do ``speed`` rows a second; the first one is watched."""

    speed: float
    row_bytes: float = 0.0
    capacity: int | None = None
    policy: SynopsisPolicy = field(
        default_factory=lambda: SynopsisPolicy(SynopsisTuning(most_slots=_MOST_SLOTS))
    )
    plan: PrefixPlan = field(default_factory=lambda: PrefixPlan.initial(1, BITS, 1))
    held: Floats = field(default_factory=lambda: np.zeros(1 << BITS))
    waiting: Floats = field(default_factory=lambda: np.zeros(1 << BITS))
    state: dict[str, Any] = field(default_factory=dict)
    track: list[tuple[float, float, float, float, int]] = field(default_factory=list)
    """By second: rows that came to the first slot, rows it did, its backlog, its bytes; slots."""
    changes: list[tuple[int, str]] = field(default_factory=list)

    def run(self, rates: Floats) -> None:
        """One second with so many rows of each code."""
        loads = tuple(self._worked(slot, rates) for slot in range(self.plan.slots))
        first = loads[0]
        assert first.site is not None
        self.held += rates * self.row_bytes
        now = len(self.track)
        decision, self.state = self.policy.decide(
            Observed(now, float(now), loads), self.plan, self.state
        )
        for change in decision.changes:
            self.plan = self.plan.apply(change)
        if decision.changes:
            self.changes.append((now, decision.reason))
        self.track.append(
            (first.arrivals, first.events, first.waiting, first.site.bytes_held, self.plan.slots)
        )

    def _worked(self, slot: int, rates: Floats) -> SlotLoad:
        mine = self.plan.owners[self.plan.locate(np.arange(1 << BITS))] == slot
        work = np.where(mine, self.waiting + rates, 0.0)
        total = float(work.sum())
        done = min(total, self.speed)
        self.waiting[mine] = work[mine] * (1 - done / total if total else 0.0)
        owned = [p for p in self.plan.partitions if p.slot == slot]
        sizes = {p.id: int(self._of(p.area, self.held).sum()) for p in owned}
        site = SiteReport(slot, 0.0, dict.fromkeys(sizes, 0), self.capacity, sizes)
        return SlotLoad(
            slot, round(done), 0, 0, done / self.speed, site=site,
            arrivals=round(rates[mine].sum()), waiting=round(self.waiting[mine].sum()),
            parts={p.id: self._parts(p, rates) for p in owned},
        )  # fmt: skip

    def _of(self, area: tuple[int, int], numbers: Floats) -> Floats:
        code, bits = area
        return numbers[code << (BITS - bits) : (code + 1) << (BITS - bits)]

    def _parts(self, p: Any, rates: Floats) -> tuple[Part, ...]:
        bits = min(p.bits + DEEPER, BITS)
        rows, held = (
            self._of(p.area, numbers).reshape(-1, 1 << (BITS - bits)).sum(axis=1)
            for numbers in (rates, self.held)
        )
        first = p.code << (bits - p.bits)
        return tuple(
            Part(first + n, bits, round(came), int(size))
            for n, (came, size) in enumerate(zip(rows.tolist(), held.tolist(), strict=True))
            if round(came) or size
        )


def measure_node(seen: Weather, speed: float, row_bytes: float, figures: Path) -> dict[str, Any]:
    """Backlog under a rate that rises to twice what a core can do and falls again, and memory that
    fills at a constant rate; each with its own rule."""
    places = np.bincount(codes(seen.lon, seen.lat, BITS), minlength=1 << BITS) / len(seen)
    swell = [0.4 + 1.6 * math.sin(math.pi * t / _SECONDS) ** 2 for t in range(_SECONDS)]
    busy = Stage(speed)
    for share in swell:
        busy.run(places * speed * share)
    full = Stage(speed, row_bytes, capacity=int(80 * speed * row_bytes))
    for _ in range(_SECONDS):
        full.run(places * speed * 0.5)
    _draw(busy, full, figures)
    waits = [waiting / speed for _, _, waiting, _, _ in busy.track]
    out = [why for _, why in busy.changes if why.startswith("scale out")]
    return {
        "node_backlog_seconds_most": max(waits), "node_backlog_seconds_last": waits[-1],
        "node_scaled_out": len(out), "node_scaled_in": len(busy.changes) - len(out),
        "node_sketchlets_most": max(slots for *_, slots in busy.track),
        "node_sketchlets_last": busy.track[-1][-1],
        "node_memory_most": max(held for *_, held, _ in full.track) / (full.capacity or 1),
    }  # fmt: skip


def _draw(busy: Stage, full: Stage, figures: Path) -> None:
    x = list(range(_SECONDS))
    came, did, waiting, _, _ = (list(column) for column in zip(*busy.track, strict=True))
    note = "a model with the real policy; lines: scale out (orange), scale in (green)"
    words = Words("A node that gives regions away and takes them back", "seconds", "", note)
    draw_rows(
        figures / "synopsis-7-backlog.svg", words,
        [Row("rows a second", [Curve("came", x, came, "grey", style="line"),
                               Curve("done", x, did, style="line")]),
         Row("backlog", [Curve("rows that wait", x, waiting, "purple", style="line")])],
        _marks(busy),
    )  # fmt: skip
    share = [held / (full.capacity or 1) * 100 for *_, held, _ in full.track]
    note = "a model with the real policy; lines: scale out (orange)"
    words = Words("A node whose memory fills", "seconds", "", note)
    draw_rows(
        figures / "synopsis-7-memory.svg", words,
        [Row("% of memory", [Curve("in use", x, share, style="line")])], _marks(full),
    )  # fmt: skip


def _marks(stage: Stage) -> list[Mark]:
    return [
        Mark(float(at), "", "orange" if why.startswith("scale out") else "green")
        for at, why in stage.changes
    ]
