"""What a policy is: reports in, a decision out; "no change" is a decision too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from geoflux.plan import Change


@dataclass(frozen=True)
class SlotLoad:
    """What a policy may know of a slot."""

    slot: int
    events: int
    checks: int
    queries: int
    busy_seconds: float
    expired: int = 0
    """Retained events of its partitions that expired."""


@dataclass(frozen=True)
class Decision:
    """Changes to apply before the next epoch, in order, and why; none is a decision as well."""

    changes: tuple[Change, ...]
    reason: str


class Policy(Protocol):
    """Turns what was observed in an epoch into a decision; ``state`` is all that it remembers."""

    def decide(
        self, epoch: int, loads: tuple[SlotLoad, ...], plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:
        """The decision after an epoch, and the policy's state from now on (plain values: it is
        kept in the manifest, so that a restarted driver goes on where the last one was)."""
        ...


class Static:
    """The baselines' policy: the plan never changes."""

    def decide(
        self, epoch: int, loads: tuple[SlotLoad, ...], plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:
        """No change, ever."""
        return Decision((), "static plan"), state
