"""The engine: opens epochs, commits them, decides what comes next; knows nothing of Spark.

An epoch is opened (what it will do is fixed and logged), its work is done by whoever drives the
engine, and it is committed (the results are made to count, all at once). Opening a committed epoch
again says so; opening one that crashed gives the very same task.

Invariants: received + carried in = processed + quarantined + carried out, in every epoch; nothing
that a manifest does not name is ever read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from geoflux.balance.policy import Decision, Observed, Orders, Static
from geoflux.engine.catalogue import Applied, Catalogue, rebuilt
from geoflux.engine.control import read_records
from geoflux.engine.epochs import Epochs, Manifest, begun_with, read_plan, write_plan
from geoflux.engine.event_time import EventTime
from geoflux.engine.guarding import Guarding
from geoflux.engine.holdings import Holdings
from geoflux.engine.intake import EventColumns
from geoflux.engine.loads import Expired, expired_boxes, partition_loads, relieved, slot_loads
from geoflux.engine.outcome import Outcome
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.retained_columns import naming_of
from geoflux.engine.rooted import told
from geoflux.engine.sensing import sensed_scaling
from geoflux.engine.setting import Setting
from geoflux.engine.snapshots import View
from geoflux.engine.staging import publish, published_name, stage_rejected, sweep
from geoflux.engine.task import EpochTask, RouteReport, SlotReport
from geoflux.engine.wanted import asked_for, with_slots
from geoflux.errors import ConfigError, IntegrityError
from geoflux.guard.rounds import Rounds
from geoflux.operators.clock import Clock
from geoflux.operators.deltas import write_catalogue, write_deltas
from geoflux.plan import Change, GridPlan, ReplicatedPlan, plan_from_dict
from geoflux.state.epoch_log import EpochLog
from geoflux.state.held import Limits, rows_by_partition
from geoflux.state.lineage import forgettable
from geoflux.state.segments import unique_name

AnyPlan = GridPlan | ReplicatedPlan

_MOST_SEGMENTS = 256


@dataclass(frozen=True)
class Opened:
    """An epoch under way: its task, and what its intent fixed."""

    task: EpochTask
    intent: dict[str, Any]
    started: float


class Engine(Epochs):
    """Epochs, one after another, on a run's directory.

    Made with :meth:`recovered`: a new directory starts at nothing, an old one goes on after its
    last committed epoch.
    """

    def __init__(self, setting: Setting, plan: AnyPlan) -> None:
        super().__init__(setting.store)
        self._setting = setting
        self._grid = setting.grid
        self._columns = EventColumns.of(setting.config.source, setting.config.space)
        self._plan = plan
        self._holdings = Holdings()
        self._limits = Limits.of(setting.config.retention)
        self._naming = naming_of(setting.config, setting.schema) if self._limits.is_on else None
        self._control: dict[str, Any] = {}
        self._time = EventTime()
        self._started = setting.clock()
        if setting.wanted_slots is not None and not isinstance(plan, GridPlan):
            raise ConfigError(
                'engine.balance = "replicated" has the same slots for ever, since each of them '
                "holds everything; choose another balance for a run whose slots change"
            )
        # A replicated plan has no parts that could be given away.
        self._policy = setting.policy if isinstance(plan, GridPlan) else Static()
        self._policy_state: dict[str, Any] = {}
        self._expired: Expired = ()
        self.catalogue = Catalogue(setting.store)
        self._guarding = Guarding(setting)

    @classmethod
    def recovered(cls, setting: Setting, first_plan: Callable[[], AnyPlan]) -> Engine:
        """The engine as its directory left it; ``first_plan`` is asked only in a new one."""
        store = setting.store
        log = EpochLog(store)
        last = log.last()
        if last is None:
            engine = cls(setting, plan_from_dict(begun_with(store, first_plan)))
        else:
            manifest = log.manifest(last)
            publish(store, manifest["files"])
            engine = cls(setting, plan_from_dict(read_plan(store, manifest["next_plan"])))
            engine._take_over(manifest)
        intent = log.intent(0 if last is None else last + 1) or {"delta": None, "quarantine": []}
        named = engine._holdings.segments() | set(engine.catalogue.segments)
        named |= {segment for segment, *_ in engine._expired} | engine._guarding.files()
        sweep(store, named | {intent["delta"] or ""} | set(intent["quarantine"]))
        return engine

    def _take_over(self, manifest: Manifest) -> None:
        self.last = manifest["epoch"]
        self._holdings = Holdings.from_dict(manifest)
        self._control = manifest["control"]
        self._time = EventTime.of(manifest)
        self._policy_state = manifest["policy"]
        self._expired = tuple(tuple(gone) for gone in manifest.get("expired_segments", []))
        self.catalogue = rebuilt(self._setting.store, manifest["catalogue"])
        self.catalogue.next_number = manifest["next_number"]
        self.catalogue.columns |= set(manifest["where_columns"])
        self.catalogue.has_validity |= manifest["has_validity"]
        self.catalogue.has_windows |= manifest["has_windows"]
        self._guarding = Guarding(self._setting, manifest)
        self._guarding.finish()

    @property
    def plan(self) -> AnyPlan:
        """The plan of the next epoch."""
        return self._plan

    @property
    def epoch_events(self) -> int:
        """Events of the next epoch at most."""
        return self._setting.config.engine.epoch_events

    def wants_closing(self) -> bool:
        """Whether a stream that has been drained should get a final epoch, to close windows."""
        config = self._setting.config
        if not (config.run.mode == "drain" and config.engine.close_at_end):
            return False
        if self.last is None or self.manifest(self.last)["final"]:
            return False
        return self.catalogue.has_windows

    def open(self, epoch: int, final: bool = False) -> Opened:
        """Fix what an epoch does, or find what it had fixed before a crash. A ``final`` epoch has
        no events: all are in, and windows close."""
        started = self._setting.clock()
        intent = self._log.intent(epoch)
        if intent is None:
            intent = self._new_intent(epoch, final)
            self._log.open(epoch, intent)
        else:
            self._guarding.admit_again(intent.get("guard"))
        if intent["plan"] != self._plan.version:
            raise IntegrityError(
                f"epoch {epoch} was opened under plan {intent['plan']}, "
                f"but the directory is at plan {self._plan.version}"
            )
        if intent["delta"] is not None:
            self.catalogue.absorb(intent["delta"])
            self._holdings = self._holdings.registered(intent["delta"], intent["partitions"])
        rounds = self._guarding.receive(intent.get("guard"), intent["delta"])
        return Opened(self._task(epoch, intent, rounds), intent, started)

    def _new_intent(self, epoch: int, final: bool) -> dict[str, Any]:
        setting = self._setting
        upto = self._control
        if not (setting.control_is_fixed and self.last is not None):
            upto = setting.control.poll(self._control)
        rules = RecordRules(
            self._grid.space, setting.schema, setting.config.source.max_record_bytes,
            None if self._naming is None else self._naming.schema,
        )  # fmt: skip
        records = read_records(setting.control.read(self._control, upto), rules)
        silence = self._time.silence(setting.idle_seconds, setting.clock(), self._started)
        clock = self._time.clock(setting.lateness_micros, silence, final)
        admitted = self._guarding.admit(records, setting.clock(), self.catalogue.next_number)
        removed = self.catalogue.places_of(admitted.removing) if admitted.removing else None
        applied = self.catalogue.decide(admitted.records, clock, removed)
        rejected = [*records.rejected, *admitted.refused, *applied.refused]
        delta, partitions = self._write_delta(applied)
        quarantined = []
        if rejected:
            quarantined = [stage_rejected(setting.store, epoch, "control", rejected)]
        return {
            "epoch": epoch, "plan": self._plan.version, "control": upto, "delta": delta,
            "partitions": partitions, "clock": asdict(clock), "silence": silence,
            "lateness": setting.lateness_micros,
            "quarantine": quarantined,
            "registered": len(applied.came), "ended": len(applied.ended),
            "snapshots": [query.to_dict() for query in admitted.records.snapshots],
            "orders": self._policy.orders(setting.clock(), self._policy_state).to_dict(),
            "control_rejected": dict(Counter(bad.code for bad in rejected)),
            "guard": admitted.note,
        }  # fmt: skip

    def _write_delta(self, applied: Applied) -> tuple[str | None, list[int]]:
        if len(applied.came) == 0 and len(applied.ended) == 0:
            return None, []
        name = unique_name("state", "control")
        where = (self._grid, self._plan)
        partitions = write_deltas(self._setting.store, name, where, applied.came, applied.ended)
        return name, partitions

    def _task(self, epoch: int, intent: dict[str, Any], rounds: Rounds | None) -> EpochTask:
        config = self._setting.config
        return EpochTask(
            epoch, Clock(**intent["clock"]), self._setting.store, self._grid, self._plan,
            self._holdings.queries.refs, self._holdings.windows.refs, intent["delta"],
            self._columns,
            self._columns.id_type(self._setting.schema),
            frozenset(self.catalogue.columns).union(self._naming.stored if self._naming else ()),
            needs_time=self.catalogue.has_validity or self.catalogue.has_windows
            or self._naming is not None,
            has_windows=self.catalogue.has_windows,
            counting=config.output.matches == "counts",
            compression=config.output.compression,
            record_input=config.output.record_input,
            view=self._view(),
            snapshots=tuple(intent["snapshots"]),
            tuning=self._policy.tuning,
            orders=Orders.from_dict(intent["orders"]),
            stats=self._holdings.stats.refs,
            expired=self._expired,
            rounds=rounds,
            sampling=self._setting.sampling,
        )  # fmt: skip

    def _view(self) -> View | None:
        """What a snapshot sees that is asked in the next epoch."""
        if self._naming is None:
            return None
        cut = self._limits.cut(self._time.max_time)
        retained = self._holdings.retained
        return View(self._setting.store, self._grid, self._plan, retained, cut, self._naming)

    def commit(
        self, opened: Opened, slots: Sequence[SlotReport], routes: Sequence[RouteReport],
        about: dict[str, Any] | None = None,
    ) -> Manifest:  # fmt: skip
        """Make an epoch count: check that nothing was lost, write the manifest, publish."""
        store, epoch = self._setting.store, opened.task.epoch
        outcome = Outcome.of(slots, routes)
        outcome.check_conservation(epoch)
        before = self._holdings.segments() | outcome.kept_segments
        before |= {segment for segment, *_ in self._expired} | self._guarding.files()
        self._time = self._time.after(
            opened.task.clock, outcome.times, outcome.closed_until, self._setting.clock()
        )
        self._holdings, expired = self._holdings.after(
            outcome.slots, self._limits, self._time.max_time
        )
        self._control = opened.intent["control"]
        if self._policy.tuning is None:
            self._holdings = self._holdings.without_stats()
        self._expired = ()
        if self._policy.tuning is not None and isinstance(self._plan, GridPlan):
            self._expired = expired_boxes(self._plan, expired)
        began = time.perf_counter()
        owners = {p.id: p.slot for p in self._plan.partitions}
        decision = self._decide(opened, outcome.slots, owners, rows_by_partition(expired))
        donors = relieved(decision, owners)
        decision = self._resized(decision, outcome.slots)
        self._note_plan(decision)
        decided = time.perf_counter() - began
        scaled = self._scaled(opened)
        segments = self._catalogue_segments()
        manifest = self._manifest(opened, outcome, decision, segments)
        manifest["guard"] = self._guarding.commit(
            opened.intent.get("guard"), opened.intent["delta"], outcome.slots,
            donors, self._setting.clock(), self.catalogue.next_number, scaled,
        )  # fmt: skip
        manifest["expired"] = rows_by_partition(expired)
        manifest["expired_segments"] = self._expired
        manifest["decide_seconds"] = decided
        if self._setting.sampling is not None:
            manifest |= told((r.roots for r in routes), (r.acks for r in routes))
        manifest |= about or {}
        manifest["committed"] = self._setting.clock()
        self._log.commit(epoch, manifest)
        self.last = epoch
        publish(store, manifest["files"])
        self._guarding.finish()
        live = self._holdings.segments() | frozenset(segments) | self._guarding.files()
        self._collect_garbage(before, live)
        return manifest

    def _decide(
        self, opened: Opened, slots: Sequence[SlotReport], owners: Mapping[int, int],
        expired: Mapping[int, int],
    ) -> Decision:  # fmt: skip
        seen = Observed(
            opened.task.epoch, self._setting.clock(), slot_loads(slots, owners, expired),
            opened.task.orders.close, self.catalogue.next_number,
        )  # fmt: skip
        decision, self._policy_state = self._policy.decide(seen, self._plan, self._policy_state)
        self._apply(decision.changes)
        return decision

    def _resized(self, decision: Decision, slots: Sequence[SlotReport]) -> Decision:
        """The decision with as many slots as are wanted."""
        if self._setting.wanted_slots is None or not isinstance(self._plan, GridPlan):
            return decision
        loads = partition_loads(slots)
        changes, reason = asked_for(self._setting.wanted_slots, self._plan, loads)
        if not changes:
            return decision
        self._apply(changes)
        self._policy_state = self._policy.resized(self._policy_state)
        return with_slots(decision, changes, reason)

    def _scaled(self, opened: Opened) -> str | None:
        """For Guard: who holds what in an epoch after which there are more slots or fewer. Told at
        once, before anybody can withdraw what asked for them."""
        task = opened.task
        if task.rounds is None:
            return None
        return sensed_scaling(
            self.catalogue, task.rounds, task.plan.slots, self._plan.slots, task.epoch
        )

    def _apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if not isinstance(self._plan, GridPlan):
                raise IntegrityError("a replicated plan cannot be changed")
            self._plan = self._plan.apply(change)
            self._holdings = self._holdings.changed(change, self._plan)

    def _note_plan(self, decision: Decision) -> None:
        """Write the next plan down, if it is another."""
        if isinstance(self._plan, GridPlan):
            over = forgettable(self._plan, self._holdings.retained)
            if over:
                self._plan = self._plan.forget(over)
            if over or decision.changes:
                write_plan(self._setting.store, self._plan)

    def _catalogue_segments(self) -> list[str]:
        """The catalogue's segments; written anew when most of what they hold has ended."""
        catalogue = self.catalogue
        wasteful = catalogue.rows_on_disk > 2 * len(catalogue) + 100_000
        if wasteful or len(catalogue.segments) > _MOST_SEGMENTS:
            name = unique_name("state", "catalogue")
            write_catalogue(self._setting.store, name, catalogue.live_rows())
            self.catalogue = rebuilt(self._setting.store, [name])
            self.catalogue.next_number = catalogue.next_number
            self.catalogue.columns = catalogue.columns
            self.catalogue.has_validity = catalogue.has_validity
            self.catalogue.has_windows = catalogue.has_windows
        return list(self.catalogue.segments)

    def _manifest(
        self, opened: Opened, outcome: Outcome, decision: Decision, segments: list[str]
    ) -> Manifest:
        staged = outcome.staged + opened.intent["quarantine"]
        return {
            "epoch": opened.task.epoch,
            "opened": opened.started,
            "plan": opened.task.plan.version,
            "next_plan": self._plan.version,
            "control": self._control,
            "catalogue": segments,
            "next_number": self.catalogue.next_number,
            "where_columns": sorted(self.catalogue.columns),
            "has_validity": self.catalogue.has_validity,
            "has_windows": self.catalogue.has_windows,
            "live_queries": len(self.catalogue),
            "registered": opened.intent["registered"],
            "ended": opened.intent["ended"],
            "control_rejected": opened.intent["control_rejected"],
            "snapshots": len(opened.intent["snapshots"]),
            "watermark": opened.task.clock.watermark,
            "silence": opened.intent["silence"],
            "lateness": opened.intent["lateness"],
            "final": opened.task.clock.final,
            "policy": self._policy_state,
            **decision.to_dict(),
            "files": [published_name(name) for name in staged],
            **self._time.as_dict(),
            **self._holdings.to_dict(),
            **outcome.to_dict(),
        }
