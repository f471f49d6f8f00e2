"""The parameters of Flux's policies: as published, or with the minimum that tunes itself.

The values of the experiments are damaged in the text that we have. What can be read: the digits
that are left of the imbalance factor are "?.2", and 1.2 is also where the figure with one perturbed
site settles (32 of its 64 partitions left: 1.15; 34 left: 1.22); the minimum is "10 ms", written
like the 10 of "10^5"; of the receiver's bound only "0.?" is left, and we take 0.9.

With 1.2 and 0.9 a state may be left as it is although the busiest site, and with it the whole
stage, has a tenth more than its share. In 10 ms a site of the paper processes some 220 tuples, and
chance alone explains an imbalance of 1.2 (three standard deviations). Who has counted more can be
stricter: ours goes down to 1.1 and up to 0.95 (at 1.05 it overreacts to skewed input again).

Source: Flux 5.3, 5.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from geoflux.errors import ConfigError

_SIGMAS = 3.0
"""Beyond so many standard deviations nothing is taken for chance."""
PolicyKind = Literal["load", "memory", "hybrid"]


@dataclass(frozen=True)
class FluxTuning:
    """The knobs of the controller.

    >>> FluxTuning.published().self_tuning, FluxTuning(collect_min=0.25).collect_min
    (False, 0.25)
    """

    kind: PolicyKind = "hybrid"
    """What is balanced: utilisation, memory, or memory first and then utilisation."""
    imbalance: float = 1.2
    """A donor gives only when its utilisation is at least this multiple of the receiver's; from 1.
    For memory: the same of how full their memories are, unless the donor's states do not fit."""
    receiver_below: float = 0.9
    """A receiver whose utilisation is above this gets nothing; above 0, to 1."""
    strictest: float = 1.1
    """With ``self_tuning``, the imbalance that is acted on where enough tuples were counted that it
    is not chance; where it is less than ``imbalance``."""
    collect_min: float = 0.010
    """Seconds that a collection phase takes at least; above 0."""
    self_tuning: bool = True
    """Whether the minimum grows from ``collect_min`` when moves do not bring what they promised,
    and the two bounds become stricter the more tuples were counted."""
    collect_max: float = 0.5
    """Seconds beyond which the minimum does not grow by itself. In the paper 0.25 is enough; longer
    phases only put off what has to be done."""
    again_within: int = 16
    """A partition that moves again within so many rounds should not have moved; at least 1."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {getattr(self, name)!r}: expected {expected}"
            for name, good, expected in (
                ("kind", self.kind in ("load", "memory", "hybrid"), "load, memory or hybrid"),
                ("imbalance", self.imbalance >= 1, "at least 1"),
                ("receiver_below", 0 < self.receiver_below <= 1, "above 0, up to 1"),
                ("strictest", self.strictest > 1, "above 1"),
                ("collect_min", self.collect_min > 0, "more than 0 seconds"),
                ("collect_max", self.collect_max > 0, "more than 0 seconds"),
                ("again_within", self.again_within >= 1, "at least 1 round"),
            )
            if not good
        ]
        if problems:
            raise ConfigError.of(problems)

    def bounds(self, tuples: int) -> tuple[float, float]:
        """The least imbalance that is acted on, and the utilisation above which a site receives
        nothing, where the site that processed less processed so many tuples.

        >>> FluxTuning().bounds(100), FluxTuning().bounds(100_000), FluxTuning.published().bounds(9)
        ((1.2, 0.9), (1.1, 0.95), (1.2, 0.9))
        """
        if not self.self_tuning or self.imbalance <= self.strictest:
            return self.imbalance, self.receiver_below
        sure = max(self.strictest, 1 + _SIGMAS / math.sqrt(max(tuples, 1)))
        least = min(self.imbalance, sure)
        kept = (1 - self.receiver_below) * (least - 1) / (self.imbalance - 1)
        return least, round(1 - kept, 9)

    @classmethod
    def published(cls, **changed: Any) -> FluxTuning:
        """As in the experiments of the paper: the minimum stays where it is put."""
        return cls(self_tuning=False, **changed)
