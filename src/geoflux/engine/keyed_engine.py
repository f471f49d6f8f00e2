"""The engine of a keyed operator: the same epochs as for standing queries, over hashed keys, or
over places by their prefixes.

Opened, worked on, committed; a crash anywhere replays the epoch. States and rows that were handed
back are references in the manifest, so that moving, splitting or merging partitions moves nothing
but ownership.

Invariant: received + carried in = processed + quarantined + carried out, in every epoch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from geoflux.balance.back_pressure import next_limit
from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.policy import Decision, Observed, Policy, SlotLoad, Static
from geoflux.engine.epochs import Epochs, Manifest, begun_with, read_plan, write_plan
from geoflux.engine.keyed_heirs import shared_out
from geoflux.engine.keyed_holdings import KeyedHoldings
from geoflux.engine.keyed_parts import parts_of
from geoflux.engine.keyed_roots import check_rows
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_streams import check_streams
from geoflux.engine.keyed_task import Budget, Emulated, KeyedReport, KeyedTask
from geoflux.engine.rooted import Sampling, told
from geoflux.engine.staging import publish, published_name, sweep
from geoflux.engine.task import RouteReport
from geoflux.engine.wanted import WantedSlots, asked_for, with_slots
from geoflux.errors import IntegrityError, OperatorError
from geoflux.operators.keyed import Divisible, Operator
from geoflux.plan import Change, HashPlan, PrefixPlan, plan_from_dict, succession
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

_NOT_SUMMED = ("result_files", "states", "carried", "sizes", "tuples", "spilled", "streams",
               "acks", "parts")  # fmt: skip
KeyedPlan = HashPlan | PrefixPlan
"""What a keyed operator is partitioned by: hashed keys, or prefixes of places."""


@dataclass(frozen=True)
class KeyedSetting:
    """What a keyed engine runs with."""

    store: Store
    operator: Operator[Any]
    intake: KeyedIntake
    policy: Policy = field(default_factory=Static)
    budgets: Mapping[int, Budget] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    """Of slots that :attr:`budgets` does not name; those that come later, for example."""
    wanted_slots: WantedSlots | None = None
    """Asked at every commit; ``None``: the number of slots stays."""
    record_input: bool = False
    emulated: Emulated = field(default_factory=Emulated)
    sampling: Sampling | None = None
    """Which rows are followed through the application; ``None``: none."""
    epoch_events: int = 1 << 40
    """Events of an epoch at most."""
    clock: Callable[[], float] = time.time


@dataclass(frozen=True)
class KeyedOpened:
    """An epoch under way."""

    task: KeyedTask
    started: float


class KeyedEngine(Epochs):
    """Epochs of a keyed operator, one after another, on a run's directory."""

    def __init__(self, setting: KeyedSetting, plan: KeyedPlan) -> None:
        super().__init__(setting.store)
        _check_operator(setting.operator, plan)
        self._setting = setting
        self._plan = plan
        self._held = KeyedHoldings()
        self._policy_state: dict[str, Any] = {}
        self._carried_rows = 0
        self.epoch_events = setting.epoch_events

    @classmethod
    def recovered(cls, setting: KeyedSetting, first_plan: Callable[[], KeyedPlan]) -> KeyedEngine:
        """The engine as its directory left it; ``first_plan`` is asked only in a new one."""
        check_streams(setting.operator)
        check_rows(setting.operator)
        store, log = setting.store, EpochLog(setting.store)
        last = log.last()
        if last is None:
            engine = cls(setting, plan_from_dict(begun_with(store, first_plan)))
        else:
            manifest = log.manifest(last)
            publish(store, manifest["files"])
            engine = cls(setting, plan_from_dict(read_plan(store, manifest["next_plan"])))
            engine._take_over(manifest)
        sweep(store, engine._segments())
        return engine

    def _take_over(self, manifest: Manifest) -> None:
        self.last = manifest["epoch"]
        self._held = KeyedHoldings.from_dict(manifest)
        self._policy_state = manifest["policy"]
        self._carried_rows = manifest["carried_out"]
        self.epoch_events = min(manifest["next_epoch_events"], self._setting.epoch_events)

    @property
    def plan(self) -> KeyedPlan:
        """The plan of the next epoch."""
        return self._plan

    def wants_closing(self) -> bool:
        """Whether rows wait that no further event will bring to their turn."""
        return self._carried_rows > 0

    def open(self, epoch: int, final: bool = False) -> KeyedOpened:
        """Fix what an epoch does; all of it follows from the last manifest."""
        setting, held = self._setting, self._held
        if self._log.intent(epoch) is None:
            self._log.open(epoch, {"epoch": epoch, "plan": self._plan.version})
        task = KeyedTask(
            epoch, setting.store, self._plan, setting.operator, setting.intake, held.states.refs,
            held.carried.refs, held.sizes, held.spilled, held.turns, setting.budgets,
            setting.budget, record_input=setting.record_input, emulated=setting.emulated,
            sampling=setting.sampling,
            measure=setting.policy.measures and isinstance(self._plan, PrefixPlan),
        )  # fmt: skip
        return KeyedOpened(task, setting.clock())

    def commit(
        self, opened: KeyedOpened, slots: Sequence[KeyedReport], routes: Sequence[RouteReport],
        about: Mapping[str, Any] | None = None,
    ) -> Manifest:  # fmt: skip
        """Make an epoch count: check that nothing was lost, write the manifest, publish."""
        epoch, before = opened.task.epoch, self._segments()
        slots = sorted(slots, key=lambda slot: slot.slot)
        counts = self._conserved(epoch, slots, routes)
        self._held = self._held.after(epoch, slots)
        self._carried_rows = counts["carried_out"]
        self.epoch_events = next_limit(
            self.epoch_events, self._setting.epoch_events, self._fullness(slots)
        )
        began = time.perf_counter()
        decision = self._decide(epoch, slots)
        manifest = {
            **self._manifest(opened, slots, routes, decision), **counts,
            "decide_seconds": time.perf_counter() - began, **(about or {}),
        }  # fmt: skip
        if self._setting.sampling is not None:
            acks = [*(r.acks for r in routes), *(s.acks for s in slots)]
            manifest |= told((r.roots for r in routes), acks)
        manifest["committed"] = self._setting.clock()
        self._log.commit(epoch, manifest)
        self.last = epoch
        publish(self._setting.store, manifest["files"])
        self._collect_garbage(before, self._segments())
        return manifest

    def _fullness(self, slots: Sequence[KeyedReport]) -> float:
        """How full the fullest buffer is."""
        limits = {s.slot: self._budget(s.slot).buffer_bytes for s in slots}
        shares = (s.carried_bytes / max(limits[s.slot], 1) for s in slots)
        return max(shares, default=0.0)

    def _conserved(
        self, epoch: int, slots: Sequence[KeyedReport], routes: Sequence[RouteReport]
    ) -> dict[str, int]:
        counts = {
            "received": sum(r.received for r in routes), "carried_in": self._carried_rows,
            "processed": sum(s.processed for s in slots),
            "quarantined": sum(r.quarantined for r in routes),
            "carried_out": sum(s.carried_rows for s in slots),
        }  # fmt: skip
        came = counts["received"] + counts["carried_in"]
        went = counts["processed"] + counts["quarantined"] + counts["carried_out"]
        if came != went:
            raise IntegrityError(
                f"epoch {epoch} had {came} rows but {went} are accounted for; nothing was committed"
            )
        return counts

    def _decide(self, epoch: int, slots: Sequence[KeyedReport]) -> Decision:
        loads = tuple(
            SlotLoad(
                s.slot, s.processed, 0, 0, s.busy_seconds, load_seconds=s.load_seconds,
                site=self._site(s), arrivals=s.arrivals, waiting=s.carried_rows,
                parts=parts_of(s.parts),
            )
            for s in slots
        )  # fmt: skip
        seen = Observed(epoch, self._setting.clock(), loads)
        decision, self._policy_state = self._setting.policy.decide(
            seen, self._plan, self._policy_state
        )
        rows = {int(p): float(n) for s in slots for p, n in s.tuples.items()}
        rows = self._apply(decision.changes, rows, loads)
        if self._setting.wanted_slots is not None:
            changes, reason = asked_for(self._setting.wanted_slots, self._plan, rows)
            if changes:
                self._apply(changes, rows, loads)
                self._policy_state = self._setting.policy.resized(self._policy_state)
                decision = with_slots(decision, changes, reason)
        if decision.changes:
            write_plan(self._setting.store, self._plan)
        return decision

    def _apply(
        self, changes: Sequence[Change], rows: dict[int, float], loads: Sequence[SlotLoad]
    ) -> dict[int, float]:
        """Go on with a plan that was changed, with all that is known by partition; ``rows`` are
        what partitions had to do, and are given back by the new ones."""
        parts = {p: some for load in loads for p, some in load.parts.items()}
        for change in changes:
            before, self._plan = self._plan, self._plan.apply(change)
            if isinstance(before, PrefixPlan) and isinstance(self._plan, PrefixPlan):
                gone, new = succession(before, self._plan)
                if new:
                    self._held = self._held.succeeded(gone, new, parts)
                    rows = shared_out(rows, gone, new, parts, "rows")
        return rows

    def _budget(self, slot: int) -> Budget:
        return self._setting.budgets.get(slot, self._setting.budget)

    def _site(self, report: KeyedReport) -> SiteReport:
        tuples, sizes, spilled = (
            {int(p): number for p, number in told.items()}
            for told in (report.tuples, report.sizes, report.spilled)
        )
        memory = self._budget(report.slot).memory_bytes
        return SiteReport(report.slot, 0.0, tuples, memory, sizes, spilled)

    def _manifest(
        self, opened: KeyedOpened, slots: Sequence[KeyedReport], routes: Sequence[RouteReport],
        decision: Decision,
    ) -> Manifest:  # fmt: skip
        staged = [name for slot in slots for name in slot.result_files]
        staged += [name for r in routes for name in (*r.quarantine_files, *r.received_files)]
        reasons: Counter[str] = Counter()
        for report in routes:
            reasons.update(report.reasons)
        return {
            "epoch": opened.task.epoch,
            "opened": opened.started,
            "plan": opened.task.plan.version,
            "next_plan": self._plan.version,
            **self._held.to_dict(),
            "next_epoch_events": self.epoch_events,
            "policy": self._policy_state,
            **decision.to_dict(),
            "files": [published_name(name) for name in staged],
            "streams": _streams(self._setting.operator, slots),
            "results": sum(s.results for s in slots),
            "reasons": dict(reasons),
            "slices": sorted(piece for r in routes for piece in r.slices),
            "slots": [_summary(s) for s in slots],
            "route_seconds": sum(r.seconds for r in routes),
            "follow_seconds": (
                sum(r.follow_seconds for r in routes) + sum(s.follow_seconds for s in slots)
            ),
        }

    def _segments(self) -> frozenset[str]:
        return self._held.segments()


def _check_operator(operator: Operator[Any], plan: KeyedPlan) -> None:
    """Raise :class:`OperatorError` where an operator cannot be partitioned as a plan has it."""
    if not isinstance(plan, PrefixPlan):
        return
    name = type(operator).__name__
    if not isinstance(operator, Divisible):
        raise OperatorError(
            f"{name} is partitioned by its key, and this run by places; it needs the methods of "
            "Divisible, or a directory of its own"
        )
    if operator.code_bits != plan.code_bits:
        raise OperatorError(
            f"{name}.code_bits is {operator.code_bits}, and this run has places of "
            f"{plan.code_bits} bits; go on as it began, or use a new directory"
        )


def _streams(operator: Operator[Any], slots: Sequence[KeyedReport]) -> dict[str, list[list[Any]]]:
    """By stream its published files, slot after slot, each with how many rows it has."""
    return {
        stream: [
            [published_name(name), rows]
            for report in slots
            for name, rows in report.streams.get(stream, ())
        ]
        for stream in operator.streams
    }


def _summary(report: KeyedReport) -> dict[str, Any]:
    summary = asdict(report)
    for name in _NOT_SUMMED:
        del summary[name]
    summary["partitions"] = len(report.sizes)
    summary["spilled"] = len(report.spilled)
    summary["state_bytes"] = sum(report.sizes.values())
    return summary
