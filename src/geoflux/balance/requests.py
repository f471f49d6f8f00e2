"""What a coordinator asks of slots, and what they answer: values that travel as plain ones.

A slot that is asked to give something away says which partitions it would move and which it would
cut into strips, with what that is predicted to come to; or that it cannot. Ids of new partitions
are given out when the answers are made changes of the plan, so they stay unique whoever answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from geoflux.plan import Change, GridPlan, Move, Split
from geoflux.stats import Axis


@dataclass(frozen=True)
class Receiver:
    """A slot that may be given something, and its cost now."""

    slot: int
    cost: float


@dataclass(frozen=True)
class Ask:
    """A slot is asked to give to others. A ``spare`` one is listened to only where the first choice
    left the receivers alone."""

    donor: int
    receivers: tuple[Receiver, ...]
    spare: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Ask:
        """What :meth:`to_dict` gave."""
        receivers = tuple(Receiver(**receiver) for receiver in values["receivers"])
        return cls(values["donor"], receivers, values["spare"])


@dataclass(frozen=True)
class Strips:
    """A partition cut before each of the rows or columns ``ats``, ascending; ``owners`` has the
    slot of every strip, one more than there are cuts."""

    partition: int
    axis: Axis
    ats: tuple[int, ...]
    owners: tuple[int, ...]


@dataclass(frozen=True)
class Reduction:
    """What a slot would give away, and the costs that it predicts. ``before`` and ``after`` are the
    donor's; ``receivers`` are given with their costs afterwards."""

    donor: int
    moves: tuple[Move, ...]
    strips: tuple[Strips, ...]
    before: float
    after: float
    receivers: tuple[Receiver, ...]

    @property
    def worst(self) -> float:
        """The highest cost of all concerned, afterwards."""
        return max(self.after, *(receiver.cost for receiver in self.receivers))

    @property
    def gain(self) -> float:
        """By how much the highest cost falls, as a share of the donor's.

        >>> Reduction(1, (Move(3, 2),), (), 10.0, 6.0, (Receiver(2, 8.0),)).gain
        0.2
        """
        return (self.before - self.worst) / self.before if self.before > 0 else 0.0


@dataclass(frozen=True)
class Cannot:
    """A slot that has nothing worth giving away, and why."""

    donor: int
    before: float
    reason: str


Answer = Reduction | Cannot


def answer_to_dict(answer: Answer) -> dict[str, Any]:
    """Plain values, for a slot's report.

    >>> answer_from_dict(answer_to_dict(Cannot(3, 5.0, "one cell")))
    Cannot(donor=3, before=5.0, reason='one cell')
    """
    return asdict(answer)


def answer_from_dict(values: Mapping[str, Any]) -> Answer:
    """What :func:`answer_to_dict` gave, also by way of JSON."""
    if "reason" in values:
        return Cannot(**values)
    return Reduction(
        values["donor"],
        tuple(Move(**move) for move in values["moves"]),
        tuple(
            Strips(s["partition"], s["axis"], tuple(s["ats"]), tuple(s["owners"]))
            for s in values["strips"]
        ),
        values["before"],
        values["after"],
        tuple(Receiver(**receiver) for receiver in values["receivers"]),
    )


def changes_of(plan: GridPlan, reductions: Iterable[Reduction]) -> tuple[Change, ...]:
    """The changes that carry reductions out, in an order in which the plan can apply them.

    >>> plan = GridPlan.initial(8, 4, slots=2)
    >>> west = plan.partitions[0]
    >>> cut = Strips(west.id, "columns", (1, 2), (1, 0, 1))
    >>> changes_of(plan, [Reduction(0, (), (cut,), 9.0, 3.0, (Receiver(1, 6.0),))])[1]
    Split(partition=4, axis='columns', at=2, first_to=0, second_to=1)
    """
    changes: list[Change] = []
    next_id = plan.next_id
    for reduction in reductions:
        changes += reduction.moves
        for cut in reduction.strips:
            partition = cut.partition
            for place, at in enumerate(cut.ats):
                owners = cut.owners[place], cut.owners[place + 1]
                changes.append(Split(partition, cut.axis, at, *owners))
                partition = next_id + 1
                next_id += 2
    return tuple(changes)
