"""Total sojourn times out of manifests: trees that begin, grow and end, and their mean.

A tree begins when its input was there, where the source says when, otherwise when the epoch that
took it in was opened; it ends when the epoch is committed that acknowledges the last of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from geoflux.scale.acks import Ids, Times, Trees

_LEAST_LOOKS = 3


class Known(Protocol):
    """What is remembered of an operator."""

    @property
    def position(self) -> int:
        """The end of its input, as of the last epoch."""
        ...


def grown(
    trees: Trees, known: Mapping[str, Known], news: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[Trees, Times]:
    """The trees after the epochs of all operators, and how long those took that are complete."""
    begun: list[tuple[Ids, Times]] = []
    roots: list[Ids] = []
    acks: list[tuple[Ids, Times]] = []
    for name, manifests in news.items():
        position = known[name].position
        for m in manifests:
            new = np.array(m.get("roots", ()), np.uint64).reshape(-1, 3)
            if len(new):
                begun.append((new[:, 1], began_at(m, new[:, 2].astype(np.float64), position)))
                roots.append(new[:, 0])
            done = np.array(m.get("acks", ()), np.uint64).reshape(-1, 2)
            acks.append((done, np.full(len(done), m["committed"])))
            position = m.get("position") or position
    ended: list[Times] = []
    if roots:
        ids, times = (np.concatenate(part) for part in zip(*begun, strict=True))
        trees, done_now = trees.begun(np.concatenate(roots), ids, times)
        ended.append(done_now.sojourns)
    if acks:
        pairs, times = (np.concatenate(part) for part in zip(*acks, strict=True))
        trees, done_now = trees.acknowledged(pairs[:, 0], pairs[:, 1], times)
        ended.append(done_now.sojourns)
    return trees, np.concatenate([*ended, np.empty(0)])


def began_at(manifest: Mapping[str, Any], positions: Times, start: int) -> Times:
    """When inputs at some positions were there, evenly between the first and the last."""
    arrivals = manifest.get("arrivals")
    if not arrivals:
        return np.full(len(positions), manifest["opened"])
    first, last = arrivals
    span = max((manifest.get("position") or start) - start - 1, 1)
    share: Times = np.clip((positions - start) / span, 0.0, 1.0)
    return first + share * (last - first)


@dataclass(frozen=True)
class Sojourns:
    """Number, sum and sum of squares of the times of each of the last looks that had any.

    >>> seen = Sojourns().after(np.array([1.0, 3.0]), 6).after(np.array([2.0]), 6)
    >>> seen.mean_and_error()[0]
    2.0
    """

    looks: tuple[tuple[int, float, float], ...] = field(default_factory=tuple)

    def after(self, times: Times, window: int) -> Sojourns:
        """With one more look, of at most ``window``."""
        looks = self.looks
        if len(times):
            looks = (*looks, (len(times), float(times.sum()), float(times @ times)))
        return Sojourns(looks[-window:])

    def mean_and_error(self) -> tuple[float | None, float]:
        """The mean of all and its standard error, ``None`` if there are none. Times of one epoch
        are alike: where there are several looks, how their means differ says more than how single
        times do, and the larger of the two counts."""
        if not self.looks:
            return None, 0.0
        counts, sums, squares = (np.array(part) for part in zip(*self.looks, strict=True))
        total = counts.sum()
        mean = float(sums.sum() / total)
        variance = max(float(squares.sum()) / total - mean**2, 0.0)
        error = math.sqrt(variance / total)
        if len(counts) >= _LEAST_LOOKS:
            spread = float((counts * (sums / counts - mean) ** 2).sum() / total)
            error = max(error, math.sqrt(spread / (len(counts) - 1)))
        return mean, error
