"""Where the events of Guard's timelines are: cities in the unit square, more and less busy in turn.

City shares wander, each by itself, so that there are hotspots that nobody made. What they are at a
moment follows from the seed alone, whatever was drawn from them before: runs of one seed can be
compared minute by minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_ZIPF = 0.8
_SPREAD = 0.015
"""Standard deviation of a city, as a share of the space's side."""
_MINUTES = 10.0
"""After which a city has forgotten how busy it was."""


@dataclass
class World:
    """Cities whose shares of the events follow Zipf's law and wander by ``restless`` (standard
    deviation of the logarithm).

    >>> world = World(1, side=50)
    >>> abs(float(world.density().sum()) - 1.0) < 1e-9
    True
    """

    seed: int
    cities: int = 60
    side: int = 250
    restless: float = 0.2
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng((self.seed, 0))
        self._drawing = np.random.default_rng((self.seed, 10))
        self.middles = self._rng.random((self.cities, 2)) * 0.9 + 0.05
        self._shares = np.arange(1, self.cities + 1) ** -_ZIPF
        self._mood = self._rng.normal(0.0, 1.0, self.cities)
        self._density: Floats | None = None
        edges = (np.arange(self.side) + 0.5) / self.side
        bells = [np.exp(-(((edges - self.middles[:, [k]]) / _SPREAD) ** 2) / 2) for k in (0, 1)]
        self._x, self._y = (bell / bell.sum(axis=1, keepdims=True) for bell in bells)

    @property
    def shares(self) -> Floats:
        """Of the cities, now."""
        shares = self._shares * np.exp(self.restless * self._mood)
        return np.asarray(shares / shares.sum())

    def pass_time(self, seconds: float) -> None:
        """Cities become busier and calmer."""
        kept = np.exp(-seconds / 60.0 / _MINUTES)
        drawn = self._rng.normal(0.0, 1.0, self.cities)
        self._mood = kept * self._mood + np.sqrt(1 - kept**2) * drawn
        self._density = None

    def density(self) -> Floats:
        """The share of the events in every cell, row by row; not to be changed."""
        if self._density is None:
            self._density = np.asarray(((self._y.T * self.shares) @ self._x).ravel())
        return self._density

    def sample(self, count: int) -> tuple[Floats, Floats]:
        """Positions of events of the live stream."""
        city = self._drawing.choice(self.cities, count, p=self.shares)
        places = self.middles[city] + self._drawing.normal(0, _SPREAD, (count, 2))
        places = np.clip(places, 0, np.nextafter(1.0, 0.0))
        return places[:, 0], places[:, 1]
