"""City-like clusters of Zipf sizes in the unit square: the skewed stream of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """``count`` clusters whose sizes follow Zipf's law with ``exponent``, normal inside, with a
    standard deviation of ``spread`` x 1 to 3 of the side; all from ``seed``.

    >>> x, y = Clusters(seed=1).points(1000, stream=0)
    >>> bool(((x >= 0) & (x < 1) & (y >= 0) & (y < 1)).all())
    True
    """

    seed: int = 7
    count: int = 2000
    exponent: float = 1.0
    spread: float = 0.0027

    @cached_property
    def _layout(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        draw = np.random.default_rng([self.seed, 0])
        weight = 1 / np.arange(1, self.count + 1) ** self.exponent
        centre = draw.random((2, self.count))
        return (
            np.cumsum(weight / weight.sum()),
            *centre,
            self.spread * (1 + 2 * draw.random(self.count)),
        )

    def points(self, count: int, stream: int) -> tuple[FloatArray, FloatArray]:
        """Points in the unit square; streams are independent of each other."""
        share, cx, cy, spread = self._layout
        draw = np.random.default_rng([self.seed, 1, stream])
        cluster = np.minimum(np.searchsorted(share, draw.random(count)), self.count - 1)
        x = cx[cluster] + spread[cluster] * draw.standard_normal(count)
        y = cy[cluster] + spread[cluster] * draw.standard_normal(count)
        return np.abs(x) % 1.0, np.abs(y) % 1.0
