"""The five stages by which SWARM decides whether to rebalance: flip, bad, start, good, great.

A pointer moves right when throughput was enhanced and left when it was not. The decision of the
round before is kept as long as the pointer does not reach the left end; there it is flipped, and
the pointer goes back to the middle. A decision that was taken beta times is flipped as well.

Source: SWARM 4.3, figures 4.4 and 4.5; in the dissertation's text the page with the first half of
this is missing, so it is read from the paper of the same name (4.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from geoflux.balance.tuning import Tuning

Stage = Literal["flip", "bad", "start", "good", "great"]

STAGES: tuple[Stage, ...] = ("flip", "bad", "start", "good", "great")


@dataclass(frozen=True)
class Pointer:
    """Stage, decision, how often that decision was taken in a row, and the rate to compare with.

    What the text leaves open is read so: ``enhanced`` is strictly more than in the round before
    (by a margin, beyond the document, since times are measured); the first round, and one without
    a rate, has nothing to compare with and leaves the pointer where it is; flipping and going back
    to the middle happen within the round that reaches the left end, and its decision is the flipped
    one; a decision taken beta times is flipped in the round that follows.

    >>> pointer = Pointer()
    >>> for rate in (10.0, 10.0, 9.0):
    ...     pointer = pointer.after(rate, Tuning.published())
    >>> pointer.stage, pointer.rebalancing
    ('start', True)
    """

    stage: Stage = "start"
    rebalancing: bool = False
    taken: int = 0
    rate: float | None = None

    def after(self, rate: float | None, tuning: Tuning, alarmed: bool = False) -> Pointer:
        """The pointer after a round with this throughput, ``None`` where nothing was done. When
        ``alarmed``, doing nothing is over at once, and rebalancing is not given up: a hotspot that
        comes after a long calm would else have to push the pointer all the way from the right end
        to the left one, and one that grows faster than it is relieved would stop its relief."""
        if rate is None:
            return self
        if alarmed and not self.rebalancing:
            return Pointer("start", True, 1, rate)
        place = STAGES.index(self.stage)
        if self.rate is not None:
            enhanced = rate > self.rate * (1 + tuning.enhanced_by)
            if enhanced:
                place = min(place + 1, len(STAGES) - 1)
            else:
                place -= 1
        if place == 0 and alarmed:
            return Pointer("start", True, self.taken + 1, rate)
        if place == 0 or self.taken >= tuning.beta:
            return Pointer("start", not self.rebalancing, 1, rate)
        return Pointer(STAGES[place], self.rebalancing, self.taken + 1, rate)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Pointer:
        """What :meth:`to_dict` gave."""
        return cls(**values)
