"""How Guard judges: every threshold with its reason; as published, or withstanding evasion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from geoflux.guard.places import Reach

Mode = Literal["robust", "published"]

ROUNDS_SEEN = 5
"""Rounds that a sensor tells apart (Guard 5.3.1); older queries are told as one number."""


@dataclass(frozen=True)
class GuardTuning:
    """The knobs of Guard. The defaults are geoflux's own mode; what only that mode uses says so.

    >>> GuardTuning.published().mode
    'published'
    """

    mode: Mode = "robust"
    """``published`` is Algorithm 4 to the letter; ``robust`` judges every user by evidence."""
    observe_only: bool = False
    """Whether blocks are only noted: who would have been blocked, and why."""
    round_seconds: float = 60.0
    """Length of a detection round: several rounds of the balancer, so that more than one hotspot
    can show in it (Guard 5.2)."""
    factor: float = 3.0
    """The document's beta: by how much a rate must exceed the normal one. Not SWARM's beta, which
    counts rounds (trap 9)."""
    spread: float = 0.05
    """A cluster whose normalised ``Hotspot_Seq_New`` has a larger standard deviation is split
    again; the document says "large" and no number (trap 10)."""
    removal_rounds: tuple[int, int] = (5, 30)
    """A suspicion lapses after a number of rounds drawn from here, ends included (Guard 5.4)."""
    most_splits: int = 64
    """Splits of one round at most; each makes the cluster smaller, so this ends only odd cases."""
    sample: int = 10_000
    """Larger clusters are split by the centres of so many of their users, drawn at random."""
    seed: int = 1
    """Of k-means++, of removal times, and of the numbers that hotspots have in robust sums. Who
    knows it could aim at sums that collide: keep it to yourself."""
    block_seconds: float | None = None
    """How long a block lasts; ``None``: until an operator lifts it."""

    evidence_floor: float = 8.0
    """Robust: so many queries of the last rounds a user must have in a hotspot to be part of it.
    Nearly nobody is at home with fewer, and rates of small numbers say nothing (trap 11)."""
    least_rate: float = 0.1
    """Robust: so much of a user's recent queries must lie in the hotspot, whatever others do. With
    nobody normal in it the factor test alone would accuse anybody (trap 11)."""
    least_share: float = 0.05
    """Robust: so much of the partition's queries must be recent ones of its suspects; fewer have
    not made the hotspot."""
    familiar: float = 1.0
    """Robust: who has this many times as many older queries in the partition as recent ones lives
    there: a steady load, that no plan has to chase."""
    hotspots: int = 2
    """Robust: hotspots at places apart from each other that a user must be part of."""
    relocated_rate: float = 0.3
    """Robust: who moves into a hotspot with this share of their recent queries, ending as many
    elsewhere, is suspect without waiting for a second place, if it goes on while the plan is
    changed twice and they are no crowd. Above 1 it never happens."""
    judge_early: bool = True
    """Robust: whether to judge as soon as somebody was seen moving in, not only when a round ends:
    the plan may be changed three times in a round."""
    crowd_share: float = 0.2
    """Robust: a part of the active users as large as this is a crowd."""
    crowd_users: int = 30
    """Robust: and so is this number of users, however many there are altogether."""
    returns: int = 2
    """Robust: how often a user must have withdrawn from one place and come back to be as suspect as
    one who went elsewhere. Of decisions to scale, which have no place, only this counts."""
    withdrawn: float = 0.8
    """Robust: share of what was placed in a hotspot that must be gone to count as withdrawn."""
    place_margin: float = 0.5
    """Robust: places are one when they meet after each has grown by this many of its own sides."""
    least_place: float = 10.0
    """Robust: a place is at least so many cells wide: about a hundredth of the grid's side."""
    warm_up_rounds: int = 3
    """Robust: first rounds of a run, in which everything is new and nothing is evidence."""
    least_users: int = 5
    """Robust: so many other active users it takes to tell what is normal."""
    memory: float = 0.8
    """Robust: what is kept of the long-lived features from round to round (trap 11a)."""

    @property
    def reach(self) -> Reach:
        """How far apart places must be."""
        return Reach(self.place_margin, self.least_place)

    @classmethod
    def published(cls) -> GuardTuning:
        """Guard as the document has it (chapter 5)."""
        return cls(mode="published")
