"""How SWARM balances: as published, or with what geoflux adds; each addition is a switch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from geoflux.sections import SwarmConfig
from geoflux.settings import seconds
from geoflux.stats import CostModel


@dataclass(frozen=True)
class Tuning:
    """The knobs of the balancer. The defaults are geoflux's own mode.

    >>> Tuning.published().cost, Tuning.published().pairs
    ('published', 1)
    """

    cost: CostModel = "work"
    """``work`` done, or ``published``: N x Q x R."""
    pairs: int = 8
    """Slots that may be given something in one round, at least 1."""
    multiway: bool = True
    """Whether one slot may give to several at once, cutting a partition into several strips."""
    selective: bool = True
    """Whether to leave a balanced system alone, and to put slots that could not be relieved behind
    those that can. The document asks the highest slot, whatever its cost."""
    wake: float = 0.10
    """A settled system is left alone until its busiest slot costs this much more than the mean; it
    is then balanced until nothing is left to gain."""
    ask_ahead: int = 3
    """Further slots that are asked in the same go, in case the first ones cannot."""
    least_gain: float = 0.05
    """A reduction that lowers the higher of the costs concerned by less is not made; 0 to 1."""
    enhanced_by: float = 0.05
    """Throughput counts as enhanced when it rose by more than this share: measured times are noisy,
    and noise would keep a bad plan for long. 0 as published."""
    alarm: float | None = 0.25
    """Once the busiest slot costs this much more than the mean, rebalancing begins whatever the
    throughput says. ``None``, as published: only throughput decides."""
    beta: int = 20
    """Rounds after which the same decision is flipped whatever the throughput says."""
    round_seconds: float = 15.0
    """Time between the ends of two rounds."""
    memory: float = 0.0
    """Weight of earlier rounds in the work; 0 to below 1."""
    forecast: float = 0.0
    """How far a slot's growth since the last round is expected to go on; 0 to 1, 0: not at all."""

    @classmethod
    def of(cls, config: SwarmConfig) -> Tuning:
        """As the settings of a run say."""
        common = replace(
            cls.published() if config.mode == "published" else cls(),
            round_seconds=seconds(config.round), least_gain=config.gain, beta=config.beta,
        )  # fmt: skip
        if config.mode == "published":
            return common
        cost: CostModel = "published" if config.cost == "published" else "work"
        return replace(
            common, cost=cost, pairs=config.pairs, multiway=config.multiway,
            forecast=config.forecast,
        )  # fmt: skip

    @classmethod
    def published(cls) -> Tuning:
        """One donor and one receiver a round, costs N x Q x R (SWARM, chapter 4)."""
        return cls(
            cost="published", pairs=1, multiway=False, selective=False, enhanced_by=0.0, alarm=None
        )
