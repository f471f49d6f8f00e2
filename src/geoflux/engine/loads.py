"""What an epoch's reports say of loads: of slots, for the policy; of partitions, for another number
of slots; and which slots a decision relieves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from geoflux.balance.policy import Decision, SlotLoad
from geoflux.balance.requests import answer_from_dict
from geoflux.engine.task import SlotReport
from geoflux.plan import GridPlan, Move, Split
from geoflux.state.held import Held

Expired = tuple[tuple[str, int, int, int, int], ...]
"""Segments that expired, with the cells of the partitions that received them."""
_EVENT = 16
"""What an event costs by itself, in checks, when loads of partitions are compared."""


def slot_loads(
    slots: Sequence[SlotReport], owners: Mapping[int, int], expired: Mapping[int, int]
) -> tuple[SlotLoad, ...]:
    """What each slot did, and how many of its events have gone; ``owners`` are those of the plan
    that the epoch ran under."""
    gone: Counter[int] = Counter()
    for partition, rows in expired.items():
        if partition in owners:  # what a retired one held is nobody's load any more
            gone[owners[partition]] += rows
    return tuple(
        SlotLoad(
            s.slot, s.processed, s.checks, s.queries, s.busy_seconds, gone[s.slot], s.cost,
            s.round_received, None if s.answer is None else answer_from_dict(s.answer),
        )
        for s in slots
    )  # fmt: skip


def partition_loads(slots: Sequence[SlotReport]) -> dict[int, float]:
    """What each partition cost, in checks."""
    return {
        int(partition): _EVENT * events + checks
        for s in slots
        for partition, (events, checks) in s.per_partition.items()
    }


def relieved(decision: Decision, owners: Mapping[int, int]) -> frozenset[int]:
    """The slots that are relieved by a decision."""
    given = [c.partition for c in decision.changes if isinstance(c, Move | Split)]
    return frozenset(owners[partition] for partition in given if partition in owners)


def expired_boxes(plan: GridPlan, expired: Sequence[Held]) -> Expired:
    """Where what expired had come in; the slots that own these cells now read it once more, to
    count what has gone."""
    known = {p.id: p for p in (*plan.partitions, *plan.retired)}
    places = [(held.segment, known[held.partition]) for held in expired]
    return tuple((name, p.col0, p.row0, p.col1, p.row1) for name, p in places)
