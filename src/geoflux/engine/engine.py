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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from geoflux.balance.policy import Decision, Policy, SlotLoad, Static
from geoflux.config import Config, seconds
from geoflux.engine.catalogue import Applied, Catalogue, rebuilt
from geoflux.engine.control import read_records
from geoflux.engine.intake import EventColumns
from geoflux.engine.records import RecordRules
from geoflux.engine.source import ControlSource
from geoflux.engine.staging import publish, published_name, stage_rejected, sweep
from geoflux.engine.task import EpochTask, RouteReport, SlotReport
from geoflux.errors import IntegrityError
from geoflux.operators.deltas import write_catalogue, write_deltas
from geoflux.plan import GridPlan, ReplicatedPlan, change_to_dict, plan_from_dict
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.refs import Ref, StateMap
from geoflux.state.segments import unique_name
from geoflux.state.store import Store

Manifest = dict[str, Any]
AnyPlan = GridPlan | ReplicatedPlan

_FOLLOW_LATENESS_SECONDS = 60.0
_MOST_SEGMENTS = 256


@dataclass(frozen=True)
class Setting:
    """What an engine runs with: settings, where it keeps things, what it is told by whom."""

    config: Config
    store: Store
    schema: pa.Schema
    control: ControlSource
    policy: Policy = field(default_factory=Static)
    clock: Callable[[], float] = time.time

    @property
    def grid(self) -> Grid:
        """The grid over the space."""
        columns, rows = self.config.space.grid
        return Grid(Space.of(self.config.space), columns, rows)

    @property
    def control_is_fixed(self) -> bool:
        """Whether control files are read to their end before the first event, and never again."""
        return self.config.run.mode == "drain" and self.config.source.kind != "simulate"

    @property
    def lateness_micros(self) -> int | None:
        """How far the watermark stays behind; ``None``: no watermark, queries do not expire."""
        text = self.config.engine.lateness
        if text:
            return round(seconds(text) * 1e6)
        if self.config.run.mode == "drain":
            return None
        return round(_FOLLOW_LATENESS_SECONDS * 1e6)


@dataclass(frozen=True)
class Opened:
    """An epoch under way: its task, and what its intent fixed."""

    task: EpochTask
    intent: dict[str, Any]
    started: float


class Engine:
    """Epochs, one after another, on a run's directory.

    Made with :meth:`recovered`: a new directory starts at nothing, an old one goes on after its
    last committed epoch.
    """

    def __init__(self, setting: Setting, plan: AnyPlan) -> None:
        self._setting = setting
        self._log = EpochLog(setting.store)
        self._grid = setting.grid
        self._columns = EventColumns.of(setting.config.source, setting.config.space)
        self._plan = plan
        self._refs = StateMap({})
        self._control: dict[str, Any] = {}
        self._max_time: int | None = None
        self._policy_state: dict[str, Any] = {}
        self._dropped: frozenset[str] = frozenset()
        self.last: int | None = None
        self.catalogue = Catalogue(setting.store)

    @classmethod
    def recovered(cls, setting: Setting, first_plan: Callable[[], AnyPlan]) -> Engine:
        """The engine as its directory left it; ``first_plan`` is asked only in a new one."""
        store = setting.store
        log = EpochLog(store)
        last = log.last()
        if last is None:
            if not store.exists(_plan_name(1)):
                store.write_json(_plan_name(1), first_plan().to_dict())
            engine = cls(setting, plan_from_dict(store.read_json(_plan_name(1))))
        else:
            manifest = log.manifest(last)
            publish(store, manifest["files"])
            engine = cls(
                setting, plan_from_dict(store.read_json(_plan_name(manifest["next_plan"])))
            )
            engine._take_over(manifest)
        intent = log.intent(0 if last is None else last + 1) or {"delta": None, "quarantine": []}
        named = engine._refs.segments() | set(engine.catalogue.segments)
        sweep(store, named | {intent["delta"] or ""} | set(intent["quarantine"]))
        return engine

    def _take_over(self, manifest: Manifest) -> None:
        self.last = manifest["epoch"]
        self._refs = StateMap.from_dict(manifest["refs"])
        self._control = manifest["control"]
        self._max_time = manifest["max_time"]
        self._policy_state = manifest["policy"]
        self.catalogue = rebuilt(self._setting.store, manifest["catalogue"])
        self.catalogue.next_number = manifest["next_number"]
        self.catalogue.columns |= set(manifest["where_columns"])
        self.catalogue.has_validity |= manifest["has_validity"]

    @property
    def plan(self) -> AnyPlan:
        """The plan of the next epoch."""
        return self._plan

    def manifest(self, epoch: int) -> Manifest:
        """What a committed epoch did."""
        return self._log.manifest(epoch)

    def is_committed(self, epoch: int) -> bool:
        """Whether the epoch counts already."""
        return self.last is not None and epoch <= self.last

    def open(self, epoch: int) -> Opened:
        """Fix what an epoch does, or find what it had fixed before a crash."""
        started = self._setting.clock()
        intent = self._log.intent(epoch)
        if intent is None:
            intent = self._new_intent(epoch)
            self._log.open(epoch, intent)
        if intent["plan"] != self._plan.version:
            raise IntegrityError(
                f"epoch {epoch} was opened under plan {intent['plan']}, "
                f"but the directory is at plan {self._plan.version}"
            )
        if intent["delta"] is not None:
            self.catalogue.absorb(intent["delta"])
            news = {p: Ref("delta", intent["delta"], p) for p in intent["partitions"]}
            self._refs = self._refs.appended(news)
        return Opened(self._task(epoch), intent, started)

    def _new_intent(self, epoch: int) -> dict[str, Any]:
        setting = self._setting
        upto = self._control
        if not (setting.control_is_fixed and self.last is not None):
            upto = setting.control.poll(self._control)
        rules = RecordRules(
            self._grid.space, setting.schema, setting.config.source.max_record_bytes
        )
        records = read_records(setting.control.read(self._control, upto), rules)
        watermark = self._watermark()
        applied = self.catalogue.decide(records, watermark)
        rejected = [*records.rejected, *applied.refused]
        delta, partitions = self._write_delta(applied)
        quarantined = []
        if rejected:
            quarantined = [stage_rejected(setting.store, epoch, "control", rejected)]
        return {
            "epoch": epoch, "plan": self._plan.version, "control": upto, "delta": delta,
            "partitions": partitions, "watermark": watermark, "quarantine": quarantined,
            "registered": len(applied.came), "ended": len(applied.ended),
            "control_rejected": dict(Counter(bad.code for bad in rejected)),
        }  # fmt: skip

    def _write_delta(self, applied: Applied) -> tuple[str | None, list[int]]:
        if len(applied.came) == 0 and len(applied.ended) == 0:
            return None, []
        name = unique_name("state", "control")
        where = (self._grid, self._plan)
        partitions = write_deltas(self._setting.store, name, where, applied.came, applied.ended)
        return name, partitions

    def _watermark(self) -> int | None:
        lateness = self._setting.lateness_micros
        if lateness is None or self._max_time is None:
            return None
        return self._max_time - lateness

    def _task(self, epoch: int) -> EpochTask:
        config = self._setting.config
        return EpochTask(
            epoch, self._setting.store, self._grid, self._plan, self._refs.refs, self._columns,
            self._columns.id_type(self._setting.schema), frozenset(self.catalogue.columns),
            needs_time=self.catalogue.has_validity,
            counting=config.output.matches == "counts",
            compression=config.output.compression,
            record_input=config.output.record_input,
        )  # fmt: skip

    def commit(
        self, opened: Opened, slots: Sequence[SlotReport], routes: Sequence[RouteReport],
        about: dict[str, Any] | None = None,
    ) -> Manifest:  # fmt: skip
        """Make an epoch count: check that nothing was lost, write the manifest, publish."""
        store, epoch = self._setting.store, opened.task.epoch
        _check_conservation(epoch, slots, routes)
        rewritten = {
            int(p): tuple(Ref(*ref) for ref in refs)
            for slot in slots
            for p, refs in slot.refs.items()
        }
        before = self._refs.segments()
        self._refs = self._refs.replaced(rewritten)
        times = [r.max_time for r in routes if r.max_time is not None]
        self._max_time = max(
            [*times, *([] if self._max_time is None else [self._max_time])], default=None
        )
        self._control = opened.intent["control"]
        decision = self._decide(epoch, slots)
        segments = self._catalogue_segments()
        manifest = self._manifest(opened, slots, routes, decision, segments)
        manifest |= about or {}
        manifest["committed"] = self._setting.clock()
        self._log.commit(epoch, manifest)
        self.last = epoch
        publish(store, manifest["files"])
        self._collect_garbage(before, frozenset(segments))
        return manifest

    def _decide(self, epoch: int, slots: Sequence[SlotReport]) -> Decision:
        loads = tuple(
            SlotLoad(s.slot, s.processed, s.checks, s.queries, s.busy_seconds)
            for s in sorted(slots, key=lambda s: s.slot)
        )
        decision, self._policy_state = self._setting.policy.decide(
            epoch, loads, self._plan, self._policy_state
        )
        for change in decision.changes:
            if not isinstance(self._plan, GridPlan):
                raise IntegrityError("a replicated plan cannot be changed")
            self._plan = self._plan.apply(change)
            self._refs = self._refs.changed(change, self._plan)
        if decision.changes:
            self._setting.store.write_json(_plan_name(self._plan.version), self._plan.to_dict())
        return decision

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
        return list(self.catalogue.segments)

    def _manifest(
        self, opened: Opened, slots: Sequence[SlotReport], routes: Sequence[RouteReport],
        decision: Decision, segments: list[str],
    ) -> Manifest:  # fmt: skip
        staged = [name for slot in slots for name in slot.match_files]
        staged += [n for r in routes for n in (*r.quarantine_files, *r.received_files)]
        staged += opened.intent["quarantine"]
        reasons: Counter[str] = Counter()
        for report in routes:
            reasons.update(report.reasons)
        return {
            "epoch": opened.task.epoch,
            "opened": opened.started,
            "plan": opened.task.plan.version,
            "next_plan": self._plan.version,
            "refs": self._refs.to_dict(),
            "control": self._control,
            "catalogue": segments,
            "next_number": self.catalogue.next_number,
            "where_columns": sorted(self.catalogue.columns),
            "has_validity": self.catalogue.has_validity,
            "live_queries": len(self.catalogue),
            "registered": opened.intent["registered"],
            "ended": opened.intent["ended"],
            "watermark": opened.intent["watermark"],
            "max_time": self._max_time,
            "policy": self._policy_state,
            "decision": {
                "reason": decision.reason,
                "changes": [change_to_dict(change) for change in decision.changes],
            },
            "received": sum(r.received for r in routes),
            "processed": sum(s.processed for s in slots),
            "quarantined": sum(r.quarantined for r in routes),
            "carried_in": 0,
            "carried_out": 0,
            "matches": sum(s.matches for s in slots),
            "reasons": dict(reasons),
            "control_rejected": opened.intent["control_rejected"],
            "slices": sorted(piece for r in routes for piece in r.slices),
            "slots": [_slot_summary(s) for s in sorted(slots, key=lambda s: s.slot)],
            "route_seconds": sum(r.seconds for r in routes),
            "files": [published_name(name) for name in staged],
        }

    def _collect_garbage(self, before: frozenset[str], catalogue: frozenset[str]) -> None:
        """Delete segments that the last *two* manifests do without: a straggling attempt of the
        epoch just committed may still read what its task named."""
        live = self._refs.segments() | catalogue
        for name in self._dropped - live:
            self._setting.store.delete(name)
        self._dropped = before - live


def _slot_summary(report: SlotReport) -> dict[str, Any]:
    summary = asdict(report)
    for name in ("match_files", "refs"):
        del summary[name]
    return summary


def _check_conservation(
    epoch: int, slots: Sequence[SlotReport], routes: Sequence[RouteReport]
) -> None:
    received = sum(r.received for r in routes)
    quarantined = sum(r.quarantined for r in routes)
    processed = sum(s.processed for s in slots)
    if received != processed + quarantined:
        raise IntegrityError(
            f"epoch {epoch} received {received} rows but processed {processed} and quarantined "
            f"{quarantined}; nothing was committed"
        )


def _plan_name(version: int) -> str:
    return f"plans/{version:08d}.json"
