"""Where a hotspot was made, and whether two were made at places apart.

A crowd stays where its event is; who wants the plan to chase them must go elsewhere. The place of a
hotspot is where the recent queries of its suspects lie, not the partition: that may be half the
world at first, and a sliver after it was split. Two places are one if they meet when grown, or if a
third hotspot meets both: the pieces of an event that was split up belong together. A chain of more
than one is no bridge, or small steps would lead anywhere unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Place = tuple[float, float, float, float]
"""West, south, east, north, in cells."""
_DEVIATIONS = 2.0


def place_of(footprints: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> Place:
    """The box around what users have placed: two standard deviations either way.

    >>> place_of(np.array([[10.0, 20.0, 1.0, 2.0]]), np.array([5.0]))
    (8.0, 16.0, 12.0, 24.0)
    """
    share = weights / weights.sum()
    middle = share @ footprints[:, :2]
    between = share @ (footprints[:, :2] - middle) ** 2
    within = share @ footprints[:, 2:] ** 2
    reach = _DEVIATIONS * np.sqrt(between + within)
    low, high = middle - reach, middle + reach
    return (float(low[0]), float(low[1]), float(high[0]), float(high[1]))


@dataclass(frozen=True)
class Reach:
    """How far a place goes: it is taken to be at least ``least`` cells wide and high, and grows by
    ``margin`` of its sides either way."""

    margin: float
    least: float = 0.0

    def grown(self, place: Place) -> Place:
        """A place with all that counts as the same.

        >>> Reach(0.5, 10.0).grown((40, 40, 60, 41))
        (30.0, 30.5, 70.0, 50.5)
        """
        west, south, east, north = place
        x, y = (
            (max(side, self.least) - side) / 2 + self.margin * max(side, self.least)
            for side in (east - west, north - south)
        )
        return (west - x, south - y, east + x, north + y)


def outside(spots: npt.NDArray[np.float64], place: Place, reach: Reach) -> npt.NDArray[np.bool_]:
    """Which spots (middle and spread) lie mostly outside a place that has grown: the middle does,
    or the spread is wider than the place.

    >>> spots = np.array([[5.0, 5.0, 1.0, 1.0], [50.0, 5.0, 1.0, 1.0], [5.0, 5.0, 90.0, 9.0]])
    >>> outside(spots, (0, 0, 10, 10), Reach(0.5)).tolist()
    [False, True, True]
    """
    west, south, east, north = reach.grown(place)
    x, y, wide, high = spots.T
    away = (x < west) | (x > east) | (y < south) | (y > north)
    return np.asarray(away | (2 * wide > east - west) | (2 * high > north - south))


def meet(one: Place, other: Place, reach: Reach) -> bool:
    """Whether places are one, once each has grown.

    >>> near, far = (8, 0, 12, 4), (9, 0, 13, 4)
    >>> meet((0, 0, 4, 4), near, Reach(0.5)), meet((0, 0, 4, 4), far, Reach(0.5))
    (True, False)
    """
    return _touch(reach.grown(one), reach.grown(other))


def apart(one: Place, other: Place, known: Sequence[Place], reach: Reach) -> bool:
    """Whether places are two: they do not meet, and nothing known meets both."""
    wide = reach.grown(one), reach.grown(other)
    if _touch(*wide):
        return False
    return not any(all(_touch(third, place) for place in wide) for third in known)


def _touch(one: Place, other: Place) -> bool:
    west, south, east, north = one
    left, low, right, high = other
    return west <= right and left <= east and south <= high and low <= north
