"""The groups of an answer: covered rows by region prefix and time, over all forests alike."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoflux.sketch.cover import Covered

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The groups of an answer, ascending: region prefix, start of the unit of time, hour of day.
    Without anything to group by there is one."""

    prefix: Ints
    start: Ints
    hour: Ints
    of_items: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.prefix)


def grouped(covers: Sequence[Covered], bits: int | None, by_time: bool) -> Groups:
    """Items by the first ``bits`` bits of their region (``None``: all alike) and their time."""
    if bits is None and not by_time:
        none = np.zeros(1, np.int64)
        parts = tuple(np.zeros(len(c.items.row), np.int64) for c in covers)
        return Groups(none, none, none, parts)
    columns = []
    for cover in covers:
        region = cover.view.regions[cover.rows.region[cover.items.row]]
        shift = 0 if bits is None else cover.view.schema.region_bits - bits
        prefix = region >> shift if bits is not None else np.zeros_like(region)
        start = cover.starts[cover.items.unit // 24]
        columns.append((prefix, start * 32 + cover.items.unit % 24))
    prefix, time = (np.concatenate([c[k] for c in columns]) for k in range(2))
    order = np.lexsort((time, prefix))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(prefix[order]) != 0) | (np.diff(time[order]) != 0)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    ends = np.cumsum([0, *(len(c[0]) for c in columns)])
    parts = tuple(number[a:b] for a, b in itertools.pairwise(ends))
    kept = order[new]
    return Groups(prefix[kept], time[kept] // 32, time[kept] % 32, parts)
