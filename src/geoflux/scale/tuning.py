"""What the scheduler is asked for, and how patient it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from geoflux.errors import ConfigError
from geoflux.scale.forms import Model
from geoflux.sections_scale import ScaleConfig
from geoflux.settings import seconds

Problem = Literal["latency", "processors"]
_SHORTEST = 0.25
"""T_min as a share of T_max, where nobody says."""


@dataclass(frozen=True)
class ScaleTuning:
    """The knobs of the scheduler; times in seconds.

    ``latency``: the least total sojourn time with ``most`` processors. ``processors``: the fewest
    with which it stays at ``longest`` at most, given back while it is below ``shortest``.
    """

    problem: Problem = "latency"
    most: int = 64
    """Processors that may be used (K_max); at least 1."""
    longest: float = 1.0
    """T_max; above 0."""
    shortest: float = 0.0
    """T_min; below T_max."""
    between: float = 60.0
    """At least so long between two changes, and before the first (T_ra)."""
    patience: int = 3
    """So many looks in a row must ask for a change; at least 1."""
    calm: int = 9
    """The same where as many processors elsewhere would merely be better: nothing is urgent there,
    and noise names something better now and then; at least 1."""
    least_gain: float = 0.1
    """A change must be predicted to shorten the time by this share; 0 to 1."""
    headroom: float = 0.7
    """More processors are chosen so that waiting takes this share of what T_max leaves for it, and
    the next look is not short again; above 0, to 1."""
    payback: float = 600.0
    """Within so long a change must have gained what it cost."""
    cost: float = 15.0
    """What a change costs until the first was measured: seconds by which inputs take longer, times
    the seconds for which they do."""
    wait_down: float = 300.0
    """Processors are given back when there have been too many for so long; as many stay as were
    needed at any time of it."""
    settle: float = 30.0
    """So long after a change nothing that is measured is held for its result."""
    helped: float = 0.25
    """A change of which less than this share of what was promised came true did not help."""
    forget: float = 3600.0
    """For so long what did not help is not tried again under a like load."""
    like: float = 0.2
    """Loads that differ by less than this share are alike."""
    catch_up: float = 60.0
    """What has piled up is to be worked off within so long."""
    observe: bool = False
    """Only say what would be done."""
    model: Model = "gigk"

    @classmethod
    def of(cls, config: ScaleConfig) -> ScaleTuning:
        """As the settings of a run say."""
        longest = seconds(config.longest)
        problem: Problem = "latency" if config.goal == "latency" else "processors"
        model: Any = config.model
        return cls(
            problem, config.processors, longest,
            seconds(config.shortest) if config.shortest else longest * _SHORTEST,
            seconds(config.apart), config.patience, 3 * config.patience, config.gain,
            config.headroom, seconds(config.payback), wait_down=seconds(config.wait_down),
            settle=seconds(config.settle), observe=config.mode == "observe", model=model,
        )  # fmt: skip

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {getattr(self, name)!r}: expected {expected}"
            for name, good, expected in (
                ("problem", self.problem in ("latency", "processors"), "latency or processors"),
                ("most", self.most >= 1, "at least 1 processor"),
                ("longest", self.longest > 0, "more than 0 seconds"),
                ("shortest", 0 <= self.shortest < self.longest, "from 0, below `longest`"),
                ("between", self.between >= 0, "at least 0 seconds"),
                ("patience", self.patience >= 1, "at least 1 look"),
                ("calm", self.calm >= 1, "at least 1 look"),
                ("least_gain", 0 <= self.least_gain < 1, "from 0, below 1"),
                ("headroom", 0 < self.headroom <= 1, "above 0, up to 1"),
                ("payback", self.payback > 0, "more than 0 seconds"),
                ("cost", self.cost >= 0, "at least 0"),
                ("wait_down", self.wait_down >= 0, "at least 0 seconds"),
                ("settle", self.settle >= 0, "at least 0 seconds"),
                ("helped", 0 <= self.helped <= 1, "0 to 1"),
                ("forget", self.forget >= 0, "at least 0 seconds"),
                ("like", 0 <= self.like < 1, "from 0, below 1"),
                ("catch_up", self.catch_up > 0, "more than 0 seconds"),
            )
            if not good
        ]
        if problems:
            raise ConfigError.of(problems)
