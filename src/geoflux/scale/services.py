"""Service times from the times of batches: nobody looks at the clock for every tuple.

A batch of ``n`` tuples takes ``a + b n`` and a deviation that grows with the square root of ``n``
if its services are independent: ``a`` is what a batch costs by itself. From a few sums over batches
follow both, and what the times of single services would deviate by. The sums add up over batches,
slots and epochs. Where single services are known (emulated ones), their squares are.

Source: DRS IV-A wants the mean; the variability is for GI/G/k. Weighted least squares, weights 1/n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

_LEAST_BATCHES = 4


@dataclass(frozen=True)
class ServiceSums:
    """Sums over batches of ``n`` services that took ``t`` seconds.

    >>> sums = ServiceSums.of([(10, 1.5), (20, 2.5), (40, 4.5), (80, 8.5)])
    >>> sums.seconds, round(sums.mean, 4), round(sums.scv, 4)
    (17.0, 0.1133, 0.0)
    """

    timed: int = 0
    """Services: the sum of n."""
    seconds: float = 0.0
    """The sum of t."""
    batches: int = 0
    inverse: float = 0.0
    """Sum of 1/n."""
    per_service: float = 0.0
    """Sum of t/n."""
    squares: float = 0.0
    """Sum of t²/n."""
    known: int = 0
    """Services whose own times are known, all or none of a batch's."""
    known_squares: float = 0.0
    """The sum of their squares."""

    @classmethod
    def of(
        cls, batches: Sequence[tuple[int, float]], known_squares: float | None = None
    ) -> ServiceSums:
        """Of batches, each with its number of services, 1 or more, and its time;
        ``known_squares``: of all these services, where their own times are known."""
        if not batches:
            return cls()
        n, t = np.array(batches, np.float64).T
        timed = int(n.sum())
        return cls(
            timed, float(t.sum()), len(batches), float((1 / n).sum()), float((t / n).sum()),
            float((t * t / n).sum()), 0 if known_squares is None else timed, known_squares or 0.0,
        )  # fmt: skip

    def __add__(self, other: ServiceSums) -> ServiceSums:
        return ServiceSums(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def mean(self) -> float | None:
        """Seconds of a service, its share of the batches' own costs included."""
        return self.seconds / self.timed if self.timed else None

    @property
    def scv(self) -> float | None:
        """Squared coefficient of variation of single services; ``None``: too few batches."""
        if not self.timed or self.seconds <= 0:
            return None
        mean = self.seconds / self.timed
        if self.known == self.timed:
            return max(self.known_squares / self.timed / mean**2 - 1, 0.0)
        if self.batches < _LEAST_BATCHES:
            return None
        rest, free = self._residual()
        return max(rest, 0.0) / free / mean**2

    def _residual(self) -> tuple[float, int]:
        """The weighted squares that the line leaves, and the degrees of freedom."""
        alike = self.squares - self.seconds**2 / self.timed
        spread = self.inverse * self.timed - self.batches**2
        if spread <= 1e-9 * self.batches**2:  # all batches as large: what they cost is in b
            return alike, self.batches - 1
        a = (self.per_service * self.timed - self.seconds * self.batches) / spread
        if a <= 0:
            return alike, self.batches - 1
        b = (self.seconds - a * self.batches) / self.timed
        return self.squares - a * self.per_service - b * self.seconds, self.batches - 2

    def to_list(self) -> list[float]:
        """Plain values, for a report."""
        return list(astuple(self))

    @classmethod
    def from_list(cls, values: Sequence[float]) -> ServiceSums:
        """What :meth:`to_list` gave; of nothing, none."""
        return cls(*values)  # type: ignore[arg-type]
