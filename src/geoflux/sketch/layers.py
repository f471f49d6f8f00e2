"""Layers of leaves: each batch is one, and layers of like size become one together.

A leaf is copied once whenever its layer becomes part of a larger one, so about
``log(all / batch, FAN_IN)`` times; there are fewer than ``FAN_IN`` layers of each size.
"""

from __future__ import annotations

from math import log

from geoflux.sketch.bounding import bounded
from geoflux.sketch.leaves import Leaves, merged

FAN_IN = 6
"""Layers of like size that become one. More: leaves are copied less often, but a query that looks
at all of them has more to merge."""

Layers = tuple[Leaves, ...]


def appended(layers: Layers, newest: Leaves, most: int = 0, last_grain: int = 0) -> Layers:
    """With one more layer, the newest last; each with at most so many leaves of a region and time
    bin (0: any number)."""
    newest = bounded(newest, most, last_grain)
    layers = tuple(layer for layer in (*layers, newest) if len(layer))
    while layers:
        size = _size(layers[-1])
        alike = 1
        while alike < len(layers) and _size(layers[-1 - alike]) <= size:
            alike += 1
        if alike < FAN_IN:
            break
        layers = (*layers[:-alike], bounded(merged(layers[-alike:]), most, last_grain))
    return layers


def paired(some: Layers, others: Layers) -> Layers:
    """Layers of disjoint regions as one list; the newest of both become one layer, and so on.

    Leaves of a region keep their order of age, so that merging all gives the same bits as before.
    """
    longer, shorter = (some, others) if len(some) >= len(others) else (others, some)
    kept = len(longer) - len(shorter)
    both = (merged(pair) for pair in zip(longer[kept:], shorter, strict=True))
    return (*longer[:kept], *both)


def _size(layer: Leaves) -> int:
    return int(log(max(len(layer), 1), FAN_IN))
