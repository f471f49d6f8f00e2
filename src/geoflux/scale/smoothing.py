"""Noise out of measurements: the mean of the last windows, or one in which old ones fade.

``D(n) = alpha D(n-1) + (1 - alpha) d(n)``: alpha is the weight of what was known *before*, so 0 is
no smoothing and 0.9 is slow.

Source: DRS IV-A.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from geoflux.errors import ConfigError
from geoflux.scale.measuring import OperatorSums
from geoflux.sections_scale import ScaleConfig

Measured = Mapping[str, OperatorSums]
_COUNTS = ("slots",)
"""What is as it is now, not a mean of what it was."""


@dataclass(frozen=True)
class Smoothing:
    """Either the mean of the last ``window`` measurements, at least 1, or ``alpha``, 0 to below 1:
    the weight of the old value."""

    window: int = 6
    alpha: float | None = None

    @classmethod
    def of(cls, config: ScaleConfig) -> Smoothing:
        """As the settings of a run say."""
        return cls(config.window, config.alpha or None)

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigError(f"window = {self.window!r}: expected at least 1 measurement")
        if self.alpha is not None and not 0 <= self.alpha < 1:
            raise ConfigError(
                f"alpha = {self.alpha!r}: expected 0 to below 1, the old one's weight"
            )


@dataclass(frozen=True)
class Smoothed:
    """Measurements so far; a new value comes out of every one more.

    >>> first = Smoothed(Smoothing(alpha=0.75)).after({"a": OperatorSums(1, arrivals=8.0)})
    >>> first.after({"a": OperatorSums(1, arrivals=16.0)}).now["a"].arrivals
    10.0
    """

    how: Smoothing
    kept: tuple[Measured, ...] = field(default_factory=tuple)
    """The last measurements; with ``alpha``, only what they have become."""

    @property
    def now(self) -> Measured:
        """Smoothed, of operators that were in the last measurement."""
        if not self.kept:
            return {}
        if self.how.alpha is not None:
            return self.kept[-1]
        out = {}
        for name, last in self.kept[-1].items():
            past = [measured[name] for measured in self.kept if name in measured]
            out[name] = _mean(past, [1 / len(past)] * len(past), last.slots)
        return out

    def after(self, measured: Measured) -> Smoothed:
        """With one more measurement."""
        if self.how.alpha is None:
            return Smoothed(self.how, (*self.kept, measured)[-self.how.window :])
        old = self.kept[-1] if self.kept else {}
        alpha = self.how.alpha
        faded = {
            name: _mean([old[name], new], [alpha, 1 - alpha], new.slots) if name in old else new
            for name, new in measured.items()
        }
        return Smoothed(self.how, (faded,))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {"kept": [{n: s.to_dict() for n, s in m.items()} for m in self.kept]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], how: Smoothing) -> Smoothed:
        """What :meth:`to_dict` gave; of nothing, none so far."""
        kept = tuple(
            {name: OperatorSums.from_dict(sums) for name, sums in measured.items()}
            for measured in values.get("kept", ())
        )
        return cls(how, kept)


def _mean(parts: list[OperatorSums], weights: list[float], slots: int) -> OperatorSums:
    """The weighted mean of all sums; by slot, only of those with as many slots."""
    out: dict[str, Any] = {"slots": slots}
    for known in fields(OperatorSums):
        if known.name in _COUNTS:
            continue
        values = [getattr(part, known.name) for part in parts]
        if isinstance(values[0], Mapping):
            if known.name == "by_slot":
                values = [v if p.slots == slots else {} for v, p in zip(values, parts, strict=True)]
            keys = {key for value in values for key in value}
            out[known.name] = {
                key: sum(w * v.get(key, 0.0) for w, v in zip(weights, values, strict=True))
                for key in sorted(keys)
            }
        else:
            out[known.name] = sum(w * v for w, v in zip(weights, values, strict=True))
    return OperatorSums(**out)
