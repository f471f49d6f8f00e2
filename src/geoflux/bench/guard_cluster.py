"""A simulated cluster under attack: populations ask, SWARM balances, Guard watches.

Statistics, searches, decisions and Guard are the real ones, on a clock of their own; what a slot
takes for its work is reckoned with costs that were measured (:class:`Costs`). An epoch is five
seconds. Nothing waits for anything, as on the engine: slots that are asked answer in the epoch
after, and Guard's rounds are closed between epochs.

What it leaves out: the network, and what routing and the driver cost: attackers do not change it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.balance.policy import Observed, SlotLoad
from geoflux.balance.reduction import Holding, slot_cost, slot_received
from geoflux.balance.requests import Reduction
from geoflux.balance.sharing import search
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.bench.guard_slots import Carried, Costs, Sensed, Size
from geoflux.bench.guard_store import QueryStore
from geoflux.bench.guard_world import World
from geoflux.guard import Found, Guard, GuardTuning, Verdict, sense
from geoflux.plan import GridPlan, Partition
from geoflux.plan.changes import Move, Split
from geoflux.stats import TrioStat
from geoflux.workload.attackers import Attackers
from geoflux.workload.requests import Asked, Population

EPOCH_SECONDS = 5.0
Placed = Literal["expire", "stay", "remove"]
Floats = npt.NDArray[np.float64]
_ROUND = 15.0
"""Seconds of a round of the balancer, which its statistics are about."""
_MADE = 0.5
"""Share of what a donor has above the others that must be attackers' for it to be their doing."""


@dataclass
class Cluster:
    """Runs epochs. ``attackers``, one of the populations, is for the record only: who really was
    behind a hotspot. With ``restarts`` Guard goes through JSON after each epoch."""

    populations: Sequence[Population]
    guard_tuning: GuardTuning | None
    seed: int = 1
    size: Size = field(default_factory=Size)
    costs: Costs = field(default_factory=Costs)
    attackers: Attackers | None = None
    restarts: bool = False
    placed: Placed = "expire"
    """What becomes of what blocked users had placed: it ends when they would have ended it, it
    stays for good, or it is removed at once."""

    def __post_init__(self) -> None:
        size = self.size
        self.world = World(self.seed, side=size.side)
        self.guard = None if self.guard_tuning is None else Guard(self.guard_tuning)
        self.policy = SwarmPolicy(Tuning())
        self.plan = GridPlan.initial(size.side, size.side, size.slots)
        self.store = QueryStore(size.side)
        self.state: dict[str, Any] = {}
        self.now, self.epoch, self.occasion = 0.0, 0, 0
        cells = size.side**2
        self._counts, self._work = np.zeros(cells), np.zeros(cells)
        self._unit, self._other = np.zeros(cells), np.zeros(cells)
        self._moving = np.zeros(size.slots)
        self._offered = 0.0
        self._holdings: dict[int, list[Holding]] = {}
        self._owners()
        self.carried: list[Carried] = []
        self.sensed: list[Sensed] = []
        self.verdicts: list[tuple[float, Verdict]] = []
        self.changes = self.refused = 0

    def run(self, minutes: float) -> Cluster:
        """So many minutes of the simulated clock."""
        for _ in range(round(minutes * 60 / EPOCH_SECONDS)):
            self.step()
        return self

    def blocked(self) -> dict[str, float]:
        """Who is blocked, and since when."""
        return {} if self.guard is None else {b.user: b.since for b in self.guard.blocks.listed()}

    def step(self) -> None:
        """One epoch."""
        orders = self.policy.orders(self.now, self.state)
        start, self.now = self.now, self.now + EPOCH_SECONDS
        if self.epoch % self.size.epochs_between == 0:
            self.world.pass_time(EPOCH_SECONDS * self.size.epochs_between)
        parts = [p.step(start, EPOCH_SECONDS, self.world.sample) for p in self.populations]
        self._take(Asked.joined(parts))
        busy = self._process()
        answers = {
            ask.donor: search(self._holdings.get(ask.donor, []), ask, self.policy.tuning)
            for ask in orders.asks
        }
        if orders.close:
            self._close_round()
        told = []
        for slot in range(self.size.slots):
            held = self._holdings.get(slot, [])
            cost = slot_cost(held, "work") if orders.close else None
            received = slot_received(held) if orders.close else None
            told.append(SlotLoad(slot, 1, 1, 1, busy[slot], 0, cost, received, answers.get(slot)))
        seen = Observed(self.epoch, self.now, tuple(told), orders.close, self.store.number)
        decision, self.state = self.policy.decide(seen, self.plan, self.state)
        moved = [c for c in decision.changes if isinstance(c, Move | Split)]
        if moved:
            self.occasion += 1
            touched = {c.partition for c in moved}
            for donor, answer in answers.items():
                mine = {p.id for p in self._owned(donor)}
                if isinstance(answer, Reduction) and touched & mine:
                    self._sense(donor)
        self._change(decision.changes)
        self.changes += len(moved)
        self.epoch += 1
        self._judge()

    def _take(self, asked: Asked) -> None:
        refused = np.zeros(len(asked), np.bool_)
        if self.guard is not None:
            users = pa.DictionaryArray.from_arrays(asked.user, list(asked.names))
            at = self.store.located(asked)
            refused = self.guard.receive(asked.op, users, self.now, self.store.number, at)
            self.refused += int(refused.sum())
            if self.placed == "stay":
                refused |= self._of_blocked(asked)
        came, went, once = self.store.take(asked, refused)
        if self.epoch == 0:
            return  # what is there at the start has been there before
        cells = len(self._other)
        requests = np.bincount(came, minlength=cells) + np.bincount(went, minlength=cells)
        self._other += self.costs.request * requests
        if len(once):
            kept = self._offered * self.costs.retained * self.world.density()
            self._other += self.costs.check * kept * np.bincount(once, minlength=cells)

    def _of_blocked(self, asked: Asked) -> npt.NDArray[np.bool_]:
        """Requests of blocked users, whatever they are."""
        assert self.guard is not None
        blocked = self.guard.blocks.blocked
        return np.array([name in blocked for name in asked.names], np.bool_)[asked.user]

    def _process(self) -> Floats:
        """The work of an epoch by slot; notes what the cluster could have carried."""
        density = self.world.density()
        costs = self.costs
        self._unit = density * (costs.event + costs.check * self.store.per_cell)
        if not self._offered:
            self._offered = self.size.load * self.size.slots / float(self._unit.sum())
        events = self._offered * EPOCH_SECONDS
        slots = self.size.slots
        per_event = np.bincount(self._owner, self._unit, minlength=slots)
        other = np.bincount(self._owner, self._other, minlength=slots) + self._moving
        free = np.maximum(1 - other / EPOCH_SECONDS, 0.0)
        capability = float((free / np.maximum(per_event, 1e-30)).min())
        self.carried.append(Carried(self.now, capability, self._offered))
        self._counts += events * density
        self._work += events * self._unit + self._other
        self._other = np.zeros(len(self._other))
        self._moving = np.zeros(slots)
        return np.asarray(events * per_event + other)

    def _owned(self, slot: int) -> list[Partition]:
        return [p for p in self.plan.partitions if p.slot == slot]

    def _owners(self) -> None:
        raster = np.zeros((self.size.side, self.size.side), np.int64)
        for p in self.plan.partitions:
            raster[p.row0 : p.row1, p.col0 : p.col1] = p.slot
        self._owner = raster.ravel()

    def _change(self, changes: Sequence[Any]) -> None:
        """Queries that get another slot cost the one that gives and the one that takes them."""
        if not changes:
            return
        for change in changes:
            self.plan = self.plan.apply(change)
        before = self._owner
        self._owners()
        moved = np.flatnonzero(before != self._owner)
        seconds = self.costs.moved * self.store.per_cell[moved]
        for owner in (before, self._owner):
            self._moving += np.bincount(owner[moved], seconds, minlength=self.size.slots)

    def _close_round(self) -> None:
        side = self.size.side
        counts, work = (v.reshape(side, side) for v in (self._counts, self._work))
        self._holdings = {}
        for p in self.plan.partitions:
            area = np.s_[p.row0 : p.row1, p.col0 : p.col1]
            stat = TrioStat.empty(p)
            cells = np.arange(p.cells, dtype=np.int32)
            stat.receive_cells(cells, counts[area].ravel(), work[area].ravel())
            stat.close_round()
            self._holdings.setdefault(p.slot, []).append(Holding(p, stat))
        self._counts[:] = 0
        self._work[:] = 0

    def _sense(self, donor: int) -> None:
        worst = max(self._holdings[donor], key=lambda h: h.cost("work")).partition
        user, numbers, at = self.store.inside(worst.box)
        names = tuple(self.store.names)
        if self.guard is None:
            return
        rounds = self.guard.rounds
        found = Found(names, user, rounds.of(numbers), at[0], at[1])
        box = (float(worst.col0), float(worst.row0), float(worst.col1), float(worst.row1))
        summary = sense(found, donor, self.occasion, box=box, round=rounds.current)
        hotspot = self.guard.sense(summary)
        recent = summary.counts[:, :5].sum(axis=1).tolist()
        told = dict(zip(summary.users, recent, strict=True))
        aimed, made = self._truth(donor, found, rounds.current)
        self.sensed.append(
            Sensed(
                hotspot, rounds.current, self.now, self.occasion, donor, worst.box, told, aimed,
                made,
            )
        )  # fmt: skip

    def _truth(self, donor: int, found: Found, round: int) -> tuple[dict[str, int], bool]:
        """Who really aimed at this, and whether it is their doing."""
        if self.attackers is None or found.x is None or found.y is None:
            return {}, False
        hostile = np.array([n in self.attackers.names for n in found.names], np.bool_)
        at_target = np.zeros(len(found.user), np.bool_)
        reach = self.attackers.attack.side / 2 * self.size.side + 1e-6
        for _, x, y in self.attackers.targets:
            near = np.abs(found.x - x * self.size.side) <= reach
            at_target |= near & (np.abs(found.y - y * self.size.side) <= reach)
        theirs = hostile[found.user] & at_target & (found.round > round - 5)
        counts = np.bincount(found.user[theirs], minlength=len(found.names))
        aimed = {found.names[i]: int(counts[i]) for i in np.flatnonzero(counts)}
        cells = self.store.cells(np.array([found.x[theirs], found.y[theirs]]))
        density = float(self.world.density()[cells].sum())
        seconds = _ROUND * self._offered * self.costs.check * density
        if self.attackers.attack.snapshots:  # each costs once, and of those counted few are new
            counted = min(5 * 60.0, max(self.now - self.attackers.attack.start, _ROUND))
            seconds *= self.costs.retained / counted
        loads = {slot: slot_cost(held, "work") for slot, held in self._holdings.items()}
        others = [load for slot, load in loads.items() if slot != donor]
        excess = loads[donor] - sum(others) / max(len(others), 1)
        return aimed, bool(aimed and _MADE * excess <= seconds)

    def _judge(self) -> None:
        if self.guard is None:
            return
        if self.guard.is_due(self.now):
            verdict = self.guard.close(self.now, self.store.number)
            self.verdicts.append((self.now, verdict))
            self.store.forget_snapshots(self.guard.rounds.marks[0])
            if self.placed == "remove":
                self._other += self.costs.request * self.store.remove(self.guard.blocks.blocked)
        if self.restarts:
            saved = json.loads(json.dumps(self.guard.to_dict()))
            self.guard = Guard.from_dict(self.guard.tuning, saved)
