"""What Synopsis's policy decides by: an observation of the stage, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from geoflux.balance.policy import Observed
from geoflux.balance.synopsis_watch import Parts, SlotSeen, Watch
from geoflux.balance.taking_back import Evicted
from geoflux.plan import PrefixPlan


@dataclass(frozen=True)
class Memory:
    """All that the policy remembers."""

    watch: Watch = field(default_factory=Watch)
    evicted: tuple[Evicted, ...] = ()
    began: int | None = None
    """Slots at first; there are never fewer."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "watch": self.watch.to_dict(), "began": self.began,
            "evicted": [e.to_list() for e in self.evicted],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Memory:
        """What :meth:`to_dict` gave, also by way of JSON; nothing, of nothing."""
        if "watch" not in values:
            return cls()
        evicted = tuple(Evicted.of(e) for e in values["evicted"])
        return cls(Watch.from_dict(values["watch"]), evicted, values["began"])


@dataclass(frozen=True)
class Stage:
    """An observation of the whole stage, and the plan that it was made with."""

    plan: PrefixPlan
    seen: Observed
    slots: Mapping[int, SlotSeen]
    parts: Parts
    """What parts of partitions got in all of it, and hold."""

    def rows(self) -> dict[int, float]:
        """Rows of the observation by partition."""
        return {p: sum(part.rows for part in some) for p, some in self.parts.items()}

    def sizes(self) -> dict[int, int]:
        """Bytes by partition."""
        return {p: n for load in self.seen.loads if load.site for p, n in load.site.sizes.items()}
