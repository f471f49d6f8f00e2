"""Synopsis as the policy of a run: slots that do not keep up give regions away, and take them back.

Monitor, analyse, plan, execute: epochs add up to observations (``synopsis_watch``); a slot whose
backlog grows or whose memory fills up for several of them gives away as many of its prefixes as it
takes (``evictions``); one that is calm for several takes a single region back (``taking_back``).
One operation at a time, and then a rest, in which nothing is judged. An operation is a change of
the plan between two epochs, so that neither locks nor forwarding are needed.

Beyond the paper: how much to give away follows from what the slot could do when it was behind; and
a region is taken back only if slot and region together need clearly less than that, so that a
steady load leads to no further operation. A load far beyond all slots is shared evenly.

Source: Synopsis 3.6, 3.7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from geoflux.balance.evictions import (
    Candidate,
    Piece,
    Room,
    Wish,
    as_changes,
    candidates,
    chosen,
    evened,
    in_words,
)
from geoflux.balance.policy import Decision, Observed, Policy
from geoflux.balance.synopsis_stage import Memory, Stage
from geoflux.balance.synopsis_tuning import SynopsisTuning
from geoflux.balance.synopsis_watch import SlotSeen, Watch
from geoflux.balance.taking_back import (
    Evicted,
    amounts,
    left,
    outermost,
    region_of,
    still_there,
    taken_back,
)
from geoflux.plan import PrefixPlan
from geoflux.plan.changes import Change, Resize
from geoflux.plan.prefixes import named

_LEAST, _MOST = 0.1, 0.9
"""What is given away at least and at most, as a share of what a slot has."""
_KNOWN = 0.1
"""A slot that did less than this share of what another did is taken to be as fast as that one."""


class SynopsisPolicy(Policy):
    """Gives regions away and takes them back, as backlog and memory of the slots call for.

    Guarantee: decisions are a pure function of what is observed and of the state. With
    ``most_slots`` in the tuning it also adds slots where nobody can take anything, and lets them go
    again; without it the number of slots is somebody else's, and it only places.
    """

    measures = True

    def __init__(self, tuning: SynopsisTuning | None = None) -> None:
        self._tuning = tuning or SynopsisTuning()

    def resized(self, state: dict[str, Any]) -> dict[str, Any]:
        """Nothing that was seen before is held against the slots that are there now."""
        known = Memory.from_dict(state)
        return replace(known, watch=known.watch.rested(self._tuning.rest)).to_dict()

    def decide(
        self, seen: Observed, plan: PrefixPlan, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        """Go on watching, or end an observation: give away, take back, or leave it."""
        tuning, known = self._tuning, Memory.from_dict(state)
        evicted = still_there(known.evicted, plan)
        known = replace(known, evicted=evicted, began=known.began or plan.slots)
        if known.watch.since is None:
            watch = known.watch.judged((), seen, tuning)
            return Decision((), ""), replace(known, watch=watch).to_dict()
        watch = known.watch.with_epoch(seen)
        if seen.now - (watch.since or 0.0) < tuning.observe:
            return Decision((), ""), replace(known, watch=watch).to_dict()
        slots = watch.slots(seen)
        stage = Stage(plan, seen, {slot.slot: slot for slot in slots}, watch.parts)
        known = replace(known, watch=watch.judged(slots, seen, tuning))
        changes, reason, after = self._operated(stage, known)
        if changes:
            after = replace(after, watch=after.watch.rested(tuning.rest))
        resting = watch.rest > 0
        told = {
            "number": seen.epoch, "stage": "resting" if resting else "watching",
            "rebalancing": bool(changes), "costs": [slot.waiting for slot in slots],
            "received": [slot.arrivals for slot in slots], "busy": [slot.busy for slot in slots],
            "asked": [],
        }  # fmt: skip
        return Decision(tuple(changes), reason, told), after.to_dict()

    def _operated(self, stage: Stage, known: Memory) -> tuple[list[Change], str, Memory]:
        """The one operation that is due, if any: relief of memory first, then of load, and only if
        nobody needs any is something taken back."""
        watch, hold = known.watch, self._tuning.hold
        full = [s for s in stage.slots.values() if watch.full.get(s.slot, 0) >= hold]
        behind = [s for s in stage.slots.values() if watch.behind.get(s.slot, 0) >= hold]
        full.sort(key=lambda s: (-s.bytes / (s.capacity or 1), s.slot))
        behind.sort(key=lambda s: (-s.waiting / max(s.processed, 1), s.slot))
        helpless = ""
        for slot, wish in [*((s, self._bytes(s)) for s in full),
                           *((s, self._rows(s)) for s in behind)]:  # fmt: skip
            changes, reason, after = self._scaled_out(stage, known, slot, wish)
            if changes:
                return changes, reason, after
            helpless = helpless or reason
        if helpless:
            return [], helpless, known
        return self._scaled_in(stage, known)

    def _rows(self, slot: SlotSeen) -> Wish:
        """What a slot that is behind gives away: all beyond what it can do with ease."""
        beyond = slot.arrivals - self._tuning.headroom * slot.processed
        return Wish("rows", _clipped(beyond, slot.arrivals))

    def _bytes(self, slot: SlotSeen) -> Wish:
        aim = self._tuning.memory_aim * (slot.capacity or 0)
        return Wish("bytes", _clipped(slot.bytes - aim, slot.bytes))

    def _scaled_out(
        self, stage: Stage, known: Memory, donor: SlotSeen, wish: Wish
    ) -> tuple[list[Change], str, Memory]:
        mine = [p for p in stage.plan.partitions if p.slot == donor.slot]
        found = candidates(mine, stage.parts, stage.sizes())
        regions = [e.whole for e in known.evicted if e.home == donor.slot]
        # A slot that is behind has used up its time; otherwise there is all that passes.
        time = donor.busy if wish.by == "rows" else donor.seconds
        rooms, most = self._rooms(stage, known, donor, time), self._tuning.most_pieces
        pieces = chosen(found, wish, rooms, regions, most)
        gained = sum(wish.gain(piece.candidate) for piece in pieces)
        changes: list[Change] = []
        if gained < wish.amount / 2 and stage.plan.slots < (self._tuning.most_slots or 0):
            new = self._room(donor, donor, time, stage.plan.slots)
            new = replace(new, rows=new.rows + donor.arrivals, bytes=new.bytes + donor.bytes)
            pieces = chosen(found, wish, [*rooms, new], regions, most)
        if not pieces and wish.by == "rows":
            pieces = self._shared(stage, known, donor, found)
        if any(piece.to == stage.plan.slots for piece in pieces):
            changes.append(Resize(stage.plan.slots + 1))
        why = self._why(donor, known.watch)
        if not pieces:
            return [], f"{why}, but no slot can take anything of it", known
        changes += as_changes(pieces, stage.plan)
        limit = donor.processed / donor.seconds if wish.by == "rows" else None
        gone = tuple(
            Evicted(piece.candidate.area, donor.slot,
                    outermost(known.evicted, donor.slot, piece.candidate.of.area), limit)
            for piece in pieces
        )  # fmt: skip
        whole = donor.arrivals if wish.by == "rows" else donor.bytes
        reason = f"scale out: {why}; {in_words(pieces, wish, whole)}"
        if isinstance(changes[0], Resize):
            reason += f"; slot {stage.plan.slots} is new"
        return changes, reason, replace(known, evicted=(*known.evicted, *gone))

    def _shared(
        self, stage: Stage, known: Memory, donor: SlotSeen, found: Sequence[Candidate]
    ) -> list[Piece]:
        """Where even the least that could be given away is more than any slot can do: whoever has
        least to do gets half of the difference, so that as many as there may be work on it."""
        rooms = self._rooms(stage, known, donor, donor.busy)
        others = [(float(stage.slots[room.slot].arrivals), room) for room in rooms]
        if stage.plan.slots < (self._tuning.most_slots or 0):
            free = math.inf if donor.capacity is None else self._tuning.memory_aim * donor.capacity
            others.append((0.0, Room(stage.plan.slots, 0.0, free)))
        return evened(found, donor.arrivals, others, self._tuning.most_pieces)

    def _rooms(self, stage: Stage, known: Memory, donor: SlotSeen, time: float) -> list[Room]:
        """What the other slots can take; those in need themselves nothing."""
        watch = known.watch
        return [
            replace(
                self._room(slot, donor, time, slot.slot),
                holds=tuple(p.area for p in stage.plan.partitions if p.slot == slot.slot),
            )
            for slot in stage.slots.values()
            if slot.slot != donor.slot
            and not (watch.behind.get(slot.slot) or watch.full.get(slot.slot))
        ]

    def _room(self, slot: SlotSeen, donor: SlotSeen, time: float, number: int) -> Room:
        """What a slot can take beside what it has: as many rows as it could do in so many seconds
        with ease. One that did next to nothing is taken to be as fast as whoever gives away."""
        tuning = self._tuning
        knows = slot.busy > 0 and slot.processed >= _KNOWN * donor.processed
        by = slot if knows else donor
        can = time * by.processed / by.busy if by.busy > 0 else math.inf
        free = math.inf
        if slot.capacity is not None:
            free = tuning.memory_aim * slot.capacity - slot.bytes
        return Room(number, tuning.headroom * can - slot.arrivals, free)

    def _scaled_in(self, stage: Stage, known: Memory) -> tuple[list[Change], str, Memory]:
        """Take the region back that was given away last, of those whose owners can."""
        rows, sizes = stage.rows(), stage.sizes()
        for number in reversed(range(len(known.evicted))):
            gone = known.evicted[number]
            region = region_of(known.evicted, number)
            came = amounts(region, gone.home, stage.plan, rows)
            held = amounts(region, gone.home, stage.plan, sizes)
            if not self._can_return(stage.slots[gone.home], gone, known.watch, came, held):
                continue
            change = taken_back(known.evicted, number, stage.plan)
            known = replace(known, evicted=left(known.evicted, number))
            if change is None:
                return [], "", known
            changes = [change, *self._fewer(stage.plan.apply(change), known)]
            calm = known.watch.calm[gone.home]
            reason = (
                f"scale in: slot {gone.home} was calm for {calm} observations; it takes "
                f"{named(gone.area)} back"
            )
            if region != gone.area:
                reason += f", and has {named(region)} as one again"
            return changes, reason, known
        return [], "", known

    def _can_return(
        self, home: SlotSeen, gone: Evicted, watch: Watch, came: float, held: float
    ) -> bool:
        tuning = self._tuning
        if watch.calm.get(home.slot, 0) < tuning.calm:
            return False
        if home.capacity is not None and home.bytes + held > tuning.memory_aim * home.capacity:
            return False
        rate = (home.arrivals + came) / home.seconds
        return gone.limit is None or rate <= tuning.return_below * gone.limit

    def _fewer(self, plan: PrefixPlan, known: Memory) -> list[Change]:
        """Let the last slots go that own nothing, where this policy has added them."""
        if self._tuning.most_slots is None or known.began is None:
            return []
        needed = max(known.began, int(plan.owners.max()) + 1)
        return [Resize(needed)] if needed < plan.slots else []

    def _why(self, slot: SlotSeen, watch: Watch) -> str:
        held = max(watch.full.get(slot.slot, 0), watch.behind.get(slot.slot, 0))
        if watch.full.get(slot.slot, 0) >= self._tuning.hold and slot.capacity:
            state = f"has {slot.bytes / slot.capacity:.0%} of its memory in use"
        else:
            state = f"has a backlog of {slot.waiting:,} rows, {slot.growth:+,}"
        return f"slot {slot.slot} {state}, for {held} observations"


def _clipped(amount: float, of: float) -> float:
    return min(max(amount, _LEAST * of), _MOST * of)
