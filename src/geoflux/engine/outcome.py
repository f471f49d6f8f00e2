"""What an epoch's work came to: the reports of all slots and routers, taken together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from geoflux.engine.task import RouteReport, SlotReport
from geoflux.errors import IntegrityError

_NOT_SUMMED = ("match_files", "refs", "window_files", "window_refs", "window_sent", "kept",
               "snapshot_files", "stat_refs", "answer", "sensed")  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Reports by slot, and the routers' ones in any order."""

    slots: Sequence[SlotReport]
    routes: Sequence[RouteReport]

    @classmethod
    def of(cls, slots: Sequence[SlotReport], routes: Sequence[RouteReport]) -> Outcome:
        """The reports in the order of the slots."""
        return cls(sorted(slots, key=lambda slot: slot.slot), routes)

    def check_conservation(self, epoch: int) -> None:
        """Raise :class:`IntegrityError` if a row was lost or doubled."""
        received = sum(r.received for r in self.routes)
        quarantined = sum(r.quarantined for r in self.routes)
        processed = sum(s.processed for s in self.slots)
        if received != processed + quarantined:
            raise IntegrityError(
                f"epoch {epoch} received {received} rows but processed {processed} and "
                f"quarantined {quarantined}; nothing was committed"
            )

    @property
    def times(self) -> list[tuple[int, int]]:
        """Smallest and largest event time of each router that had any."""
        return [r.times for r in self.routes if r.times is not None]

    @property
    def closed_until(self) -> int | None:
        """The largest end of a window that was closed."""
        return max((s.closed_until for s in self.slots if s.closed_until is not None), default=None)

    @property
    def kept_segments(self) -> frozenset[str]:
        """The segments of retained events that were written; some may have expired already."""
        return frozenset(kept[0][0] for slot in self.slots for kept in slot.kept)

    @property
    def staged(self) -> list[str]:
        """All staged files that are to be published."""
        by_slots = [name for slot in self.slots for name in slot.files]
        return by_slots + [
            name for r in self.routes for name in (*r.quarantine_files, *r.received_files)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Fields of the manifest."""
        slots, routes = self.slots, self.routes
        reasons: Counter[str] = Counter()
        for report in routes:
            reasons.update(report.reasons)
        return {
            "received": sum(r.received for r in routes),
            "processed": sum(s.processed for s in slots),
            "quarantined": sum(r.quarantined for r in routes),
            "carried_in": 0,
            "carried_out": 0,
            "matches": sum(s.matches for s in slots),
            "aggregates": sum(s.window_rows for s in slots),
            "late": sum(r.late for r in routes),
            "late_matches": sum(s.late_matches for s in slots),
            "reasons": dict(reasons),
            "slices": sorted(piece for r in routes for piece in r.slices),
            "slots": [_summary(s) for s in slots],
            "route_seconds": sum(r.seconds for r in routes),
            "follow_seconds": sum(r.follow_seconds for r in routes),
        }


def _summary(report: SlotReport) -> dict[str, Any]:
    summary = asdict(report)
    for name in _NOT_SUMMED:
        del summary[name]
    return summary
