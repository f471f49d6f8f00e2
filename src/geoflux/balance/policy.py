"""What a policy is: reports in, a decision out; "no change" is a decision too.

A policy may also give the slots something to do beside their work in the next epoch: close a round
of their statistics, and say what they could give away. Everything it remembers is in its state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.parts import Part
from geoflux.balance.requests import Answer, Ask
from geoflux.balance.tuning import Tuning
from geoflux.plan import Change
from geoflux.plan.changes import change_to_dict


@dataclass(frozen=True)
class SlotLoad:
    """What a policy may know of a slot. ``cost`` and ``received`` are what it sent because a round
    was closed, ``answer`` because it was asked."""

    slot: int
    events: int
    checks: int
    queries: int
    busy_seconds: float
    expired: int = 0
    """Retained events of its partitions that expired."""
    cost: float | None = None
    received: float | None = None
    answer: Answer | None = None
    site: SiteReport | None = None
    """Of a keyed operator: what its partitions took in, and what they hold."""
    load_seconds: float = 0.0
    """Of the busy ones, those in which states were opened."""
    arrivals: int = 0
    """Of a keyed operator: rows that came in the epoch."""
    waiting: int = 0
    """Rows that it handed back."""
    parts: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)
    """By partition what its parts got and hold, where the policy asks for it."""


@dataclass(frozen=True)
class Observed:
    """What an epoch showed: when it ended, what its slots reported, whether they closed a round,
    and the number that the next query will get."""

    epoch: int
    now: float
    loads: tuple[SlotLoad, ...]
    closed: bool = False
    next_number: int = 0


@dataclass(frozen=True)
class Orders:
    """What slots do beside their work in an epoch. ``marks`` are the numbers of the first queries
    of the last closed round and of the one under way.

    >>> Orders.from_dict(Orders(True, (), (3, 9)).to_dict())
    Orders(close=True, asks=(), marks=(3, 9))
    """

    close: bool = False
    asks: tuple[Ask, ...] = ()
    marks: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the intent."""
        return {
            "close": self.close, "asks": [ask.to_dict() for ask in self.asks],
            "marks": list(self.marks),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Orders:
        """What :meth:`to_dict` gave, also by way of JSON."""
        asks = tuple(Ask.from_dict(ask) for ask in values["asks"])
        return cls(values["close"], asks, (values["marks"][0], values["marks"][1]))


@dataclass(frozen=True)
class Decision:
    """Changes to apply before the next epoch, in order, and why; none is a decision as well."""

    changes: tuple[Change, ...]
    reason: str
    round: Mapping[str, Any] | None = field(default=None, compare=False)
    """What was seen of a round that this epoch closed, for displays."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        changes = [change_to_dict(change) for change in self.changes]
        return {"decision": {"reason": self.reason, "changes": changes}, "round": self.round}


class Policy(ABC):
    """Turns what was observed in an epoch into a decision; ``state`` is all that it remembers
    (plain values: it is kept in the manifest, so a restarted driver goes on where the last one
    was)."""

    tuning: Tuning | None = None
    """What slots measure and search by; ``None``: they keep no statistics."""
    measures: ClassVar[bool] = False
    """Whether slots tell of the parts of their partitions (:mod:`geoflux.balance.parts`)."""

    def orders(self, now: float, state: Mapping[str, Any]) -> Orders:
        """What the slots are to do in the epoch that opens now."""
        return Orders()

    def resized(self, state: dict[str, Any]) -> dict[str, Any]:
        """Its state once there are more slots or fewer: nothing that was seen of the slots before
        is held against those that are there now."""
        return state

    @abstractmethod
    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        """The decision after an epoch, and the policy's state from now on."""


class Static(Policy):
    """The baselines' policy: the plan never changes."""

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        """No change, ever."""
        return Decision((), "static plan"), state
