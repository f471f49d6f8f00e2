"""A cluster in memory: populations ask, SWARM balances, Guard watches; one epoch is five seconds.

What a slot works is events times queries, cell by cell; statistics, searches and decisions are the
real ones. A request that Guard refuses changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from geoflux.balance.policy import Observed, SlotLoad
from geoflux.balance.reduction import Holding, slot_cost, slot_received
from geoflux.balance.requests import Reduction
from geoflux.balance.sharing import search
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.guard import Found, Guard, GuardTuning, Verdict, sense
from geoflux.plan import GridPlan, Partition
from geoflux.plan.changes import Merge
from geoflux.stats import TrioStat
from geoflux.workload.requests import REGISTER, SNAPSHOT, TERMINATE, Asked, Population

EPOCH = 5.0
SNAPSHOT_WORK = 40.0


@dataclass
class World:
    """Cities where events are."""

    seed: int
    cities: int = 60
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng((self.seed, 0))
        self.middles = self.rng.random((self.cities, 2)) * 0.9 + 0.05
        shares = np.arange(1, self.cities + 1) ** -0.8
        self.shares = shares / shares.sum()

    def sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        city = self.rng.choice(self.cities, count, p=self.shares)
        places = self.middles[city] + self.rng.normal(0, 0.015, (count, 2))
        places = np.clip(places, 0, np.nextafter(1.0, 0.0))
        return places[:, 0], places[:, 1]


class Loop:
    """Runs epochs; ``restarts`` puts Guard through JSON after each."""

    def __init__(
        self, populations: Sequence[Population], guard: GuardTuning | None, seed: int = 1,
        slots: int = 12, side: int = 200, events: int = 20_000, restarts: bool = False,
    ) -> None:  # fmt: skip
        self.world = World(seed)
        self.populations = populations
        self.guard = None if guard is None else Guard(guard)
        self.policy = SwarmPolicy(Tuning())
        self.plan = GridPlan.initial(side, side, slots)
        self.side, self.events, self.restarts = side, events, restarts
        self.state: dict = {}
        self.now = 0.0
        self.epoch = self.number = self.occasion = 0
        self.names: dict[str, int] = {}
        self.live: dict[int, int] = {}  # key of a query -> its row
        self.rows = np.zeros((0, 5))  # user, number, x, y, alive
        self.free: list[int] = []
        self.asked: list[tuple[int, int, float, float]] = []  # snapshots of this round
        self.queries = np.zeros(side * side)
        self.counts = np.zeros(side * side)
        self.work = np.zeros(side * side)
        self.holdings: dict[int, list[Holding]] = {}
        self.verdicts: list[Verdict] = []
        self.hotspots: list[dict] = []
        self.imbalance: list[float] = []
        self.changes = 0
        self.refused = 0

    # requests

    def _cell(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (y * self.side).astype(np.int64) * self.side + (x * self.side).astype(np.int64)

    def _take(self, asked: Asked) -> None:
        users = np.array(asked.names, object)[asked.user]
        refused = np.zeros(len(asked), bool)
        if self.guard is not None:
            at = np.array([asked.x, asked.y])
            ends = np.flatnonzero(asked.op == TERMINATE)
            placed = {int(k): i for i, k in enumerate(asked.key) if asked.op[i] == REGISTER}
            for i in ends:  # the catalogue knows where a query lies that ends
                key = int(asked.key[i])
                row = self.live.get(key)
                at[:, i] = self.rows[row, 2:4] if row is not None else at[:, placed.get(key, i)]
            refused = self.guard.receive(
                asked.op, users.tolist(), self.now, self.number, at * self.side
            )
            assert not (refused & (asked.op == TERMINATE)).any()
        self.refused += int(refused.sum())
        codes = np.array([self.names.setdefault(n, len(self.names)) for n in asked.names])
        cells = self._cell(asked.x, asked.y)
        kept = np.flatnonzero(~refused)
        need = int((asked.op[kept] == REGISTER).sum()) - len(self.free)
        if need > 0:
            old = len(self.rows)
            self.rows = np.vstack((self.rows, np.zeros((max(need, old), 5))))
            self.free += range(len(self.rows) - 1, old - 1, -1)
        add = []
        for i in kept:
            op, key = asked.op[i], int(asked.key[i])
            if op == TERMINATE:
                row = self.live.pop(key, None)
                if row is not None:
                    self.rows[row, 4] = 0
                    add.append((self._cell(*self.rows[row, 2:4].reshape(2, 1))[0], -1.0))
                    self.free.append(row)
            elif op == REGISTER:
                row = self.live[key] = self.free.pop()
                self.rows[row] = codes[asked.user[i]], self.number, asked.x[i], asked.y[i], 1
                self.number += 1
                add.append((cells[i], 1.0))
            elif op == SNAPSHOT:
                self.asked.append((int(codes[asked.user[i]]), self.number, asked.x[i], asked.y[i]))
                self.work[cells[i]] += SNAPSHOT_WORK
        if add:
            where, by = (np.array(values) for values in zip(*add, strict=True))
            np.add.at(self.queries, where.astype(np.int64), by)

    # slots

    def _owned(self, slot: int) -> list[Partition]:
        return [p for p in self.plan.partitions if p.slot == slot]

    def _closed(self) -> None:
        counts, work = (v.reshape(self.side, self.side) for v in (self.counts, self.work))
        self.holdings = {}
        for p in self.plan.partitions:
            area = np.s_[p.row0 : p.row1, p.col0 : p.col1]
            stat = TrioStat.empty(p)
            cells = np.arange(p.cells, dtype=np.int32)
            stat.receive_cells(cells, counts[area].ravel(), work[area].ravel())
            stat.close_round()
            self.holdings.setdefault(p.slot, []).append(Holding(p, stat))
        self.counts[:] = 0
        self.work[:] = 0

    def _sense(self, donor: int, holdings: list[Holding], round: int) -> None:
        assert self.guard is not None
        worst = max(holdings, key=lambda h: h.cost("work")).partition
        snapshots = np.array([(*s, 1) for s in self.asked], float).reshape(-1, 5)
        rows = np.vstack((self.rows[self.rows[:, 4] > 0], snapshots))
        cols, lines = rows[:, 2] * self.side, rows[:, 3] * self.side
        inside = (cols >= worst.col0) & (cols < worst.col1)
        inside &= (lines >= worst.row0) & (lines < worst.row1)
        rounds = self.guard.rounds.of(rows[inside, 1].astype(np.int64))
        found = Found(
            tuple(self.names), rows[inside, 0].astype(np.int64), rounds, cols[inside], lines[inside]
        )
        box = tuple(float(v) for v in worst.box)
        summary = sense(found, donor, self.occasion, box=box, round=round)
        hotspot = self.guard.sense(summary)
        counts = dict(zip(summary.users, summary.counts[:, :5].sum(axis=1).tolist(), strict=True))
        self.hotspots.append({"id": hotspot, "round": round, "now": self.now, "recent": counts})

    # an epoch

    def step(self) -> None:
        orders = self.policy.orders(self.now, self.state)
        start, self.now = self.now, self.now + EPOCH
        parts = [p.step(start, EPOCH, self.world.sample) for p in self.populations]
        self._take(Asked.joined(parts))
        here = np.bincount(self._cell(*self.world.sample(self.events)), minlength=self.side**2)
        work = here * (self.queries + 20.0)
        self.counts += here
        self.work += work
        loads = work.reshape(self.side, self.side)
        busy = [
            sum(loads[p.row0 : p.row1, p.col0 : p.col1].sum() for p in self._owned(slot)) * 1e-8
            for slot in range(self.plan.slots)
        ]
        self.imbalance.append(max(busy) / (sum(busy) / len(busy)))
        answers = {
            ask.donor: search(self.holdings.get(ask.donor, []), ask, self.policy.tuning)
            for ask in orders.asks
        }
        if orders.close:
            self._closed()
        told = []
        for slot in range(self.plan.slots):
            held = self.holdings.get(slot, [])
            cost = slot_cost(held, "work") if orders.close else None
            received = slot_received(held) if orders.close else None
            told.append(SlotLoad(slot, 1, 1, 1, busy[slot], 0, cost, received, answers.get(slot)))
        seen = Observed(self.epoch, self.now, tuple(told), orders.close, self.number)
        decision, self.state = self.policy.decide(seen, self.plan, self.state)
        moved = [c for c in decision.changes if not isinstance(c, Merge)]
        if moved:
            self.occasion += 1
        if self.guard is not None and moved:
            touched = {c.partition for c in moved}
            for donor, answer in answers.items():
                mine = {p.id for p in self._owned(donor)}
                if isinstance(answer, Reduction) and touched & mine:
                    self._sense(donor, self.holdings[donor], self.guard.rounds.current)
        for change in decision.changes:
            self.plan = self.plan.apply(change)
        self.changes += len(moved)
        self.epoch += 1
        if self.guard is not None and self.guard.is_due(self.now):
            self.verdicts.append(self.guard.close(self.now, self.number))
            self.asked = []
        if self.guard is not None and self.restarts:
            saved = json.loads(json.dumps(self.guard.to_dict()))
            self.guard = Guard.from_dict(self.guard.tuning, saved)

    def run(self, minutes: float) -> Loop:
        for _ in range(round(minutes * 60 / EPOCH)):
            self.step()
        return self

    def blocked(self) -> dict[str, float]:
        """Who is blocked, and since when."""
        assert self.guard is not None
        return {b.user: b.since for b in self.guard.blocks.listed()}
