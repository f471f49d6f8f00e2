"""What the scheduler sees, and what it says: values, "no change" included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from geoflux.scale.network import Network
from geoflux.scale.sojourn import Prediction

Action = Literal["none", "scale_out", "scale_in", "rearrange"]
Trigger = Literal["none", "shortage", "overprovision", "suboptimal", "no_help"]


@dataclass(frozen=True)
class Look:
    """What was measured, as of ``now`` (seconds of the clock that is handed in): the network with
    smoothed numbers, the processors that operators have, the mean total sojourn time with its
    standard error (``None``: no tree was completed), and tuples that wait, by operator."""

    now: float
    network: Network
    allocation: Mapping[str, int]
    sojourn: float | None = None
    error: float = 0.0
    backlog: Mapping[str, float] = field(default_factory=dict)

    @property
    def processors(self) -> int:
        """All together."""
        return sum(self.allocation.values())


@dataclass(frozen=True)
class ScaleDecision:
    """What is to be done before the next epochs, and why. ``after`` is the allocation from then on;
    ``carried_out`` is false for what is only recommended, and for no change."""

    number: int
    at: float
    action: Action
    trigger: Trigger
    reason: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    carried_out: bool
    measured: float | None
    """Total sojourn time, in seconds; so are the next two."""
    predicted_before: float | None
    predicted_after: float | None
    rate: float
    """Inputs a second."""
    details: Prediction | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        out = {name: value for name, value in vars(self).items() if name != "details"}
        out |= {"before": dict(self.before), "after": dict(self.after)}
        out["operators"] = None if self.details is None else self.details.to_dict()["operators"]
        return out


def piled_up(look: Look, now: Prediction) -> dict[str, float]:
    """Tuples that wait beyond what always waits: twice what the model expects at the operator (by
    Little's law) is no pile. Where it cannot keep up, all of them are.

    >>> from geoflux.scale.network import Operator
    >>> from geoflux.scale.sojourn import predict
    >>> look = Look(0.0, Network((Operator("a", 1.0, 0.5),)), {"a": 1}, backlog={"a": 7.0})
    >>> piled_up(look, predict(look.network, look.allocation))
    {'a': 5.0}
    """
    piled = {}
    for at in now.operators:
        usual = 2 * at.rate * at.sojourn if math.isfinite(at.sojourn) else 0.0
        beyond = look.backlog.get(at.name, 0.0) - usual
        if beyond > 0:
            piled[at.name] = beyond
    return piled


def finite(seconds: float) -> float | None:
    """``None`` for what never ends: plain values know no infinity."""
    return seconds if math.isfinite(seconds) else None


def told(seconds: float | None) -> str:
    """A time in words.

    >>> told(0.0123), told(None), told(float("inf"))
    ('0.0123 s', 'unknown', 'no end')
    """
    if seconds is None:
        return "unknown"
    return f"{seconds:.3g} s" if math.isfinite(seconds) else "no end"


def shown(allocation: Mapping[str, int]) -> str:
    """An allocation in words, as the paper writes it.

    >>> shown({"extract": 10, "match": 11})
    '10:11'
    """
    return ":".join(str(k) for k in allocation.values())
