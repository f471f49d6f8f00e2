"""How many slots somebody wants, asked between two epochs: a change of the plan like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from geoflux.balance.policy import Decision
from geoflux.errors import ConfigError
from geoflux.plan import Change, GridPlan, HashPlan, PrefixPlan, resized


@dataclass(frozen=True)
class Wanted:
    """A number of slots, and why."""

    slots: int
    reason: str = "as wanted"


WantedSlots = Callable[[], int | Wanted | None]
"""Asked when an epoch is committed; ``None``: whatever there are is right."""


def asked_for(
    ask: WantedSlots, plan: HashPlan | GridPlan | PrefixPlan,
    loads: Mapping[int, float] | None = None,
) -> tuple[tuple[Change, ...], str]:  # fmt: skip
    """The changes to as many slots as are wanted and can own something, and the reason in words;
    none where the plan has them."""
    found = ask()
    if found is None:
        return (), ""
    wanted = Wanted(found) if isinstance(found, int) else found
    if wanted.slots < 1:
        raise ConfigError(f"{wanted.slots} slots are wanted ({wanted.reason}); expected 1 or more")
    slots = min(wanted.slots, plan.most_slots)
    if slots == plan.slots:
        return (), ""
    reason = f"slots {plan.slots} to {slots}: {wanted.reason}"
    if slots < wanted.slots:
        reason += f"; {wanted.slots} were wanted, and no more can own anything"
    return resized(plan, slots, loads), reason


def with_slots(decision: Decision, changes: tuple[Change, ...], reason: str) -> Decision:
    """A policy's decision, and after it a change of the slots."""
    told = f"{decision.reason}; {reason}" if decision.reason else reason
    return replace(decision, changes=(*decision.changes, *changes), reason=told)
