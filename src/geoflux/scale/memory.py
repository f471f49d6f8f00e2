"""All that the scheduler remembers, as plain values for the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from geoflux.scale.decisions import Action


@dataclass(frozen=True)
class OnTrial:
    """A change that was made and is not judged yet: what it replaced, the time measured before, the
    time promised, the load it was made under, and what it has cost so far."""

    action: Action
    before: Mapping[str, int]
    after: Mapping[str, int]
    at: float
    measured: float | None
    promised: float
    rate: float
    cost: float = 0.0
    looked_at: float = 0.0


@dataclass(frozen=True)
class Failed:
    """A change that did not help: not to be tried again until then, under a like load."""

    action: Action
    after: Mapping[str, int]
    rate: float
    until: float


@dataclass(frozen=True)
class ScaleMemory:
    """The scheduler's state.

    >>> ScaleMemory.from_dict(ScaleMemory(changed_at=3.0).to_dict()) == ScaleMemory(changed_at=3.0)
    True
    """

    number: int = 0
    """Decisions that changed something, or would have."""
    started_at: float | None = None
    changed_at: float | None = None
    asking: str = "none"
    asked: int = 0
    """What the last looks asked for, and how many in a row."""
    over_since: float | None = None
    needs: tuple[tuple[float, int], ...] = ()
    """When how many processors were needed, while there were too many."""
    trial: OnTrial | None = None
    failed: tuple[Failed, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    """What changes have cost, by action, smoothed."""
    offset: float = 0.0
    """By how much inputs take longer than the model says: what lies outside its queues."""
    back_to: Mapping[str, int] | None = None
    """Where a change that did not help came from."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        out = asdict(self) | {"needs": [list(need) for need in self.needs]}
        return out | {"failed": list(out["failed"])}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ScaleMemory:
        """What :meth:`to_dict` gave, also by way of JSON; of nothing, the state at the start."""
        if not values:
            return cls()
        trial = values["trial"]
        return cls(**{
            **values,
            "needs": tuple((float(at), int(k)) for at, k in values["needs"]),
            "trial": None if trial is None else OnTrial(**trial),
            "failed": tuple(Failed(**failed) for failed in values["failed"]),
        })  # fmt: skip
