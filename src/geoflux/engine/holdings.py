"""What all partitions hold, as references: queries, windows, retained events.

One immutable value that follows the reports of the slots and the changes of the plan; its plain
form is in every manifest, so that it is as durable as the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from geoflux.engine.task import SlotReport
from geoflux.plan import Change, GridPlan
from geoflux.state.held import Held, Kept, Limits, Retained
from geoflux.state.refs import Ref, StateMap


@dataclass(frozen=True)
class Holdings:
    """References by partition: to its queries, to what the matches of queries at home in it came
    to, to the events that it received, and to its statistics."""

    queries: StateMap = field(default_factory=lambda: StateMap({}))
    windows: StateMap = field(default_factory=lambda: StateMap({}))
    retained: Retained = field(default_factory=Retained)
    stats: StateMap = field(default_factory=lambda: StateMap({}))

    def registered(self, delta: str, partitions: Sequence[int]) -> Holdings:
        """With a segment of control changes that concerns some partitions."""
        news = {p: Ref("delta", delta, p) for p in partitions}
        return replace(self, queries=self.queries.appended(news))

    def after(
        self, slots: Sequence[SlotReport], limits: Limits, max_time: int | None
    ) -> tuple[Holdings, tuple[Held, ...]]:
        """After an epoch: what the slots wrote, and which segments have expired."""
        windows = self.windows.replaced(_rewritten([slot.window_refs for slot in slots]))
        for slot in slots:
            sent = [Ref.of(ref) for ref in slot.window_sent]
            windows = windows.appended({ref.partition: ref for ref in sent})
        kept = [Kept.from_list(kept) for slot in slots for kept in slot.kept]
        retained, expired = self.retained.replaced(kept).expired(limits, max_time)
        queries = self.queries.replaced(_rewritten([slot.refs for slot in slots]))
        stats = self.stats.replaced(_rewritten([slot.stat_refs for slot in slots]))
        return Holdings(queries, windows, retained, stats), expired

    def without_stats(self) -> Holdings:
        """For epochs that keep none: what is not kept up would be wrong later."""
        return replace(self, stats=StateMap({}))

    def changed(self, change: Change, plan: GridPlan) -> Holdings:
        """After a change of the plan. Retained events stay with the partition that received them;
        lineage finds them."""
        return replace(
            self,
            queries=self.queries.changed(change, plan),
            windows=self.windows.changed(change, plan),
            stats=self.stats.changed(change, plan),
        )

    def segments(self) -> frozenset[str]:
        """All segments that are referred to."""
        maps = (self.queries, self.windows, self.stats)
        return self.retained.segments().union(*(refs.segments() for refs in maps))

    def to_dict(self) -> dict[str, Any]:
        """Fields of the manifest."""
        return {
            "refs": self.queries.to_dict(),
            "windows": self.windows.to_dict(),
            "held": self.retained.to_list(),
            "stats": self.stats.to_dict(),
        }

    @classmethod
    def from_dict(cls, manifest: Mapping[str, Any]) -> Holdings:
        """As a manifest has them."""
        return cls(
            StateMap.from_dict(manifest["refs"]),
            StateMap.from_dict(manifest["windows"]),
            Retained.from_list(manifest["held"]),
            StateMap.from_dict(manifest.get("stats", {})),
        )


def _rewritten(reports: Sequence[Mapping[str, list[list[Any]]]]) -> dict[int, tuple[Ref, ...]]:
    """The references that slots changed, by partition."""
    return {
        int(p): tuple(Ref.of(ref) for ref in refs) for told in reports for p, refs in told.items()
    }
