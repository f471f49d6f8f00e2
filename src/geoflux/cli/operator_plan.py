"""What ``geoflux plan`` shows of an operator's run: its slots, and where their states are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from geoflux.chronicle.decision_words import changes_of, reason_of, told_changes
from geoflux.chronicle.plan_history import asked_epoch
from geoflux.chronicle.wording import count, duration, plural, size
from geoflux.cli.operator_memory import Memory
from geoflux.cli.plots import slot_colour
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_engine import KeyedPlan
from geoflux.errors import StateError
from geoflux.plan import plan_from_dict
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of


@dataclass(frozen=True)
class OperatorPlan:
    """The plan of an epoch, and the epoch itself or, before it has run, the last one."""

    operator: str
    epoch: int
    plan: KeyedPlan
    ran: Manifest | None

    @classmethod
    def of(cls, out: str | Path, operator: str, epoch: int | None) -> OperatorPlan:
        """The plan of an epoch of a run, or of the one that comes next."""
        store = store_of(out)
        log = EpochLog(store)
        number, following, version = asked_epoch(log, out, epoch)
        ran = log.manifest(min(number, following - 1)) if following else None
        name = f"plans/{version:08d}.json"
        if not store.exists(name):
            raise StateError(f"{out} has no plan {version} yet; ask again when the run has started")
        return cls(operator, number, plan_from_dict(store.read_json(name)), ran)

    @property
    def owned(self) -> list[int]:
        """Partitions of each slot."""
        owned = [0] * self.plan.slots
        for partition in self.plan.partitions:
            owned[partition.slot] += 1
        return owned

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "operator": self.operator, "epoch": self.epoch, "plan": self.plan.version,
            "kind": self.plan.to_dict()["kind"], "owned": self.owned,
            "measured_in_epoch": None if self.ran is None else self.ran["epoch"],
            "decision": None if self.ran is None else {
                "reason": reason_of(self.ran), "changes": changes_of(self.ran),
            },
            "slots": [] if self.ran is None else [asdict(s) for s in Memory.of(self.ran).slots],
            "partitions": [asdict(p) for p in self.plan.partitions],
        }  # fmt: skip


def print_operator_plan(console: Console, view: OperatorPlan) -> None:
    """The table of slots, and why the plan is as it is."""
    comes = ", which comes next" if view.ran is None or view.ran["epoch"] != view.epoch else ""
    console.print(
        f"the operator {escape(view.operator)}: plan {view.plan.version} of epoch "
        f"{count(view.epoch)}{comes}: {plural(len(view.plan.partitions), 'partition')} on "
        f"{plural(view.plan.slots, 'slot')}",
        style="bold", highlight=False,
    )  # fmt: skip
    table = Table()
    table.add_column("slot")
    names = ("partitions", "rows", "busy", "in memory", "on disk", "rows waiting")
    for name in names if view.ran else names[:1]:
        table.add_column(name, justify="right")
    known = {s.slot: s for s in Memory.of(view.ran).slots} if view.ran else {}
    for slot, owned in enumerate(view.owned):
        cells = [f"[{slot_colour(slot)}]■[/] {slot}", count(owned)]
        if slot in known:
            s = known[slot]
            on_disk = f"{count(s.spilled)}, {size(s.spilled_bytes)}" if s.spilled else "-"
            cells += [count(s.rows), duration(s.busy_seconds), size(s.resident_bytes), on_disk,
                      count(s.carried_rows)]  # fmt: skip
        table.add_row(*cells)
    console.print(table, highlight=False)
    if view.ran is None:
        console.print("nothing has run yet")
        return
    changes = told_changes(changes_of(view.ran)) or "no change"
    told = f"after epoch {count(view.ran['epoch'])}: {changes} ({reason_of(view.ran)})"
    console.print(escape(told), highlight=False)
