"""Compaction: few segments per partition, each event rewritten a few times at most.

Segments fall into tiers by size, each eight times the one below. Eight of a tier, with whatever
smaller ones lie between them, become one of the next tier. Only neighbours in the order of epochs
are joined, so that a segment still stands for one stretch of time and expires as a whole.

Source: size-tiered compaction of log-structured merge trees, with the order of time windows.
"""

from __future__ import annotations

from collections.abc import Sequence

from geoflux.operators.events import Events
from geoflux.operators.retained import (
    RetainedEvents,
    merged_events,
    open_retained,
    write_retained,
)
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.state.held import Held, Kept
from geoflux.state.store import Store

FAN_IN = 8
SMALLEST_TIER = 8_192
MOST_ROWS = 1 << 20

_NEW = ""
"""Name of the segment that is not written yet."""


def tier_of(rows: int) -> int:
    """The tier of a segment.

    >>> [tier_of(rows) for rows in (10, 8_191, 8_192, 65_536)]
    [0, 0, 1, 2]
    """
    tier, limit = 0, SMALLEST_TIER
    while rows >= limit:
        tier, limit = tier + 1, limit * FAN_IN
    return tier


def to_compact(segments: Sequence[Held]) -> tuple[Held, ...]:
    """Neighbours among a partition's segments (oldest first) to make one of; none if it does not
    pay, or would make more than :data:`MOST_ROWS` rows."""
    tiers = [tier_of(held.rows) for held in segments]
    for tier in sorted(set(tiers)):
        members: list[int] = []
        for place, other in enumerate(tiers):
            if other > tier:
                members.clear()
            if other == tier:
                members.append(place)
            if len(members) < FAN_IN:
                continue
            run = tuple(segments[members[0] : place + 1])
            if sum(held.rows for held in run) <= MOST_ROWS:
                return run
            members.pop(0)
    return ()


def retain(
    where: tuple[Store, Grid, Partition], held: Sequence[Held], events: Events, epoch: int
) -> tuple[Kept, ...]:
    """Retain the events that a partition got in an epoch: what was written, in place of what.

    ``held`` are the segments of this very partition, oldest first. Where the new segment would be
    compacted at once only the compacted one is written.
    """
    store, grid, partition = where
    if len(events) == 0:
        return ()
    new = Held(_NEW, partition.id, len(events), 0, 0, 0, epoch, epoch)
    run = to_compact([*held, new])
    if not run:
        return (Kept(write_retained(store, grid, partition, events, (epoch, epoch))),)
    if run[-1].segment != _NEW:
        fresh = Kept(write_retained(store, grid, partition, events, (epoch, epoch)))
        return fresh, compacted(where, run)
    return (compacted(where, run[:-1], (events, epoch)),)


def compacted(
    where: tuple[Store, Grid, Partition],
    run: Sequence[Held],
    more: tuple[Events, int] | None = None,
) -> Kept:
    """One segment with the events of several of a partition, and of an epoch that follows."""
    store, grid, partition = where
    parts: list[RetainedEvents | Events] = []
    parts += [open_retained(store, held.segment) for held in run]
    last = run[-1].last_epoch
    if more is not None:
        parts.append(more[0])
        last = more[1]
    events = merged_events(parts)
    held = write_retained(store, grid, partition, events, (run[0].first_epoch, last))
    return Kept(held, tuple(old.segment for old in run))
