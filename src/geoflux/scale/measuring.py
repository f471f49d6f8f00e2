"""From what slots report to the numbers that the model needs.

A slot reports sums over a stretch of time: tuples that came and were served, what their services
took, squared as well, how many tuples came out for whom. Sums add up over slots, and smoothed sums
give smoothed rates; a ratio of sums weighs every tuple the same, a mean of ratios would not.

Source: DRS IV-A. A tuple's service may be timed once in N_m; counts are never sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class SlotWindow:
    """What one slot of an operator did in ``seconds``."""

    operator: str
    slot: int
    seconds: float
    arrivals: int
    served: int
    busy_seconds: float
    """Of the ``timed`` services."""
    busy_squares: float
    """Sum of their squared times."""
    timed: int
    derived: Mapping[str, int] = field(default_factory=dict)
    """Tuples that came out of the served ones, by target."""
    derived_squares: Mapping[str, float] = field(default_factory=dict)
    """Sum over served tuples of the squared number; none: not counted."""
    waiting: int = 0
    """Tuples that wait for it at the end."""


@dataclass(frozen=True)
class InputWindow:
    """What came from outside for an operator in ``seconds``, and the times between."""

    operator: str
    seconds: float
    arrivals: int
    gaps: int = 0
    gap_seconds: float = 0.0
    gap_squares: float = 0.0


@dataclass(frozen=True)
class OperatorSums:
    """What all slots of an operator did, per second of the window."""

    slots: int
    arrivals: float = 0.0
    served: float = 0.0
    timed: float = 0.0
    busy_seconds: float = 0.0
    busy_squares: float = 0.0
    outside: float = 0.0
    gaps: float = 0.0
    gap_seconds: float = 0.0
    gap_squares: float = 0.0
    waiting: float = 0.0
    derived: Mapping[str, float] = field(default_factory=dict)
    derived_squares: Mapping[str, float] = field(default_factory=dict)
    by_slot: Mapping[int, float] = field(default_factory=dict)
    """Arrivals, per slot."""

    @property
    def service_rate(self) -> float | None:
        """Tuples that one processor serves in a second of work; ``None``: nothing was timed."""
        if self.timed <= 0 or self.busy_seconds <= 0:
            return None
        return self.timed / self.busy_seconds

    @property
    def service_scv(self) -> float | None:
        """Squared coefficient of variation of the service times."""
        if self.timed <= 0 or self.busy_seconds <= 0:
            return None
        return max(self.timed * self.busy_squares / self.busy_seconds**2 - 1, 0.0)

    @property
    def arrival_scv(self) -> float | None:
        """The same of the times between inputs from outside."""
        if self.gaps <= 0 or self.gap_seconds <= 0:
            return None
        return max(self.gaps * self.gap_squares / self.gap_seconds**2 - 1, 0.0)

    @property
    def busiest_share(self) -> float:
        """The share of the arrivals that the busiest slot got."""
        total = sum(self.by_slot.values())
        return max(self.by_slot.values()) / total if total > 0 else 1 / max(self.slots, 1)

    @property
    def heaviest(self) -> float:
        """The share of the input that is not divided, if the rest is spread evenly: what makes the
        busiest slot as busy as it is.

        >>> round(OperatorSums(4, by_slot={0: 4.0, 1: 2.0, 2: 2.0, 3: 2.0}).heaviest, 6)
        0.2
        """
        if self.slots < 2:
            return 0.0
        return max((self.busiest_share * self.slots - 1) / (self.slots - 1), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"by_slot": {str(k): v for k, v in self.by_slot.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OperatorSums:
        """What :meth:`to_dict` gave, also by way of JSON."""
        by_slot = {int(k): v for k, v in values["by_slot"].items()}
        return cls(**{**values, "by_slot": by_slot})


_MAPPINGS = ("derived", "derived_squares", "by_slot")
_NUMBERS = tuple(f.name for f in fields(OperatorSums) if f.name not in _MAPPINGS)


def aggregated(
    windows: Iterable[SlotWindow], inputs: Iterable[InputWindow] = ()
) -> dict[str, OperatorSums]:
    """The slots' reports by operator; slots may have looked for different lengths of time.

    >>> slots = [SlotWindow("a", slot, 2.0, 10, 8, 1.6, 0.5, 8) for slot in (0, 1)]
    >>> sums = aggregated(slots)["a"]
    >>> sums.arrivals, sums.service_rate, round(sums.service_scv, 4)
    (10.0, 5.0, 0.5625)
    """
    numbers: dict[str, dict[str, float]] = {}
    mappings: dict[str, dict[str, dict[Any, float]]] = {}
    for w in windows:
        per = 1 / w.seconds
        add = numbers.setdefault(w.operator, dict.fromkeys(_NUMBERS, 0.0))
        add["slots"] += 1
        add["waiting"] += w.waiting
        for name in ("arrivals", "served", "timed", "busy_seconds", "busy_squares"):
            add[name] += getattr(w, name) * per
        into = mappings.setdefault(w.operator, {name: {} for name in _MAPPINGS})
        _add(into["derived"], w.derived, per)
        _add(into["derived_squares"], w.derived_squares, per)
        _add(into["by_slot"], {w.slot: w.arrivals}, per)
    for i in inputs:
        per = 1 / i.seconds
        add = numbers.setdefault(i.operator, dict.fromkeys(_NUMBERS, 0.0))
        add["outside"] += i.arrivals * per
        for name in ("gaps", "gap_seconds", "gap_squares"):
            add[name] += getattr(i, name) * per
    out = {}
    for operator, add in numbers.items():
        values: dict[str, Any] = {**add, **mappings.get(operator, {}), "slots": int(add["slots"])}
        out[operator] = OperatorSums(**values)
    return out


def _add(to: dict[Any, float], more: Mapping[Any, float], by: float) -> None:
    for key, value in more.items():
        to[key] = to.get(key, 0.0) + value * by
