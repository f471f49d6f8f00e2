"""Which prefixes a slot gives away, and to whom: by their rows and bytes, the fewest that do.

Candidates are all prefixes of the slot's partitions as far as parts were measured, whole partitions
included. The one that gains most without going beyond what is to be given away comes first, and so
on; of those that gain the same the one that costs least of the other (bytes to open anew, rows that
move). Nothing is given to a slot that could not take it; of those that can, slots that hold
neighbours come first, so that few slots share a region.

Source: Synopsis 3.6 (planning; preferred nodes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from geoflux.balance.parts import Part
from geoflux.plan import PrefixPartition, PrefixPlan, SplitPrefix
from geoflux.plan.changes import Change, Move
from geoflux.plan.prefixes import Bits, both, named, shared, upward

_BEYOND = 1.1
"""A piece may gain so much more than what is left to give away."""
_ENOUGH = 0.9
"""Of what was to be given away, what is enough."""
_UNLIKE = 0.1
"""Slots are evened out where one would give away this share of its rows, at least."""


@dataclass(frozen=True)
class Candidate:
    """A prefix that could be given away: the partition that it is of, rows that come to it, bytes
    that it holds."""

    area: Bits
    of: PrefixPartition
    rows: float
    bytes: float


@dataclass(frozen=True)
class Wish:
    """How much a slot is to give away."""

    by: Literal["rows", "bytes"]
    amount: float

    def gain(self, candidate: Candidate) -> float:
        """What giving it away brings."""
        return candidate.rows if self.by == "rows" else candidate.bytes

    def cost(self, candidate: Candidate) -> float:
        """What moves along."""
        return candidate.bytes if self.by == "rows" else candidate.rows


@dataclass(frozen=True)
class Room:
    """What a slot can take: rows and bytes; and the prefixes that it holds."""

    slot: int
    rows: float
    bytes: float
    holds: tuple[Bits, ...] = ()

    def fits(self, candidate: Candidate) -> bool:
        """Whether it can take a prefix."""
        return candidate.rows <= max(self.rows, 0.0) and candidate.bytes <= self.bytes

    def taking(self, candidate: Candidate) -> Room:
        """What is left once it has."""
        return replace(
            self, rows=self.rows - candidate.rows, bytes=self.bytes - candidate.bytes,
            holds=(*self.holds, candidate.area),
        )  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """A prefix that is given away, the slot that gets it, and whether that holds neighbours."""

    candidate: Candidate
    to: int
    neighbour: bool = field(default=False, compare=False)


def candidates(
    partitions: Iterable[PrefixPartition], parts: Mapping[int, Sequence[Part]],
    sizes: Mapping[int, int],
) -> list[Candidate]:  # fmt: skip
    """All that a slot with these partitions could give away.

    >>> p = PrefixPartition(7, 1, 1, slot=0)
    >>> found = candidates([p], {7: [Part(4, 3, 5, 10), Part(7, 3, 1, 30)]}, {7: 40})
    >>> [(c.area, c.rows, c.bytes) for c in found]
    [((4, 3), 5, 10), ((2, 2), 5, 10), ((1, 1), 6, 40), ((7, 3), 1, 30), ((3, 2), 1, 30)]
    """
    found: dict[Bits, Candidate] = {}
    for p in partitions:
        for area, rows, held in _leaves(p, parts.get(p.id, ()), sizes.get(p.id, 0)):
            for bits in range(area[1], p.bits - 1, -1):
                above = upward(area, bits)
                known = found.get(above, Candidate(above, p, 0, 0))
                found[above] = replace(known, rows=known.rows + rows, bytes=known.bytes + held)
    return list(found.values())


def _leaves(
    p: PrefixPartition, parts: Sequence[Part], size: int
) -> list[tuple[Bits, float, float]]:
    """The parts of a partition as they were measured; bytes that are not told follow the rows."""
    rows = sum(part.rows for part in parts)
    if not parts:
        return [(p.area, 0, size)]
    if any(part.bytes is None for part in parts):
        share = [part.rows / rows if rows else 1 / len(parts) for part in parts]
        return [(q.area, q.rows, size * s) for q, s in zip(parts, share, strict=True)]
    return [(part.area, part.rows, part.bytes or 0) for part in parts]


def chosen(
    found: Sequence[Candidate], wish: Wish, rooms: Sequence[Room], regions: Sequence[Bits],
    most: int,
) -> list[Piece]:  # fmt: skip
    """What is given away, and to whom. ``regions`` are the prefixes that the slot once had as a
    whole: who holds something of the same one is a neighbour.

    Guarantee: pieces are apart, no room is taken twice, and the slot keeps something of what is
    measured by ``wish``.
    """
    pieces: list[Piece] = []
    rooms, left = list(rooms), wish.amount
    most_of_all = sum(wish.gain(c) for c in found if c.area == c.of.area)
    while len(pieces) < most and left > (1 - _ENOUGH) * wish.amount:
        free = [
            c for c in found
            if wish.gain(c) > 0 and not any(both(c.area, p.candidate.area) for p in pieces)
            and any(room.fits(c) for room in rooms)
        ]  # fmt: skip
        fitting = [c for c in free if wish.gain(c) <= _BEYOND * left]
        if fitting:
            best = min(fitting, key=lambda c: (-wish.gain(c), wish.cost(c), c.area[1], c.area))
        elif not pieces and free:
            # All that is there is more than was asked for: the least of it, if the slot keeps any.
            best = min(free, key=lambda c: (wish.gain(c), wish.cost(c), c.area[1], c.area))
            if wish.gain(best) >= most_of_all:
                break
        else:
            break
        room, neighbour = _receiver(best, rooms, regions)
        rooms[rooms.index(room)] = room.taking(best)
        pieces.append(Piece(best, room.slot, neighbour))
        left -= wish.gain(best)
    return pieces


def evened(
    found: Sequence[Candidate], mine: float, others: Sequence[tuple[float, Room]], most: int
) -> list[Piece]:
    """What a slot with so many rows gives to whoever of the others (each with its rows) has fewest:
    about half of the difference, whether it can do that or not; nothing, where they differ
    little."""
    if not others:
        return []
    theirs, room = min(others, key=lambda other: (other[0], other[1].slot))
    half = (mine - theirs) / 2
    if half < _UNLIKE * mine:
        return []
    return chosen(found, Wish("rows", half), [replace(room, rows=half)], (), most)


def in_words(pieces: Sequence[Piece], wish: Wish, whole: float) -> str:
    """What is given away, of so much in all, in words."""
    share = sum(wish.gain(piece.candidate) for piece in pieces) / max(whole, 1)
    some = ", ".join(
        f"{named(piece.candidate.area)} to slot {piece.to}"
        + (" (a neighbour)" if piece.neighbour else "")
        for piece in pieces
    )
    return f"it gives away {share:.0%} of its {wish.by}: {some}"


def _receiver(
    candidate: Candidate, rooms: Sequence[Room], regions: Sequence[Bits]
) -> tuple[Room, bool]:
    """Who gets a prefix: of those that can take it the nearest neighbour, or else whoever has most
    room; and whether it is a neighbour."""
    least = min((r[1] for r in regions if both(r, candidate.area)), default=candidate.of.bits)
    near = {
        room.slot: max((shared(candidate.area, area) for area in room.holds), default=-1)
        for room in rooms
    }
    best = min(
        (room for room in rooms if room.fits(candidate)),
        key=lambda r: (-near[r.slot] if near[r.slot] >= least else 0, -r.rows, -r.bytes, r.slot),
    )
    return best, near[best.slot] >= least


def as_changes(pieces: Sequence[Piece], plan: PrefixPlan) -> list[Change]:
    """The changes that give pieces away: partitions that go as a whole move, the others are split,
    each once."""
    changes: list[Change] = []
    for p in plan.partitions:
        mine = [piece for piece in pieces if piece.candidate.of.id == p.id]
        if mine and mine[0].candidate.area == p.area:
            changes.append(Move(p.id, mine[0].to))
        elif mine:
            cut = tuple((*piece.candidate.area, piece.to) for piece in mine)
            changes.append(SplitPrefix(p.id, cut))
    return changes
