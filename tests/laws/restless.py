"""A policy that changes the plan after most epochs, by a list of numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from geoflux.balance.policy import Decision, Observed, Orders, Policy
from geoflux.balance.requests import Ask, Receiver
from geoflux.balance.tuning import Tuning
from geoflux.plan import GridPlan, Merge, Move, Split


class Restless(Policy):
    """Closes a round every so many epochs, asks a slot in the others, and changes the plan after
    most epochs, several times; by a list of numbers. It uses none of the answers."""

    def __init__(self, numbers: list[list[int]], every: int, memory: float) -> None:
        self.tuning = Tuning(memory=memory)
        self._numbers = numbers
        self._every = every

    def orders(self, now: float, state: Mapping[str, Any]) -> Orders:
        epoch = state.get("epochs", 0)
        marks = state.get("marks", [0, 0])
        asks = (Ask(epoch % 2, (Receiver(0, 0.0),)),)
        return Orders((epoch + 1) % self._every == 0, asks, (marks[0], marks[1]))

    def decide(self, seen: Observed, plan: GridPlan, state: dict[str, Any]) -> Any:
        marks = state.get("marks", [0, 0])
        if seen.closed:
            marks = [marks[1], seen.next_number]
        changes: list[Any] = []
        for number in self._numbers[seen.epoch % len(self._numbers)]:
            for change in change_of(plan, number):
                with contextlib.suppress(ValueError, KeyError):
                    plan = plan.apply(change)
                    changes.append(change)
        state = {"epochs": state.get("epochs", 0) + 1, "marks": marks}
        return Decision(tuple(changes), "restless"), state


def change_of(plan: GridPlan, number: int) -> Iterable[Any]:
    """A change, or a split that is taken back at once, whole or in another way."""
    p, to = plan.partitions[number % len(plan.partitions)], number % plan.slots
    columns = Split(p.id, "columns", p.col0 + 1 + number % max(p.columns - 1, 1), to, p.slot)
    rows = Split(p.id, "rows", p.row0 + 1 + number % max(p.rows - 1, 1), p.slot, to)
    kind = number % 6
    if kind == 0:
        return [Move(p.id, to)]
    if kind == 1:
        return [Merge(p.id, other.id, to) for other in plan.partitions][:: number % 2 or -1]
    if kind == 2:
        return [columns, Merge(plan.next_id, plan.next_id + 1, to)]
    if kind == 3:
        low = plan.next_id  # cut in four, and put together in two the other way
        mine = Split(low, "rows", rows.at, to, p.slot), Split(low + 1, "rows", rows.at, to, to)
        return [columns, *mine, Merge(low + 2, low + 4, to), Merge(low + 3, low + 5, p.slot)]
    return [columns] if kind == 4 else [rows]
