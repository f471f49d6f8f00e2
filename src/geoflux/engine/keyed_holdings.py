"""What is known by partition of a keyed operator between two epochs; all of it is in the manifest.

A value: an epoch gives the next one, and so does a change of the plan that splits or merges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from geoflux.balance.parts import Part
from geoflux.engine.keyed_heirs import Partitions, inherited, shared_out
from geoflux.engine.keyed_task import KeyedReport
from geoflux.state.refs import Ref, StateMap


@dataclass(frozen=True)
class KeyedHoldings:
    """References to states and to rows that were handed back; bytes of states, the epoch in which
    each partition was last worked on, and which have no room in memory."""

    states: StateMap = field(default_factory=lambda: StateMap({}))
    carried: StateMap = field(default_factory=lambda: StateMap({}))
    sizes: Mapping[int, int] = field(default_factory=dict)
    turns: Mapping[int, int] = field(default_factory=dict)
    spilled: frozenset[int] = frozenset()

    def after(self, epoch: int, slots: Sequence[KeyedReport]) -> KeyedHoldings:
        """With what the slots report of an epoch."""
        states, sizes, turns = self.states, dict(self.sizes), dict(self.turns)
        for report in slots:
            states = states.replaced(_refs(report.states))
            sizes |= {int(p): size for p, size in report.sizes.items()}
            turns |= {int(p): epoch for p, rows in report.tuples.items() if rows}
        carried = {p: refs for report in slots for p, refs in _refs(report.carried).items()}
        spilled = frozenset(int(p) for report in slots for p in report.spilled)
        return KeyedHoldings(states, StateMap(carried), sizes, turns, spilled)

    def succeeded(
        self, gone: Partitions, new: Partitions, parts: Mapping[int, Sequence[Part]]
    ) -> KeyedHoldings:
        """After some partitions were replaced by others, given what was measured of the parts of
        those that went."""
        left = {p.id for p in gone}
        heirs = {p.id for p in new}
        sizes = shared_out(self.sizes, gone, new, parts)
        turns = {p: epoch for p, epoch in self.turns.items() if p not in left}
        known = [self.turns[p] for p in left if p in self.turns]
        if len(known) == len(left):
            turns |= dict.fromkeys(heirs, min(known))
        spilled = self.spilled - left
        if self.spilled & left:
            spilled |= heirs
        return KeyedHoldings(
            inherited(self.states, gone, new), inherited(self.carried, gone, new),
            {p: round(size) for p, size in sizes.items()}, turns, spilled,
        )  # fmt: skip

    def segments(self) -> frozenset[str]:
        """All segments that are referred to."""
        return self.states.segments() | self.carried.segments()

    def to_dict(self) -> dict[str, Any]:
        """Fields of the manifest."""
        return {
            "states": self.states.to_dict(),
            "carried": self.carried.to_dict(),
            "sizes": {str(p): size for p, size in self.sizes.items()},
            "turns": {str(p): epoch for p, epoch in self.turns.items()},
            "spilled": sorted(self.spilled),
        }

    @classmethod
    def from_dict(cls, manifest: Mapping[str, Any]) -> KeyedHoldings:
        """As a manifest has them."""
        return cls(
            StateMap.from_dict(manifest["states"]), StateMap.from_dict(manifest["carried"]),
            {int(p): size for p, size in manifest["sizes"].items()},
            {int(p): epoch for p, epoch in manifest["turns"].items()},
            frozenset(manifest["spilled"]),
        )  # fmt: skip


def _refs(told: Mapping[str, list[list[Any]]]) -> dict[int, tuple[Ref, ...]]:
    return {int(p): tuple(Ref.of(ref) for ref in refs) for p, refs in told.items()}
