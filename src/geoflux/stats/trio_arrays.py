"""Statistics of several partitions as named arrays, to be stored in one segment and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.errors import StateError
from geoflux.stats.trio import TrioStat
from geoflux.stats.trio_kernels import FIELDS

VERSION = 1
"""Changes whenever the meaning of the numbers does."""

Arrays = dict[str, npt.NDArray[Any]]


def stats_to_arrays(stats: Mapping[int, TrioStat], prefix: str = "trio.") -> Arrays:
    """The statistics by partition as flat arrays.

    >>> from geoflux.plan import Partition
    >>> arrays = stats_to_arrays({7: TrioStat.empty(Partition(7, 0, 0, 3, 2, slot=0))})
    >>> sorted(arrays)
    ['trio.boxes', 'trio.partitions', 'trio.values', 'trio.version']
    >>> stats_from_arrays(arrays)[7].box
    (0, 0, 3, 2)
    """
    boxes = np.array([stat.box for stat in stats.values()], np.int32)
    values = [stat.table.ravel() for stat in stats.values()]
    return {
        prefix + "version": np.array([VERSION], np.int32),
        prefix + "partitions": np.array(list(stats), np.int64),
        prefix + "boxes": boxes.ravel(),
        prefix + "values": np.concatenate(values) if values else np.empty(0),
    }


def stats_from_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "trio."
) -> dict[int, TrioStat]:
    """What :func:`stats_to_arrays` gave, as copies: stored arrays must not change."""
    version = int(arrays[prefix + "version"][0])
    if version != VERSION:
        raise StateError(
            f"the statistics are of version {version}, this is geoflux with version {VERSION}: "
            "use a new directory, or the geoflux that wrote this one"
        )
    boxes = arrays[prefix + "boxes"].reshape(-1, 4)
    values = arrays[prefix + "values"]
    stats = {}
    first = 0
    for partition, box in zip(arrays[prefix + "partitions"], boxes, strict=True):
        col0, row0, col1, row1 = (int(edge) for edge in box)
        lines = row1 - row0 + col1 - col0
        table = values[first : first + lines * FIELDS].reshape(lines, FIELDS).copy()
        stats[int(partition)] = TrioStat(col0, row0, col1, row1, table)
        first += lines * FIELDS
    return stats
